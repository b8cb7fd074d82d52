/** Computes which rows and columns of a large grid are visible. Plain arithmetic on pixels. */

interface Range {
  readonly first: number;
  /** Exclusive. */
  readonly end: number;
}

/**
 * Visible rows, all of equal height. `spare` additional rows on each side prevent gaps during fast
 * scrolling.
 */
export function rowWindow(
  scrollTop: number,
  viewHeight: number,
  rowHeight: number,
  rowCount: number,
  spare: number,
): Range {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - spare);
  const end = Math.min(rowCount, Math.ceil((scrollTop + viewHeight) / rowHeight) + spare);
  return { first: Math.min(first, end), end };
}

/** Left edges of all columns, and the right edge of the last column. */
export function edgesOf(widths: readonly number[]): number[] {
  const edges = [0];
  let edge = 0;
  for (const width of widths) {
    edge += width;
    edges.push(edge);
  }
  return edges;
}

/** Columns that overlap the view, found by binary search. */
export function columnWindow(
  scrollLeft: number,
  viewWidth: number,
  edges: readonly number[],
): Range {
  const count = edges.length - 1;
  const first = Math.max(0, lastAtMost(edges, scrollLeft));
  const end = Math.min(count, lastAtMost(edges, scrollLeft + viewWidth) + 1);
  return { first: Math.min(first, count), end: Math.max(end, Math.min(first, count)) };
}

function lastAtMost(edges: readonly number[], position: number): number {
  let low = 0;
  let high = edges.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((edges[middle] ?? 0) <= position) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/** Scroll position that makes `start..end` visible with the smallest movement. */
export function scrollInto(scroll: number, view: number, start: number, end: number): number {
  if (start < scroll) {
    return start;
  }
  if (end > scroll + view) {
    return Math.max(0, end - view);
  }
  return scroll;
}

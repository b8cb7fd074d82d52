/**
 * Computes which rows and columns of a large grid are visible. This module does not access the DOM.
 */

interface Range {
  readonly first: number;
  /** End of the range, exclusive. */
  readonly end: number;
}

/**
 * Returns the range of visible rows, which all have the same height. `spare` additional rows above
 * and below prevent gaps during fast scrolling.
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

/** Returns the left edges of all columns, followed by the right edge of the last column. */
export function edgesOf(widths: readonly number[]): number[] {
  const edges = [0];
  let edge = 0;
  for (const width of widths) {
    edge += width;
    edges.push(edge);
  }
  return edges;
}

/** Returns the range of columns that overlap the view, found by binary search. */
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

/** Returns the scroll position that makes `start..end` visible with the least movement. */
export function scrollInto(scroll: number, view: number, start: number, end: number): number {
  if (start < scroll) {
    return start;
  }
  if (end > scroll + view) {
    return Math.max(0, end - view);
  }
  return scroll;
}

/**
 * Rows that are higher together than an element of the page may be. The element is as high as it
 * may be; a scroll by hand moves rows as far as it says, a jump goes to the same share of all rows.
 * Plain arithmetic over pixels.
 */

/** Browsers draw no elements of more than about 17 million pixels, and exactly none of 8. */
export const MAX_HEIGHT = 6_000_000;
/** A scroll by more than so many views is a jump. */
const JUMP_VIEWS = 3;

interface Heights {
  /** Of all rows. */
  readonly full: number;
  readonly view: number;
}

/** Where the element is to be scrolled to, and how far the rows are from where they would be. */
interface Place {
  readonly top: number;
  readonly shift: number;
}

/** The height of the element for rows of a height. */
export function elementHeight(full: number): number {
  return Math.min(full, MAX_HEIGHT);
}

/** Where the rows' pixel `at` belongs: at the same share of the element as of the rows. */
export function placeOf(at: number, { full, view }: Heights): Place {
  const most = Math.max(0, full - view);
  const kept = Math.max(0, Math.min(at, most));
  if (full <= MAX_HEIGHT) {
    return { top: kept, shift: 0 };
  }
  const top = Math.round((kept / most) * (MAX_HEIGHT - view));
  return { top, shift: kept - top };
}

/** The rows' pixel at the top of the view after a scroll of the element. */
export function pixelAt(top: number, before: Place, heights: Heights): number {
  const { full, view } = heights;
  if (full <= MAX_HEIGHT) {
    return top;
  }
  const isJump = Math.abs(top - before.top) > JUMP_VIEWS * view;
  const at = isJump ? (top / (MAX_HEIGHT - view)) * (full - view) : top + before.shift;
  return Math.max(0, Math.min(Math.round(at), full - view));
}

/** Whether the element cannot be scrolled on although there are rows further on. */
export function isAtEdge(top: number, at: number, { full, view }: Heights): boolean {
  return (
    full > MAX_HEIGHT &&
    ((top <= 0 && at > 0) || (top >= MAX_HEIGHT - view - 1 && at < full - view))
  );
}

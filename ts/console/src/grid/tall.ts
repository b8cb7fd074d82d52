/**
 * Scrolling of grids whose rows together exceed the maximum height of an element. The element then
 * has the maximum height. A small scroll moves the rows by the same number of pixels, and a jump
 * moves to the same fraction of all rows. This module only computes and does not access the DOM.
 */

/**
 * Maximum height of an element. Browsers are inexact at 8 million pixels, and draw no elements
 * taller than about 17 million.
 */
export const MAX_HEIGHT = 6_000_000;
/** Number of view heights above which a scroll is a jump. */
const JUMP_VIEWS = 3;

interface Heights {
  /** Total height of all rows. */
  readonly full: number;
  readonly view: number;
}

/** Scroll position of the element, and the offset of the rows relative to it. */
interface ScrollPosition {
  readonly top: number;
  readonly shift: number;
}

/** Returns the element's height, given the total height of its rows. */
export function elementHeight(full: number): number {
  return Math.min(full, MAX_HEIGHT);
}

/**
 * Returns the scroll position that shows pixel `at` of the rows. It is the same fraction of the
 * element's height as `at` is of all rows.
 */
export function scrollPositionOf(at: number, { full, view }: Heights): ScrollPosition {
  const max = Math.max(0, full - view);
  const clamped = Math.max(0, Math.min(at, max));
  if (full <= MAX_HEIGHT) {
    return { top: clamped, shift: 0 };
  }
  const top = Math.round((clamped / max) * (MAX_HEIGHT - view));
  return { top, shift: clamped - top };
}

/** Returns the pixel of the rows at the top of the view, after the element was scrolled. */
export function pixelAt(top: number, before: ScrollPosition, heights: Heights): number {
  const { full, view } = heights;
  if (full <= MAX_HEIGHT) {
    return top;
  }
  const isJump = Math.abs(top - before.top) > JUMP_VIEWS * view;
  const at = isJump ? (top / (MAX_HEIGHT - view)) * (full - view) : top + before.shift;
  return Math.max(0, Math.min(Math.round(at), full - view));
}

/** True if the element is at an end of its scroll range, although more rows follow. */
export function isAtEdge(top: number, at: number, { full, view }: Heights): boolean {
  return (
    full > MAX_HEIGHT &&
    ((top <= 0 && at > 0) || (top >= MAX_HEIGHT - view - 1 && at < full - view))
  );
}

/**
 * Computes how a window over the last rows of a table has moved. This module has no side effects.
 */
import type { Row } from '../api/answer.js';

interface Slide {
  /** Number of rows of the previous window that the new window no longer contains. */
  readonly dropped: number;
  /** Number of rows that only the new window contains. */
  readonly fresh: number;
  /** True if there may be more new rows than the window contains. */
  readonly isGap: boolean;
}

/** Number of consecutive equal rows that identify the overlap of two windows. */
const COMPARED = 3;

export function slideOf(before: readonly Row[], after: readonly Row[]): Slide {
  const overlap = before.findIndex((_, from) => matchesAt(before, from, after, 0));
  if (after.length > 0 && overlap >= 0) {
    const fresh = Math.max(0, after.length - (before.length - overlap));
    return { dropped: overlap, fresh, isGap: false };
  }
  // The first rows may have changed or arrived late. Compare the last rows instead.
  const last = before.length - 1;
  for (let at = after.length - 1; at >= 0 && last >= 0; at -= 1) {
    if (areSame(before[last], after[at])) {
      const fresh = after.length - 1 - at;
      return { dropped: Math.max(0, last - at), fresh, isGap: false };
    }
  }
  return { dropped: before.length, fresh: after.length, isGap: before.length > 0 };
}

function matchesAt(
  before: readonly Row[],
  from: number,
  after: readonly Row[],
  to: number,
): boolean {
  const length = Math.min(COMPARED, before.length - from, after.length - to);
  for (let step = 0; step < length; step += 1) {
    if (!areSame(before[from + step], after[to + step])) {
      return false;
    }
  }
  return length > 0;
}

function areSame(left: Row | undefined, right: Row | undefined): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

/** Computes how a window over the last rows of a table has moved. Pure. */
import type { Row } from '../api/answer.js';

interface Slide {
  /** Number of rows of the previous window that are missing from the new window. */
  readonly dropped: number;
  /** Number of new rows. */
  readonly fresh: number;
  /** Whether there may be more new rows than the window contains. */
  readonly isGap: boolean;
}

/** Number of consecutive equal rows that proves where two windows overlap. */
const COMPARED = 3;

export function slideOf(before: readonly Row[], after: readonly Row[]): Slide {
  const overlap = before.findIndex((_, from) => matchesAt(before, from, after, 0));
  if (after.length > 0 && overlap >= 0) {
    const fresh = Math.max(0, after.length - (before.length - overlap));
    return { dropped: overlap, fresh, isGap: false };
  }
  // The first rows changed or arrived late, but the last rows may still match.
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

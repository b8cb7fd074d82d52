/** Compares two answers. */
import type { Answer, Cell } from './databases.js';

/** Sums of the same numbers in a different order differ in their last digits. */
const RELATIVE = 1e-9;

function sameCell(a: Cell, b: Cell): boolean {
  if (typeof a === 'number' && typeof b === 'number') {
    return Math.abs(a - b) <= RELATIVE * Math.max(1, Math.abs(a), Math.abs(b));
  }
  return a === b;
}

/**
 * Sort key that places equal rows of both answers at the same index. It uses only the leading
 * digits of numbers, because their last digits may differ.
 */
function sortKey(row: readonly Cell[]): string {
  return row
    .map((cell) => (typeof cell === 'number' ? cell.toPrecision(9) : String(cell)))
    .join('|');
}

/** Returns `undefined` if both answers have the same rows, otherwise the difference. */
export function difference(
  ours: Answer,
  theirs: Answer,
  { ordered = false } = {},
): string | undefined {
  const order = (answer: Answer): readonly (readonly Cell[])[] =>
    ordered ? answer.rows : answer.rows.toSorted((a, b) => (sortKey(a) < sortKey(b) ? -1 : 1));
  const [left, right] = [order(ours), order(theirs)];
  if (left.length !== right.length) {
    return `${left.length} rows, expected ${right.length}`;
  }
  for (const [index, row] of left.entries()) {
    const expected = right[index] ?? [];
    if (
      row.length !== expected.length ||
      !row.every((cell, i) => sameCell(cell, expected[i] ?? null))
    ) {
      return `row ${index}: ${JSON.stringify(row)}, expected ${JSON.stringify(expected)}`;
    }
  }
  return undefined;
}

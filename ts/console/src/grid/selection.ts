/**
 * Rectangular selections of cells and their aggregates. This module only computes and does not
 * access the DOM.
 */
import type { Value } from '../api/answer.js';
import type { Cell } from './keys.js';

/** Range of row and column positions. All bounds are inclusive. */
export interface Selection {
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
}

/** Returns the selection with the given corners. */
export function between(one: Cell, other: Cell): Selection {
  return {
    top: Math.min(one.row, other.row),
    bottom: Math.max(one.row, other.row),
    left: Math.min(one.column, other.column),
    right: Math.max(one.column, other.column),
  };
}

export function contains(selection: Selection | undefined, row: number, column: number): boolean {
  return (
    selection !== undefined &&
    selection.top <= row &&
    row <= selection.bottom &&
    selection.left <= column &&
    column <= selection.right
  );
}

export function cellsIn({ top, bottom, left, right }: Selection): number {
  return (bottom - top + 1) * (right - left + 1);
}

export interface Facts {
  readonly cells: number;
  /** Number of cells that are not null. */
  readonly values: number;
  /** Number of cells with a finite number. */
  readonly numbers: number;
  /** Sum as a string, exact if all numbers are integers. */
  readonly sum: string | undefined;
  readonly average: number | undefined;
  readonly min: number | undefined;
  readonly max: number | undefined;
}

const WHOLE = /^[+-]?\d+$/;

/** Aggregates cells. `isNumber` states for each column whether its values are summed. */
export function factsOf(rows: Iterable<readonly Value[]>, isNumber: readonly boolean[]): Facts {
  let [cells, values, numbers] = [0, 0, 0];
  let whole: bigint | undefined = 0n;
  // Neumaier summation, which sums the rounding errors separately.
  let [sum, lost] = [0, 0];
  let [min, max] = [Infinity, -Infinity];
  for (const row of rows) {
    for (const [column, value] of row.entries()) {
      cells += 1;
      values += Number(value !== null);
      const number = value !== null && isNumber[column] ? Number(value) : Number.NaN;
      if (!Number.isFinite(number)) {
        continue;
      }
      numbers += 1;
      whole =
        whole !== undefined && WHOLE.test(String(value))
          ? whole + BigInt(String(value))
          : undefined;
      const next = sum + number;
      lost += Math.abs(sum) >= Math.abs(number) ? sum - next + number : number - next + sum;
      sum = next;
      min = Math.min(min, number);
      max = Math.max(max, number);
    }
  }
  if (numbers === 0) {
    const none = { sum: undefined, average: undefined, min: undefined, max: undefined };
    return { cells, values, numbers, ...none };
  }
  const total = sum + lost;
  const text = whole === undefined ? String(total) : String(whole);
  return { cells, values, numbers, sum: text, average: total / numbers, min, max };
}

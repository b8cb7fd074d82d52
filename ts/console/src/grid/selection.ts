/** A rectangle of cells: chosen by pointer or keys, copied, summed up. Plain arithmetic. */
import type { Value } from '../api/answer.js';
import type { Cell } from './keys.js';

/** Places of rows and columns; the ends are inside. */
export interface Selection {
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
}

/** The rectangle with these two corners. */
export function between(one: Cell, other: Cell): Selection {
  return {
    top: Math.min(one.row, other.row),
    bottom: Math.max(one.row, other.row),
    left: Math.min(one.column, other.column),
    right: Math.max(one.column, other.column),
  };
}

export function holds(selection: Selection | undefined, row: number, column: number): boolean {
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
  /** Cells that are not null. */
  readonly values: number;
  /** Cells that hold a finite number. */
  readonly numbers: number;
  /** Exact, digit by digit, where all numbers are whole. */
  readonly sum: string | undefined;
  readonly average: number | undefined;
  readonly least: number | undefined;
  readonly greatest: number | undefined;
}

const WHOLE = /^[+-]?\d+$/;

/** What cells add up to. `isNumber` tells for each of the columns whether its values are summed. */
export function factsOf(rows: Iterable<readonly Value[]>, isNumber: readonly boolean[]): Facts {
  let [cells, values, numbers] = [0, 0, 0];
  let whole: bigint | undefined = 0n;
  // Neumaier's sum: what a small addend loses beside a large sum is kept apart.
  let [sum, lost] = [0, 0];
  let [least, greatest] = [Infinity, -Infinity];
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
      least = Math.min(least, number);
      greatest = Math.max(greatest, number);
    }
  }
  if (numbers === 0) {
    const none = { sum: undefined, average: undefined, least: undefined, greatest: undefined };
    return { cells, values, numbers, ...none };
  }
  const total = sum + lost;
  const text = whole === undefined ? String(total) : String(whole);
  return { cells, values, numbers, sum: text, average: total / numbers, least, greatest };
}

/** Time joins evaluated row by row: slow, but short enough to be verified by reading. */
import type { Cell, Row } from './random-table.js';

export type KeyOf = (row: Row) => string;
type Pair = readonly [left: Row | null, right: Row | null];

const lastOf = (rows: readonly Row[]): Row | null => rows[rows.length - 1] ?? null;

/**
 * Returns each left row with the last right row that has the same key and is not later than the
 * left row. If `strict`, the right row must be earlier.
 */
export function asof(
  left: readonly Row[],
  right: readonly Row[],
  key: KeyOf,
  strict: boolean,
  tolerance: number | null,
): Pair[] {
  return left.map((row) => {
    const before = right.filter((other) => {
      const early = strict ? other.ts < row.ts : other.ts <= row.ts;
      return early && key(other) === key(row);
    });
    const found = lastOf(before);
    const near = found !== null && (tolerance === null || row.ts - found.ts <= tolerance);
    return [row, near ? found : null];
  });
}

/** Returns the rows of both sides, each with the other side's last row for the same key. */
export function splice(left: readonly Row[], right: readonly Row[], key: KeyOf): Pair[] {
  const rank = (rows: readonly Row[], row: Row): number =>
    rows.filter((other) => other.ts === row.ts && key(other) === key(row)).indexOf(row);
  const partner = (rows: readonly Row[], of: readonly Row[], row: Row): Row | null =>
    rows.filter((other) => other.ts === row.ts && key(other) === key(row))[rank(of, row)] ?? null;
  const prevailing = (rows: readonly Row[], row: Row): Row | null =>
    lastOf(rows.filter((other) => other.ts <= row.ts && key(other) === key(row)));
  const lefts = left.map((row): Pair => [row, partner(right, left, row) ?? prevailing(right, row)]);
  const alone = right.filter((row) => partner(left, right, row) === null);
  return [...lefts, ...alone.map((row): Pair => [prevailing(left, row), row])];
}

export interface WindowSpec {
  /** Offsets from the left row's time, per row; null if there is no window. */
  readonly low: (row: Row) => number | null;
  readonly high: (row: Row) => number | null;
  readonly prevailing: boolean;
  readonly on: (left: Row, right: Row) => boolean;
}

/** Returns the right rows in a left row's window, in order. */
export function windowOf(row: Row, right: readonly Row[], spec: WindowSpec): Row[] {
  const [low, high] = [spec.low(row), spec.high(row)];
  if (low === null || high === null) {
    return [];
  }
  const candidates = right.filter((other) => spec.on(row, other));
  const [start, end] = [row.ts + low, row.ts + high];
  const inside = candidates.filter((other) => other.ts >= start && other.ts <= end);
  const newest = lastOf(candidates.filter((other) => other.ts <= start));
  const extra = spec.prevailing && newest !== null && newest.ts < start ? [newest] : [];
  return [...extra, ...inside];
}

type Values = readonly (number | null)[];

/** Aggregates by name, over values in time order. */
export const AGGREGATES: Readonly<Record<string, (values: Values) => Cell>> = {
  sum: (values) => fold(values, (one, other) => one + other),
  min: (values) => fold(values, Math.min),
  max: (values) => fold(values, Math.max),
  count: (values) => known(values).length,
  avg: (values) => {
    const sum = fold(values, (one, other) => one + other);
    return sum === null ? null : sum / known(values).length;
  },
  first: (values) => values[0] ?? null,
  last: (values) => values[values.length - 1] ?? null,
  first_not_null: (values) => known(values)[0] ?? null,
  last_not_null: (values) => known(values)[known(values).length - 1] ?? null,
};

const known = (values: Values): number[] => values.filter((value) => value !== null);

function fold(values: Values, combine: (one: number, other: number) => number): number | null {
  const present = known(values);
  return present.length === 0 ? null : present.reduce((one, other) => combine(one, other));
}

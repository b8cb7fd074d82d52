/**
 * Simple implementations of functions, row by row, on JavaScript values. A LONG is a bigint, null
 * is null, and non-finite values are null.
 */
export type Cell = number | bigint | string | boolean | null;

const INT_NULL = -(2 ** 31);
const LONG_NULL = -(2n ** 63n);

/** Wraps to an INT; the minimum of INT is null. */
export function int(value: number | bigint): number | null {
  const wrapped = Number(BigInt.asIntN(32, BigInt(value)));
  return wrapped === INT_NULL ? null : wrapped;
}

/** Wraps to a LONG; the minimum of LONG is null. */
export function long(value: bigint): bigint | null {
  const wrapped = BigInt.asIntN(64, value);
  return wrapped === LONG_NULL ? null : wrapped;
}

export function double(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}

/** Applies `f`; returns null if any argument is null. */
export function strict<A, B, R>(
  f: (a: A, b: B) => R | null,
): (a: A | null, b: B | null) => R | null {
  return (a, b) => (a === null || b === null ? null : f(a, b));
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
const mean = (values: readonly number[]): number => sum(values) / values.length;

/** Returns the sum of the differences from the mean, each raised to a power. */
function moment(values: readonly number[], power: number): number {
  const middle = mean(values);
  return sum(values.map((value) => (value - middle) ** power));
}

function ranked(values: readonly number[]): number[] {
  return [...values].sort((a, b) => a - b);
}

function percentile(values: readonly number[], fraction: number): number | null {
  const sorted = ranked(values);
  const position = fraction * (sorted.length - 1);
  const low = sorted[Math.floor(position)];
  const high = sorted[Math.ceil(position)];
  return low === undefined || high === undefined ? null : low + (high - low) * (position % 1);
}

type OfNumbers = (values: readonly number[]) => number | null;

const enough =
  (minimum: number, f: (values: readonly number[]) => number): OfNumbers =>
  (values) =>
    values.length < minimum ? null : double(f(values));

/** Aggregates of the non-null numbers. */
export const OF_NUMBERS: Readonly<Record<string, OfNumbers>> = {
  'count(#)': (values) => values.length,
  'sum(#)': enough(1, sum),
  'ksum(#)': enough(1, sum),
  'nsum(#)': enough(1, sum),
  'avg(#)': enough(1, mean),
  'min(#)': enough(1, (values) => Math.min(...values)),
  'max(#)': enough(1, (values) => Math.max(...values)),
  'var_pop(#)': enough(1, (values) => moment(values, 2) / values.length),
  'var_samp(#)': enough(2, (values) => moment(values, 2) / (values.length - 1)),
  'stddev_pop(#)': enough(1, (values) => Math.sqrt(moment(values, 2) / values.length)),
  'stddev(#)': enough(2, (values) => Math.sqrt(moment(values, 2) / (values.length - 1))),
  'median(#)': (values) => percentile(values, 0.5),
  'percentile(#, 0.25)': (values) => percentile(values, 0.25),
  'percentile(#, 1)': (values) => percentile(values, 1),
  'percentile_disc(#, 0.9)': (values) =>
    ranked(values)[Math.max(1, Math.ceil(0.9 * values.length)) - 1] ?? null,
  'count_distinct((#)::long)': (values) => new Set(values.map(Math.trunc)).size,
};

type OfPairs = (pairs: readonly (readonly [number, number])[]) => number | null;

function coMoment(pairs: readonly (readonly [number, number])[]): number {
  const left = mean(pairs.map(([y]) => y));
  const right = mean(pairs.map(([, x]) => x));
  return sum(pairs.map(([y, x]) => (y - left) * (x - right)));
}

/** Aggregates of the pairs (y, x) in which neither is null. */
export const OF_PAIRS: Readonly<Record<string, OfPairs>> = {
  'covar_pop(#, @)': (pairs) => (pairs.length < 1 ? null : coMoment(pairs) / pairs.length),
  'covar_samp(#, @)': (pairs) => (pairs.length < 2 ? null : coMoment(pairs) / (pairs.length - 1)),
  'corr(#, @)': (pairs) => {
    const ys = pairs.map(([y]) => y);
    const xs = pairs.map(([, x]) => x);
    const spread = Math.sqrt(moment(ys, 2) * moment(xs, 2));
    return pairs.length < 2 || spread === 0 ? null : coMoment(pairs) / spread;
  },
  'regr_slope(#, @)': (pairs) => {
    const spread = moment(
      pairs.map(([, x]) => x),
      2,
    );
    return pairs.length < 2 || spread === 0 ? null : coMoment(pairs) / spread;
  },
  'weighted_avg(#, @)': (pairs) => {
    const weights = sum(pairs.map(([, weight]) => weight));
    return weights === 0 ? null : sum(pairs.map(([value, weight]) => value * weight)) / weights;
  },
};

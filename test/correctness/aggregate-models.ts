/**
 * Expected result of each aggregate for the rows of one group. The models are written from the
 * aggregates' descriptions, not from their code. test/correctness/aggregate-model.test.ts compares
 * them with the server's results.
 */

/** A row in a group; the rows are in time order. */
export interface Row {
  /** The value as the server shows it. */
  readonly shown: unknown;
  /** The value's position among all values of the type; null for a null. */
  readonly rank: number | null;
  /** The value of a numeric type; null for a null, and for other types. */
  readonly number: number | null;
  /** The second argument, different in each row. */
  readonly key: number;
  readonly seconds: number;
}

type Model<Result> = (rows: readonly Row[], rest: readonly string[]) => Result;

/**
 * A check that accepts every valid result. It is used where the rows do not fully determine the
 * result.
 */
export interface Property {
  readonly name: string;
  readonly holds: (found: unknown) => boolean;
}

/** Returns the rows with a non-null value. */
export const known = (rows: readonly Row[]): Row[] => rows.filter((row) => row.rank !== null);

const numbers = (rows: readonly Row[]): number[] =>
  rows.flatMap((row) => (row.number === null ? [] : [row.number]));

const pairs = (rows: readonly Row[]): [number, number][] =>
  rows.flatMap((row) => (row.number === null ? [] : [[row.number, row.key]]));

const timed = (rows: readonly Row[]): [number, number][] =>
  rows.flatMap((row) => (row.number === null ? [] : [[row.number, row.seconds]]));

const total = (values: readonly number[]): number =>
  values.reduce((left, right) => left + right, 0);

const mean = (values: readonly number[]): number => total(values) / values.length;

/** Returns a number, or null if it is not finite. */
const finite = (value: number): number | null => (Number.isFinite(value) ? value : null);

/** A model over numbers that is null if there are fewer than `minimum` values. */
const above =
  (minimum: number, of: (values: readonly number[]) => number): Model<number | null> =>
  (rows) => {
    const values = numbers(rows);
    return values.length < minimum ? null : finite(of(values));
  };

const fold = (of: (left: number, right: number) => number): Model<number | null> =>
  above(1, (values) => values.reduce(of));

/** Mean of a power of the differences from the mean. */
const moment = (values: readonly number[], power: number): number =>
  mean(values.map((value) => (value - mean(values)) ** power));

const sampleVariance = (values: readonly number[]): number =>
  (moment(values, 2) * values.length) / (values.length - 1);

const populationSkew = (values: readonly number[]): number =>
  moment(values, 3) / moment(values, 2) ** 1.5;

const populationKurtosis = (values: readonly number[]): number =>
  moment(values, 4) / moment(values, 2) ** 2 - 3;

const skew = above(3, (values) => {
  const count = values.length;
  return (populationSkew(values) * Math.sqrt(count * (count - 1))) / (count - 2);
});

const kurtosis = above(4, (values) => {
  const count = values.length;
  const corrected = (count + 1) * populationKurtosis(values) + 6;
  return ((count - 1) * corrected) / ((count - 2) * (count - 3));
});

const stddev = above(2, (values) => Math.sqrt(sampleVariance(values)));

/** Sums of products of the differences from the means. */
const products = (values: readonly (readonly [number, number])[]): [number, number, number] => {
  const [left, right] = [values.map(([one]) => one), values.map(([, other]) => other)];
  const far = values.map(([one, other]) => [one - mean(left), other - mean(right)] as const);
  return [
    total(far.map(([one, other]) => one * other)),
    total(far.map(([one]) => one * one)),
    total(far.map(([, other]) => other * other)),
  ];
};

const both =
  (minimum: number, of: (values: readonly (readonly [number, number])[]) => number) =>
  (rows: readonly Row[]): number | null => {
    const values = pairs(rows);
    return values.length < minimum ? null : finite(of(values));
  };

const slope = (values: readonly (readonly [number, number])[]): number => {
  const [pairProducts, , keys] = products(values);
  return pairProducts / keys;
};

const weightedMean = both(1, (values) => {
  const weights = total(values.map(([, weight]) => weight));
  return total(values.map(([value, weight]) => value * weight)) / weights;
});

const weightedStddev = (divisor: (weights: readonly number[]) => number): Model<number | null> =>
  both(2, (values) => {
    const weights = values.map(([, weight]) => weight);
    const middle = total(values.map(([value, weight]) => value * weight)) / total(weights);
    const spread = total(values.map(([value, weight]) => weight * (value - middle) ** 2));
    return Math.sqrt(spread / divisor(weights));
  });

const reliability = weightedStddev(
  (weights) => total(weights) - total(weights.map((weight) => weight ** 2)) / total(weights),
);

/** Steps between consecutive rows: both values, and the seconds between them. */
const steps = (rows: readonly Row[]): { from: number; to: number; seconds: number }[] => {
  const points = timed(rows);
  return points.slice(1).map(([to, end], at) => {
    const [from, start] = points[at] ?? [to, end];
    return { from, to, seconds: end - start };
  });
};

const overTime =
  (one: (value: number) => number | null, of: (taken: ReturnType<typeof steps>) => number) =>
  (rows: readonly Row[]): number | null => {
    const [first] = numbers(rows);
    if (first === undefined) {
      return null;
    }
    const taken = steps(rows);
    return taken.length === 0 ? one(first) : of(taken);
  };

const span = (taken: ReturnType<typeof steps>): number => total(taken.map((step) => step.seconds));

const grown = (taken: ReturnType<typeof steps>): number =>
  total(taken.map(({ from, to }) => (to < from ? to : to - from)));

const changed = (taken: ReturnType<typeof steps>): number =>
  total(taken.map(({ from, to }) => to - from));

const areaOfLines = (taken: ReturnType<typeof steps>): number =>
  total(taken.map(({ from, to, seconds }) => ((from + to) / 2) * seconds));

const areaOfSteps = (taken: ReturnType<typeof steps>): number =>
  total(taken.map(({ from, seconds }) => from * seconds));

const itself = (value: number): number => value;
const nothing = (): null => null;
const zero = (): number => 0;

const byLines = overTime(itself, (taken) => areaOfLines(taken) / span(taken));
const bySteps = overTime(itself, (taken) => areaOfSteps(taken) / span(taken));

const atFraction = above(1, (values) => {
  const sorted = values.toSorted((left, right) => left - right);
  const position = 0.5 * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(position)] ?? NaN, sorted[Math.ceil(position)] ?? NaN];
  return (low + high) / 2;
});

const radians = (degrees: number): number => (degrees * Math.PI) / 180;

const distance = (
  [lat, lon]: readonly [number, number],
  [toLat, toLon]: readonly [number, number],
): number => {
  const half =
    Math.sin(radians(toLat - lat) / 2) ** 2 +
    Math.cos(radians(lat)) * Math.cos(radians(toLat)) * Math.sin(radians(toLon - lon) / 2) ** 2;
  return 2 * 6371.088 * Math.asin(Math.sqrt(half));
};

const path = both(1, (points) =>
  total(points.slice(1).map((point, at) => distance(points[at] ?? point, point))),
);

/** Returns the shown value of the first row in an ordering. */
const pick = (rows: readonly Row[], order: (left: Row, right: Row) => number): unknown =>
  rows.toSorted(order)[0]?.shown ?? null;

const byRank = (left: Row, right: Row): number => Number(left.rank) - Number(right.rank);
const byKey = (left: Row, right: Row): number => left.key - right.key;
const byCount = (rows: readonly Row[], row: Row): number =>
  rows.filter(({ rank }) => rank === row.rank).length;

const greatest: Model<unknown> = (rows) => pick(rows, (left, right) => byKey(right, left));
const minimum: Model<unknown> = (rows) => pick(rows, byKey);
const distinct: Model<number> = (rows) => new Set(known(rows).map(({ rank }) => rank)).size;

const json: Model<unknown> = (rows) => (rows.length === 0 ? null : rows.map((row) => row.shown));

/** Whether all, or some, BOOLEAN values are true; false for no rows. */
const every: Model<unknown> = (rows) =>
  rows.length > 0 && rows.every(({ shown }) => shown === true);

/** An element-wise fold of arrays. */
const positions =
  (of: (values: readonly number[]) => number): Model<unknown> =>
  (rows) => {
    const arrays = known(rows).map(({ shown }) => shown as readonly (number | null)[]);
    const width = Math.max(0, ...arrays.map((array) => array.length));
    const column = (at: number): number[] =>
      arrays.flatMap((array) => {
        const value = array[at];
        return typeof value === 'number' ? [value] : [];
      });
    const folded = (at: number): number | null => (column(at).length === 0 ? null : of(column(at)));
    return arrays.length === 0 ? null : Array.from({ length: width }, (_, at) => folded(at));
  };

/** Returns the values in order; arrays are concatenated. */
const listed: Model<unknown> = (rows) =>
  rows.length === 0 ? null : rows.flatMap(({ shown }) => shown);

const ascends: Model<unknown> = (rows) => {
  const ranks = rows.map(({ rank }) => rank ?? -1);
  return ranks.every((rank, at) => at === 0 || (ranks[at - 1] ?? rank) <= rank);
};

const BLOCKS = '▁▂▃▄▅▆▇█';

const chart: Model<unknown> = (rows, rest) => {
  const values = numbers(rows);
  const low = Number(rest[0] ?? Math.min(...values));
  const high = Number(rest[1] ?? Math.max(...values));
  const block = (value: number): string =>
    BLOCKS[high === low ? 7 : Math.round(((value - low) / (high - low)) * 7)] ?? '';
  return values.length === 0 ? null : values.map(block).join('');
};

const inRange =
  (slack: number): Model<Property> =>
  (rows) => {
    const values = numbers(rows);
    const [low, high] = [Math.min(...values), Math.max(...values)];
    const holds = (found: unknown): boolean =>
      values.length === 0
        ? found === null
        : Number(found) >= low * (1 - slack) && Number(found) <= high * (1 + slack);
    return { name: `from ${String(low)} to ${String(high)}`, holds };
  };

const oneOf: Model<Property> = (rows) => {
  const shown = known(rows).map((row) => JSON.stringify(row.shown));
  const holds = (found: unknown): boolean =>
    shown.length === 0 ? found === null : shown.includes(JSON.stringify(found));
  return { name: 'one of the values', holds };
};

/** Models of the aggregates that compute a number, for numeric types. */
export const OF_NUMBERS: ReadonlyMap<string, Model<unknown>> = new Map<string, Model<unknown>>([
  ['avg', above(1, mean)],
  ['bit_and', fold((left, right) => left & right)],
  ['bit_or', fold((left, right) => left | right)],
  ['bit_xor', fold((left, right) => left ^ right)],
  [
    'corr',
    both(2, (values) => {
      const [pairProducts, left, right] = products(values);
      return pairProducts / Math.sqrt(left * right);
    }),
  ],
  ['covar_pop', both(1, (values) => products(values)[0] / values.length)],
  ['covar_samp', both(2, (values) => products(values)[0] / (values.length - 1))],
  ['delta', overTime(zero, changed)],
  ['derivative', overTime(nothing, (taken) => changed(taken) / span(taken))],
  [
    'geomean',
    above(1, (values) =>
      values.some((value) => value <= 0) ? NaN : Math.exp(mean(values.map(Math.log))),
    ),
  ],
  ['haversine_dist_deg', path],
  ['increase', overTime(zero, grown)],
  ['integral', overTime(zero, areaOfLines)],
  ['ksum', above(1, total)],
  ['kurtosis', kurtosis],
  ['kurtosis_pop', above(1, populationKurtosis)],
  ['kurtosis_samp', kurtosis],
  ['median', atFraction],
  ['nsum', above(1, total)],
  ['percentile', atFraction],
  ['percentile_cont', atFraction],
  ['rate', overTime(nothing, (taken) => grown(taken) / span(taken))],
  [
    'regr_intercept',
    both(
      2,
      (values) =>
        mean(values.map(([value]) => value)) - slope(values) * mean(values.map(([, key]) => key)),
    ),
  ],
  [
    'regr_r2',
    both(2, (values) => {
      const [pairProducts, left, right] = products(values);
      return left === 0 ? 1 : pairProducts ** 2 / (left * right);
    }),
  ],
  ['regr_slope', both(2, slope)],
  ['skewness', skew],
  ['skewness_pop', above(1, populationSkew)],
  ['skewness_samp', skew],
  ['sparkline', chart],
  ['stddev', stddev],
  ['stddev_pop', above(1, (values) => Math.sqrt(moment(values, 2)))],
  ['stddev_samp', stddev],
  ['sum', above(1, total)],
  ['time_weight', (rows, rest) => (rest.includes("'locf'") ? bySteps(rows) : byLines(rows))],
  ['twap', bySteps],
  ['var_pop', above(1, (values) => moment(values, 2))],
  ['var_samp', above(2, sampleVariance)],
  ['variance', above(2, sampleVariance)],
  ['vwap', weightedMean],
  ['weighted_avg', weightedMean],
  ['weighted_stddev', reliability],
  ['weighted_stddev_freq', weightedStddev((weights) => total(weights) - 1)],
  ['weighted_stddev_rel', reliability],
]);

/** Models of the aggregates that count, select or list values, for every type. */
export const OF_VALUES: ReadonlyMap<string, Model<unknown>> = new Map<string, Model<unknown>>([
  ['approx_count_distinct', distinct],
  ['arg_max', greatest],
  ['arg_min', minimum],
  ['array_agg', listed],
  ['array_elem_avg', positions(mean)],
  ['array_elem_max', positions((values) => Math.max(...values))],
  ['array_elem_min', positions((values) => Math.min(...values))],
  ['array_elem_sum', positions(total)],
  ['bool_and', every],
  ['bool_or', (rows) => rows.some(({ shown }) => shown === true)],
  ['count', (rows, rest) => (rest.includes('*') ? rows.length : known(rows).length)],
  ['count_distinct', distinct],
  ['every', every],
  ['first', (rows) => rows[0]?.shown ?? null],
  ['first_not_null', (rows) => known(rows)[0]?.shown ?? null],
  ['isOrdered', ascends],
  ['json_agg', json],
  ['jsonb_agg', json],
  ['last', (rows) => rows.at(-1)?.shown ?? null],
  ['last_not_null', (rows) => known(rows).at(-1)?.shown ?? null],
  ['max', (rows) => pick(known(rows), (left, right) => byRank(right, left))],
  ['max_by', greatest],
  ['min', (rows) => pick(known(rows), byRank)],
  ['min_by', minimum],
  [
    'mode',
    (rows) => {
      const values = known(rows);
      return pick(values, (left, right) => byCount(values, right) - byCount(values, left));
    },
  ],
  [
    'percentile_disc',
    (rows) => {
      const sorted = known(rows).toSorted(byRank);
      return sorted[Math.ceil(0.5 * sorted.length) - 1]?.shown ?? null;
    },
  ],
  [
    'string_agg',
    (rows) =>
      known(rows)
        .map(({ shown }) => String(shown))
        .join(',') || null,
  ],
  [
    'string_distinct_agg',
    (rows) => [...new Set(known(rows).map(({ shown }) => String(shown)))].join(',') || null,
  ],
]);

/** Aggregates with several valid results. */
export const PROPERTIES: ReadonlyMap<string, { model: Model<Property>; numeric: boolean }> =
  new Map([
    ['any_value', { model: oneOf, numeric: false }],
    ['approx_median', { model: inRange(0.1), numeric: true }],
    ['approx_percentile', { model: inRange(0.1), numeric: true }],
  ]);

/**
 * Statements for every operator that a plan may contain, keyed by the operator's name in EXPLAIN.
 * Some run over a table of any shape and have expected totals; others contain a list of any length.
 * `operators.test.ts` fails if a plan contains a name that is not listed here.
 */
import { type Row, type Shape } from './shapes.js';

/** Totals over all rows of a result. */
export interface Totals {
  readonly count: number;
  readonly v: number;
  readonly size: number;
}

export interface Statement {
  /** A query with the columns `p` (the payload) and `v` (a number). */
  readonly rows: string;
  /** Whether `p` is a number regardless of the payload. */
  readonly isPlain?: true;
  /** Expected totals; `null` if only the limits are checked. */
  readonly totals: ((rows: readonly Row[]) => Totals) | null;
  /** Expected `v` of the first row, if the rows are ordered. */
  readonly first?: (rows: readonly Row[]) => number | null;
}

export interface Entry {
  readonly of: (shape: Shape) => readonly Statement[];
  /** Shapes for which the operator does nothing or does not appear in the plan. */
  readonly without?: readonly string[];
  /** Builds a statement with a list of `count` terms. */
  readonly terms?: (count: number) => string;
}

/** A one-row relation whose row count the planner does not know. */
const ONE_ROW = 'with recursive one (z) as (select 1 union select z + 1 from one where z < 1)';

const total = (rows: readonly Row[], v: (row: Row) => number, times = 1): Totals => ({
  count: rows.length * times,
  v: rows.reduce((sum, row) => sum + v(row), 0) * times,
  size: rows.reduce((sum, row) => sum + row.size, 0) * times,
});
const asTheyAre = (rows: readonly Row[]): Totals => total(rows, ({ n }) => n);
const twice = (rows: readonly Row[]): Totals => total(rows, ({ n }) => n, 2);
const none = (): Totals => ({ count: 0, v: 0, size: 0 });
const ranked = (rows: readonly Row[]): Totals => ({
  ...asTheyAre(rows),
  v: (rows.length * (rows.length + 1)) / 2,
});

function groupsOf<K>(rows: readonly Row[], keyOf: (row: Row) => K): Map<K, Row[]> {
  const groups = new Map<K, Row[]>();
  for (const row of rows) {
    const key = keyOf(row);
    const group = groups.get(key);
    if (group === undefined) {
      groups.set(key, [row]);
    } else {
      group.push(row);
    }
  }
  return groups;
}

/** One row per group: the group's last payload and its number of rows. */
function lastOf(keyOf: (row: Row) => number | string): (rows: readonly Row[]) => Totals {
  return (rows) => {
    const groups = [...groupsOf(rows, keyOf).values()];
    const size = groups.reduce((sum, group) => sum + (group.at(-1)?.size ?? 0), 0);
    return { count: groups.length, v: rows.length, size };
  };
}

/** Pairs of rows with the same number. */
function pairs(rows: readonly Row[]): Totals {
  const groups = [...groupsOf(rows, ({ n }) => n).values()].map((group) => ({
    ...asTheyAre(group),
  }));
  const sum = (of: (one: Totals) => number): number =>
    groups.reduce((all, group) => all + of(group), 0);
  return {
    count: sum(({ count }) => count * count),
    v: sum(({ count, v }) => count * v),
    size: sum(({ count, size }) => count * size),
  };
}

/** Running sums in numerical order. */
function running(rows: readonly Row[]): Totals {
  let sum = 0;
  const v = rows.reduce((all, { n }) => {
    sum += n;
    return all + sum;
  }, 0);
  return { ...asTheyAre(rows), v };
}

const BUCKET_MICROS = { s: 1_000_000, d: 86_400_000_000 } as const;

const bucketsOf = (unit: keyof typeof BUCKET_MICROS): ((rows: readonly Row[]) => Totals) =>
  lastOf(({ tsMicros }) => Math.floor(tsMicros / BUCKET_MICROS[unit]));

/**
 * One row per day, from the first day to the last. A missing day gets the payload of the previous
 * day.
 */
function filled(rows: readonly Row[]): Totals {
  const days = groupsOf(rows, ({ tsMicros }) => Math.floor(tsMicros / BUCKET_MICROS.d));
  const [first, last] = [Math.min(...days.keys()), Math.max(...days.keys())];
  let [size, value] = [0, 0];
  for (let day = first; day <= last; day += 1) {
    value = days.get(day)?.at(-1)?.size ?? value;
    size += value;
  }
  return { count: rows.length === 0 ? 0 : last - first + 1, v: rows.length, size };
}

const list = (count: number, one: (at: number) => string, between = ', '): string =>
  Array.from({ length: count }, (_, at) => one(at)).join(between);

/** An entry with a single statement. */
const one =
  (rows: (shape: Shape) => string, totals: Statement['totals'], first?: Statement['first']) =>
  (shape: Shape): readonly Statement[] => [
    { rows: rows(shape), totals, ...(first === undefined ? {} : { first }) },
  ];

/** Like `one`, but with a number as `p`. */
const plain =
  (rows: (shape: Shape) => string, totals: Statement['totals']) =>
  (shape: Shape): readonly Statement[] => [{ rows: rows(shape), isPlain: true, totals }];

/** Shapes with too few rows for a multi-partition plan. */
const FEW = ['long_gap', 'long_array', 'long_text', 'no_rows'];
const MANY = ['one_group', 'equal_keys', 'distinct_keys'];
const SMALL = 'one_row_per_part';
const largest = (rows: readonly Row[]): number | null => rows.at(-1)?.n ?? null;

const SCANS: Readonly<Record<string, Entry>> = {
  TableScanExec: {
    of: one(({ table, payload }) => `select ${payload} p, n v from ${table}`, asTheyAre),
    terms: (n) => `select ${list(n, () => 'n')} from ${SMALL}`,
  },
  FilteredScanExec: {
    of: ({ table, payload }) => [
      {
        rows: `select ${payload} p, n v from ${table} where k <> 'none'`,
        totals: asTheyAre,
      },
      { rows: `select ${payload} p, n v from ${table} where t = 'none'`, totals: none },
      { rows: `select ${payload} p, n v from ${table} where t ~ '(t|x|y| )+$'`, totals: null },
    ],
    terms: (n) => `select n from ${SMALL} where ${list(n, (at) => `n <> ${-at}`, ' and ')}`,
  },
  ParquetScanExec: {
    of: one(
      ({ table, payload }) => `select ${payload} p, n v from read_parquet('${table}.parquet')`,
      asTheyAre,
    ),
    terms: (n) => `select * from read_parquet(${list(n, () => `'${SMALL}.parquet'`)})`,
  },
  TextScanExec: {
    of: one(({ table }) => `select n p, n v from read_csv('${table}.csv')`, asTheyAre),
    terms: (n) => `select ${list(n, () => 'n')} from read_csv('${SMALL}.csv')`,
    without: ['long_array', 'long_text', 'no_rows'],
  },
  LazyMemoryExec: {
    of: () => [
      {
        rows: 'select x p, x v from long_sequence(1000)',
        totals: () => ({ count: 1000, v: 500_500, size: 500_500 }),
        first: () => 1,
      },
      { rows: 'select x p, x v from long_sequence(1000000000000)', totals: null, first: () => 1 },
    ],
    without: [...FEW, ...MANY],
  },
  PlaceholderRowExec: {
    of: () => [
      {
        rows: "select rpad('x', 1000000, 'xy ') p, 1 v",
        totals: () => ({ count: 1, v: 1, size: 1_000_000 }),
      },
    ],
    without: [...FEW.filter((name) => name !== 'long_text'), ...MANY, SMALL],
    terms: (n) => `select ${list(n, (at) => String(at))}`,
  },
  DataSourceExec: {
    of: plain(({ table }) => `select count() p, count() v from ${table}`, null),
  },
  EmptyExec: {
    of: one(
      ({ table, payload }) => `select ${payload} p, n v from ${table} where ts in '1960-01-01;'`,
      none,
    ),
  },
  WorkTableExec: {
    of: ({ table, payload }) => [
      {
        rows: `with recursive r (p, v) as (select ${payload}, 1 from ${table}
          union all select p, v + 1 from r where v < 3) select p, v from r`,
        totals: (rows) => {
          const { count, size } = asTheyAre(rows);
          return { count: 3 * count, v: 6 * count, size: 3 * size };
        },
      },
      {
        rows: `with recursive r (p, v) as (select ${payload}, 1 from ${table}
          union all select p, v + 1 from r) select p, v from r`,
        totals: null,
      },
    ],
  },
};

const ROW_WISE: Readonly<Record<string, Entry>> = {
  ProjectionExec: {
    of: one(({ table, payload }) => `select ${payload} p, n + 0 v from ${table}`, asTheyAre),
    terms: (n) => `select ${list(n, (at) => `n + ${at}`)} from ${SMALL}`,
  },
  FilterExec: {
    of: ({ table, payload }) => [
      {
        rows: `select p, v from (select ${payload} p, row_number() over (order by ts) v
          from ${table}) where v > 0`,
        totals: ranked,
        first: (rows) => (rows.length === 0 ? null : 1),
      },
    ],
    terms: (n) =>
      `select v from (select row_number() over (order by ts) v from ${SMALL})
        where ${list(n, (at) => `v <> ${-at}`, ' and ')}`,
  },
  GlobalLimitExec: {
    of: one(
      ({ table, payload }) => `(select ${payload} p, n v from ${table} limit 1000000000)`,
      asTheyAre,
    ),
  },
  CooperativeExec: {
    of: one(
      ({ table, payload }) => `select ${payload} p, n v from read_parquet('${table}.parquet')`,
      asTheyAre,
      (rows) => rows[0]?.n ?? null,
    ),
  },
  UnnestElementsExec: {
    of: ({ table, payload }) => [
      {
        rows: `select ${payload} p, e v from ${table}, unnest(a) as u(e)`,
        totals: null,
      },
      {
        rows: `select e p, e v from ${table}, unnest(a) as u(e), unnest(a) as w(f)`,
        isPlain: true,
        totals: null,
      },
    ],
    terms: (n) => `select * from ${SMALL}, unnest(${list(n, () => 'a')})`,
  },
  UnionExec: {
    of: one(
      ({ table, payload }) =>
        `select ${payload} p, n v from ${table} union all select ${payload} p, n v from ${table}`,
      twice,
    ),
    terms: (n) => list(n, (at) => `select ${at} v`, ' union all '),
  },
};

const ORDER: Readonly<Record<string, Entry>> = {
  SortExec: {
    of: ({ table, payload }) => [
      {
        rows: `select ${payload} p, n v from ${table} order by n desc, t`,
        totals: asTheyAre,
        first: largest,
      },
      {
        rows: `select ${payload} p, row_number() over (order by t, n) v from ${table}`,
        totals: ranked,
      },
      {
        rows: `select first(${payload}) p, count() v from (select * from ${table} order by n, t)`,
        totals: null,
      },
      {
        rows: `select count() p, length(string_agg(t, ',')) v from
          (select * from ${table} order by t)`,
        isPlain: true,
        totals: null,
      },
    ],
    terms: (n) => `select n from ${SMALL} order by t, ${list(n, (at) => `n + ${at}`)}`,
  },
  SortRowsExec: {
    of: ({ table, payload }) => [
      {
        rows: `(select ${payload} p, n v from ${table} order by n desc limit 1000000000)`,
        totals: asTheyAre,
      },
      {
        rows: `(select ${payload} p, n v from ${table} order by k, n limit 1000000000)`,
        totals: asTheyAre,
      },
      // Puts all rows into a single key range.
      {
        rows: `(select ${payload} p, n v from ${table} order by n * 0, n desc limit 1000000000)`,
        totals: asTheyAre,
      },
    ],
    terms: (n) => `select n from ${SMALL} order by ${list(n, (at) => `n + ${at}`)}`,
    // A different operator sorts lists.
    without: ['long_array'],
  },
  TopRowsExec: {
    of: one(
      ({ table, payload }) =>
        `(select ${payload} p, n v from ${table} order by n desc limit 10000)`,
      null,
      largest,
    ),
    terms: (n) => `select n from ${SMALL} order by n, ${list(n, (at) => `n + ${at}`)} limit 10`,
  },
  SortPreservingMergeExec: {
    of: one(
      ({ table, payload }) => `select ${payload} p, n v from ${table} order by n desc, t`,
      asTheyAre,
      largest,
    ),
    without: [...FEW, SMALL],
  },
  CoalescePartitionsExec: {
    of: plain(
      ({ table }) => `select x.n p, y.n v from (select distinct n * 3 n from ${table}) x
        cross join (select x n from long_sequence(1000000000)) y`,
      null,
    ),
    without: ['long_array', 'long_text', 'no_rows'],
  },
  RepartitionExec: {
    of: plain(
      ({ table }) => `select n p, count(distinct t) v from ${table} group by n`,
      (rows) =>
        total(
          [...groupsOf(rows, ({ n }) => n).values()].flatMap((group) => group.slice(-1)),
          () => 1,
        ),
    ),
    // Inputs with so few rows are not distributed.
    without: [...FEW, SMALL],
    terms: (n) => `select ${list(n, (at) => `n + ${at}`)}, count(distinct t) from one_group`,
  },
  TimeConcatExec: {
    of: plain(
      ({ table }) => `(select n p, n v, ts, k from ${table}) latest on ts partition by k`,
      null,
    ),
  },
};

const GROUPS: Readonly<Record<string, Entry>> = {
  SampleByExec: {
    of: ({ table, payload }) => [
      {
        rows: `select ts, last(${payload}) p, count() v from ${table} sample by 1s`,
        totals: bucketsOf('s'),
        first: (rows) =>
          rows.length === 0
            ? null
            : (groupsOf(rows, ({ tsMicros }) => Math.floor(tsMicros / BUCKET_MICROS.s))
                .values()
                .next().value?.length ?? null),
      },
      {
        rows: `select t, last(${payload}) p, count() v from ${table} group by t`,
        totals: null,
      },
      {
        rows: `select c p, c v from (select n > 9 b, count() c from ${table} group by b)`,
        isPlain: true,
        totals: null,
      },
      {
        rows: `select k, last(${payload}) p, count() v from ${table} group by k`,
        totals: lastOf(({ k }) => k),
      },
      {
        rows: `select count() p, count_distinct(t) v from ${table}`,
        isPlain: true,
        totals: null,
      },
    ],
    terms: (n) => `select ${list(n, (at) => `first(n + ${at})`)} from
      (select * from ${SMALL} order by n)`,
  },
  SharedRowsExec: {
    of: one(
      ({ table, payload }) =>
        `with g as (select k, last(${payload}) p, count() v from ${table} group by k)
          select x.p, y.v from g x join g y on x.k = y.k`,
      lastOf(({ k }) => k),
    ),
    terms: (n) =>
      `with g as (select k, ${list(n, (at) => `max(n + ${at}) m${at}`)} from ${SMALL} group by k)
        select x.k from g x join g y on x.k = y.k`,
  },
  FillExec: {
    of: ({ table, payload }) => [
      {
        rows: `select ts, last(${payload}) p, count() v from ${table} sample by 1d fill(prev, 0)`,
        totals: filled,
      },
      {
        rows: `select ts, count() p, count() v from ${table} sample by 1U fill(null)`,
        isPlain: true,
        totals: null,
      },
      {
        rows: `select ts, k, last(n) p, last(n) v from ${table} sample by 1T fill(linear)`,
        isPlain: true,
        totals: null,
      },
    ],
    terms: (n) => `select ts, ${list(n, (at) => `max(n + ${at})`)} from ${SMALL}
      sample by 1h fill(prev)`,
  },
  AggregateExec: {
    of: ({ table }) => [
      {
        rows: `select n p, count(distinct t) v from ${table} group by n`,
        isPlain: true,
        totals: null,
      },
      {
        rows: `select n p, count(distinct t) v from ${table} group by cube(n, k, t)`,
        isPlain: true,
        totals: null,
      },
    ],
    terms: (n) => `select ${list(n, (at) => `n + ${at}`)}, count(distinct t) from ${SMALL}`,
  },
  GroupRowsExec: {
    of: ({ table }) => [
      {
        rows: `select n * 3 p, count() v from ${table} group by n * 3`,
        isPlain: true,
        totals: (rows) => {
          const different = [...groupsOf(rows, ({ n }) => n).keys()];
          const size = different.reduce((sum, n) => sum + n * 3, 0);
          return { count: different.length, v: rows.length, size };
        },
      },
      { rows: `select distinct n p, n v, t, k from ${table}`, isPlain: true, totals: null },
      {
        rows: `select t, max(n) p, count() v from ${table} group by t`,
        isPlain: true,
        totals: null,
      },
    ],
    terms: (n) => `select distinct ${list(n, (at) => `n + ${at}`)} from ${SMALL}`,
  },
  LatestOnExec: {
    of: ({ table, payload }) => [
      {
        rows: `select ${payload} p, n v from ${table} latest on ts partition by k`,
        totals: (rows) =>
          asTheyAre([...groupsOf(rows, ({ k }) => k).values()].flatMap((group) => group.slice(-1))),
      },
      {
        rows: `select ${payload} p, n v from ${table} latest on ts partition by t, n`,
        totals: null,
      },
    ],
    terms: (n) => `select * from ${SMALL} latest on ts partition by ${list(n, () => 'n')}`,
  },
};

const LIMITS: Readonly<Record<string, Entry>> = {
  LastRowsExec: {
    of: ({ table, payload }) => [
      { rows: `select ${payload} p, n v from ${table} limit -1000000000`, totals: asTheyAre },
      { rows: `select ${payload} p, n v from ${table} where n >= 0 limit -5`, totals: null },
      { rows: `select ${payload} p, n v from ${table} order by n, ts limit 1, -1`, totals: null },
    ],
  },
};

const WINDOWS: Readonly<Record<string, Entry>> = {
  WindowsExec: {
    of: ({ table, payload }) => [
      {
        rows: `select ${payload} p, row_number() over (partition by k order by ts) v from ${table}`,
        totals: null,
      },
      {
        rows: `select ${payload} p, sum(n) over (partition by k order by ts
          rows between 1000 preceding and current row) v from ${table}`,
        totals: null,
      },
      {
        rows: `select ${payload} p, max(n) over (partition by k order by ts
          range between '1' minute preceding and current row) v from ${table}`,
        totals: asTheyAre,
      },
      { rows: `select ${payload} p, count() over () v from ${table}`, totals: null },
    ],
    terms: (n) => `select ${list(n, (at) => `sum(n + ${at}) over (order by ts)`)} from ${SMALL}`,
  },
  RankRowsExec: {
    of: ({ table, payload }) => [
      {
        rows: `select ${payload} p, row_number() over (order by n desc) v from ${table}`,
        totals: ranked,
      },
      {
        rows: `select ${payload} p, dense_rank() over (partition by k order by n) v from ${table}`,
        totals: null,
      },
    ],
    terms: (n) => `select rank() over (order by ${list(n, (at) => `n + ${at}`)}) from ${SMALL}`,
    // A different operator ranks rows with lists.
    without: ['long_array'],
  },
  BoundedWindowAggExec: {
    of: one(
      ({ table, payload }) => `select ${payload} p, sum(n) over (order by n) v from ${table}`,
      running,
    ),
    terms: (n) => `select ${list(n, (at) => `sum(n + ${at}) over (order by n)`)} from ${SMALL}`,
  },
  WindowAggExec: {
    of: ({ table, payload }) => [
      {
        rows: `select ${payload} p, count(n) over (order by n desc rows between unbounded preceding
          and unbounded following) v from ${table}`,
        totals: (rows) => ({ ...asTheyAre(rows), v: rows.length * rows.length }),
      },
    ],
  },
};

const JOINS: Readonly<Record<string, Entry>> = {
  AsofJoinExec: {
    of: ({ table, payload }) => [
      {
        rows: `select x.${payload} p, y.n v from ${table} x asof join ${table} y on (k)`,
        totals: asTheyAre,
      },
      {
        rows: `select x.${payload} p, y.n v from ${table} x asof join ${table} y on (k, t)`,
        totals: asTheyAre,
      },
      {
        rows: `select x.${payload} p, y.n v from ${table} x lt join ${table} y on (k)`,
        totals: null,
      },
    ],
    terms: (n) => `select count() from ${SMALL} x asof join ${SMALL} y on
      ${list(n, () => 'x.n = y.n', ' and ')}`,
  },
  SpliceJoinExec: {
    of: one(
      ({ table, payload }) =>
        `select x.${payload} p, y.n v from ${table} x splice join ${table} y on (k)`,
      null,
    ),
    terms: (n) => `select count() from ${SMALL} x splice join ${SMALL} y on
      ${list(n, () => 'x.n = y.n', ' and ')}`,
  },
  WindowJoinExec: {
    of: ({ table, payload }) => [
      {
        rows: `select x.${payload} p, sum(y.n) v from ${table} x window join ${table} y on (k)
          range between 0 seconds preceding and current row exclude prevailing`,
        totals: (rows) => {
          const timestamps = [...groupsOf(rows, ({ tsMicros }) => tsMicros).values()];
          const v = timestamps.reduce((all, group) => all + group.length * asTheyAre(group).v, 0);
          return { ...asTheyAre(rows), v };
        },
      },
      {
        rows: `select x.${payload} p, count_distinct(y.n) v from ${table} x
          window join ${table} y on (k)
          range between 10000 days preceding and 10000 days following`,
        totals: null,
      },
      {
        rows: `select x.n p, length(string_agg(y.t, ',')) v from ${table} x window join ${table} y
          on (k) range between 10000 days preceding and current row`,
        isPlain: true,
        totals: null,
      },
    ],
    terms: (n) => `select ${list(n, (at) => `sum(y.n + ${at})`)} from ${SMALL} x
      window join ${SMALL} y range between 1 days preceding and current row`,
  },
  HorizonJoinExec: {
    of: ({ table }) => [
      {
        rows: `select h.offset p, sum(y.n) v from ${table} x horizon join ${table} y on (k)
          list (0) as h`,
        isPlain: true,
        totals: null,
      },
      {
        rows: `select h.offset p, sum(length(y.t)) v from ${table} x horizon join ${table} y on (k)
          range from -100s to 100s step 1s as h`,
        isPlain: true,
        totals: null,
      },
    ],
    terms: (n) => `select h.offset, sum(y.n) from ${SMALL} x horizon join ${SMALL} y
      list (${list(n, (at) => `${at}s`)}) as h`,
  },
  LookupJoinExec: {
    of: ({ table, payload }) => [
      {
        rows: `select x.${payload} p, y.n v from ${table} x join ${table} y on x.n = y.n`,
        totals: pairs,
      },
      {
        rows: `select x.${payload} p, y.n v from ${table} x join ${table} y on x.t = y.t`,
        totals: null,
      },
    ],
    terms: (n) => `select count() from ${SMALL} x join ${SMALL} y on
      ${list(n, (at) => `x.n + ${at} = y.n + ${at}`, ' and ')}`,
  },
  MergeJoinExec: {
    of: ({ table, payload }) => [
      {
        rows: `select x.${payload} p, y.n v from ${table} x join ${table} y on x.ts = y.ts`,
        totals: pairs,
      },
      {
        rows: `select x.${payload} p, y.n v from ${table} x left join ${table} y on x.ts = y.ts`,
        totals: pairs,
      },
      {
        rows: `select x.${payload} p, y.n v from ${table} x join ${table} y
          on x.ts = y.ts and x.n < y.n`,
        totals: none,
      },
    ],
    // Arrays would be copied for every pair.
    without: ['long_array'],
  },
  SemiJoinExec: {
    of: ({ table, payload }) => [
      {
        rows: `select x.${payload} p, x.n v from ${table} x where exists
          (select 1 from ${table} y where y.t = x.t)`,
        totals: asTheyAre,
      },
      {
        rows: `select x.${payload} p, x.n v from ${table} x where x.n < 0 or exists
          (select 1 from ${table} y where y.t = x.t and y.n = x.n)`,
        totals: asTheyAre,
      },
      // The keys of the filtered side become the build side if that side is estimated to be
      // smaller.
      ...(FEW.includes(table)
        ? []
        : [
            {
              rows: `select x.${payload} p, x.n v from ${table} x where exists
                (select 1 from ${table} y where y.n = x.n and y.n > -1)`,
              totals: asTheyAre,
            },
          ]),
      // The outer rows are the build side.
      {
        rows: `select x.${payload} p, x.n v from (select * from ${table} limit 1) x
          where not exists (select 1 from ${table} y where y.t = '-' || x.t)`,
        totals: (rows) => asTheyAre(rows.slice(0, 1)),
      },
    ],
    terms: (n) => `select count() from ${SMALL} x where exists (select 1 from ${SMALL} y where
      y.t = x.t and ${list(n, (at) => `x.n + ${at} = y.n + ${at}`, ' and ')})`,
  },
  GraceHashJoinExec: {
    of: ({ table, payload }) => [
      {
        rows: `select x.${payload} p, y.n v from ${table} x
          left join ${table} y on x.n = y.n and x.n <= y.n`,
        totals: pairs,
      },
      {
        rows: `select x.${payload} p, y.n v from ${table} x
          left join ${table} y on x.t = y.t and x.n <= y.n`,
        totals: null,
      },
      {
        rows: `${ONE_ROW} select x.p, y.n v
          from (select n, ${payload} p from one cross join ${table}) x
          join (select n from one cross join ${table}) y on x.n = y.n`,
        totals: pairs,
      },
      {
        rows: `${ONE_ROW} select x.p, y.n v
          from (select n, t, ${payload} p from one cross join ${table}) x
          full join (select n, t from one cross join ${table}) y on x.t = y.t and x.n <= y.n`,
        totals: null,
      },
      {
        rows: `${ONE_ROW} select x.p, x.n v
          from (select n, k, ${payload} p from one cross join ${table}) x
          left join (select n, k from one cross join ${table}) y on x.k = y.k and x.n + y.n < 0`,
        totals: asTheyAre,
      },
    ],
    terms: (n) => `${ONE_ROW} select count() from (select n from one cross join ${SMALL}) x
      join (select n from one cross join ${SMALL}) y on
      ${list(n, (at) => `x.n + ${at} = y.n + ${at}`, ' and ')}`,
  },
  ScalarSubqueryExec: {
    of: ({ table, payload }) => [
      {
        rows: `select ${payload} p, (select max(n) from ${table}) v from ${table}`,
        totals: (rows) => ({ ...asTheyAre(rows), v: rows.length * (largest(rows) ?? 0) }),
      },
      {
        rows: `select ${payload} p, n v from ${table} where n >= (select min(n) from ${table})`,
        totals: asTheyAre,
      },
    ],
    terms: (n) => `select ${list(n, () => `(select max(n) from ${SMALL})`)}`,
  },
  NestedLoopJoinExec: {
    of: ({ table, payload }) => [
      {
        rows: `select x.${payload} p, y.n v from ${table} x join ${table} y on x.n < y.n`,
        totals: null,
      },
    ],
    terms: (n) => `select count() from ${SMALL} x join ${SMALL} y on
      ${list(n, (at) => `x.n < y.n + ${at}`, ' and ')}`,
  },
  CrossJoinExec: {
    of: ({ table, payload }) => [
      {
        rows: `select x.${payload} p, y.n v from ${table} x
          cross join (select 1 n from long_sequence(2)) y`,
        totals: (rows) => total(rows, () => 1, 2),
      },
      {
        rows: `select x.n p, y.n v from ${table} x cross join ${table} y`,
        isPlain: true,
        totals: null,
      },
    ],
  },
  RecursiveQueryExec: {
    of: () => [
      {
        rows: `with recursive r (p, v) as (select 1, 1 union select p + 1, v + 1 from r
          where v < 1000) select p, v from r`,
        isPlain: true,
        totals: () => ({ count: 1000, v: 500_500, size: 500_500 }),
      },
      {
        rows: `with recursive r (p, v) as (select 1L, 1L union all select p + 1, v + 1 from r)
          select p, v from r`,
        isPlain: true,
        totals: null,
      },
      {
        rows: `with recursive r (p, v) as (select 1L, 1L union select p + x, v + x from r
          cross join (select x from long_sequence(1000))) select p, v from r`,
        isPlain: true,
        totals: null,
      },
    ],
    without: [...FEW, ...MANY],
  },
};

export const ENTRIES: Readonly<Record<string, Entry>> = {
  ...SCANS,
  ...ROW_WISE,
  ...ORDER,
  ...GROUPS,
  ...LIMITS,
  ...WINDOWS,
  ...JOINS,
};

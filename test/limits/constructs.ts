/**
 * Every grammar construct that takes a list or nests, as a statement with a given number of
 * repetitions. Add a new construct here to include it in the sweep (`sweep.ts`).
 *
 * The statements run on the tables of `PREPARATION`.
 */
import { NESTINGS, REFERENCES } from './references.js';

export interface Construct {
  readonly name: string;
  /** Builds a statement with `count` repetitions of the construct. */
  readonly of: (count: number) => string;
  /** Counts to try, if the default counts are not meaningful. */
  readonly counts?: readonly number[];
  /** Setup statements, run once. */
  readonly before?: (count: number) => readonly string[];
  /** Whether the test tries all of the construct's counts rather than only the large one. */
  readonly acceptsAnyCount?: boolean;
  /** Whether the statement must be refused. */
  readonly isRefused?: boolean;
}

/**
 * Default counts: typical of hand-written statements, typical of generated statements, and
 * excessive.
 */
export const COUNTS: readonly number[] = [40, 1_000, 9_000, 30_000];

/** Levels of nested or doubling constructs. */
const LEVELS: readonly number[] = [10, 40, 200, 1_000];

export const PREPARATION: readonly string[] = [
  `create table bt (ts timestamp, i int, l long, d double, v varchar, s symbol)
    timestamp(ts) partition by day`,
  `insert into bt select timestamp_sequence('2026-01-01', 1000000), x::int, x, x * 1.0,
    'ab' || x, 'k' || (x % 10) from long_sequence(1000)`,
  'create table sb (i int, d double)',
  'insert into sb select x::int, x * 1.0 from long_sequence(1000)',
];

/** Joins `count` strings with a separator. */
function list(count: number, text: (at: number) => string, between = ', '): string {
  return Array.from({ length: count }, (_, at) => text(at)).join(between);
}

/** Builds `of(of(…(innermost)))`. */
function nested(count: number, of: (inner: string, at: number) => string, inner: string): string {
  let text = inner;
  for (let at = 0; at < count; at += 1) {
    text = of(text, at);
  }
  return text;
}

const correlatedValue = (inner: string, at: number): string =>
  `(select max(d) + coalesce(${inner}, 0) from sb b${at} where b${at}.i = sb.i)`;

const correlatedTest = (inner: string, at: number): string =>
  `exists (select 1 from sb b${at} where b${at}.i = sb.i and ${inner})`;

const lateral = (at: number): string =>
  ` cross join lateral (select max(d) m from sb where sb.i = t.i) u${at}`;

const between = (inner: string): string => `case when (${inner}) between 0 and i then 1 else 0 end`;

const alternating = (inner: string, at: number): string =>
  `(i = ${at} ${at % 2 === 0 ? 'and' : 'or'} ${inner})`;

/** Terms of expressions. */
const TERMS: readonly Construct[] = [
  {
    name: 'and',
    of: (n) => `select count() from bt where ${list(n, (at) => `i != ${at}`, ' and ')}`,
  },
  { name: 'or', of: (n) => `select count() from bt where ${list(n, (at) => `i = ${at}`, ' or ')}` },
  {
    name: 'and of or',
    of: (n) =>
      `select count() from bt where ${list(n, (at) => `(i != ${at} or l != ${at})`, ' and ')}`,
  },
  {
    name: 'not between',
    of: (n) =>
      `select count() from bt where ${list(n, (at) => `i not between ${at} and ${at}`, ' and ')}`,
  },
  {
    name: 'and over a function',
    of: (n) =>
      `select count() from long_sequence(10) where ${list(n, (at) => `x != ${at}`, ' and ')}`,
  },
  {
    name: 'and of an outer join',
    of: (n) =>
      `select count() from sb a left join sb b on a.i = b.i
       where ${list(n, (at) => `b.i != ${at}`, ' and ')}`,
  },
  { name: 'plus', of: (n) => `select ${list(n, () => 'i', ' + ')} from sb limit 1` },
  { name: 'concatenation', of: (n) => `select ${list(n, () => 'v', ' || ')} from bt limit 1` },
  { name: 'in list', of: (n) => `select count() from bt where i in (${list(n, String)})` },
  {
    name: 'in list of a long operand',
    of: (n) =>
      `select count() from bt where ${list(200, () => 'i', ' + ')} in (${list(n, String)})`,
  },
  {
    name: 'rows in a list',
    of: (n) => `select count() from bt where (i, l) in (${list(n, (at) => `(${at}, ${at})`)})`,
  },
  {
    name: 'rows in no list',
    of: (n) => `select count() from bt where (i, v) not in (${list(n, (at) => `(${at}, 'a')`)})`,
  },
  {
    name: 'values of an equal row',
    of: (n) => `select count() from bt where (${list(n, () => 'i')}) = (${list(n, String)})`,
  },
  {
    name: 'values of a later row',
    of: (n) => `select count() from bt where (${list(n, () => 'i')}) >= (${list(n, String)})`,
    counts: [40, 400, 1_000, 9_000],
  },
  {
    name: 'in list of text',
    of: (n) => `select count() from bt where v in (${list(n, (at) => `'a${at}'`)})`,
  },
  {
    name: 'in list of symbols',
    of: (n) => `select count() from bt where s not in (${list(n, (at) => `'a${at}'`)})`,
  },
  {
    name: 'case',
    of: (n) =>
      `select case ${list(n, (at) => `when i = ${at} then ${at}`, ' ')} end from sb limit 1`,
  },
  {
    name: 'simple case',
    of: (n) => `select case i ${list(n, (at) => `when ${at} then ${at}`, ' ')} end from sb limit 1`,
  },
  { name: 'arguments', of: (n) => `select coalesce(${list(n, () => 'i')}) from sb limit 1` },
  { name: 'greatest', of: (n) => `select greatest(${list(n, () => 'd')}) from sb limit 1` },
  { name: 'array', of: (n) => `select array[${list(n, () => 'd')}] from sb limit 1` },
  {
    name: 'time intervals',
    of: (n) =>
      `select count() from bt where
        ${list(n, (at) => `ts in '2026-01-01T00:00:${String(at % 60).padStart(2, '0')}'`, ' or ')}`,
  },
];

/** Lists of a query's clauses. */
const CLAUSES: readonly Construct[] = [
  { name: 'columns', of: (n) => `select ${list(n, (at) => `i + ${at} c${at}`)} from sb limit 1` },
  {
    name: 'aliases in a row',
    of: (n) => `select i a0, ${list(n, (at) => `a${at} + 1 a${at + 1}`)} from sb limit 1`,
  },
  { name: 'aggregates', of: (n) => `select ${list(n, (at) => `sum(d + ${at})`)} from bt` },
  {
    name: 'aggregates by key',
    of: (n) => `select s, ${list(n, (at) => `sum(d + ${at})`)} from bt`,
  },
  {
    name: 'windows',
    of: (n) => `select ${list(n, (at) => `sum(d + ${at}) over (order by ts)`)} from bt limit 1`,
  },
  {
    name: 'windows by key',
    of: (n) =>
      `select ${list(n, (at) => `rank() over (partition by s order by d + ${at})`)} from bt limit
        1`,
  },
  {
    name: 'order by',
    of: (n) => `select i from bt order by ${list(n, (at) => `i + ${at}`)} limit 1`,
  },
  {
    name: 'group by',
    of: (n) => `select count() from bt group by ${list(n, (at) => `i + ${at}`)} limit 1`,
  },
  {
    name: 'partition by',
    of: (n) => `select count() over (partition by ${list(n, (at) => `i + ${at}`)}) from bt limit 1`,
  },
  {
    name: 'distinct',
    of: (n) => `select distinct ${list(n, (at) => `i + ${at} c${at}`)} from sb limit 1`,
  },
  {
    name: 'sample by fill',
    of: (n) =>
      `select ts, ${list(n, (at) => `sum(d + ${at})`)} from bt sample by 1m
        fill(${list(n, () => 'prev')}) limit 1`,
  },
  {
    name: 'latest on',
    of: (n) =>
      `select i from (select *, ${list(n, (at) => `s c${at}`)} from bt) latest on ts partition by
        ${list(n, (at) => `c${at}`)} limit 1`,
  },
  { name: 'values', of: (n) => `select count() from (values ${list(n, (at) => `(${at}, 'x')`)})` },
  {
    name: 'pivot',
    of: (n) => `select * from sb pivot (sum(d) for i in (${list(n, String)}))`,
    counts: [40, 1_000, 5_000, 9_000],
  },
  {
    name: 'pivot of a query',
    of: (n) =>
      `select * from (select x, x d from long_sequence(${n})) pivot (sum(d) for x in (select x
        from long_sequence(${n})))`,
    counts: [40, 1_000, 5_000, 9_000],
  },
  {
    name: 'pivot by axes',
    of: (n) =>
      `select * from bt pivot (${list(5, (at) => `sum(d + ${at}) a${at}`)} for i in
        (${list(Math.ceil(Math.sqrt(n)), String)}) l in
        (${list(Math.ceil(Math.sqrt(n)), String)}))`,
  },
  {
    name: 'grouping sets',
    of: (n) =>
      `select i, d, count() from sb group by grouping sets
        (${list(n, (at) => (at % 2 === 0 ? '(i)' : '(d)'))}) limit 1`,
  },
  { name: 'keys in a list', of: (n) => `select count() from bt group by (${list(n, () => 'i')})` },
  { name: 'excluded', of: (n) => `select * exclude (${list(n, (at) => `c${at}`)}) from sb` },
  {
    name: 'replaced',
    of: (n) => `select * replace (${list(n, (at) => `${at} as c${at}`)}) from sb`,
  },
  {
    name: 'qualify',
    of: (n) =>
      `select i from bt qualify
        ${list(n, (at) => `rank() over (order by i + ${at % 20}) > ${at}`, ' or ')}`,
  },
  {
    name: 'cube',
    of: (n) => `select count() from sb group by cube (${list(n, (at) => `i + ${at}`)}) limit 1`,
    counts: [4, 12, 40, 1_000],
  },
];

/** Sources and whole queries. */
const SOURCES: readonly Construct[] = [
  ...['union', 'union all', 'except', 'except all', 'intersect', 'intersect all'].map((word) => ({
    name: word,
    of: (n: number) => list(n, (at) => `select ${at} x`, ` ${word} `),
  })),
  { name: 'union of tables', of: (n) => list(n, (at) => `select i + ${at} x from sb`, ' union ') },
  {
    name: 'union of types',
    of: (n) =>
      list(
        n,
        (at) => `select i::${['int', 'long', 'double', 'string'][at % 4] ?? ''} x from sb`,
        ' union ',
      ),
  },
  {
    name: 'set operations mixed',
    of: (n) =>
      list(
        n,
        (at) => `select ${at} x ${['union', 'except', 'union all', 'intersect'][at % 4] ?? ''} `,
        '',
      ) + 'select 1',
    counts: [40, 500, 700, 1_000],
  },
  {
    name: 'cross joins',
    of: (n) =>
      `select count() from (select 1 x)
        t${list(n, (at) => ` cross join (select ${at} x) u${at}`, '')}`,
  },
  {
    name: 'joins',
    of: (n) =>
      `select count() from sb t${list(n, (at) => ` join sb u${at} on t.i = u${at}.i`, '')}`,
    counts: LEVELS,
  },
  {
    name: 'left joins',
    of: (n) =>
      `select count() from sb t${list(n, (at) => ` left join sb u${at} on t.i = u${at}.i`, '')}`,
    counts: LEVELS,
  },
  {
    name: 'asof joins',
    of: (n) => `select count() from bt t${list(n, (at) => ` asof join bt u${at}`, '')}`,
    counts: LEVELS,
  },
  {
    name: 'terms of on',
    of: (n) =>
      `select count() from sb a join sb b on
        ${list(n, (at) => `a.i + ${at} = b.i + ${at}`, ' and ')}`,
  },
  {
    name: 'other terms of on',
    of: (n) =>
      `select count() from (select * from sb limit 10) a join (select * from sb limit 10) b on
        ${list(n, (at) => `a.i != b.i + ${at}`, ' and ')}`,
  },
  {
    name: 'common tables',
    of: (n) => `with ${list(n, (at) => `c${at} as (select ${at} x)`)} select * from c0`,
  },
  {
    name: 'common tables in a row',
    of: (n) =>
      `with c0 as (select * from sb), ${list(n, (at) => `c${at + 1} as (select * from c${at})`)}
        select count() from c${n}`,
    counts: [40, 200, 600, 980, 9_000],
  },
  {
    name: 'common tables doubling',
    of: (n) =>
      `with c0 as (select * from sb),
        ${list(n, (at) => `c${at + 1} as (select * from c${at} union all select * from c${at})`)}
        select count() from c${n}`,
    counts: LEVELS,
  },
  { name: 'declarations', of: (n) => `declare ${list(n, (at) => `@v${at} := ${at}`)} select @v0` },
  {
    name: 'declarations doubling',
    of: (n) =>
      `declare @v0 := 1, ${list(n, (at) => `@v${at + 1} := @v${at} + @v${at}`)} select @v${n}`,
    counts: LEVELS,
  },
  {
    name: 'declarations doubling over rows',
    of: (n) =>
      `declare @v0 := i, ${list(n, (at) => `@v${at + 1} := @v${at} + @v${at}`)} select @v${n}
        from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'sub-queries',
    of: (n) => nested(n, (inner) => `select * from (${inner})`, 'select * from sb'),
    counts: [10, 40, 120, 1_000],
  },
  {
    name: 'filtered common tables in a row',
    of: (n) =>
      `with c0 as (select i from sb),
        ${list(n, (at) => `c${at + 1} as (select i + 1 i from c${at} where i != ${at})`)}
        select count() from c${n}`,
    counts: [40, 200, 600, 980],
  },
  {
    name: 'grouped common tables in a row',
    of: (n) =>
      `with c0 as (select i from sb),
        ${list(n, (at) => `c${at + 1} as (select i, count() from c${at} order by i limit 900)`)}
        select count() from c${n}`,
    counts: [40, 200, 600, 980],
  },
  {
    name: 'filtered sub-queries',
    of: (n) =>
      nested(
        n,
        (inner, at) => `select i + 1 i from (${inner}) where i != ${at}`,
        'select i from sb',
      ),
    counts: [10, 40, 120, 1_000],
  },
  {
    name: 'values side by side',
    of: (n) => `select ${list(n, (at) => `(select max(d) from sb b${at}) c${at}`)} from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'correlated values side by side',
    of: (n) =>
      `select ${list(n, (at) => `(select max(d) from sb b${at} where b${at}.i = sb.i) c${at}`)}
        from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'correlated values nested',
    of: (n) => `select ${nested(n, correlatedValue, '1')} from sb limit 1`,
    counts: [2, 5, 10, 40],
  },
  {
    name: 'exists side by side',
    of: (n) =>
      `select count() from sb where
        ${list(n, (at) => `exists (select 1 from sb b${at} where b${at}.i = sb.i)`, ' and ')}`,
    counts: LEVELS,
  },
  {
    name: 'exists in or',
    of: (n) =>
      `select count() from sb where
        ${list(n, (at) => `exists (select 1 from sb b${at} where b${at}.i = sb.i)`, ' or ')}`,
    counts: LEVELS,
  },
  {
    name: 'exists nested',
    of: (n) =>
      `select count() from sb where
        ${nested(n, correlatedTest, 'true')}`,
    counts: [2, 5, 10, 40],
  },
  {
    name: 'laterals',
    of: (n) =>
      `select count() from sb
        t${list(n, lateral, '')}`,
    counts: LEVELS,
  },
  {
    name: 'in queries',
    of: (n) => `select count() from sb where ${list(n, () => 'i in (select i from sb)', ' and ')}`,
    counts: LEVELS,
  },
  {
    name: 'views in a row',
    of: (n) => `select count() from chain${n}`,
    counts: [5, 20, 31, 40],
    before: (n) => [
      'create view chain0 as (select * from sb)',
      ...Array.from(
        { length: n },
        (_, at) => `create view chain${at + 1} as (select * from chain${at})`,
      ),
    ],
  },
  {
    name: 'views doubling',
    of: (n) => `select count() from twice${n}`,
    counts: [4, 8, 16],
    before: (n) => [
      'create view twice0 as (select * from sb)',
      ...Array.from(
        { length: n },
        (_, at) =>
          `create view twice${at + 1} as (select * from twice${at} union all select * from
            twice${at})`,
      ),
    ],
  },
];

/** Constructs nested in themselves. */
const NESTED: readonly Construct[] = [
  {
    name: 'parentheses',
    of: (n) => `select ${'('.repeat(n)}i${')'.repeat(n)} from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'calls',
    of: (n) => `select ${nested(n, (inner) => `abs(${inner})`, 'i')} from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'coalesce',
    of: (n) => `select ${nested(n, (inner) => `coalesce(${inner}, 1)`, 'i')} from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'nullif',
    of: (n) => `select ${nested(n, (inner) => `nullif(${inner}, 1)`, 'i')} from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'cases',
    of: (n) =>
      `select ${nested(n, (inner, at) => `case when i = ${at} then 1 else ${inner} end`, 'i')}
        from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'between',
    of: (n) => `select ${nested(n, between, 'i')} from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'in',
    of: (n) => `select ${nested(n, (inner) => `(${inner} in (i, 1))::int`, 'i')} from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'not',
    of: (n) => `select count() from sb where ${'not '.repeat(n)}i = 1`,
    counts: LEVELS,
  },
  {
    name: 'casts',
    of: (n) =>
      `select i${list(n, (at) => (at % 2 === 0 ? '::long' : '::string'), '')} from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'arrays',
    of: (n) => `select ${'array['.repeat(n)}d${']'.repeat(n)} from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'aliases doubling',
    of: (n) => `select i a0, ${list(n, (at) => `a${at} + a${at} a${at + 1}`)} from sb limit 1`,
    counts: LEVELS,
  },
  {
    name: 'and or by turns',
    of: (n) =>
      `select count() from sb where
        ${nested(n, alternating, 'i = 1')}`,
    counts: LEVELS,
  },
  {
    name: 'explain of and',
    of: (n) => `explain select count() from bt where ${list(n, (at) => `i != ${at}`, ' and ')}`,
  },
  {
    name: 'explain of union',
    of: (n) => `explain ${list(n, (at) => `select ${at} x`, ' union ')}`,
  },
];

/** Statements that change data or schema. */
const CHANGES: readonly Construct[] = [
  {
    name: 'update set',
    of: (n) => `update updated${n} set ${list(n, (at) => `c${at} = ${at}`)}`,
    counts: [40, 1_000, 4_000],
    before: (n) => [`create table if not exists updated${n} (${list(n, (at) => `c${at} int`)})`],
  },
  {
    name: 'update where',
    of: (n) => `update bt set i = i where ${list(n, (at) => `i != ${at}`, ' and ')}`,
  },
  {
    name: 'insert values',
    of: (n) => `insert into sb values ${list(n, (at) => `(${at} + 1, 1.0)`)}`,
  },
  {
    name: 'insert of one cell',
    of: (n) => `insert into sb (i) values (${list(n, () => '1', ' + ')})`,
  },
  {
    name: 'insert select',
    of: (n) => `insert into sb ${list(n, (at) => `select ${at}, 1.0`, ' union all ')}`,
  },
  {
    name: 'create table of defaults',
    of: (n) => `create table given${n} (${list(n, (at) => `c${at} long default ${at} + 1`)})`,
    counts: [40, 4_000],
  },
  { name: 'create table', of: (n) => `create table wide${n} (${list(n, (at) => `c${at} int`)})` },
  {
    name: 'create table of symbols',
    of: (n) => `create table symbols${n} (${list(n, (at) => `c${at} symbol index`)})`,
    counts: [40, 1_000, 4_096],
  },
  {
    name: 'create table as',
    of: (n) => `create table made${n} as (select ${list(n, (at) => `${at} c${at}`)})`,
    counts: [40, 1_000, 4_096, 9_000],
  },
  {
    name: 'create view of and',
    of: (n) =>
      `create or replace view vv as (select count() from bt where
        ${list(n, (at) => `i != ${at}`, ' and ')})`,
  },
  { name: 'view of and', of: () => 'select * from vv', counts: [1] },
  {
    name: 'alter table add',
    of: (n) => `alter table sb add column ${list(n, (at) => `x${at} int`)}`,
    counts: [9_000, 30_000],
  },
  {
    name: 'drop partitions',
    of: (n) => `alter table bt drop partition list ${list(n, () => "'2025-01-01'")}`,
  },
];

/** Strings parsed by functions. */
const TEXTS: readonly Construct[] = [
  {
    name: 'stars of a file pattern',
    of: (n) => `select * from read_parquet('${'**/'.repeat(n)}x')`,
  },
  {
    name: 'directories of a file pattern',
    of: (n) => `select * from read_parquet('${'*/'.repeat(n)}x')`,
  },
  {
    name: 'braces of a file pattern',
    of: (n) => `select * from read_parquet('${'{a}'.repeat(n)}')`,
  },
  {
    name: 'choices of a file pattern',
    of: (n) => `select * from read_parquet('{${list(n, (at) => `f${at}`, ',')}}${'x'.repeat(n)}')`,
  },
  {
    name: 'files',
    of: (n) => `select * from read_parquet([${list(n, (at) => `'f${at}.parquet'`)}])`,
  },
  {
    name: 'digits of a time',
    of: (n) => `select to_timestamp(rpad('9', ${n * 30}, '9'), rpad('y', ${n * 30}, 'y'))`,
  },
  { name: 'pattern of like', of: (n) => `select count() from bt where v like '${'%a'.repeat(n)}'` },
  {
    name: 'regular expression',
    of: (n) => `select count() from bt where v ~ '${'(a|b)*'.repeat(n)}'`,
  },
];

export const CONSTRUCTS: readonly Construct[] = [
  ...TERMS,
  ...CLAUSES,
  ...SOURCES,
  ...NESTED,
  ...CHANGES,
  ...TEXTS,
  ...REFERENCES,
  ...NESTINGS,
];

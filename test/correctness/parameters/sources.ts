/** Statements to sweep: recorded, documented and benchmarked. */
import { readdirSync, readFileSync } from 'node:fs';

import { parse, scan, SyntaxError_, TokenKind, type Tree } from '../../../ts/sql/index.js';
import { sqlCases } from '../../golden/cases.js';
import { ITEMS } from '../../sql/grammar/index.js';
import { TABLES } from '../../sql/grammar/states.js';
import { listFunctions } from '../../sql/functions/list.js';

export type Source = 'recorded' | 'grammar' | 'functions' | 'pages' | 'benchmark';

export interface Swept {
  readonly source: Source;
  /** Statements that create the tables. */
  readonly setup: readonly string[];
  readonly sql: string;
}

const ROOT = new URL('../../../../', import.meta.url);

/**
 * Returns the table that a statement changes: null for a query, undefined for all other statements.
 */
export function changedTable(sql: string): string | null | undefined {
  for (const node of treeOf(sql)?.nodes ?? []) {
    if (node.kind === 'Insert' || node.kind === 'Update' || node.kind === 'Delete') {
      return node.table.text;
    }
  }
  const root = treeOf(sql)?.nodes.at(-1)?.kind;
  return root === 'Query' ? null : undefined;
}

function treeOf(sql: string): Tree | null {
  try {
    return parse(sql);
  } catch (error) {
    if (error instanceof SyntaxError_) {
      return null;
    }
    throw error;
  }
}

const FROM_NONE = 'DROP ALL TABLES';

/** Statements with volatile results, and statements that change the data they read. */
const IS_VOLATILE =
  /\b(rnd_|now\(|systimestamp|sysdate|current_|clock_|random|uuid_generate|nextval|\$today)/i;

/** All statements of a sweep. */
export async function statementsToSweep(): Promise<Swept[]> {
  const all = [
    ...recorded(),
    ...grammar(),
    ...(await functions()),
    ...pages(),
    ...benchmarkQueries(),
  ];
  return all.filter(
    ({ sql }) =>
      changedTable(sql) !== undefined &&
      !IS_VOLATILE.test(sql) &&
      treeOf(sql)?.nodes.every(({ kind }) => kind !== 'Parameter'),
  );
}

/**
 * Statements without a setup only read shared tables, because a change would affect later
 * statements.
 */
function recorded(): Swept[] {
  return sqlCases()
    .filter(({ members }) => !('error' in members))
    .filter(({ setup, sql }) => setup.length > 0 || changedTable(sql) === null)
    .map(({ setup, sql }) => ({ source: 'recorded', setup, sql }));
}

/** Returns the statements that `docs/sql-coverage.md` lists. */
function grammar(): Swept[] {
  return ITEMS.filter(({ kind, hasUsers }) => kind === 'works' && hasUsers !== true).flatMap(
    ({ statements }) =>
      statements.map((sql, at) => {
        const before = statements.slice(0, at).filter((text) => changedTable(text) !== null);
        return { source: 'grammar', setup: [FROM_NONE, ...TABLES, ...before], sql } as const;
      }),
  );
}

/** Returns the examples in `docs/functions.md`. */
async function functions(): Promise<Swept[]> {
  const setup = [
    FROM_NONE,
    'CREATE TABLE demo (ts TIMESTAMP, k SYMBOL, v DOUBLE) TIMESTAMP(ts) PARTITION BY DAY',
    "INSERT INTO demo VALUES ('2026-11-21T10:00:00', 'a', 1.5), ('2026-11-21T11:00:00', 'b', 2.5)",
  ];
  const listed = await listFunctions();
  return listed.map(({ example }) => ({ source: 'functions', setup, sql: `SELECT ${example}` }));
}

/**
 * Returns the SQL examples on the pages of `docs`. The changes that precede an example on its page
 * are its setup.
 */
function pages(): Swept[] {
  const folder = new URL('docs/', ROOT);
  const names = readdirSync(folder).filter((name) => name.endsWith('.md'));
  return names.flatMap((name) => {
    const page = readFileSync(new URL(name, folder), 'utf8');
    const blocks = [...page.matchAll(/^```sql\n([^]*?)^```/gm)];
    const statements = blocks.flatMap(([, block = '']) => split(block));
    // Views follow their base automatically, so their results may change a moment later.
    const views = statements.flatMap((sql) => {
      const [, view] = /^CREATE (?:LIVE |MATERIALIZED )VIEW (\w+)/.exec(sql) ?? [];
      return view === undefined ? [] : [new RegExp(`\\b${view}\\b`)];
    });
    return statements
      .filter((sql) => !views.some((view) => view.test(sql)))
      .map((sql, at, rest) => {
        const before = rest.slice(0, at).filter((text) => changedTable(text) !== null);
        const setup = [FROM_NONE, ...before];
        return { source: 'pages', setup, sql } as const;
      });
  });
}

/** Splits statements at semicolons. */
function split(text: string): string[] {
  const { kinds, starts, ends } = scan(text);
  const marks = [...kinds.keys()].filter(
    (at) => kinds[at] === TokenKind.Mark && text.slice(starts[at], ends[at]) === ';',
  );
  const cuts = [-1, ...marks.map((at) => starts[at] ?? 0), text.length];
  return cuts
    .slice(1)
    .map((end, at) => text.slice((cuts[at] ?? 0) + 1, end).trim())
    .filter((sql) => sql !== '');
}

const METRICS = ['user', 'system', 'idle', 'nice', 'iowait', 'irq', 'softirq', 'steal', 'guest'];
const COLUMNS = [...METRICS, 'guest_nice'].map((metric) => `usage_${metric}`);
const TAGS = ['region', 'datacenter', 'rack', 'os', 'arch', 'team', 'service'];

/** Returns tables with the benchmark's schemas and only a few rows. */
function benchmarkTables(prepared: readonly string[]): string[] {
  const usage = COLUMNS.map((column, at) => `(x * ${7 + at}) % 101 ${column}`);
  const tags = TAGS.map((tag, at) => `cast('${tag}_' || (x % ${2 + at}) as symbol) ${tag}`);
  return [
    FROM_NONE,
    `CREATE TABLE trades AS (SELECT
      dateadd('s', (x * 60)::int, '2024-01-01T00:00:30Z'::timestamp) ts,
      cast('SYM' || lpad((x % 100)::string, 2, '0') as symbol) symbol,
      cast(CASE WHEN x % 3 = 0 THEN 'sell' ELSE 'buy' END as symbol) side,
      (x * 37 % 4001) / 4.0 price, (x * 13 % 641) / 4.0 amount FROM long_sequence(4000))
      TIMESTAMP(ts) PARTITION BY DAY`,
    `CREATE TABLE quotes AS (SELECT
      dateadd('s', (x * 60)::int, '2024-01-01T00:00:10Z'::timestamp) ts,
      cast('SYM' || lpad((x * 7 % 100)::string, 2, '0') as symbol) symbol,
      (x * 37 % 4001) / 4.0 bid, (x * 37 % 4001 + 1) / 4.0 ask,
      (x % 9)::double bid_size, (x % 7)::double ask_size FROM long_sequence(4000))
      TIMESTAMP(ts) PARTITION BY DAY`,
    `CREATE TABLE cpuday AS (SELECT
      dateadd('s', (x * 30)::int, '2016-01-01T00:00:00Z'::timestamp) ts,
      cast('host_' || (x % 20) as symbol) hostname, ${tags.join(', ')},
      ${usage.join(', ')} FROM long_sequence(2800)) TIMESTAMP(ts) PARTITION BY DAY`,
    ...prepared,
  ];
}

/** Values of the benchmark's parameters, as `params()` in `bench.py` sets them. */
const VALUES: Readonly<Record<string, string>> = {
  d0: '2024-01-02T00:00:00.000000Z',
  d1: '2024-01-03T00:00:00.000000Z',
  h0: '2024-01-02T07:00:00.000000Z',
  h1: '2024-01-02T08:00:00.000000Z',
  m0: '2024-01-02T09:10:00.000000Z',
  m1: '2024-01-02T09:20:00.000000Z',
  c1a: '2016-01-01T03:00:00.000000Z',
  c1b: '2016-01-01T04:00:00.000000Z',
  c8a: '2016-01-01T03:00:00.000000Z',
  c8b: '2016-01-01T11:00:00.000000Z',
  c12a: '2016-01-01T03:00:00.000000Z',
  c12b: '2016-01-01T15:00:00.000000Z',
};
const LISTS: Readonly<Record<string, string>> = {
  sym: 'SYM30',
  h1: "'host_3'",
  h8: [0, 2, 3, 5, 7, 11, 13, 17].map((host) => `'host_${host}'`).join(', '),
  max5: COLUMNS.slice(0, 5)
    .map((column) => `max(${column})`)
    .join(', '),
  max10: COLUMNS.map((column) => `max(${column})`).join(', '),
  avg1: `avg(${COLUMNS[0] ?? ''})`,
  avg5: COLUMNS.slice(0, 5)
    .map((column) => `avg(${column})`)
    .join(', '),
  avg10: COLUMNS.map((column) => `avg(${column})`).join(', '),
};

/** Returns the queries in `test/bench/queries.yaml`, in Tidemark's dialect. */
function benchmarkQueries(): Swept[] {
  const text = readFileSync(new URL('test/bench/queries.yaml', ROOT), 'utf8');
  const entries = [...text.matchAll(/^- \{(id|prepare): .*? q: "((?:[^"\\]|\\.)*)"/gm)];
  const queries = entries.map(([, kind = '', query = '']) => ({
    kind,
    sql: query
      .replaceAll(/\{\{ts:(\w+)\}\}/g, (_, name: string) => `'${VALUES[name] ?? ''}'`)
      .replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => LISTS[name] ?? ''),
  }));
  const prepared = queries.filter(({ kind }) => kind === 'prepare').map(({ sql }) => sql);
  const setup = benchmarkTables(prepared);
  return queries
    .filter(({ kind }) => kind === 'id')
    .map(({ sql }) => ({ source: 'benchmark', setup, sql }));
}

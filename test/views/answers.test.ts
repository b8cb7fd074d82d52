/**
 * Queries answered from materialized views, compared with the same queries on a table without
 * views. The histories are random; SEED=n repeats a history.
 */
import test from 'ava';

import { rows, run, withServer } from '../scenario/statements.js';
import { suiteSeed } from '../seed.js';
import { generator } from '../sql/mutations.js';
import { current, sorted } from './views.js';

const SEED = suiteSeed();
const COLUMNS = '(ts TIMESTAMP, s SYMBOL, k SYMBOL, x DOUBLE, n LONG, i INT)';
const VIEW = `SELECT ts, s, k, count() c, count(n) cn, sum(n) n, sum(i) i, min(x) lo, max(x) hi,
  first(x) f, last(x) l FROM t SAMPLE BY 1m`;
const RANGES = [
  '',
  "ts >= '2024-01-02T03:04:30' AND ts < '2024-01-04T05:06:07'",
  "ts IN '2024-01-03'",
  "ts IN '2024-01-02T10;1h;1d;3'",
  "ts > '2024-01-03T00:00:30'",
];
const FILTERS = ['', "s = 'a'", "s <> 'b' AND k IN ('p', 'q')"];
const QUERIES = [
  ['ts, s, k, count() c, first(x) f, last(x) l', 'SAMPLE BY 1h'],
  ['ts, s, min(x) lo, max(x) hi, sum(n) n', 'SAMPLE BY 1d'],
  ['ts, count(n) c, sum(i) i', 'SAMPLE BY 5m'],
  ['ts, count() c', 'SAMPLE BY 1h FILL(0)'],
  ['ts, s, max(x) hi', 'SAMPLE BY 1w'],
  ['ts, sum(n) n', 'SAMPLE BY 1M'],
  ['s, k, max(x) - min(x) spread, count() c', 'ORDER BY s, k'],
  ["timestamp_floor('2h', ts) hour, k, sum(n) n", ''],
] as const;

function queries(table: string): string[] {
  return QUERIES.flatMap(([list, clause]) =>
    RANGES.flatMap((range) =>
      FILTERS.map((filter) => {
        const tests = [range, filter].filter((one) => one !== '').join(' AND ');
        const where = tests === '' ? '' : `WHERE ${tests}`;
        return `SELECT ${list} FROM ${table} ${where} ${clause}`;
      }),
    ),
  );
}

const plan = async (server: Parameters<typeof rows>[0], query: string): Promise<string> =>
  (await rows(server, `EXPLAIN (PHYSICAL) ${query}`)).flat().join('\n');

test('a view returns the same results as its base table after any change', async (t) => {
  const below = generator(SEED);
  await withServer(async (server) => {
    for (const table of ['t', 'twin']) {
      await run(server, `CREATE TABLE ${table} ${COLUMNS} TIMESTAMP(ts) PARTITION BY DAY`);
    }
    const both = async (statement: string): Promise<void> => {
      await run(
        server,
        statement.replaceAll('TABLE_', 't'),
        statement.replaceAll('TABLE_', 'twin'),
      );
    };
    const at = (): string => {
      const time = Date.UTC(2024, 0, 1) + below(5 * 86_400) * 1_000;
      return new Date(time).toISOString().slice(0, 19);
    };
    const insert = (count: number): string => {
      const row = (): string => {
        const symbol = ['a', 'b', 'c', null][below(4)] ?? null;
        const key = ['p', 'q', 'r'][below(3)] ?? 'p';
        const value = below(10) === 0 ? 'null' : `${below(1000) / 4}`;
        const number = below(8) === 0 ? 'null' : `${below(1000) - 500}`;
        const shown = symbol === null ? 'null' : `'${symbol}'`;
        return `('${at()}', ${shown}, '${key}', ${value}, ${number}, ${below(100)})`;
      };
      return `INSERT INTO TABLE_ VALUES ${Array.from({ length: count }, row).join(', ')}`;
    };
    // Many rows per minute, because only then is reading the view worthwhile.
    await both(`INSERT INTO TABLE_ SELECT
      dateadd('s', (x * 7919 % 432000)::int / 600 * 600 + (x % 50)::int, '2024-01-01'::timestamp),
      case when x % 4 = 0 then 'a' when x % 4 = 1 then 'b' else 'c' end,
      case when x % 3 = 0 then 'p' else 'q' end, x % 1000, x % 777 - 300, (x % 99)::int
      FROM long_sequence(60000)`);
    await run(server, `CREATE MATERIALIZED VIEW v AS (${VIEW}) PARTITION BY DAY`);
    await current(server, 'v');
    let answered = 0;
    const compare = async (what: string): Promise<void> => {
      const twins = queries('twin');
      for (const [index, query] of queries('t').entries()) {
        const expected = await sorted(server, twins[index] ?? '');
        t.deepEqual(await sorted(server, query), expected, `SEED=${SEED}, ${what}: ${query}`);
        answered += Number((await plan(server, query)).includes('TableScanExec: v'));
      }
    };
    await compare('at first');
    t.true(answered > 100, `${answered} queries were answered by the view`);
    const steps = [
      () => both(insert(5)),
      () => both(`UPDATE TABLE_ SET n = 1000 WHERE ts IN '${at().slice(0, 13)}'`),
      () => both(`DELETE FROM TABLE_ WHERE ts IN '${at().slice(0, 13)}' AND s = 'a'`),
      () => both("ALTER TABLE TABLE_ DETACH PARTITION LIST '2024-01-03'"),
      () => both(insert(3)),
    ];
    // Rows that the view does not cover are read from the base.
    await run(server, "SELECT pause_job('refresh', 'v')");
    for (const step of steps) {
      await step();
      await compare(String(step));
    }
    await run(server, "SELECT resume_job('refresh', 'v')");
    await current(server, 'v');
    await compare('current again');
    return server;
  });
});

test('a view is not used if it lacks the data for a query or has EXPIRE ROWS', async (t) => {
  const queriesOfBase = [
    'SELECT ts, s, avg(x) FROM t SAMPLE BY 1h',
    'SELECT ts, s, max(n) FROM t SAMPLE BY 1h',
    'SELECT ts, s, first(x) FROM t SAMPLE BY 1h',
    'SELECT ts, max(x) FROM t WHERE x > 3 SAMPLE BY 1h',
    'SELECT ts, max(x) FROM t SAMPLE BY 90s',
    "SELECT ts, max(x) FROM t SAMPLE BY 1d ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin'",
    'SELECT ts, max(x) FROM t SAMPLE BY 1h ALIGN TO FIRST OBSERVATION',
    "SELECT ts, max(x) FROM t WHERE ts IN '2024-01-01T00:00:10;5s' SAMPLE BY 1h",
    'SELECT count(distinct s) FROM t',
  ];
  const answered = 'SELECT ts, s, max(x) FROM t SAMPLE BY 1h';
  await withServer(async (server) => {
    await run(server, `CREATE TABLE t ${COLUMNS} TIMESTAMP(ts) PARTITION BY DAY`);
    await run(
      server,
      `INSERT INTO t SELECT dateadd('T', x::int * 100, '2024-01-01'::timestamp), 'a', 'p', x, x, 1
        FROM long_sequence(20000)`,
    );
    await run(server, `CREATE MATERIALIZED VIEW v AS (${VIEW})`);
    await current(server, 'v');
    t.regex(await plan(server, answered), /TableScanExec: v/);
    for (const query of queriesOfBase) {
      t.notRegex(await plan(server, query), /TableScanExec: v/, query);
    }
    await run(server, "ALTER MATERIALIZED VIEW v SET EXPIRE ROWS WHEN ts < '2024-01-01T00:10'");
    t.notRegex(await plan(server, answered), /TableScanExec: v/);
    await run(server, 'ALTER MATERIALIZED VIEW v DROP EXPIRE');
    t.regex(await plan(server, answered), /TableScanExec: v/);
    const part = VIEW.replace('FROM t', "FROM t WHERE ts > '2024'");
    await run(server, 'DROP MATERIALIZED VIEW v', `CREATE MATERIALIZED VIEW v AS (${part})`);
    await current(server, 'v');
    t.notRegex(
      await plan(server, answered),
      /TableScanExec: v/,
      'the view covers only part of the time range',
    );
    return server;
  });
});

/** Standard SQL statements that drivers and tools send, and that the server answers itself. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, rows, run } from './statements.js';

type Rows = readonly (readonly unknown[])[];
type Case = readonly [sql: string, rows: Rows];

const TRUTHS = [true, true, false, true, true];
const NAMES = ['character varying', 't', 'public'];

let server: TestServer;
test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  await run(
    server,
    'CREATE TABLE t (ts TIMESTAMP, k SYMBOL, i INT, l LONG, d DOUBLE) TIMESTAMP(ts) ' +
      'PARTITION BY DAY',
    "INSERT INTO t VALUES ('2026-05-01T00:00:00Z', 'a', 1, 10, 1.5), " +
      "('2026-05-01T00:01:00Z', 'b', 2, 20, 2.5), ('2026-05-01T00:02:00Z', 'a', 3, 30, null)",
    'CREATE TABLE edges (a INT, b INT)',
    'INSERT INTO edges VALUES (1, 2), (2, 3), (3, 1), (3, 4), (5, 6)',
    'CREATE TABLE texts (s VARCHAR)',
    "INSERT INTO texts VALUES ('50%'), ('505'), ('a_b'), ('axb'), ('a\\b'), (null)",
  );
});
test.after.always(async () => {
  await server.stop();
});

function answers(title: string, cases: readonly Case[]): void {
  test(title, async (t) => {
    for (const [sql, expected] of cases) {
      t.deepEqual(await rows(server, sql), expected, sql);
    }
  });
}

answers('queries sent by PostgreSQL tools return the expected rows', [
  ['SELECT t.* FROM public.t WHERE i = 2', [['2026-05-01T00:01:00.000000Z', 'b', 2, 20, 2.5]]],
  ['SELECT pg_namespace.* FROM pg_catalog.pg_namespace LIMIT 1', [[11, 'pg_catalog', 10, null]]],
  ['SELECT * FROM current_schema()', [['public']]],
  ["SELECT true = 't', true = 'T', true = 'x', false = 'f', true != 'y'", [TRUTHS]],
  ["SELECT CASE i > 1 WHEN 't' THEN 'y' ELSE 'n' END FROM t", [['n'], ['y'], ['y']]],
  ["SELECT 'varchar'::regtype::text, 't'::regclass::text, 2200::regnamespace::text", [NAMES]],
  [`SELECT ('"public"."' || 't' || '"')::regclass = 't'::regclass`, [[true]]],
  ["SELECT '2026-05-01 02:00:00.5 +02:00'::timestamp", [['2026-05-01T00:00:00.500000Z']]],
  ['SELECT pg_my_temp_schema()', [[0]]],
  ["SELECT s FROM texts WHERE s ~* 'A.B' AND s !~* '^AX'", [['a_b'], ['a\\b']]],
  ["SELECT s FROM texts WHERE s OPERATOR(pg_catalog.~*) '^A_'", [['a_b']]],
  ["SELECT substring('abcdef' FOR 2) a, substring('abcdef' FROM 3 FOR 2) b", [['ab', 'cd']]],
  ["SELECT 'trigger'::regtype::text", [['trigger']]],
  ["SELECT count() FROM pg_statio_all_tables WHERE relname = 'edges'", [[1]]],
  [
    'SELECT t.i, e.b FROM t JOIN (SELECT a + 0.0 a, b FROM edges) e ON t.i = e.a ORDER BY 1, 2',
    [
      [1, 2],
      [2, 3],
      [3, 1],
      [3, 4],
    ],
  ],
  ['SELECT n FROM (SELECT ARRAY[7.0, 8.0] v) CROSS JOIN generate_subscripts(v, 1) n', [[1], [2]]],
  // An outer join whose ON contains columns from both sides, and a sub-query that reads neither
  // side.
  [
    'SELECT a.i, b.i FROM t a LEFT JOIN t b ON a.i + b.i = (SELECT max(i) FROM t) ORDER BY 1, 2',
    [
      [1, 2],
      [2, 1],
      [3, null],
    ],
  ],
  // An outer join whose ON contains a column from the right side, and a sub-query that reads the
  // left side.
  [
    'SELECT t.i, e.b FROM t LEFT JOIN edges e ON e.a = ' +
      '(SELECT max(x.b) FROM edges x WHERE x.a = t.i) ORDER BY 1, 2',
    [
      [1, 3],
      [2, 1],
      [2, 4],
      [3, null],
    ],
  ],
]);

test('function calls have the column names that PostgreSQL tools expect', async (t) => {
  const { columns } = await exec(
    server,
    'SELECT version(), pg_catalog.now(), now(), count() FROM t',
  );
  t.deepEqual(
    columns?.map(({ name }) => name),
    ['version', 'now', 'now()', 'count()'],
  );
});

test('an endless recursive query times out', async (t) => {
  const sql =
    'WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 0 FROM n) SELECT count() FROM n';
  const answer = await fetch(`${server.url}/exec?query=${encodeURIComponent(sql)}`, {
    headers: { 'Statement-Timeout': '300' },
  });
  t.regex(((await answer.json()) as { error: string }).error, /timeout/i);
});

test('type names accept a length or precision', async (t) => {
  await run(
    server,
    'CREATE TABLE lengths (a FLOAT(24), b FLOAT(53), c CHAR(1), d CHAR(3), e CHARACTER(9), ' +
      'f CHARACTER VARYING(9), g VARCHAR(9), h CHARACTER VARYING)',
  );
  const types = await rows(server, "SELECT type FROM table_columns('lengths')");
  const expected = ['FLOAT', 'DOUBLE', 'CHAR', ...Array.from({ length: 5 }, () => 'VARCHAR')];
  t.deepEqual(types.flat(), expected);
  for (const type of ['FLOAT(0)', 'FLOAT(54)', 'CHAR(0)', 'CHAR(x)']) {
    const answer = await exec(server, `CREATE TABLE bad (a ${type})`);
    t.truthy(answer.error, type);
    t.is(answer.position, 'CREATE TABLE bad (a '.length, type);
  }
});

answers('the catalog contains its own tables and the running queries', [
  [
    'SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute a, pg_class c ' +
      "WHERE a.attrelid = c.oid AND c.relname = 'pg_namespace' AND attnum > 0 ORDER BY attnum",
    [
      ['oid', 'oid'],
      ['nspname', 'name'],
      ['nspowner', 'oid'],
      ['nspacl', 'aclitem[]'],
    ],
  ],
  [
    "SELECT typname, typreceive != 0, typreceive = 0 FROM pg_type WHERE typname = '_int4'",
    [['_int4', true, false]],
  ],
  ["SELECT typname FROM pg_type WHERE typreceive = 'array_recv' AND typelem = 16", [['_bool']]],
  ['SELECT count() FROM pg_opclass WHERE opcdefault', [[1]]],
  [
    "SELECT datname, usename, state, backend_type, query LIKE '%pg_stat_activity%' " +
      'FROM pg_stat_activity WHERE pid IN (SELECT query_id FROM query_activity()) ' +
      "AND query LIKE '%FROM pg_stat_activity WHERE pid%'",
    [['qdb', 'admin', 'active', 'client backend', true]],
  ],
  [
    'SELECT a.attname, d.description FROM pg_attribute a LEFT JOIN pg_description d ' +
      'ON d.objoid = a.attrelid AND d.objsubid = a.attnum ' +
      "WHERE a.attname = 'k'",
    [['k', null]],
  ],
]);

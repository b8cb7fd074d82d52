/** Standard SQL that drivers and tools send, by the rows it gives and by what is refused. */
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

/** Each fails at the place that `^` marks, which is taken out, with a part of the message. */
function refusals(title: string, cases: readonly (readonly [string, string])[]): void {
  test(title, async (t) => {
    for (const [marked, message] of cases) {
      const position = marked.indexOf('^');
      const answer = await exec(server, marked.replace('^', ''));
      t.true(answer.error?.includes(message), `${marked}: ${answer.error}`);
      t.is(answer.position, position, marked);
    }
  });
}

answers('what tools of PostgreSQL ask beside rows', [
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
  // A sub-query in ON of an outer join that reads no side, beside columns of both.
  [
    'SELECT a.i, b.i FROM t a LEFT JOIN t b ON a.i + b.i = (SELECT max(i) FROM t) ORDER BY 1, 2',
    [
      [1, 2],
      [2, 1],
      [3, null],
    ],
  ],
  // A sub-query in ON of an outer join that reads the left side, beside a column of the right.
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

test('a function that tools of PostgreSQL ask for names its column', async (t) => {
  const { columns } = await exec(
    server,
    'SELECT version(), pg_catalog.now(), now(), count() FROM t',
  );
  t.deepEqual(
    columns?.map(({ name }) => name),
    ['version', 'now', 'now()', 'count()'],
  );
});

answers('LIKE … ESCAPE', [
  ["SELECT s FROM texts WHERE s LIKE '50!%' ESCAPE '!'", [['50%']]],
  ["SELECT s FROM texts WHERE s LIKE '50\\%'", [['50%']]],
  ["SELECT s FROM texts WHERE s LIKE 'a!_%' ESCAPE '!'", [['a_b']]],
  [
    "SELECT s FROM texts WHERE s ILIKE 'AX_' ESCAPE '!' OR s ILIKE 'A\\B' ESCAPE ''",
    [['axb'], ['a\\b']],
  ],
  ["SELECT s FROM texts WHERE s NOT LIKE 'a%' ESCAPE '!' AND s NOT LIKE '5%'", [[null]]],
  ["SELECT s FROM texts WHERE s LIKE 'a\\\\b' ESCAPE '\\'", [['a\\b']]],
  ["SELECT like_escape('5!%_!!\\', '!') e", [['5\\%_\\!\\\\']]],
  ["SELECT s escape FROM texts WHERE s LIKE '505'", [['505']]],
]);

refusals('LIKE … ESCAPE refuses what it cannot mean', [
  ["SELECT s FROM texts WHERE s LIKE '50!%' ESCAPE ^'!!'", 'ESCAPE must be empty or one character'],
]);

answers('TRIM with a side and characters', [
  [
    "SELECT trim(both 'x' from 'xaxx') a, trim('x' from 'xaxx') b, trim(' a ') c",
    [['a', 'a', 'a']],
  ],
  [
    "SELECT trim(leading from ' a ') a, trim(trailing 'xy' from 'axyx') b, ltrim('xa', 'x') c",
    [['a ', 'a', 'a']],
  ],
]);

answers('functions of rows in the list', [
  [
    'SELECT x, unnest(ARRAY[1.5, 2]) u FROM long_sequence(2)',
    [
      [1, 1.5],
      [1, 2],
      [2, 1.5],
      [2, 2],
    ],
  ],
  // Side by side, as long as the longest.
  [
    'SELECT unnest(ARRAY[7, 8]) a, unnest(ARRAY[9]) b, generate_subscripts(ARRAY[7, 8], 1) i',
    [
      [7, 9, 1],
      [8, null, 2],
    ],
  ],
  [
    'SELECT sum(u) s FROM (SELECT unnest(ARRAY[x * 1.0, 1.0]) u FROM long_sequence(3) WHERE x > 1)',
    [[7]],
  ],
  ['SELECT unnest(current_schemas(true)) s', [['pg_catalog'], ['public']]],
  ['SELECT (current_schemas(true))[2] a, array_upper(current_schemas(true), 1) b', [['public', 2]]],
]);

answers('arrays of texts, and what is in them', [
  ['SELECT array_agg(k) a FROM t', [['{a,b,a}']]],
  ["SELECT array_agg(s) a FROM texts WHERE s LIKE 'a%'", [['{a_b,axb,"a\\\\b"}']]],
  ["SELECT i FROM t WHERE k = ANY('{b,\"c d\",NULL}') OR i = ANY('{3}'::int[])", [[2], [3]]],
  [
    "SELECT json_build_object('a', i, 'b', k, 'c', d, 'e\"', true) j FROM t WHERE i = 3",
    [['{"a" : 3, "b" : "a", "c" : null, "e\\"" : true}']],
  ],
  [
    "SELECT json_build_object('k', E'\\b\\f\\n\\t\\x01\\\\') j",
    [['{"k" : "\\b\\f\\n\\t\\u0001\\\\"}']],
  ],
  [
    'SELECT format_type(1700, 655366), format_type(1043, 12), format_type(1114, 3) t, ' +
      'format_type(1700, -1), format_type(1700, null)',
    [
      [
        'numeric(10,2)',
        'character varying(8)',
        'timestamp(3) without time zone',
        'numeric',
        'numeric',
      ],
    ],
  ],
]);

answers('WITH RECURSIVE', [
  [
    'WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) ' +
      'SELECT count(), sum(i) FROM n',
    [[5, 15]],
  ],
  // What is reached from 1; the circle ends because UNION drops what is known.
  [
    'WITH RECURSIVE reached (x) AS (SELECT 1 UNION SELECT b FROM edges JOIN reached ON a = x) ' +
      'SELECT x FROM reached ORDER BY x',
    [[1], [2], [3], [4]],
  ],
  [
    'WITH RECURSIVE walk AS (SELECT a, b, 1 steps FROM edges WHERE a = 1 UNION ALL ' +
      'SELECT e.a, e.b, steps + 1 FROM walk w, edges e WHERE w.b = e.a AND steps < 4) ' +
      'SELECT b, steps FROM walk ORDER BY steps, b',
    [
      [2, 1],
      [3, 2],
      [1, 3],
      [4, 3],
      [2, 4],
    ],
  ],
  [
    "WITH RECURSIVE s AS (SELECT 'x' v UNION ALL SELECT v || 'x' FROM s WHERE length(v) < 3) " +
      'SELECT v FROM s',
    [['x'], ['xx'], ['xxx']],
  ],
  [
    'WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM n) SELECT i FROM n LIMIT 3',
    [[1], [2], [3]],
  ],
  // Beside the rows around it: once for each of them.
  [
    'SELECT x, (WITH RECURSIVE up (i, steps) AS (SELECT z.x, 0 UNION ALL ' +
      'SELECT i + 1, steps + 1 FROM up WHERE i < 4) SELECT max(steps) FROM up) m ' +
      'FROM long_sequence(5) z ORDER BY x',
    [
      [1, 3],
      [2, 2],
      [3, 1],
      [4, 0],
      [5, 0],
    ],
  ],
  [
    'SELECT e.b, (WITH RECURSIVE reached (x) AS (SELECT e.b UNION SELECT n.b FROM edges n ' +
      'JOIN reached ON n.a = x WHERE n.b <> e.a) SELECT count() FROM reached) n ' +
      'FROM edges e ORDER BY e.a, e.b',
    [
      [2, 3],
      [3, 3],
      [1, 2],
      [4, 1],
      [6, 1],
    ],
  ],
  // RECURSIVE permits it, and does not ask for it.
  [
    'WITH RECURSIVE a AS (SELECT 1 x), b AS (SELECT x + 1 y FROM a) SELECT x, y FROM a, b',
    [[1, 2]],
  ],
  ['WITH RECURSIVE a AS (SELECT 1 x UNION ALL SELECT 2) SELECT x FROM a', [[1], [2]]],
  ['WITH recursive AS (SELECT 7 x) SELECT x FROM recursive', [[7]]],
  [
    'SELECT i FROM t WHERE i IN (WITH RECURSIVE n AS (SELECT 2 v UNION ALL SELECT v + 1 FROM n ' +
      'WHERE v < 9) SELECT v FROM n)',
    [[2], [3]],
  ],
  [
    'WITH RECURSIVE days AS (SELECT min(ts) d FROM t UNION ALL ' +
      "SELECT dateadd('d', 1, d) FROM days WHERE d < '2026-05-03') SELECT count() FROM days",
    [[3]],
  ],
]);

refusals('WITH RECURSIVE refuses what cannot come to an end or to one type', [
  [
    'WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT a.i + 1 FROM n a, ^n b) SELECT * FROM n',
    'may name itself only once',
  ],
  [
    'WITH RECURSIVE n AS (SELECT 1 i UNION ALL ^SELECT i * 1.5 FROM n WHERE i < 9) SELECT * FROM n',
    "column '",
  ],
  [
    'WITH RECURSIVE n AS (SELECT 1 i UNION ALL ^SELECT i, 2 FROM n WHERE i < 9) SELECT * FROM n',
    'different number of columns',
  ],
  ['WITH n AS (SELECT 1 i UNION ALL SELECT i + 1 FROM ^n) SELECT * FROM n', 'does not exist'],
]);

test('an endless recursion ends with its time', async (t) => {
  const sql =
    'WITH RECURSIVE n AS (SELECT 1 i UNION ALL SELECT i + 0 FROM n) SELECT count() FROM n';
  const answer = await fetch(`${server.url}/exec?query=${encodeURIComponent(sql)}`, {
    headers: { 'Statement-Timeout': '300' },
  });
  t.regex(((await answer.json()) as { error: string }).error, /timeout/i);
});

answers('what is now, in the words of the standard', [
  ['SELECT CURRENT_TIMESTAMP = now() a, LOCALTIMESTAMP = now() b', [[true, true]]],
  ["SELECT CURRENT_DATE = date_trunc('day', now()) a, typeOf(CURRENT_DATE) b", [[true, 'DATE']]],
  ['SELECT count() FROM t WHERE ts < CURRENT_TIMESTAMP AND ts < CURRENT_DATE', [[3]]],
]);

test('types with a length or a precision', async (t) => {
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

test('DROP TABLE and DROP VIEW take several names, and all or none go', async (t) => {
  const names = async (): Promise<unknown[]> =>
    (
      await rows(server, "SELECT table_name FROM tables() WHERE table_name LIKE 'drop%' ORDER BY 1")
    ).flat();
  for (const name of ['drop_a', 'drop_b', 'drop_c']) {
    await run(server, `CREATE TABLE ${name} (i INT)`);
  }
  const missing = await exec(server, 'DROP TABLE drop_a, nowhere, drop_b');
  t.is(missing.position, 'DROP TABLE drop_a, '.length);
  t.deepEqual(await names(), ['drop_a', 'drop_b', 'drop_c']);
  await run(server, 'DROP TABLE IF EXISTS drop_a, nowhere, drop_a');
  t.deepEqual(await names(), ['drop_b', 'drop_c']);
  await run(server, 'CREATE VIEW dv AS (SELECT 1 x)', 'CREATE VIEW dw AS (SELECT 2 x)');
  t.truthy((await exec(server, 'DROP TABLE drop_b, dv')).error);
  await run(server, 'DROP VIEW dv, dw', 'DROP TABLE drop_b, drop_c;');
  t.deepEqual(await names(), []);
  t.truthy((await exec(server, 'SELECT * FROM dv')).error);
});

answers("E'…' as PostgreSQL reads it", [
  ["SELECT E'it\\'s' a, E'a''b' b, E'\\'''x' c", [["it's", "a'b", "''x"]]],
  ["SELECT E'\\101\\102' a, E'\\x43' b, E'\\xc3\\xa9' c, E'\\303\\251' d", [['AB', 'C', 'é', 'é']]],
  ["SELECT E'\\u00e9\\U0001F600' a, E'\\\\' b, E'\\\\''' c", [['é😀', '\\', "\\'"]]],
  ["SELECT E'a\\nb\\tc\\qd' a, e'x' b", [['a\nb\tcqd', 'x']]],
]);

refusals("E'…' refuses what is no text", [
  ["SELECT E^'\\xff'", 'not UTF-8'],
  ["SELECT E^'\\000'", 'character 0'],
  ["SELECT E^'a\\'", 'unclosed quoted string'],
]);

answers('the alias of a series names its column as well', [
  ['SELECT bid FROM generate_series(1, 3) AS bid', [[1], [2], [3]]],
  [
    'SELECT bid * 2 AS d FROM generate_series(1, 3) bid WHERE bid > 1 ORDER BY bid DESC',
    [[6], [4]],
  ],
  ['SELECT s.generate_series FROM generate_series(1, 2) s', [[1], [2]]],
  [
    'SELECT aid, bid FROM generate_series(1, 2) aid, generate_series(5, 5) bid',
    [
      [1, 5],
      [2, 5],
    ],
  ],
]);

answers('joins of integers of different widths', [
  [
    'SELECT t.i, e.b FROM t JOIN edges e ON t.l = e.a * 10 ORDER BY 1, 2',
    [
      [1, 2],
      [2, 3],
      [3, 1],
      [3, 4],
    ],
  ],
  ['SELECT x.i FROM t x JOIN (SELECT 2::short i) y ON (i)', [[2]]],
  ['SELECT x.i FROM t x LEFT JOIN (SELECT 2L v) y ON y.v = x.i WHERE y.v IS NULL', [[1], [3]]],
]);

test('bytes as PostgreSQL writes them', async (t) => {
  await run(
    server,
    'CREATE TABLE bytes (b BINARY)',
    "INSERT INTO bytes VALUES ('\\x00ff61'), (null)",
  );
  t.deepEqual(await rows(server, 'SELECT base64(b, 10) FROM bytes'), [['AP9h'], [null]]);
  t.deepEqual(await rows(server, "SELECT length('\\x6162'::bytea), length('ab'::binary)"), [
    [2, 2],
  ]);
  const refused = await exec(server, "INSERT INTO bytes VALUES ('\\x0')");
  t.true(refused.error?.includes('inconvertible value'), refused.error);
});

answers('the catalog tells of itself and of what runs', [
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

answers('windows beside aggregates look at the groups', [
  [
    'SELECT i % 2 g, sum(l) s, max(i % 2) OVER () m FROM t ORDER BY 1',
    [
      [0, 20, 1],
      [1, 40, 1],
    ],
  ],
  [
    'SELECT k, sum(l) s, max(k) OVER () m FROM t ORDER BY 1',
    [
      ['a', 40, 'b'],
      ['b', 20, 'b'],
    ],
  ],
  [
    'SELECT k, avg(l) v, row_number() OVER (PARTITION BY k ORDER BY i) n, ' +
      'sum(i) OVER w s FROM t WINDOW w AS () ORDER BY k, n',
    [
      ['a', 10, 1, 6],
      ['a', 30, 2, 6],
      ['b', 20, 1, 6],
    ],
  ],
  ['SELECT i FROM t ORDER BY row_number() OVER (ORDER BY i DESC)', [[3], [2], [1]]],
  [
    'SELECT k, sum(i) s FROM t GROUP BY k ORDER BY rank() OVER (ORDER BY sum(i)), k',
    [
      ['b', 2],
      ['a', 4],
    ],
  ],
]);

refusals('window functions stand where there are rows to look at', [
  ['SELECT i FROM t WHERE ^row_number() OVER () = 1', 'window functions are not allowed here'],
  ['SELECT sum(^row_number() OVER ()) FROM t', 'window functions are not allowed here'],
  ['SELECT row_number() OVER () r, ^sum(r) FROM t', 'window functions are not allowed here'],
  ['SELECT sum(^lag(i) OVER ()) OVER () FROM t', 'window functions are not allowed here'],
  [
    'SELECT row_number() OVER () r, ^sum(r) OVER () FROM t',
    'window functions are not allowed here',
  ],
  [
    'SELECT row_number() OVER (), count() FROM t GROUP BY ^1',
    'window functions are not allowed in GROUP BY',
  ],
  [
    'SELECT k, sum(i) FROM t GROUP BY k HAVING ^row_number() OVER () = 1',
    'window functions are not allowed in HAVING',
  ],
]);

/**
 * Everyday statements that once failed or hung: LIMIT 0, empty results, the server's internal
 * names, sub-queries with many duplicates, array parameters.
 */
import test from 'ava';
import type pg from 'pg';

import { internalWord } from '../internal-words.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { type Answer, exec, rows, run } from './statements.js';
import { pgClient } from '../pg-client.js';

type Rows = readonly (readonly unknown[])[];

const SETUP = [
  'CREATE TABLE x_s (ts TIMESTAMP, k SYMBOL, v VARCHAR, i INT, d DOUBLE) TIMESTAMP(ts) ' +
    'PARTITION BY DAY',
  "INSERT INTO x_s VALUES ('2024-03-30T10:00:00','a','p',1,1.5), " +
    "('2024-03-30T23:30:00','b','q',2,2.5), ('2024-03-31T10:00:00','a','q',2,3.5), " +
    "('2024-04-01T22:30:00','b','p',3,4.5)",
  'CREATE TABLE ref (k SYMBOL, i INT, sector VARCHAR)',
  "INSERT INTO ref VALUES ('a',1,'tech'), ('b',2,'food')",
  "CREATE TABLE sj AS (SELECT rnd_symbol('a','b','c','d') k, x l, (x%20)::int i, x * 0.5 d, " +
    "substring('abcd', (x % 4)::int + 1, 1) t FROM long_sequence(200000))",
  'CREATE TABLE g7 (g GEOHASH(7b), h GEOHASH(3c))',
];

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  await run(server, ...SETUP);
});

test.after.always(async () => {
  await server.stop();
});

async function connect(): Promise<pg.Client> {
  const client = pgClient(server.pg);
  await client.connect();
  return client;
}

test('LIMIT 0 returns no rows for any query, but still returns its columns', async (t) => {
  const sources = [
    'SELECT * FROM x_s',
    'SELECT k, sum(d) FROM x_s',
    'SELECT DISTINCT k FROM x_s',
    'SELECT k FROM x_s UNION SELECT k FROM ref',
    'SELECT a.k, b.sector FROM x_s a JOIN ref b ON a.k = b.k',
    'SELECT ts, sum(d) FROM x_s SAMPLE BY 1d',
    'SELECT i, row_number() OVER (ORDER BY i) FROM x_s',
  ];
  const limits = ['LIMIT 0', 'LIMIT 0, 0', 'LIMIT 5, 5', 'LIMIT 0 OFFSET 3', 'LIMIT -0'];
  for (const source of sources) {
    for (const limit of limits) {
      for (const query of [
        `${source} ${limit}`,
        `${source} ORDER BY 1 DESC ${limit}`,
        `SELECT * FROM (${source} ORDER BY 1 DESC) ${limit}`,
        `SELECT * FROM (${source} ORDER BY 1 ${limit}) ORDER BY 1 LIMIT 3`,
        `WITH w AS (${source} ORDER BY 1 ${limit}) SELECT * FROM w ORDER BY 1 LIMIT 1, 2`,
      ]) {
        const { dataset, columns, error } = await exec(server, query);
        t.deepEqual(dataset, [], `${query}: ${error ?? ''}`);
        t.true((columns ?? []).length > 0, query);
      }
    }
  }
});

test('grouping an empty input returns no groups', async (t) => {
  const none = "(SELECT k, v, i, max(d) m FROM x_s WHERE v = 'nope' GROUP BY k, v, i)";
  for (const keys of ['k', 'v', 'i', 'k, v', 'v, i', 'k, i']) {
    t.deepEqual(await rows(server, `SELECT ${keys}, max(m) FROM ${none}`), [], keys);
    t.deepEqual(await rows(server, `SELECT ${keys}, first(m) FROM ${none}`), [], keys);
  }
  const correlated = "(SELECT avg(s.d) FROM x_s s WHERE s.k = t.k AND s.v = 'nope')";
  t.deepEqual(await rows(server, `SELECT t.k FROM x_s t WHERE t.d > ${correlated}`), []);
});

test("columns may be named like the server's internal columns", async (t) => {
  const sampled = 'SELECT ts, k, min(ts) a0 FROM x_s SAMPLE BY 1d ORDER BY a0, ts';
  t.is((await rows(server, `SELECT ts, max(a0) FROM (${sampled}) SAMPLE BY 1d`)).length, 3);
  const keyed = `SELECT k0, count() FROM (SELECT ts k0, k FROM x_s) TIMESTAMP(k0) SAMPLE BY 1d`;
  t.is((await rows(server, keyed)).length, 3);
  for (const name of ['a0', 'k0', 'w0', 'q0', 'd1c0', 'row', 'limit row', 'distinct row', 'mark']) {
    const own = `(SELECT i "${name}", k, ts FROM x_s) t`;
    const quoted = `"${name}"`;
    for (const query of [
      `SELECT ${quoted}, row_number() OVER (ORDER BY ${quoted}) FROM ${own}`,
      `SELECT ${quoted}, avg(${quoted}) OVER (PARTITION BY k ORDER BY ts) FROM ${own}`,
      `SELECT ${quoted}, (SELECT max(i) FROM ref) FROM ${own} ORDER BY ${quoted}`,
      `SELECT ${quoted} FROM ${own} WHERE EXISTS (SELECT 1 FROM ref r WHERE r.i = t.${quoted})`,
      `SELECT ${quoted} FROM ${own} WHERE ${quoted} IN (SELECT i FROM ref r WHERE r.k = t.k)`,
      `SELECT ${quoted}, count() FROM ${own} GROUP BY ${quoted}`,
      `SELECT ${quoted}, ts FROM ${own} LIMIT -2`,
      `SELECT DISTINCT ON (k) ${quoted} FROM ${own}`,
      `SELECT ts, max(${quoted}) FROM ${own} SAMPLE BY 1d`,
    ]) {
      const { dataset, error } = await exec(server, query);
      t.true((dataset ?? []).length > 0, `${query}: ${error ?? 'no rows'}`);
    }
  }
});

test('duplicates do not multiply the cost of sub-queries and set operations', async (t) => {
  const exists = (rows: string, test: string): string =>
    `SELECT count() FROM ${rows} a WHERE EXISTS (SELECT 1 FROM sj b WHERE ${test})`;
  const counts: Readonly<Record<string, number>> = {
    'SELECT count() FROM sj WHERE k IN (SELECT k FROM sj)': 200_000,
    'SELECT count() FROM sj WHERE k NOT IN (SELECT k FROM sj)': 0,
    'SELECT count() FROM sj WHERE k IN (SELECT k FROM sj) OR l < 0': 200_000,
    'SELECT count() FROM sj WHERE i = ANY (SELECT i FROM sj)': 200_000,
    [exists('sj', 'b.k = a.k')]: 200_000,
    [exists('sj', 'b.i = a.i AND b.k = a.k')]: 200_000,
    [exists('sj', 'b.i % 7 = a.i % 7')]: 200_000,
    [exists('sj', 'b.d = a.d')]: 200_000,
    [exists('sj', 'b.k = a.k AND b.d = a.d')]: 200_000,
    [exists('sj', 'b.t = a.k')]: 200_000,
    'SELECT count() FROM sj a, sj b WHERE a.d = b.d': 200_000,
    'SELECT count() FROM sj a JOIN sj b ON a.i = b.i WHERE a.l = b.l': 200_000,
    'SELECT count() FROM sj a, (SELECT DISTINCT t FROM sj) b WHERE a.k = b.t': 200_000,
    [exists('sj', 'b.i = a.i AND b.l <> a.l')]: 200_000,
    [exists('sj', 'b.i = a.i AND b.l > a.l')]: 199_980,
    [`${exists('sj', "b.k || 'x' = a.k || 'x'")} OR l < 0`]: 200_000,
    [exists('(SELECT * FROM sj LIMIT 9)', 'b.i % 7 = a.i % 7')]: 9,
    [exists('sj', 'b.i % 7 = a.i % 7').replace('EXISTS', 'NOT EXISTS')]: 0,
    'SELECT count() FROM sj a WHERE i IN (SELECT b.i FROM sj b WHERE b.k = a.k)': 200_000,
    'SELECT count() FROM (SELECT k FROM sj INTERSECT ALL SELECT k FROM sj)': 200_000,
    'SELECT count() FROM (SELECT k FROM sj INTERSECT SELECT k FROM sj)': 4,
    'SELECT count() FROM (SELECT k FROM sj EXCEPT ALL SELECT k FROM sj)': 0,
  };
  for (const [query, count] of Object.entries(counts)) {
    // Multiplying the rows by the duplicates would give 10 billion rows.
    const headers = { 'Statement-Timeout': '20000' };
    const address = `${server.url}/exec?query=${encodeURIComponent(query)}`;
    const answer = (await (await fetch(address, { headers })).json()) as Answer;
    t.deepEqual(answer.dataset, [[count]], `${query}: ${answer.error ?? ''}`);
  }
});

test('LATERAL supports set operations and outer keys', async (t) => {
  const set = (operator: string): string =>
    'SELECT o.k, l.d FROM ref o, LATERAL (SELECT a.d FROM x_s a WHERE a.k = o.k ' +
    `${operator} SELECT b.d FROM x_s b WHERE b.i = o.i) l ORDER BY 1, 2`;
  t.deepEqual(await rows(server, set('INTERSECT')), [
    ['a', 1.5],
    ['b', 2.5],
  ]);
  t.deepEqual(await rows(server, set('EXCEPT')), [
    ['a', 3.5],
    ['b', 4.5],
  ]);
  const grouped =
    'SELECT o.k, l.n FROM ref o, LATERAL (SELECT count() n FROM x_s a WHERE a.k = o.k ' +
    'GROUP BY o.sector) l ORDER BY 1';
  t.deepEqual(await rows(server, grouped), [
    ['a', 2],
    ['b', 2],
  ]);
});

test('PIVOT columns follow the order of the value query', async (t) => {
  const pivot = async (values: string): Promise<readonly string[] | undefined> => {
    const source = `(SELECT k, i, d FROM x_s) PIVOT (sum(d) FOR i IN (${values}) GROUP BY k)`;
    return (await exec(server, `SELECT * FROM ${source}`)).columns?.map(({ name }) => name);
  };
  t.deepEqual(await pivot('SELECT 3 UNION ALL SELECT 1 UNION ALL SELECT 2'), ['k', '3', '1', '2']);
  const summed = 'SELECT i, sum(d) t FROM x_s GROUP BY i ORDER BY t DESC';
  t.deepEqual(await pivot(`SELECT i FROM (${summed})`), ['k', '2', '3', '1']);
  t.deepEqual(await pivot('SELECT DISTINCT i FROM x_s'), ['k', '1', '2', '3']);
});

test('functions handle untyped nulls, the smallest BYTE value and very long series', async (t) => {
  const shown = 'SELECT abs(null), typeOf(abs(null)), sign(null), abs(-128::byte)';
  t.deepEqual(await rows(server, shown), [[null, 'INT', null, 128]]);
  const refused = await exec(server, 'SELECT * FROM generate_series(0.0, 1.0, 1e-300)');
  t.regex(refused.error ?? '', /generate_series is too long/);
  t.regex((await exec(server, "SELECT * FROM long_sequence('z')")).error ?? '', /number expected/);
  // The series is longer than the chunk that used to be generated in full and then truncated.
  const count =
    "SELECT count() FROM generate_series('2024-01-01'::timestamp, " +
    "'2024-06-01'::timestamp, '1s')";
  t.deepEqual(await rows(server, count), [[13_132_801]]);
  t.deepEqual(await rows(server, 'SELECT count() FROM generate_series(0.0, 1e7, 0.5)'), [
    [20_000_001],
  ]);
});

test('a variable that refers to itself is refused', async (t) => {
  for (const query of [
    'DECLARE @x := @x SELECT @x',
    'DECLARE @x := @y, @y := @x SELECT @x',
    'DECLARE @x := @x + 1 SELECT * FROM x_s WHERE i = @x',
    'DECLARE @x := (SELECT * FROM @x) SELECT * FROM @x',
  ]) {
    t.regex((await exec(server, query)).error ?? '', /undeclared variable/, query);
  }
  t.deepEqual(await rows(server, 'DECLARE @x := 1, @y := @x + 1 SELECT @y'), [[2]]);
});

test('an invalid statement is refused with the position of the error', async (t) => {
  const refused: Readonly<Record<string, string>> = {
    'SELECT (10-i) z, sum(d) FROM x_s GROUP BY z ORDER BY i': 'column must appear in GROUP BY',
    'SELECT i FROM x_s ORDER BY sum(i)': 'aggregate functions are not allowed here',
    'SELECT i, count() FROM x_s GROUP BY i HAVING d > 1': 'column must appear in GROUP BY',
    'SELECT i, count() FROM x_s GROUP BY i ORDER BY row_number() OVER (ORDER BY d)':
      'column must appear in GROUP BY',
    'WITH a AS (SELECT 1), a AS (SELECT 2) SELECT * FROM a':
      "WITH query name 'a' is specified more than once",
    'SELECT * FROM x_s a JOIN ref b': "'on' expected",
    'SELECT * FROM x_s a LEFT JOIN ref b WHERE a.i > 0': "'on' expected",
    'CREATE TABLE z1 (a INT) WITH nosuch=1': 'unknown option: nosuch',
    'CREATE TABLE z2 (a INT), INDEX(a)': 'indexes are supported only for SYMBOL columns',
    "SELECT * FROM x_s WHERE i IN (1, 'abc')": 'inconvertible value: `abc` [STRING -> INT]',
    "SELECT * FROM long_sequence('z')": 'number expected',
    'SELECT ARRAY[1.0][0]': 'array index must be at least 1',
    "SELECT substring('abc', 2, -1)": 'length must not be negative',
    'SELECT 1e400': 'number is out of range',
    'SELECT dateadd(null, 1, now())': '`null` is not a valid period',
    'SHOW nothing': 'expected TABLES',
    'CANCEL QUERY 777': 'query to cancel not found',
  };
  for (const [query, message] of Object.entries(refused)) {
    const { error = '', position = 0 } = await exec(server, query);
    t.true(error.includes(message), `${query}: ${error}`);
    t.true(position > 0, query);
    t.is(internalWord(error), null);
  }
});

test('only the database name and the public schema can qualify a table name', async (t) => {
  for (const name of ['public.ref', 'qdb.public.ref', '"qdb"."public"."ref"', 'PUBLIC.ref']) {
    t.is((await rows(server, `SELECT * FROM ${name}`)).length, 2, name);
  }
  t.deepEqual(await rows(server, 'SELECT public.ref.i FROM qdb.public.ref ORDER BY 1'), [[1], [2]]);
  await run(server, 'CREATE TABLE qdb.public.made (i INT)', 'INSERT INTO public.made VALUES (7)');
  t.deepEqual(await rows(server, 'SELECT * FROM made'), [[7]]);
  await run(server, 'DROP TABLE qdb.public.made');
  for (const statement of [
    'SELECT * FROM other.ref',
    'CREATE TABLE other.x (i INT)',
    'SELECT * FROM a.b.c.d',
    'CREATE TABLE "public.x" (i INT)',
    'CREATE TABLE "qdb.public.x" (i INT)',
    'CREATE TABLE pg_class (i INT)',
    'CREATE TABLE information_schema.tables (i INT)',
    'CREATE VIEW pg_class AS (SELECT 1)',
    "RENAME TABLE ref TO 'public.ref2'",
    'RENAME TABLE ref TO pg_type',
  ]) {
    const { error } = await exec(server, statement);
    t.not(error, undefined, statement);
  }
});

test('geohash bit strings are stored unchanged', async (t) => {
  for (const bits of ['1010101', '0000000', '0110011']) {
    const shown = await rows(server, `SELECT '${bits}'::geohash(7b)::varchar`);
    t.deepEqual(shown, [[bits]]);
    await run(server, `INSERT INTO g7 VALUES ('${bits}', 'u33')`);
  }
  t.deepEqual(await rows(server, 'SELECT g::varchar, h::varchar FROM g7 ORDER BY 1'), [
    ['0000000', 'u33'],
    ['0110011', 'u33'],
    ['1010101', 'u33'],
  ]);
});

const LISTS: readonly (readonly [string, readonly unknown[], Rows])[] = [
  ['SELECT count() FROM x_s WHERE k IN $1', [['a', 'zz']], [['2']]],
  ['SELECT count() FROM x_s WHERE k IN ($1)', [['a', 'b']], [['4']]],
  ['SELECT count() FROM x_s WHERE k IN ($1)', ['a'], [['2']]],
  ['SELECT count() FROM x_s WHERE k NOT IN ($1)', [['a']], [['2']]],
  ['SELECT count() FROM x_s WHERE v IN $1', [['p', "it's", 'x,"y"']], [['2']]],
  ['SELECT count() FROM x_s WHERE i IN $1', [[1, 3]], [['2']]],
  ['SELECT count() FROM x_s WHERE i IN ($1)', [[]], [['0']]],
  ['SELECT count() FROM x_s WHERE i IN ($1, $2)', [1, 3], [['2']]],
  ['SELECT count() FROM x_s WHERE d IN $1', [[1.5, 4.5]], [['2']]],
  ['SELECT count() FROM x_s WHERE ts IN $1', ['2024-03-30'], [['2']]],
  ['SELECT count() FROM x_s WHERE ts NOT IN $1', ['2024-03-30'], [['2']]],
  ['SELECT count() FROM x_s WHERE ts IN ($1)', ['2024-03'], [['3']]],
  ['SELECT count() FROM x_s WHERE ts IN $1', ['2024-03-30;2d'], [['3']]],
  ['SELECT count() FROM x_s WHERE ts IN $1', ['$today'], [['0']]],
  ['DECLARE @when := $1 SELECT count() FROM x_s WHERE ts IN @when', ['2024-03-31'], [['1']]],
  ['SELECT count() FROM x_s WHERE ts IN ($1, $2)', ['2024-03-30T10:00', '2024-03-31'], [['1']]],
];

test('IN accepts a list parameter, or an interval parameter for timestamps', async (t) => {
  const client = await connect();
  for (const [index, [text, values, expected]] of LISTS.entries()) {
    const query = { text, values: [...values], rowMode: 'array' as const };
    t.deepEqual((await client.query(query)).rows, expected, `${text} ${JSON.stringify(values)}`);
    // The second execution of a named statement uses the plan from the first.
    const name = `s${index}`;
    for (let round = 1; round <= 2; round += 1) {
      const named = await client.query({ ...query, name, values: [...values] });
      t.deepEqual(named.rows, expected, `${text}, turn ${round}`);
    }
  }
  await client.end();
});

test('INSERT accepts parameters within expressions', async (t) => {
  await run(
    server,
    'CREATE TABLE b3 (ts TIMESTAMP, k SYMBOL, v VARCHAR, i INT, d DOUBLE, ' +
      'arr DOUBLE[]) TIMESTAMP(ts) PARTITION BY DAY',
  );
  const client = await connect();
  const inserts: readonly (readonly [string, readonly unknown[]])[] = [
    ["(ts, v) VALUES (to_timestamp($1, 'yyyy-MM-ddTHH:mm:ss'), 'k')", ['2024-01-15T00:00:00']],
    ["(ts, k, i) VALUES (dateadd('d', $1, $2), upper($3), $4 + 1)", [1, '2024-01-15', 'ab', 41]],
    ['(ts, d) VALUES ($1, -$2)', ['2024-01-17', 2.5]],
    ["(ts, v) VALUES ('2024-01-18', $1 || 'x')", ['y']],
    ['(ts, arr) VALUES ($1, ARRAY[$2, $3])', ['2024-01-19', 1.5, 2.5]],
    ["(ts, i) VALUES ('2024-01-20', abs($1)), ('2024-01-21', $1)", [-7]],
  ];
  for (const [index, [text, values]] of inserts.entries()) {
    for (let round = 1; round <= 2; round += 1) {
      const query = { text: `INSERT INTO b3 ${text}`, values: [...values], name: `i${index}` };
      await t.notThrowsAsync(client.query(query), text);
    }
  }
  await client.end();
  const found = await rows(
    server,
    'SELECT DISTINCT ts::long / 86400000000 - 19737 day, k, v, i, d ' + 'FROM b3 ORDER BY 1',
  );
  t.deepEqual(found, [
    [0, null, 'k', null, null],
    [1, 'AB', null, 42, null],
    [2, null, null, null, -2.5],
    [3, null, 'yx', null, null],
    [4, null, null, null, null],
    [5, null, null, 7, null],
    [6, null, null, -7, null],
  ]);
  t.deepEqual(await rows(server, 'SELECT count() FROM b3'), [[14]]);
});

test('SAMPLE BY works over plain joins', async (t) => {
  const day = (date: string): string => `${date}T00:00:00.000000Z`;
  const days = [day('2024-03-30'), day('2024-03-31'), day('2024-04-01')];
  const cases: readonly (readonly [string, Rows])[] = [
    [
      'SELECT a.ts, count() c FROM x_s a JOIN ref b ON a.k = b.k AND a.i = b.i SAMPLE BY 1d',
      [[days[0], 2]],
    ],
    [
      'SELECT a.ts, b.sector, sum(a.d) FROM x_s a LEFT JOIN ref b ON a.k = b.k SAMPLE BY 1d',
      [
        [days[0], 'tech', 1.5],
        [days[0], 'food', 2.5],
        [days[1], 'tech', 3.5],
        [days[2], 'food', 4.5],
      ],
    ],
    [
      'SELECT a.ts, count() c FROM x_s a CROSS JOIN ref b SAMPLE BY 1d',
      [
        [days[0], 4],
        [days[1], 2],
        [days[2], 2],
      ],
    ],
    [
      'WITH j AS (SELECT a.ts, b.sector FROM x_s a JOIN ref b ON a.k = b.k) ' +
        'SELECT ts, count() FROM j SAMPLE BY 1d',
      [
        [days[0], 2],
        [days[1], 1],
        [days[2], 1],
      ],
    ],
    [
      'SELECT a.ts, first(a.d), count() FROM x_s a ASOF JOIN x_s b LEFT JOIN ref r ON a.k = r.k ' +
        'SAMPLE BY 1d',
      [
        [days[0], 1.5, 2],
        [days[1], 3.5, 1],
        [days[2], 4.5, 1],
      ],
    ],
  ];
  for (const [query, expected] of cases) {
    const { dataset, error } = await exec(server, query);
    t.deepEqual(dataset, expected, `${query}: ${error ?? ''}`);
  }
  const sorted = 'SELECT ts, count() FROM (SELECT * FROM x_s ORDER BY ts DESC) SAMPLE BY 1d';
  t.not((await exec(server, sorted)).error, undefined);
});

test('ON (column) can be used in consecutive joins', async (t) => {
  const plain = 'SELECT count() FROM x_s a JOIN x_s b ON (k) JOIN x_s c ON (k)';
  t.deepEqual(await rows(server, plain), [[16]]);
  const asof = 'SELECT count() FROM x_s a ASOF JOIN x_s b ON (k) ASOF JOIN x_s c ON (k)';
  t.deepEqual(await rows(server, asof), [[4]]);
});

test('keywords can be column names where the grammar allows no keyword', async (t) => {
  const words = ['latest', 'left', 'right', 'group', 'inner', 'cross', 'asof', 'splice', 'natural'];
  const all = [...words, 'else', 'then', 'when', 'ilike'];
  await run(server, `CREATE TABLE words (${all.map((word) => `${word} INT`).join(', ')})`);
  await run(
    server,
    `INSERT INTO words (${all.join(', ')}) VALUES (${all.map((_, at) => at).join()})`,
  );
  for (const [at, word] of all.entries()) {
    t.deepEqual(await rows(server, `SELECT i AS ${word} FROM ref WHERE i = 1`), [[1]], word);
    t.deepEqual(await rows(server, `SELECT w.${word} FROM words w`), [[at]], word);
  }
  for (const [at, word] of words.entries()) {
    t.deepEqual(await rows(server, `SELECT ${word} FROM words WHERE ${word} = ${at}`), [[at]]);
    t.deepEqual(await rows(server, `SELECT ${word} + 1 FROM words`), [[at + 1]]);
  }
  const joined = 'SELECT count() FROM x_s a LEFT JOIN ref b ON a.k = b.k GROUP BY a.i ORDER BY 1';
  t.is((await rows(server, joined)).length, 3);
  t.deepEqual(await rows(server, 'SELECT avg(d) AS m, FROM x_s'), [[3]]);
  t.deepEqual(await rows(server, "SELECT left('abc', 1), right('abc', 1)"), [['a', 'c']]);
});

test('NaN is the DOUBLE null, and casting an empty string returns null', async (t) => {
  t.deepEqual(await rows(server, 'SELECT NaN, count() FROM x_s WHERE d = NaN'), [[null, 0]]);
  t.deepEqual(await rows(server, 'SELECT count() FROM x_s WHERE d != NaN'), [[4]]);
  t.deepEqual(await rows(server, "SELECT cast('' AS uuid), cast('' AS ipv4)"), [[null, null]]);
});

test('advisory locks work, and so do catalog queries of pools and migration tools', async (t) => {
  const client = await connect();
  // asyncpg sends this whenever a connection is released.
  await client.query('SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;');
  const request =
    'SELECT pg_try_advisory_lock(42) a, pg_advisory_lock(1, 2) b, pg_advisory_unlock(42) c, ' +
    'pg_is_in_recovery() d, pg_catalog.txid_current() > 0 e';
  const { rows: found } = await client.query(request);
  t.deepEqual(found, [{ a: true, b: '', c: true, d: false, e: true }]);
  const words = await client.query('SELECT count() n FROM pg_catalog.pg_get_keywords()');
  t.true(Number((words.rows as { n: string }[])[0]?.n) > 100);
  await client.end();
});

/**
 * Parameters in positions where types or values must be known before execution: VALUES rows, arrays
 * in FROM, intervals, series steps. The client either declares their types or leaves them open.
 */
import { existsSync } from 'node:fs';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { clientMessage, errorFields, RawClient } from './raw-client.js';

const addon = existsSync(new URL('../../../native/index.js', import.meta.url));
const real = addon ? test : test.skip;
const started: Promise<TestServer> | null = addon
  ? startTestServer({ set: ['pg.auth.method=cleartext'] })
  : null;

test.after.always(async () => {
  await (await started?.catch(() => null))?.stop();
});

async function connected(): Promise<RawClient> {
  const server = await started;
  return RawClient.login(Number(server?.pg.split(':').at(-1)));
}

interface Bound {
  /** OIDs declared in Parse. */
  readonly types?: readonly number[];
  readonly values: readonly string[];
}

/** Returns the rows with comma-separated cells, or the error. */
async function answer(client: RawClient, query: string, bound: Bound): Promise<unknown> {
  const { types = [], values } = bound;
  client.send(
    clientMessage('P', '', query, [types.length], ...types),
    clientMessage('D', Buffer.from('S\0')),
    clientMessage('S'),
  );
  const described = await client.until('Z');
  const refused = described.find(({ type }) => type === 'E');
  if (refused !== undefined) {
    return `described: ${String(errorFields(refused)['M'])}`;
  }
  const parts = values.flatMap((value) => [Buffer.byteLength(value), Buffer.from(value)]);
  client.send(
    clientMessage('B', '', '', [0], [values.length], ...parts, [0]),
    clientMessage('E', '', 0),
    clientMessage('S'),
  );
  const messages = await client.until('Z');
  const failed = messages.find(({ type }) => type === 'E');
  if (failed !== undefined) {
    return String(errorFields(failed)['M']);
  }
  return messages.filter(({ type }) => type === 'D').map(({ body }) => cells(body).join());
}

function cells(body: Buffer): string[] {
  const found: string[] = [];
  let at = 2;
  for (let left = body.readInt16BE(0); left > 0; left -= 1) {
    const length = body.readInt32BE(at);
    found.push(length < 0 ? 'null' : body.toString('utf8', at + 4, at + 4 + length));
    at += 4 + Math.max(length, 0);
  }
  return found;
}

const CASES: readonly (readonly [query: string, bound: Bound, expected: readonly string[]])[] = [
  [
    'SELECT * FROM (VALUES ($1, $2), ($3, $4)) v(a, b)',
    { values: ['x', '1', 'y', '2'] },
    ['x,1', 'y,2'],
  ],
  ['SELECT * FROM (VALUES ($1)) v(a)', { values: ['x'] }, ['x']],
  ['SELECT array_agg(x * 1.5) FROM long_sequence($1)', { values: ['2'] }, ['{1.5,3.0}']],
  ['SELECT null BETWEEN $1 AND $2', { values: ['1', '2'] }, ['f']],
  ['SELECT $1 BETWEEN $2 AND $3', { values: ['3', '1', '3'] }, ['t']],
  ['SELECT x FROM long_sequence(4) WHERE $1 BETWEEN x - 1 AND x', { values: ['2'] }, ['2', '3']],
  ["SELECT count() FROM files($1) WHERE path = 'none'", { values: ['.'] }, ['0']],
  ["SELECT count() FROM glob($1) WHERE path = 'none'", { values: ['*'] }, ['0']],
  ['DECLARE @unread := $1 SELECT 1', { values: ['x'] }, ['1']],
  ['SELECT pg_database_size($1) > 0', { values: ['qdb'] }, ['t']],
  ['SELECT to_regclass($1), to_regtype($2)', { values: ['pg_class', 'int4'] }, ['1259,23']],
  ["SELECT glob('sensor-7', $1)", { values: ['s*'] }, ['t']],
  [
    'SELECT x FROM long_sequence(9) QUALIFY lttb(x::double, $1) OVER (ORDER BY x)',
    { values: ['2'] },
    ['1', '9'],
  ],
  ['SELECT * FROM generate_series($1, $2, $3)', { values: ['0', '4', '2'] }, ['0', '2', '4']],
  ["SELECT * FROM (VALUES ('abc'), ($1)) v(a)", { values: ['defg'] }, ['abc', 'defg']],
  ["SELECT * FROM (VALUES ('a'), ($1)) v(a)", { values: ['defg'] }, ['a', 'defg']],
  [
    'SELECT a + 1, b FROM (VALUES ($1::int, $2), ($3, $4)) v(a, b)',
    { values: ['1', 'x', '2', 'y'] },
    ['2,x', '3,y'],
  ],
  [
    "SELECT a FROM (VALUES ('2024-01-01'::timestamp), ($1)) v(a) ORDER BY a DESC LIMIT 1",
    { values: ['2024-01-02'] },
    ['2024-01-02 00:00:00.000000'],
  ],
  [
    'SELECT c.i FROM cells c JOIN (VALUES ($1, $2)) v(a, b) ON c.k = v.b',
    { values: ['1', 'b'] },
    ['2'],
  ],
  ['SELECT i FROM cells WHERE i IN (VALUES ($1::int), ($2))', { values: ['2', '7'] }, ['2']],
  ['SELECT * FROM unnest($1)', { types: [1009], values: ['{a,"b c"}'] }, ['a', 'b c']],
  ['SELECT value + 1 FROM unnest($1)', { types: [1007], values: ['{1,2}'] }, ['2', '3']],
  ['SELECT value + 1 FROM unnest($1)', { types: [1016], values: ['{1,2}'] }, ['2', '3']],
  ['SELECT * FROM unnest($1)', { types: [1022], values: ['{1.5,2}'] }, ['1.5', '2']],
  ['SELECT * FROM unnest($1)', { types: [1000], values: ['{t,f}'] }, ['t', 'f']],
  [
    'SELECT * FROM unnest($1)',
    { types: [2951], values: ['{11111111-2222-3333-4444-555555555555}'] },
    ['11111111-2222-3333-4444-555555555555'],
  ],
  ['SELECT * FROM unnest($1)', { values: ['{a,b}'] }, ['a', 'b']],
  ["SELECT * FROM unnest(string_to_array($1, ','))", { values: ['a,b'] }, ['a', 'b']],
  [
    'SELECT i FROM cells WHERE ts IN interval($1, $2)',
    { values: ['2024-01-02', '2024-01-03'] },
    ['2', '3'],
  ],
  [
    'SELECT i FROM cells WHERE ts IN interval($1, $2)',
    { types: [1114, 1114], values: ['2024-01-02', '2024-01-02'] },
    ['2'],
  ],
  [
    'SELECT i FROM cells WHERE ts NOT IN interval($1::timestamp, $2::timestamp)',
    { values: ['2024-01-02', '2024-01-03'] },
    ['1'],
  ],
  [
    'SELECT count(*) FROM generate_series($1::timestamp, $2::timestamp, $3)',
    { values: ['2024-01-01', '2024-01-02', '12 hours'] },
    ['3'],
  ],
  [
    'SELECT count(*) FROM generate_series($1::timestamp, $2::timestamp, $3::interval)',
    { values: ['2024-01-01', '2024-03-01', '1 month'] },
    ['3'],
  ],
  [
    'SELECT count(*) FROM generate_series($1, $2, $3::interval)',
    { values: ['2024-01-01', '2024-01-02', '1 day'] },
    ['2'],
  ],
];

real('a statement can be described before its parameters are bound', async (t) => {
  const client = await connected();
  client.send(
    clientMessage(
      'Q',
      `CREATE TABLE cells (ts TIMESTAMP, k SYMBOL, i INT) TIMESTAMP(ts) PARTITION BY DAY;
       INSERT INTO cells VALUES ('2024-01-01', 'a', 1), ('2024-01-02', 'b', 2),
         ('2024-01-03', 'c', 3)`,
    ),
  );
  await client.until('Z');
  for (const [query, bound, expected] of CASES) {
    t.deepEqual(await answer(client, query, bound), expected, query);
  }
  t.regex(
    String(
      await answer(client, 'SELECT * FROM (VALUES ($1::int), ($2)) v(a)', { values: ['1', 'x'] }),
    ),
    /inconvertible/,
  );
  t.regex(
    String(await answer(client, 'SELECT * FROM unnest($1)', { types: [23], values: ['1'] })),
    /UNNEST requires arrays, or JSON strings with COLUMNS; found INT/,
  );
  client.close();
});

real('untyped parameters that do not fit the query are refused', async (t) => {
  const client = await connected();
  const series = 'SELECT * FROM generate_series($1, $2, $3)';
  t.is(await answer(client, series, { values: ['0', '1', '0.5'] }), 'number expected');
  const steps =
    'WITH RECURSIVE x (n) AS (SELECT $1 UNION SELECT (n + 2) % 7 FROM x) SELECT * FROM x';
  t.regex(String(await answer(client, steps, { values: ['1'] })), /is VARCHAR in the first term/);
  client.close();
});

real('an int8 parameter in text format is read as microseconds for a timestamp', async (t) => {
  const client = await connected();
  client.send(clientMessage('Q', 'CREATE TABLE at (ts TIMESTAMP, v VARCHAR) TIMESTAMP(ts)'));
  await client.until('Z');
  const bound = { types: [20, 20], values: ['1704067200000000', '-7'] };
  t.deepEqual(await answer(client, 'INSERT INTO at VALUES ($1, $2)', bound), []);
  const sent = { types: [20], values: ['1704067200000000'] };
  t.deepEqual(await answer(client, 'SELECT v FROM at WHERE ts = $1', sent), ['-7']);
  client.close();
});

real('variables use the parameter values of the current execution', async (t) => {
  const client = await connected();
  client.send(clientMessage('Q', 'CREATE TABLE declared AS (SELECT x FROM long_sequence(5))'));
  await client.until('Z');
  const query = 'DECLARE @a := $1, @b := 3 SELECT x FROM declared WHERE x >= @a AND x < @b + $2';
  for (const [values, expected] of [
    [['2', '0'], ['2']],
    [
      ['2', '1'],
      ['2', '3'],
    ],
    [['1', '-1'], ['1']],
    [
      ['1', '0'],
      ['1', '2'],
    ],
  ] as const) {
    t.deepEqual(await answer(client, query, { values }), expected);
  }
  client.close();
});

real('a parameter next to a sub-query gets the type of its target column', async (t) => {
  const client = await connected();
  client.send(clientMessage('Q', 'CREATE TABLE beside (ts TIMESTAMP, n LONG) TIMESTAMP(ts)'));
  await client.until('Z');
  const insert = 'INSERT INTO beside VALUES ($1, (SELECT count() FROM beside WHERE n < $2))';
  client.send(
    clientMessage('P', '', insert, [0]),
    clientMessage('D', Buffer.from('S\0')),
    clientMessage('S'),
  );
  const described = (await client.until('Z')).find(({ type }) => type === 't');
  t.deepEqual(
    [2, 6].map((at) => described?.body.readInt32BE(at)),
    [1114, 20],
  );
  t.deepEqual(await answer(client, insert, { values: ['2026-01-01', '5'] }), []);
  t.deepEqual(await answer(client, 'SELECT n FROM beside', { values: [] }), ['0']);
  client.close();
});

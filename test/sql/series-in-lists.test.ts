/** `generate_series` in a select list: behaves as in FROM, and may have columns as bounds. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { send, rowsOf } from '../limits/client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
});

test.after.always(async () => {
  await server.stop();
});

const rows = async (query: string): ReturnType<typeof rowsOf> => rowsOf(server, query);

for (const call of [
  'generate_series(1, 5)',
  'generate_series(1, 0)',
  'generate_series(5, 1, -2)',
  'generate_series(-3, 3, 3)',
  'generate_series(0.0, 1.0, 0.25)',
  'generate_series(1.5, 0.5, -0.5)',
  "generate_series('2024-01-31'::timestamp, '2024-06-01'::timestamp, '1 month')",
  "generate_series('2024-06-01'::timestamp, '2024-01-31'::timestamp, '-1M')",
  "generate_series('2024-01-01'::timestamp, '2024-01-02'::timestamp, '6h')",
  "generate_series('2024-01-01'::timestamp_ns, '2024-01-01T00:00:00.000000002Z'::timestamp_ns, 1)",
  'generate_series(9223372036854775805, 9223372036854775807)',
]) {
  test(`a series in a select list matches the series in FROM: ${call}`, async (t) => {
    const inFrom = await rows(`SELECT generate_series FROM ${call}`);
    t.deepEqual(await rows(`SELECT ${call} AS value`), inFrom);
  });
}

test('the bounds of a series may be columns', async (t) => {
  const pairs = [
    [1, 1],
    [2, 1],
    [2, 2],
    [3, 1],
    [3, 2],
    [3, 3],
  ];
  const query = 'SELECT x, generate_series(1, x) AS y FROM long_sequence(3) ORDER BY x, y';
  t.deepEqual(await rows(query), pairs);
  const odd = 'SELECT x, generate_series(x, 6, x) AS y FROM long_sequence(3) WHERE x > 1';
  t.deepEqual(await rows(odd), [
    [2, 2],
    [2, 4],
    [2, 6],
    [3, 3],
    [3, 6],
  ]);
  t.deepEqual(await rows('SELECT generate_series(1, NULL) AS none'), []);
});

test('the shorter of two series is padded with nulls, as in PostgreSQL', async (t) => {
  t.deepEqual(await rows('SELECT generate_series(1, 3) AS a, generate_series(1, 2) * 10 AS b'), [
    [1, 10],
    [2, 20],
    [3, null],
  ]);
});

test('a long series is generated as it is read', async (t) => {
  t.deepEqual(await rows('SELECT generate_series(1, 9223372036854775807) AS n LIMIT 2'), [
    [1],
    [2],
  ]);
  const count = 'SELECT count() FROM (SELECT generate_series(1, 20000000) AS n)';
  t.deepEqual(await rows(count), [[20_000_000]]);
});

test('invalid series are refused', async (t) => {
  for (const [query, message] of [
    ['SELECT generate_series(1, 3, 0)', /step cannot be zero/],
    ['SELECT x, generate_series(1, 3, x - 1) FROM long_sequence(1)', /step cannot be zero/],
    ['SELECT generate_series(0.0, 1.0, 1e-320)', /is too long/],
    ['SELECT generate_series(1)', /requires a start, an end/],
    ['SELECT x FROM long_sequence(3) WHERE generate_series(1, 2) = 1', /unknown function/],
  ] as const) {
    const answer = await send(server, query);
    t.regex(answer.error ?? '', message, query);
  }
});

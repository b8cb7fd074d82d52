/** A CTE with volatile rows is computed once for all its references. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { send, rowsOf } from '../limits/client.js';

const ROWS = 500;
let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: ['query.scan.part.rows=50', 'shared.query.worker.count=2', 'log.level=error'],
  });
  await rowsOf(
    server,
    `create table t as (select timestamp_sequence('2024-01-01', 1000000) ts, x n
      from long_sequence(${ROWS})) timestamp(ts) partition by hour`,
  );
});

test.after.always(async () => {
  await server.stop();
});

const VALUES = [
  'rnd_long()',
  'rnd_int()',
  'rnd_double()',
  'random()',
  'rnd_str(8, 20, 0)',
  "rnd_symbol('a', 'b', 'c', 'd')",
  'rnd_uuid4()',
  "rnd_timestamp('2020-01-01', '2026-12-31', 0)",
  'rnd_char()',
  "rnd_ipv4('10.0.0.0/8', 0)",
  'rnd_decimal(12, 4, 0)',
  '(select rnd_long())',
  'case when rnd_boolean() then 1 else 2 end',
  'n + rnd_long(1, 100000, 0)',
];

/**
 * Queries over a table `x` with columns n and r, each of which returns the number of rows in `x`.
 */
const QUERIES: Readonly<Record<string, string>> = {
  'a join': 'select count(*) from x a join x b on a.n = b.n where a.r = b.r',
  'a time-series join': 'select count(*) from x a asof join x b where a.r = b.r',
  'a sub-query': 'select count(*) from x where r in (select r from x)',
  'a set operation': 'select count(*) from (select n, r from x union select n, r from x)',
  'a second WITH query': `, y as (select n, r from x)
    select count(*) from y a join x b on a.n = b.n and a.r = b.r`,
};

const SOURCES: Readonly<Record<string, (value: string) => string>> = {
  'a table': (value) => `select ts, n, ${value} r from t`,
  'an ordered sub-query': (value) => `select * from (select ts, n, ${value} r from t) order by ts`,
  'a nested WITH query': (value) =>
    `with w as (select ts, n, ${value} r from t) select ts, n, r from w`,
};

for (const [source, table] of Object.entries(SOURCES)) {
  for (const [name, query] of Object.entries(QUERIES)) {
    test(`random values of ${source} are generated only once for ${name}`, async (t) => {
      for (const value of VALUES) {
        const rest = query.startsWith(',') ? query : ` ${query}`;
        const text = `with x as (${table(value)})${rest}`;
        t.deepEqual(await rowsOf(server, text), [[ROWS]], text);
      }
    });
  }
}

test('a repeated statement generates new random rows', async (t) => {
  const query = 'with x as (select rnd_long() r) select a.r from x a join x b on a.r = b.r';
  const answers = await Promise.all(Array.from({ length: 8 }, async () => rowsOf(server, query)));
  t.is(new Set(answers.map(([row]) => String(row?.[0]))).size, 8);
});

test('a correlated WITH query with random values cannot be referenced twice', async (t) => {
  const table = 'with x as (select n + rnd_long() r)';
  const query = `select (${table} select a.r = b.r from x a, x b) from t`;
  const { error } = await send(server, query);
  t.regex(
    error ?? '',
    /referencing the random and correlated WITH query 'x' more than once is not supported/,
  );
});

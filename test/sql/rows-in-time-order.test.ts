/**
 * Some operators read a table from its ends, or read symbols by their codes. Runs them over inputs
 * other than the whole ordered table: a LIMIT, a filter with a LIMIT, and sorted rows.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rowsOf } from '../limits/client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
  for (const statement of [
    'create table few (ts timestamp, sym symbol, price double) timestamp(ts) partition by day',
    "insert into few values (1, 'a', 1.0), (2, 'a', 2.0), (3, 'a', 3.0)",
    `create table many as (select ('k' || (x * 7919 % 10007))::symbol sym, x v,
      timestamp_sequence(0, 1000000) ts
      from long_sequence(200000)) timestamp(ts) partition by day`,
    'create table volatile (p double, a double[], ts timestamp) timestamp(ts) partition by day',
    'insert into volatile values (0.5, array_build(1, 10000, 1.0), 0)',
  ]) {
    await rowsOf(server, statement);
  }
});

test.after.always(async () => {
  await server.stop();
});

test('LATEST ON sees only the rows within a LIMIT', async (t) => {
  for (const [from, newest] of [
    ['few where price > 0 limit 2', 2],
    ["few where sym = 'a' limit 1", 1],
    ['few limit 2', 2],
    ['few where price > 0 limit -2', 3],
    ['few where price > 1 limit 1, 2', 3],
  ] as const) {
    const query = `select price from (select * from ${from}) latest on ts partition by sym`;
    t.deepEqual(await rowsOf(server, query), [[newest]], query);
  }
});

/**
 * Returns the rows of `many` with either symbols or their strings. Times are permuted, so the rows
 * require a sort.
 */
const moved = (sym: string): string =>
  `(select dateadd('s', -((v * 7919) % 1000003)::int, ts) t2, ${sym} sym, v from many)
    timestamp(t2)`;

for (const [what, query] of Object.entries({
  'SAMPLE BY': (from: string) =>
    `select sym::varchar k, sum(c), sum(v) from
      (select t2, sym, count() c, sum(v) v from ${from} sample by 12h) order by k`,
  'LATEST ON': (from: string) =>
    `select sym::varchar k, v from ${from} latest on t2 partition by sym order by k`,
  'a window': (from: string) =>
    `select k, max(r), sum(r) from (select sym::varchar k,
      row_number() over (partition by sym order by t2) r from ${from}) order by k`,
})) {
  test(`${what} over sorted rows returns the same result for symbols and strings`, async (t) => {
    t.deepEqual(
      await rowsOf(server, query(moved('sym'))),
      await rowsOf(server, query(moved('sym::varchar'))),
    );
  });
}

test('a volatile condition is evaluated for each array element', async (t) => {
  const counts = `select count() from volatile, unnest(a) as u(e) where rnd_double() < p`;
  const [[count]] = (await rowsOf(server, counts)) as [[number]];
  // 10,000 rows, each with probability 1/2; the bounds are ten standard deviations away.
  t.true(count > 4_500 && count < 5_500, String(count));
});

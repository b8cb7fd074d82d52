/**
 * Uncorrelated sub-queries are evaluated first, once per statement. Covers their row order, their
 * errors, and repeated and concurrent executions.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rowsOf } from '../limits/client.js';

const ROWS = 1_000;
let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: ['query.scan.part.rows=50', 'shared.query.worker.count=4'],
  });
  for (const statement of [
    'create table t (ts timestamp, k symbol, v double, n long) timestamp(ts) partition by hour wal',
    `insert into t select dateadd('m', x::int, '2024-01-01'::timestamp), ('k' || (x % 7))::symbol,
      x * 1.5, x from long_sequence(${ROWS})`,
    'create table none (ts timestamp, v double) timestamp(ts) partition by day wal',
  ]) {
    await rowsOf(server, statement);
  }
});

test.after.always(async () => {
  await server.stop();
});

/** Returns the row numbers in a query's result. */
async function numbers(query: string): Promise<number[]> {
  return (await rowsOf(server, query)).map(([n]) => Number(n));
}

test('rows filtered by a scalar sub-query stay in order, ascending or descending', async (t) => {
  const above = Array.from({ length: ROWS / 2 }, (_, index) => ROWS / 2 + 1 + index);
  const where = 'where v > (select avg(v) from t)';
  t.deepEqual(await numbers(`select n from t ${where}`), above);
  t.deepEqual(await numbers(`select n from t ${where} limit 3`), above.slice(0, 3));
  t.deepEqual(await numbers(`select n from t ${where} limit -3`), above.slice(-3));
  const newest = above.toReversed();
  t.deepEqual(await numbers(`select n from t ${where} order by ts desc`), newest);
  t.deepEqual(
    await numbers(`select n from t ${where} order by ts desc limit 4`),
    newest.slice(0, 4),
  );
});

test('comparing a time with a scalar sub-query prunes partitions', async (t) => {
  const last = [ROWS - 2, ROWS - 1, ROWS];
  for (const condition of [
    "ts > dateadd('m', -3, (select max(ts) from t))",
    'ts >= (select max(ts) from t) - 120000000L',
    "dateadd('m', -3, (select max(ts) from t)) < ts",
  ]) {
    t.deepEqual(await numbers(`select n from t where ${condition}`), last, condition);
  }
  t.deepEqual(await numbers('select n from t where ts = (select max(ts) from t)'), [ROWS]);
  t.deepEqual(await numbers('select n from t where ts <= (select min(ts) from t)'), [1]);
  // A comparison with null is never true.
  t.deepEqual(await numbers('select n from t where ts > (select max(ts) from none)'), []);
  t.deepEqual(await numbers('select count() from t where v > (select v from none)'), [0]);
});

test('a scalar sub-query that returns two rows is always an error', async (t) => {
  const error = await t.throwsAsync(rowsOf(server, 'select n from t where v > (select v from t)'));
  t.regex(error.message, /more than one row returned by a sub-query used as a value/);
  t.deepEqual(await numbers('select n from t where v = (select v from t where n = 7)'), [7]);
});

test('scalar sub-queries can be nested, and used in select lists and as group keys', async (t) => {
  const nested = `select count() from t where n > (select avg(n) from t
    where n > (select avg(n) from t where n > (select min(n) from t)))`;
  t.deepEqual(await numbers(nested), [249]);
  const listed = await rowsOf(server, 'select (select max(n) from t) m, count() from t group by m');
  t.deepEqual(listed, [[ROWS, ROWS]]);
  const beside = `select n from t o where n = (select max(n) from t i where i.k = o.k)
    and n > (select max(n) from t) - 3 order by n`;
  t.deepEqual(await numbers(beside), [ROWS - 2, ROWS - 1, ROWS]);
  const sampled = `select ts, count() c from t where n > (select max(n) from t) - 60 sample by 1d`;
  const days = await rowsOf(server, sampled);
  t.is(
    days.reduce((sum, [, count]) => sum + Number(count), 0),
    60,
  );
});

test('concurrent executions of a scalar sub-query are independent', async (t) => {
  const query = 'select count() from t where v > (select avg(v) from t)';
  for (let round = 0; round < 20; round += 1) {
    const found = await Promise.all(Array.from({ length: 8 }, async () => await numbers(query)));
    t.deepEqual(
      found,
      Array.from({ length: 8 }, () => [ROWS / 2]),
    );
  }
});

test('DISTINCT on symbols stops reading early and includes null', async (t) => {
  const symbols = async (query: string): Promise<(string | null)[]> =>
    (await rowsOf(server, query)).map(([text]) => text as string | null);
  // Other statements read `t` in the meantime.
  await rowsOf(server, 'create table d as (select * from t) timestamp(ts) partition by hour wal');
  t.deepEqual((await symbols('select distinct k from d')).toSorted(), [
    'k0',
    'k1',
    'k2',
    'k3',
    'k4',
    'k5',
    'k6',
  ]);
  await rowsOf(server, "insert into d (ts, v, n) values ('2024-02-01', 0, 0)");
  t.is((await symbols('select distinct k from d')).length, 8);
  t.true((await symbols('select k from d group by k')).includes(null));
  t.deepEqual(await numbers('select count_distinct(k) from d'), [7]);
  await rowsOf(server, 'delete from d where n = 0');
  t.is((await symbols('select distinct k from d')).length, 7);
  t.deepEqual(await symbols('select distinct k from d where n < 3'), ['k1', 'k2']);
});

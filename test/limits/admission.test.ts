/** Query admission: how many queries run, which ones wait, and which need not wait. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { send, rowsOf } from './client.js';

/** A query that would run for days in little memory, so only cancellation ends it. */
const HEAVY =
  'select count() from long_sequence(10000) a cross join long_sequence(1000000000000) b ' +
  'where a.x + b.x = -1';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: [
      'query.concurrency=1',
      'query.queue.limit=1',
      'query.queue.wait=300ms',
      'query.memory.pool=32M',
      'query.memory.limit=24M',
      'spill.limit=1M',
    ],
  });
  await rowsOf(server, 'create table small (x int)');
  await rowsOf(server, 'insert into small values (1)');
  await rowsOf(server, 'create table large as (select x, -x y from long_sequence(300000))');
});

test.after.always(async () => {
  await server.stop();
});

async function cancelAll(): Promise<void> {
  for (const [id, text] of await rowsOf(server, 'select query_id, query from query_activity()')) {
    if (String(text).includes('cross join')) {
      await send(server, `cancel query ${String(id)}`);
    }
  }
}

/** Starts a heavy query that holds the only slot; `end` cancels it. */
async function heavyQuery(): Promise<{ end(): Promise<string | undefined> }> {
  const running = send(server, HEAVY);
  // Uses random values, so the result is not cached.
  const other = 'select sum(y * rnd_int(1, 2, 0)) from large';
  await until(async () => {
    const { error } = await send(server, other);
    return error?.startsWith('too many queries') ?? false;
  }, 'the query has the slot');
  return {
    async end() {
      await cancelAll();
      return (await running).error;
    },
  };
}

test.serial('a heavy query waits for a slot, and is refused after a timeout', async (t) => {
  const first = await heavyQuery();
  const started = performance.now();
  const second = await send(server, 'select sum(y) from large');
  t.is(second.status, 503);
  t.is(
    second.error,
    'too many queries: at most 1 run at once; this query waited 0.3 s in the queue',
  );
  t.true(performance.now() - started >= 280);
  t.is(await first.end(), 'cancelled by user');
  t.deepEqual(await rowsOf(server, 'select sum(x) from large'), [[45_000_150_000]]);
});

test.serial('the admission queue is bounded', async (t) => {
  const first = await heavyQuery();
  const outcomes = await Promise.all([1, 2, 3].map(() => send(server, 'select sum(y) from large')));
  const full = 'too many queries: at most 1 run at once; 1 are already waiting';
  t.is(outcomes.filter(({ error }) => error === full).length, 2);
  await first.end();
});

test.serial('cheap statements never wait for a slot', async (t) => {
  const first = await heavyQuery();
  for (const query of [
    'select 1',
    'select x from small where x = 1',
    'select count() from large',
    'show tables',
    'select name from wal_tables() limit 1',
    'select x from large limit 1',
  ]) {
    const { error } = await send(server, query);
    t.is(error, undefined, query);
  }
  await rowsOf(server, 'insert into small values (2)');
  await rowsOf(server, 'update small set x = 3 where x = 2');
  t.deepEqual(await rowsOf(server, 'select x from small order by x'), [[1], [3]]);
  await first.end();
});

test.serial('a statement that writes also needs a slot', async (t) => {
  const first = await heavyQuery();
  const { error } = await send(server, 'create table copy as (select * from large)');
  t.regex(error ?? '', /^too many queries/);
  await first.end();
  t.deepEqual(await rowsOf(server, "select count() from tables() where table_name = 'copy'"), [
    [0],
  ]);
});

test.serial('running out of memory is reported with the limit', async (t) => {
  // One long string can be neither spilled nor split.
  const text = "select length(string_agg(rpad('x', 100, 'x'), ',')) from large";
  const { error, status } = await send(server, text);
  t.regex(error ?? '', /^out of memory for queries: .* the query is using \d+ of 24 MiB/);
  t.is(status, 503);
});

test.serial('running out of spill space is reported with the limit', async (t) => {
  await rowsOf(server, 'create table larger as (select x, -x y from long_sequence(3000000))');
  const sort = 'select sum(r) from (select row_number() over (order by y, x) r from larger)';
  const { error, status } = await send(server, sort);
  t.regex(
    error ?? '',
    /^out of temporary disk space: queries have reached the limit for temporary files/,
  );
  t.is(status, 507);
});

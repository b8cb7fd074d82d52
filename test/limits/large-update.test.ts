/**
 * Updates that change more cells than fit into memory. They are written to new segments, become
 * visible atomically, and survive a kill.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { until } from '../until.js';
import { send, rowsOf } from './client.js';

/**
 * With this many rows, the new cells of three columns and the row positions do not fit into the
 * log.
 */
const ROWS = 3_000_000;

test('large UPDATEs, joined UPDATEs and type changes succeed in bounded memory', async (t) => {
  const first = await startTestServer();
  const root = first.root;
  const rows = async (query: string): ReturnType<typeof rowsOf> => await rowsOf(server, query);
  let server = first;
  t.teardown(async () => {
    await server.stop();
    await first.stop();
  });
  await rows(
    `create table t as (select x, x::double d, 'text ' || x v, (x % 7)::symbol s,
     timestamp_sequence('2026-01-01', 250000) ts from long_sequence(${ROWS}))
     timestamp(ts) partition by day`,
  );
  await rows(`insert into t values (0, 0, 'late', 'new', '2026-01-01T12:00:00')`);
  await rows('create table keys as (select x, (x * 7919) % 3000001 y from long_sequence(3000000))');
  const sums = 'select count(), sum(x), sum(d), count_distinct(v), count_distinct(s) from t';

  // Readers see either the whole change or none of it.
  const timestamps = new Set<string>();
  const state = { over: false };
  const reader = (async () => {
    while (!state.over) {
      timestamps.add(JSON.stringify(await rowsOf(server, 'select sum(d - x), count() from t')));
      await sleep(5);
    }
  })();
  await rows(`update t set d = d + 1, v = 'changed ' || x, s = (x % 11)::symbol`);
  state.over = true;
  await reader;
  const all = ROWS + 1;
  t.true(timestamps.size <= 2, [...timestamps].join());
  t.true(
    timestamps.has(JSON.stringify([[all, all]])) || timestamps.has(JSON.stringify([[0, all]])),
  );
  const total = (ROWS * (ROWS + 1)) / 2;
  t.deepEqual(await rows(sums), [[all, total, total + all, all, 11]]);

  // The rows of a join are unordered and must be sorted.
  await rows(`update t set d = k.y, v = 'joined', s = 'one' from keys k where t.x = k.x`);
  const wrong = 'select count() from t where x > 0 and d != (x * 7919) % 3000001';
  t.deepEqual(await rows(wrong), [[0]]);
  t.deepEqual(await rows("select count() from t where v = 'joined' and s = 'one'"), [[ROWS]]);

  await rows('alter table t alter column d type varchar');
  const typed = 'select count() from t where x > 0 and d::double != (x * 7919) % 3000001';
  t.deepEqual(await rows(typed), [[0]]);

  // An interrupted change leaves no trace. Its expression is slow, so the change cannot complete
  // before the interruption.
  const slow = "regexp_replace(rpad('nothing ' || x, 400, 'no'), '(.|..|...)+(r|w)+9', 'a')";
  const text = `update t set d = 'nothing', v = ${slow}, s = 'two'`;
  const cut = send(server, text);
  const running = async (): Promise<unknown> => {
    const all = await rows('select query_id, query from query_activity()');
    return all.find(([, query]) => query === text)?.[0];
  };
  await until(async () => (await running()) !== undefined, 'the update is running');
  await sleep(500);
  await rows(`cancel query ${String(await running())}`);
  t.is((await cut).error, 'cancelled by user');
  t.deepEqual(await rows("select count() from t where s = 'two'"), [[0]]);

  server.process.kill('SIGKILL');
  await new Promise((resolve) => server.process.once('close', resolve));
  server = await startTestServer({ root });
  t.deepEqual(await rows(typed), [[0]]);
  t.deepEqual(await rows('select count(), sum(x) from t'), [[all, total]]);
  t.deepEqual(await rows("select count() from t where v = 'joined' and s = 'one'"), [[ROWS]]);
});

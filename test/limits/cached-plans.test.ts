/** A cached statement retains its plan, but not the data that an execution built. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { send, rowsOf } from './client.js';

/** Returns the value of a `/metrics` gauge. */
async function gauge(server: TestServer, name: string): Promise<number> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${name} `));
  return Number(line?.split(' ')[1]);
}

function temporaryFiles(server: TestServer): number {
  const entries = readdirSync(join(server.root, 'tmp'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).length;
}

/**
 * Waits until the value is stable and returns it, because an execution may end shortly after its
 * response.
 */
async function settled(read: () => number | Promise<number>): Promise<number> {
  let last = await read();
  for (let tries = 0; tries < 100 && last > 0; tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    last = await read();
  }
  return last;
}

test('completed, cancelled and failed queries leave no memory allocated', async (t) => {
  const server = await startTestServer({
    set: [
      'query.memory.pool=256M',
      'query.memory.limit=64M',
      'metrics.enabled=true',
      // A query's memory is divided among its workers.
      'shared.query.worker.count=2',
    ],
  });
  try {
    await rowsOf(
      server,
      `create table t as (select x k, x * 7919 % 1000003 v, 'text of row ' || x s,
       timestamp_sequence(0, 1000000) ts from long_sequence(1000000))
       timestamp(ts) partition by day`,
    );
    await rowsOf(server, 'create table u as (select x k from long_sequence(100000))');
    t.deepEqual(await rowsOf(server, 'select count() from t join u on t.k = u.k'), [[100_000]]);
    const spilling = 'select count() from (select row_number() over (order by v, k) r from t)';
    t.deepEqual(await rowsOf(server, `${spilling} where r > 0`), [[1_000_000]]);
    for (const stopAfter of [20, 60, 120, 200, 300, 400]) {
      const query = encodeURIComponent(`${spilling} where r > ${stopAfter}`);
      const headers = { 'Statement-Timeout': String(stopAfter) };
      await (await fetch(`${server.url}/exec?query=${query}`, { headers })).text();
    }
    const byFiles = 'select count() from t a join t b on a.s = b.s';
    t.deepEqual(await rowsOf(server, byFiles), [[1_000_000]]);
    // One long string can be neither spilled nor split.
    const refused = "select length(string_agg(rpad(s, 100, 'x'), ',')) from t";
    t.regex((await send(server, refused)).error ?? '', /out of memory/);
    t.is(await settled(() => gauge(server, 'tidemark_query_memory_bytes')), 0);
    t.is(await settled(() => temporaryFiles(server)), 0);
  } finally {
    await server.stop();
  }
});

test('cached rows are never older than the tables', async (t) => {
  const server = await startTestServer();
  const often = async (query: string): Promise<unknown> => {
    const first = await rowsOf(server, query);
    for (let times = 1; times < 4; times += 1) {
      t.deepEqual(await rowsOf(server, query), first, query);
    }
    return first;
  };
  try {
    await rowsOf(server, 'create table t (ts timestamp, i int) timestamp(ts) partition by day');
    await rowsOf(server, 'create view w as (select 1 a)');
    t.deepEqual(await often('select count() from t'), [[0]]);
    t.deepEqual(await often('select a + 1 from w'), [[2]]);
    t.deepEqual(await often("select 'x' a, null b, 1.5 c"), [['x', null, 1.5]]);
    await rowsOf(server, "insert into t values ('2026-01-01', 1)");
    await rowsOf(server, "create or replace view w as (select 'y' a)");
    t.deepEqual(await often('select count() from t'), [[1]]);
    t.deepEqual(await often('select a from w'), [['y']]);
    for (const changing of ['systimestamp()', 'rnd_uuid4()']) {
      const answers = new Set<unknown>();
      for (let times = 0; times < 4; times += 1) {
        answers.add((await rowsOf(server, `select ${changing}`))[0]?.[0]);
      }
      t.is(answers.size, 4, changing);
    }
  } finally {
    await server.stop();
  }
});

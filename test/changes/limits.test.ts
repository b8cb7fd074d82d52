/** Change feed limits: slow readers, many feeds, and how a feed ends. */
import { setTimeout as sleep } from 'node:timers/promises';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { cpuSeconds, peakMegabytes } from '../limits/measure.js';
import { exec, rows, run } from '../scenario/statements.js';
import { until } from '../until.js';
import { Consumer, currentTxn, EventReader, type FeedRequest } from './event-reader.js';

const TABLE = 'CREATE TABLE t (ts TIMESTAMP, x LONG, v VARCHAR) TIMESTAMP(ts) PARTITION BY DAY WAL';
const SOON = 'changes.heartbeat=100ms';
const MEBIBYTE = 1024 * 1024;

async function start(t: ExecutionContext, ...set: readonly string[]): Promise<TestServer> {
  const server = await startTestServer({ set: [SOON, ...set] });
  t.teardown(() => server.stop());
  await run(server, TABLE);
  return server;
}

async function open(
  t: ExecutionContext,
  server: TestServer,
  request: FeedRequest = { table: 't' },
): Promise<EventReader> {
  const reader = await EventReader.open(server, request);
  t.teardown(() => {
    reader.close();
  });
  return reader;
}

async function running(server: TestServer): Promise<number> {
  const query = "SELECT count() FROM query_activity() WHERE query LIKE 'SELECT * FROM %t%'";
  return Number((await rows(server, query))[0]?.[0]);
}

test('a slow reader misses no events, uses bounded memory and blocks no client', async (t) => {
  const server = await start(t, 'memory.limit=700M', 'changes.memory=8M');
  const slow = await open(t, server);
  await slow.find('position');
  // The socket buffer fills, and the server stops reading for this feed.
  slow.response.pause();
  const before = await peakMegabytes(server);
  const text = 'x'.repeat(200);
  for (let round = 0; round < 40; round += 1) {
    await run(
      server,
      `INSERT INTO t SELECT dateadd('u', (x + ${round * 20_000})::int, '2024-01-01'::timestamp),
       x, '${text}' FROM long_sequence(20000)`,
    );
  }
  const [[count] = []] = await rows(server, 'SELECT count() FROM t');
  t.is(count, 800_000);
  const more = (await peakMegabytes(server)) - before;
  t.true(more < 350, `${more} MiB more for 190 MiB of rows`);
  const consumer = new Consumer();
  slow.response.resume();
  await consumer.read(slow, await currentTxn(server, 't'));
  t.is(consumer.rows.length, 800_000);
});

test('a reader that disconnects in any state frees its feed slot', async (t) => {
  const server = await start(t, 'changes.max.feeds=2');
  const first = await open(t, server);
  await first.find('position');
  const second = await open(t, server, { table: 't', from: 'start' });
  await second.find('range');
  const third = await open(t, server);
  t.is(third.status, 503);
  t.regex(await third.body(), /too many change feeds \[limit=2, key=changes.max.feeds\]/);
  first.close();
  await until(async () => {
    const reader = await EventReader.open(server, { table: 't' });
    reader.close();
    return reader.status === 200;
  }, 'a waiting reader gets a free slot');
  // A reader disconnects while rows are being sent.
  await run(
    server,
    `INSERT INTO t SELECT dateadd('u', x::int, '2024-01-01'::timestamp), x, 'text'
     FROM long_sequence(900000)`,
  );
  await second.find('rows');
  second.close();
  await until(
    async () => (await running(server)) === 0,
    'queries of disconnected readers have ended',
  );
});

test('two hundred feeds receive every row and use almost no CPU time when idle', async (t) => {
  const server = await start(t, 'changes.heartbeat=10s');
  const readers = await Promise.all(Array.from({ length: 200 }, () => open(t, server)));
  await Promise.all(readers.map((reader) => reader.find('position')));
  const before = await cpuSeconds(server);
  await sleep(2_000);
  const idle = (await cpuSeconds(server)) - before;
  t.true(idle < 0.5, `${idle} s of CPU time in two seconds`);
  for (let x = 0; x < 20; x += 1) {
    await run(server, `INSERT INTO t VALUES ('2024-01-01T00:00:${10 + x}Z', ${x}, 'a')`);
  }
  for (const reader of readers) {
    const seen: unknown[] = [];
    while (seen.length < 20) {
      const { data } = await reader.find('rows');
      seen.push(...(data.dataset ?? []).map((row) => row[1]));
    }
    t.deepEqual(
      seen,
      Array.from({ length: 20 }, (_, x) => x),
    );
  }
});

test('an idle feed sends keep-alive comments and can be cancelled like a query', async (t) => {
  const server = await start(t);
  const reader = await open(t, server);
  await reader.find('position');
  const waiting = reader.find('error');
  await until(() => reader.comments >= 3, 'an idle feed sends keep-alive comments');
  await until(async () => {
    const [[id] = []] = await rows(
      server,
      'SELECT query_id FROM query_activity() WHERE query = \'SELECT * FROM "t"\'',
    );
    // Between two steps, a feed is not a running query.
    return (
      id !== undefined && (await exec(server, `CANCEL QUERY ${Number(id)}`)).error === undefined
    );
  }, 'the feed is listed as a query');
  t.regex((await waiting).data.error ?? '', /cancelled/);
  t.is(await reader.next(), null);
});

test('a server shutdown ends feeds with an error event', async (t) => {
  const server = await start(t, 'changes.heartbeat=60s');
  const reader = await open(t, server);
  await reader.find('position');
  const began = Date.now();
  const stopped = server.stop();
  t.regex((await reader.find('error')).data.error ?? '', /shutting down/);
  t.is(await reader.next(), null);
  t.is(await stopped, 0);
  t.true(Date.now() - began < 10_000);
});

test('changes to a table are discarded once no client follows the table', async (t) => {
  const server = await start(t, 'changes.retention=1s');
  const reader = await open(t, server);
  const { id } = await reader.find('position');
  await sleep(2_500);
  await run(server, "INSERT INTO t VALUES ('2024-01-01', 1, 'a')");
  t.deepEqual(
    (await reader.find('rows')).data.dataset?.length,
    1,
    'a waiting feed receives the row',
  );
  reader.close();
  await until(async () => {
    const late = await EventReader.open(server, { table: 't', from: id ?? '' });
    late.close();
    await sleep(1_500);
    return late.status === 410;
  }, 'the changes are released');
});

test('a long row is sent as one event, and special characters are preserved', async (t) => {
  const server = await start(t);
  const reader = await open(t, server);
  await reader.find('position');
  const odd = 'a\nb\r\n\n"\u2028\u0000'.replace('\u0000', '');
  await run(server, `INSERT INTO t VALUES ('2024-01-01', 1, '${odd}')`);
  t.is((await reader.find('rows')).data.dataset?.[0]?.[2], odd);
  await run(
    server,
    `INSERT INTO t SELECT '2024-01-02', 2, lpad('é', ${MEBIBYTE - 8}, 'z') FROM long_sequence(1)`,
  );
  const { dataset } = (await reader.find('rows')).data;
  t.is(String(dataset?.[0]?.[2]).length, MEBIBYTE - 8);
});

/**
 * Query timeouts that clients set over QWP, and other ways in which a query ends before its last
 * row.
 */
import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { STATUS } from './messages.js';
import { ReadClient } from './read-client.js';
import { queryRequest, type RequestOptions, textBind, varint } from './requests.js';

const ENDLESS = 'SELECT x FROM long_sequence(9000000000)';
/** A query that produces no row for a long time. */
const SILENT = 'SELECT count() FROM long_sequence(900000000000) WHERE x % 7 = 3';
const HOUR_MS = 3_600_000;
const FLAG_TIMEOUT = 0x02;

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});
test.after.always(() => server.stop());

async function open(t: ExecutionContext, at = server): Promise<ReadClient> {
  // Each message has one row, so the client reads as fast as messages are produced.
  const headers = { 'X-QWP-Max-Batch-Rows': '1' };
  const client = await ReadClient.open(Number(new URL(at.url).port), headers);
  t.teardown(() => {
    client.close();
  });
  return client;
}

/** Checks that the connection remains usable and that the server is no longer running the query. */
async function assertOver(t: ExecutionContext, client: ReadClient, sql: string): Promise<void> {
  t.deepEqual((await client.query(1, 'SELECT 1')).rows, [[1]], sql);
  const activity = 'SELECT count() FROM query_activity() WHERE query = $1';
  await until(async () => {
    const { rows } = await client.query(1, activity, { binds: [textBind(sql)] });
    return rows[0]?.[0] === 0n;
  }, `${sql} ends`);
}

/** Kinds of queries that exceed their timeout. */
const LATE: readonly (readonly [what: string, sql: string, options: RequestOptions])[] = [
  ['rows that the client reads', ENDLESS, {}],
  ['rows that wait for credit', ENDLESS, { credit: 1 }],
  ['no rows before the timeout', SILENT, {}],
  ['a statement without rows', `CREATE TABLE late AS (${ENDLESS})`, {}],
  ['sorted rows', `${ENDLESS} ORDER BY x DESC`, {}],
];

for (const [what, sql, options] of LATE) {
  test(`a query obeys its request's timeout: ${what}`, async (t) => {
    const client = await open(t);
    const { last } = await client.query(7, sql, { ...options, timeoutMs: 150 });
    t.like(last, { kind: 'error', id: 7n, status: STATUS.queryTimeout });
    t.regex(JSON.stringify(last, withoutBigInts), /timeout, query aborted \[timeout=150ms\]/);
    await assertOver(t, client, sql);
  });
}

function withoutBigInts(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}` : value;
}

test("the server's timeout ends queries with a status known to all clients", async (t) => {
  const own = await startTestServer({ set: ['query.timeout=150ms', 'query.timeout.max=400ms'] });
  t.teardown(() => own.stop());
  const client = await open(t, own);
  for (const [what, sql, options] of LATE) {
    t.like((await client.query(1, sql, options)).last, { status: STATUS.limitExceeded }, what);
    // A timeout above the server's limit is reduced to that limit; a shorter timeout is used as is.
    for (const timeoutMs of [HOUR_MS, 2n ** 63n - 1n]) {
      const { last } = await client.query(1, sql, { ...options, timeoutMs });
      t.like(last, { status: STATUS.queryTimeout }, what);
      t.regex(JSON.stringify(last, withoutBigInts), /\[timeout=400ms\]/, what);
    }
  }
});

test('a timeout must be at least 1 millisecond', async (t) => {
  const client = await open(t);
  for (const timeoutMs of [60_000, HOUR_MS, 2n ** 53n, 2n ** 63n - 1n]) {
    for (const flags of [0, 1]) {
      const { rows } = await client.query(1, 'SELECT 1', { timeoutMs, flags });
      t.deepEqual(rows, [[1]], `${timeoutMs}`);
    }
  }
  for (const timeoutMs of [0, 2n ** 63n, 2n ** 64n - 1n, 2n ** 64n]) {
    const { last } = await client.query(1, 'SELECT 1', { timeoutMs });
    t.like(last, { kind: 'error', id: 1n, status: STATUS.parseError }, `${timeoutMs}`);
  }
  const without = queryRequest(1, 'SELECT 1', { flags: FLAG_TIMEOUT });
  for (const more of [[], [0x80], Array<number>(11).fill(0x80), [1, 1]]) {
    client.socket.send(Buffer.concat([without, Buffer.from(more)]));
    t.like((await client.answer()).last, { id: 1n, status: STATUS.parseError }, `${more.length}`);
  }
  const unknown = queryRequest(1, 'SELECT 1', { flags: 4 });
  client.socket.send(Buffer.concat([unknown, varint(1000)]));
  t.like((await client.answer()).last, { id: 1n, status: STATUS.parseError });
  t.deepEqual((await client.query(1, 'SELECT 1')).rows, [[1]]);
});

/** When a client cancels, and how many messages it has read by then. */
const CANCELS: readonly (readonly [what: string, sql: string, messages: number])[] = [
  ['before the first message', SILENT, 0],
  ['after the first message', ENDLESS, 1],
  ['in the middle of the result', ENDLESS, 20],
  ['during the sort', `${ENDLESS} ORDER BY x DESC`, 0],
];

for (const [what, sql, messages] of CANCELS) {
  for (const credit of [0, 300]) {
    test(`repeated and unknown cancels are safe: ${what}, credit ${credit}`, async (t) => {
      const client = await open(t);
      client.request(5, sql, { credit });
      for (let count = 0; count < messages; count += 1) {
        const message = await client.next();
        t.is(message?.kind, 'batch');
        client.grant(5, message?.kind === 'batch' ? message.bytes : 0);
      }
      for (const id of [4, 5, 6, 5]) {
        client.cancel(id);
      }
      // After a cancel, official clients send a credit for servers that notice a cancel only with
      // the next credit.
      client.grant(5, 1);
      t.like((await client.answer()).last, { id: 5n, status: STATUS.cancelled });
      await assertOver(t, client, sql);
    });
  }
}

test('a late cancel affects neither the completed nor the next query', async (t) => {
  const client = await open(t);
  t.is((await client.query(1, 'SELECT 1')).last.kind, 'end');
  for (const id of [1, 2, 0, -1]) {
    client.cancel(id);
  }
  t.deepEqual((await client.query(2, 'SELECT 2')).rows, [[2]]);
});

test('a queued query can be cancelled, and its timeout includes queue time', async (t) => {
  const own = await startTestServer({ set: ['query.concurrency=1'] });
  t.teardown(() => own.stop());
  const [busy, waiting] = await Promise.all([open(t, own), open(t, own)]);
  busy.request(1, SILENT);
  const activity = `SELECT count() FROM query_activity() WHERE query = '${SILENT}'`;
  await until(async () => {
    const response = await fetch(`${own.url}/exec?query=${encodeURIComponent(activity)}`);
    return (await response.text()).includes('[[1]]');
  }, 'the query is running');
  waiting.request(1, SILENT);
  waiting.cancel(1);
  t.like((await waiting.answer()).last, { status: STATUS.cancelled });
  const { last } = await waiting.query(2, SILENT, { timeoutMs: 100 });
  t.like(last, { status: STATUS.queryTimeout });
  busy.cancel(1);
  t.like((await busy.answer()).last, { status: STATUS.cancelled });
});

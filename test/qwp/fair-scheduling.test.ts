/**
 * Quiet senders alongside busy ones, over HTTP and the columnar protocol. The small batches of
 * quiet senders must be acknowledged before any busy connection gets more than a fixed number of
 * slots. The tests count commits, not time.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { WebSocketClient } from '../http/websocket-client.js';
import { rows } from '../line/harness.js';
import { answer, block, longs, message, row, STATUS, TYPE } from './messages.js';

const BATCH_ROWS = 5_000;
/** Number of connections per protocol that send batches without a pause. */
const BUSY = 4;
/** Number of messages in flight per busy connection. */
const AHEAD = 4;
/** Number of consecutive batches that a quiet sender sends, per protocol. */
const QUIET = 8;
/**
 * Slots are assigned per message. Before a quiet batch is acknowledged, a busy connection may get
 * slots for all of its messages in flight, and for as many messages that were answered earlier.
 */
const MAX_COMMITS = 2 * QUIET * 2 * (AHEAD + 1);

const NUMBERS = Array.from({ length: BATCH_ROWS }, (_, at) => at);
const columnBatch = (table: string): Buffer =>
  message(
    0,
    1,
    block(
      table,
      BATCH_ROWS,
      ['x', TYPE.long, longs(...NUMBERS)],
      ['', TYPE.timestamp, longs(...NUMBERS.map((at) => at + 1))],
    ),
  );
const lineBatch = (table: string): string =>
  NUMBERS.map((at) => `${table} x=${at}i ${at + 1}\n`).join('');

/** Tells busy senders when to continue, and counts their slots. */
class Race {
  readonly commits: number[] = [];
  isOver = false;

  /** Runs a busy connection. Each call of `commit` ends with an acknowledgement. */
  async busy(commit: () => Promise<void>): Promise<void> {
    const at = this.commits.push(0) - 1;
    while (!this.isOver) {
      await commit();
      this.commits[at] = (this.commits[at] ?? 0) + 1;
    }
  }
}

async function postLines(server: TestServer, lines: string): Promise<void> {
  const reply = await fetch(`${server.url}/write?precision=us`, { method: 'POST', body: lines });
  if (reply.status !== 204) {
    throw new Error(await reply.text());
  }
}

async function acknowledged(client: WebSocketClient): Promise<void> {
  const { status, reason } = (await answer(client)) ?? {};
  if (status !== STATUS.ok) {
    throw new Error(`answered ${status ?? 'nothing'}: ${reason ?? ''}`);
  }
}

/** `tableOf` returns the table of each connection. */
async function race(server: TestServer, tableOf: (at: number) => string): Promise<Race> {
  const running = new Race();
  const port = Number(new URL(server.url).port);
  const work: Promise<void>[] = [];
  for (let at = 0; at < BUSY; at += 1) {
    const lines = lineBatch(tableOf(at));
    work.push(running.busy(() => postLines(server, lines)));
    const client = await WebSocketClient.open(port, '/write/v4', {});
    const batch = columnBatch(tableOf(BUSY + at));
    const send = (): void => {
      client.send(batch);
    };
    Array.from({ length: AHEAD }).forEach(send);
    const commit = async (): Promise<void> => {
      await acknowledged(client);
      send();
    };
    work.push(running.busy(commit).finally(() => client.socket.destroy()));
  }
  const failed = Promise.all(work);
  // Waits until each connection has had a slot, so all of them are busy.
  while (running.commits.some((count) => count === 0)) {
    await Promise.race([failed, new Promise((resolve) => setTimeout(resolve, 5))]);
  }
  const before = [...running.commits];
  const quiet = await WebSocketClient.open(port, '/write/v4', {});
  for (let at = 0; at < QUIET; at += 1) {
    await postLines(server, `${tableOf(-1)} x=${at}i ${at + 1}\n`);
    quiet.send(message(0, 1, row(tableOf(-2), at, at + 1)));
    await acknowledged(quiet);
  }
  before.forEach((count, at) => {
    running.commits[at] = (running.commits[at] ?? 0) - count;
  });
  running.isOver = true;
  const counted = [...running.commits];
  await failed.catch(() => undefined);
  quiet.socket.destroy();
  return Object.assign(running, { commits: counted });
}

for (const [title, tableOf] of [
  ['separate tables', (at: number) => `of_${at < 0 ? `quiet${-at}` : at}`],
  ['a shared table', () => 'shared'],
] as const) {
  test.serial(`idle senders get slots alongside busy senders with ${title}`, async (t) => {
    const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
    t.teardown(() => server.stop());
    const { commits } = await race(server, tableOf);
    t.true(Math.max(...commits) <= MAX_COMMITS, commits.join(' '));
    t.true(commits.filter((count) => count > 0).length > BUSY, commits.join(' '));
    const table = tableOf(-1);
    const [[count] = []] = await rows(server, `select count() from ${table}`);
    t.true(Number(count) >= QUIET);
  });
}

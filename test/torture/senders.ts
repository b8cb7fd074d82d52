/**
 * npm run senders -- [--minutes N] [--clients N] [--kills N] [--limit MIB] [--seed S]
 *
 * Concurrent senders of lines over HTTP, lines over TCP and the columnar protocol; one connection
 * in ten is aborted. For the first two fifths of the time, the server is repeatedly killed and
 * restarted on the same files; after that, one process runs to the end. Acknowledged data must
 * exist completely. An unacknowledged batch must exist completely or not at all; of the lines sent
 * over a TCP connection, a prefix must exist. Nothing else may exist. Memory, which is printed
 * every minute, must not grow.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exitCode, runCli, startTestServer, type TestServer } from '../golden/server.js';
import { WebSocketClient } from '../http/websocket-client.js';
import { rows, write } from '../line/harness.js';
import { open, type Sender } from '../line-tcp/harness.js';
import { answer, block, FLAG, longs, message, STATUS, TYPE } from '../qwp/messages.js';
import { Harness, quantile, type Random, sleep } from './harness.js';
import { residentBytes } from './process.js';

const MIB = 1024 * 1024;
/** Maximum growth in MiB from the second to the last minute of the same process. */
const GROWTH_MIB = 96;
/** MiB by which the process may exceed its memory limit. */
const SLACK_MIB = 512;
const DISCONNECT_FRACTION = 0.1;
const MAX_ROWS = 100;
/** Maximum number of batches per connection. */
const MAX_BATCHES = 40;
const MAX_PAUSE_MS = 40;
const POLL_MS = 1_000;
/** The run stops after this many failures. */
const MAX_FAILURES = 20;

/** The rows of one commit, or all lines of one connection. */
interface Batch {
  readonly rows: number;
  isAcknowledged: boolean;
}

const harness: Harness = new Harness('senders', ['minutes', 'clients', 'kills', 'limit']);
const minutes = harness.number('minutes', 10);
const clients = harness.number('clients', 12);
const kills = harness.number('kills', 8);
const limitMib = harness.number('limit', 1_024);
const root = await mkdtemp(join(tmpdir(), 'tidemark-senders-'));
const set = [`memory.limit=${limitMib}M`, 'line.tcp.commit.interval.default=50ms'];
const TABLES = ['http_rows', 'tcp_rows', 'left_rows', 'right_rows'] as const;
const batches = new Map<(typeof TABLES)[number], Map<number, Batch>>(
  TABLES.map((table) => [table, new Map()]),
);
const counts = new Map<string, number>();
const state = { isOver: false, isKilling: false, next: 0 };
const memory: { readonly second: number; readonly mib: number }[] = [];
let server: TestServer = await startTestServer({ root, set });
const columns = 'batch LONG, i LONG, n LONG, timestamp TIMESTAMP';
for (const table of TABLES) {
  await rows(server, `create table ${table} (${columns}) timestamp(timestamp) partition by hour`);
}
const began = performance.now();
const senders = [overHttp, overTcp, inColumns];
const work = Array.from({ length: clients }, (_, at) =>
  client(senders[at % senders.length] ?? overHttp, harness.random.fork()),
);
const watchers = [watchMemory(), watchBatches()];
for (let kill = 0; kill < kills; kill += 1) {
  await sleep((minutes * 60_000 * 0.4) / kills);
  await killAndStart();
}
await sleep(minutes * 60_000 - (performance.now() - began));
state.isOver = true;
await Promise.all([...work, ...watchers]);
judgeMemory();
for (const table of TABLES) {
  await judgeRows(table);
}
const code = await server.stop();
harness.judge(code === 0 ? undefined : `the server ended with code ${code}`);
const check = runCli(['check', '--root', root]);
const checked = await exitCode(check.process);
harness.judge(checked === 0 ? undefined : `check: ${check.out().slice(0, 500)}`);
await rm(root, { recursive: true, force: true });
harness.finish();

function count(kind: string, by = 1): void {
  counts.set(kind, (counts.get(kind) ?? 0) + by);
}

async function killAndStart(): Promise<void> {
  state.isKilling = true;
  const closed = once(server.process, 'close');
  server.process.kill('SIGKILL');
  await closed;
  server = await startTestServer({ root, set });
  state.isKilling = false;
  count('kills');
}

/** Sends until the run is over. Connections may end because of kills, aborts or defects. */
async function client(send: (random: Random) => Promise<void>, random: Random): Promise<void> {
  while (!state.isOver && harness.failures < MAX_FAILURES) {
    const before = server;
    try {
      await send(random);
    } catch (error) {
      const isExpected = state.isKilling || server !== before;
      if (!isExpected) {
        harness.fail(`${send.name}: ${String(error)}`);
      }
      await sleep(50);
    }
  }
}

function newBatch(table: (typeof TABLES)[number], random: Random): [number, Batch] {
  const number = (state.next += 1);
  const batch = { rows: random.between(1, MAX_ROWS), isAcknowledged: false };
  batches.get(table)?.set(number, batch);
  return [number, batch];
}

function linesOf(table: string, number: number, { rows: many }: Batch): string {
  const line = (i: number): string => `${table} batch=${number}i,i=${i}i,n=${many}i\n`;
  return Array.from({ length: many }, (_, i) => line(i)).join('');
}

async function overHttp(random: Random): Promise<void> {
  const [number, batch] = newBatch('http_rows', random);
  const lines = linesOf('http_rows', number, batch);
  if (random.next() < DISCONNECT_FRACTION) {
    const signal = AbortSignal.timeout(random.between(1, 10));
    const sent = fetch(`${server.url}/write`, { method: 'POST', body: lines, signal });
    batch.isAcknowledged = await sent.then(
      (response) => response.status === 204,
      () => false,
    );
    count('cut');
    return;
  }
  const { status, text } = await write(server, lines);
  if (status !== 204) {
    throw new Error(`${status}: ${text}`);
  }
  batch.isAcknowledged = true;
  count('batches over HTTP');
  await sleep(random.between(0, MAX_PAUSE_MS));
}

/**
 * Sends a connection's lines. The server acknowledges the commit of these lines by closing its
 * side.
 */
async function overTcp(random: Random): Promise<void> {
  const before = server;
  const sender: Sender = await open(before);
  const [number, batch] = newBatch('tcp_rows', random);
  const many = batch.rows * random.between(1, 5);
  const complete = { rows: many, isAcknowledged: false };
  batches.get('tcp_rows')?.set(number, complete);
  const lines = linesOf('tcp_rows', number, complete).split(/(?<=\n)/);
  for (let at = 0; at < many; at += batch.rows) {
    await sender.send(lines.slice(at, at + batch.rows).join(''));
    await sleep(random.between(0, MAX_PAUSE_MS));
  }
  if (random.next() < DISCONNECT_FRACTION) {
    sender.socket.resetAndDestroy();
    await sender.closed;
    count('cut');
    return;
  }
  sender.socket.end();
  const reason = await sender.closed;
  // A process that dies closes its connections as well.
  complete.isAcknowledged = reason === '' && server === before && !state.isKilling;
  count('connections over TCP', complete.isAcknowledged ? 1 : 0);
}

function columnsOf(table: string, number: number, { rows: many }: Batch): Buffer {
  const each = Array.from({ length: many }, (_, i) => i);
  return block(
    table,
    many,
    ['batch', TYPE.long, longs(...each.map(() => number))],
    ['i', TYPE.long, longs(...each)],
    ['n', TYPE.long, longs(...each.map(() => many))],
    ['', TYPE.timestamp, longs(...each.map((i) => Date.now() * 1_000 + i))],
  );
}

/** Sends batches to two tables, in deferred messages that are committed with the last one. */
async function inColumns(random: Random): Promise<void> {
  const peer = await WebSocketClient.open(Number(new URL(server.url).port), '/write/v4');
  try {
    for (let left = random.between(1, MAX_BATCHES); left > 0 && !state.isOver; left -= 1) {
      const [number, batch] = newBatch('left_rows', random);
      batches.get('right_rows')?.set(number, batch);
      peer.send(message(FLAG.defer, 1, columnsOf('left_rows', number, batch)));
      if (random.next() < DISCONNECT_FRACTION / 4) {
        count('cut');
        return;
      }
      peer.send(message(0, 1, columnsOf('right_rows', number, batch)));
      if (random.next() < DISCONNECT_FRACTION / 4) {
        count('cut');
        return;
      }
      const heard = await answer(peer);
      if (heard?.status !== STATUS.ok) {
        throw new Error(`answered ${JSON.stringify(heard)}`);
      }
      batch.isAcknowledged = true;
      count('batches in columns');
      await sleep(random.between(0, MAX_PAUSE_MS));
    }
  } finally {
    peer.socket.destroy();
  }
}

// ---- checks ----

async function watchMemory(): Promise<void> {
  let shown = 0;
  while (!state.isOver) {
    const second = (performance.now() - began) / 1_000;
    if (!state.isKilling && server.process.exitCode === null) {
      const mib = residentBytes(server) / MIB;
      memory.push({ second, mib });
      harness.judge(mib <= limitMib + SLACK_MIB ? undefined : `${mib.toFixed(0)} MiB`);
      if (Math.floor(second / 60) > shown) {
        shown = Math.floor(second / 60);
        harness.say(`${shown} min: ${mib.toFixed(0)} MiB; ${tally()}`);
      }
    }
    await sleep(POLL_MS);
  }
}

function tally(): string {
  return [...counts].map(([kind, many]) => `${many} ${kind}`).join(', ');
}

/** Checks that no query ever sees a partial batch. */
async function watchBatches(): Promise<void> {
  while (!state.isOver) {
    for (const table of TABLES.filter((one) => one !== 'tcp_rows')) {
      const all = `select batch, count() c, max(n) n from ${table}`;
      const query = `select * from (${all}) where c <> n limit 1`;
      const torn = await rows(server, query).catch(() => []);
      harness.judge(
        torn.length === 0 ? undefined : `${table} has partial batches: ${JSON.stringify(torn)}`,
      );
    }
    await sleep(POLL_MS);
  }
}

function judgeMemory(): void {
  const lives = memory.filter(({ second }) => second > minutes * 60 * 0.4);
  const start = lives[0]?.second ?? 0;
  const minute = (at: number): number =>
    quantile(
      lives.filter(({ second }) => Math.floor((second - start) / 60) === at).map(({ mib }) => mib),
      0.5,
    );
  const last = Math.floor(((lives.at(-1)?.second ?? 0) - start) / 60) - 1;
  const all = Array.from({ length: last + 1 }, (_, at) => minute(at).toFixed(0));
  const peak = quantile(
    memory.map(({ mib }) => mib),
    1,
  );
  harness.say(
    `medians by minute of the last process: ${all.join(', ')} MiB; peak ${peak.toFixed(0)}`,
  );
  harness.say(tally());
  const grown = minute(last) - minute(Math.min(1, last));
  harness.judge(grown <= GROWTH_MIB ? undefined : `memory grew by ${grown.toFixed(0)} MiB`);
}

async function judgeRows(table: (typeof TABLES)[number]): Promise<void> {
  const known = batches.get(table) ?? new Map<number, Batch>();
  const query = `select batch, count(), max(n), min(i), max(i), sum(i) from ${table}`;
  const found = await rows(server, query);
  const isPrefix = table === 'tcp_rows';
  const there = new Set<number>();
  for (const values of found) {
    const [number = 0, many = 0, n = 0, minimum = 0, maximum = 0, sum = 0] = values.map(Number);
    const batch = known.get(number);
    there.add(number);
    const hasNoGap = minimum === 0 && many === maximum + 1 && sum === (many * maximum) / 2;
    const isRight = batch?.rows === n && hasNoGap;
    const isWhole = many === batch?.rows;
    const mayBeCut = isPrefix && batch?.isAcknowledged === false;
    const shown = `${JSON.stringify(values)} in ${table}, sent ${JSON.stringify(batch)}`;
    harness.judge(isRight && (isWhole || mayBeCut) ? undefined : shown);
  }
  const acknowledged = [...known].filter(([, batch]) => batch.isAcknowledged);
  const lost = acknowledged.filter(([number]) => !there.has(number));
  harness.say(`${table}: ${there.size} of ${known.size}, ${acknowledged.length} acknowledged`);
  harness.judge(lost.length === 0 ? undefined : `${table} lost ${lost.length} batches`);
}

/**
 * npm run clock -- [--jumps N] [--seed S]
 *
 * Runs the real server under libfaketime with a clock that jumps: to 1970, past 2038, through a
 * leap second, ten years forward and back, and to N random timestamps. Writes continue, nothing
 * acknowledged is lost, running queries do not time out, and restarts at any date find all data.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exitCode, startTestServer, type TestServer } from '../golden/server.js';
import { exec, importCsv } from './client.js';
import { Harness, type Random, sleep } from './harness.js';
import { Batch, COLUMNS, Ledger, summaryQuery, tableDefinition } from './ledger.js';

const LIBRARIES = ['x86_64-linux-gnu', 'aarch64-linux-gnu'].map(
  (machine) => `/usr/lib/${machine}/faketime/libfaketimeMT.so.1`,
);
const FIXED = [
  '1970-01-01 00:00:01',
  '2038-01-19 03:14:06',
  '2016-12-31 23:59:58',
  '2024-03-31 00:59:58',
  '2034-06-01 00:00:00',
  '2014-06-01 00:00:00',
];
/** Tolerance in milliseconds, because the server's clock advances while a query is in flight. */
const TOLERANCE_MS = 60_000;

const harness: Harness = new Harness('clock', ['jumps']);
const library = LIBRARIES.find((path) => existsSync(path));
if (library === undefined) {
  harness.skip('libfaketime is not installed');
}
const folder = await mkdtemp(join(tmpdir(), 'tidemark-clock-'));
const root = join(folder, 'root');
const clock = join(folder, 'clock');
const random = harness.random.fork();
const randomTimestamps = Array.from({ length: harness.number('jumps', 6) }, () =>
  new Date(random.between(0, 4_000_000_000) * 1000).toISOString().slice(0, 19).replace('T', ' '),
);
const ledger = new Ledger();
let next = 0;

setClock('2024-01-01 00:00:00');
let server = await start(library);
await exec(server, tableDefinition('alpha', 'DAY'));
for (const timestamp of [...FIXED, ...randomTimestamps]) {
  harness.judge(
    await jump(library, timestamp).catch((error: unknown) => `${timestamp}: ${String(error)}`),
  );
}
await server.stop();
await rm(folder, { recursive: true, force: true });
harness.finish();

function setClock(timestamp: string): void {
  writeFileSync(clock, `@${timestamp}\n`);
}

async function start(preload: string): Promise<TestServer> {
  const environment = {
    LD_PRELOAD: preload,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: '1',
    // Only the wall clock jumps.
    FAKETIME_DONT_FAKE_MONOTONIC: '1',
    TZ: 'UTC',
  };
  return await startTestServer({ root, environment });
}

async function jump(preload: string, timestamp: string): Promise<string | undefined> {
  await write(random);
  const running = exec(server, 'select count() from long_sequence(30000000) where x % 7 = 3');
  await sleep(20);
  setClock(timestamp);
  await running;
  const now = await exec(server, 'select cast(now() as long) from long_sequence(1)');
  const serverMs = Number(now.dataset[0]?.[0]) / 1000;
  if (Math.abs(serverMs - Date.parse(`${timestamp.replace(' ', 'T')}Z`)) > TOLERANCE_MS) {
    return `${timestamp}: the server's clock is at ${new Date(serverMs).toISOString()}`;
  }
  await write(random);
  const problem = await verify();
  if (problem !== undefined) {
    return `${timestamp}: ${problem}`;
  }
  // Half of the restarts are kills, so a log written at one date is read at the next.
  server.process.kill(random.next() < 0.5 ? 'SIGKILL' : 'SIGTERM');
  await exitCode(server.process);
  server = await start(preload);
  const after = await verify();
  return after === undefined ? undefined : `${timestamp}, restarted: ${after}`;
}

async function write(numbers: Random): Promise<void> {
  const inserted = new Batch('alpha', 0, next++, numbers, 20);
  const imported = new Batch('alpha', 0, next++, numbers, 300);
  ledger.add(inserted);
  ledger.add(imported);
  await exec(server, `INSERT INTO alpha (${COLUMNS}) VALUES ${inserted.values()}`);
  inserted.acknowledged = true;
  await importCsv(server, 'alpha', imported.csv());
  imported.acknowledged = true;
}

async function verify(): Promise<string | undefined> {
  const { dataset } = await exec(server, summaryQuery('alpha'));
  return ledger.settle('alpha', dataset);
}

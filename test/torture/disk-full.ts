/**
 * npm run disk-full -- [--rounds N] [--seed S] [--mib N]
 *
 * Fills a small, separate file system under a running server and frees it again. Refusals must
 * state the reason, queries must keep working, nothing acknowledged may be lost, and writes must
 * work again within a second without a restart. Some rounds restart the server while the disk is
 * full.
 */
import { closeSync, openSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, importCsv, isDisconnected, Refused } from './client.js';
import { Harness, type Random, sleep } from './harness.js';
import { Batch, COLUMNS, Ledger, summaryQuery, tableDefinition } from './ledger.js';
import { freeBytes, insideNamespace, mountDisk } from './small-disk.js';

const TABLES = ['alpha', 'beta'] as const;
const RENEW_ROUNDS = 8;
const RESUME_MS = 1_000;
const ABOUT_SPACE = /space|disk|full|quota|ENOSPC/i;

const disk = await insideNamespace();
const harness: Harness = new Harness('disk-full', ['rounds', 'mib']);
const rounds = harness.number('rounds', 6);
const mib = harness.number('mib', 256);
if (!(await mountDisk(disk, mib))) {
  harness.skip('a file system cannot be mounted here');
}
const filler = join(disk, 'filler');
const ledger = new Ledger();
const counts = { acknowledged: 0, refused: 0, queries: 0 };
let nextBatch = 0;
let starts = 0;
let server = await start();
for (let round = 0; round < rounds && harness.failures < 10; round++) {
  await runRound(round).catch((error: unknown) => {
    harness.fail(`round ${round}: ${error instanceof Error ? error.message : String(error)}`);
  });
}
await server.stop();
harness.say(
  Object.entries(counts)
    .map(([name, count]) => `${count} ${name}`)
    .join(', '),
);
harness.finish();

/**
 * Every second server has a minimal disk watermark, so it is the operating system that refuses its
 * writes.
 */
async function start(): Promise<TestServer> {
  starts += 1;
  const set = starts % 2 === 0 ? ['disk.watermark=1'] : [];
  return await startTestServer({ root: join(disk, 'root'), set });
}

async function runRound(round: number): Promise<void> {
  const random = harness.random.fork();
  if (round % RENEW_ROUNDS === 0) {
    await renewTables();
  }
  await insertBatch(random); // Something is there to be read.
  fill(random.between(0, 3) * 1024 * 1024);
  const state = { over: false };
  const load = [
    repeat(state, () => importBatch(random)),
    repeat(state, () => insertBatch(random)),
    readOn(state),
  ];
  await sleep(random.between(300, 900));
  if (random.next() < 0.25) {
    // Everything acknowledged is in the log; a full disk must not prevent startup.
    server.process.kill('SIGKILL');
    state.over = true;
    await Promise.all(load);
    server = await start();
    harness.judge(await verify(`round ${round}, restarted on a full disk`));
  }
  state.over = true;
  await Promise.all(load);
  harness.judge(await verify(`round ${round}, full`));
  truncateSync(filler, 0);
  harness.judge(await resumes(random, `round ${round}`));
  harness.judge(await verify(`round ${round}, freed`));
}

async function renewTables(): Promise<void> {
  for (const table of TABLES) {
    await exec(server, `DROP TABLE IF EXISTS ${table}`);
    ledger.clear(table);
    await exec(server, tableDefinition(table, 'DAY'));
  }
  // Closing writes a checkpoint, which frees the log.
  await server.stop();
  server = await start();
}

/** Fills the disk until `left` bytes are free. */
function fill(left: number): void {
  const file = openSync(filler, 'a');
  const block = Buffer.alloc(256 * 1024, 1);
  while (freeBytes(disk) > left + block.length) {
    writeSync(file, block);
  }
  closeSync(file);
}

function newBatch(random: Random, maximum: number): Batch {
  const batch = new Batch(random.pick(TABLES), 0, nextBatch++, random, maximum);
  ledger.add(batch);
  return batch;
}

async function importBatch(random: Random): Promise<void> {
  const batch = newBatch(random, 4_000);
  await importCsv(server, batch.table, batch.csv());
  batch.acknowledged = true;
}

async function insertBatch(random: Random): Promise<void> {
  const batch = newBatch(random, 40);
  await exec(server, `INSERT INTO ${batch.table} (${COLUMNS}) VALUES ${batch.values()}`);
  batch.acknowledged = true;
}

async function repeat(state: { over: boolean }, write: () => Promise<void>): Promise<void> {
  while (!state.over) {
    try {
      await write();
      counts.acknowledged += 1;
    } catch (error) {
      if (isDisconnected(error)) {
        return;
      }
      counts.refused += 1;
      const { message } = error as Refused;
      if (!ABOUT_SPACE.test(message)) {
        harness.fail(`the disk is full, but the error is: ${message}`);
        return;
      }
      await sleep(20);
    }
  }
}

/** Runs queries continuously; they must work however full the disk is. */
async function readOn(state: { over: boolean }): Promise<void> {
  while (!state.over) {
    for (const table of TABLES) {
      try {
        await exec(server, summaryQuery(table));
        counts.queries += 1;
      } catch (error) {
        if (error instanceof Refused) {
          harness.fail(`a query on a full disk: ${error.message}`);
          return;
        }
      }
    }
    await sleep(10);
  }
}

async function resumes(random: Random, where: string): Promise<string | undefined> {
  const freed = performance.now();
  let last = '';
  for (const write of [insertBatch, importBatch]) {
    for (;;) {
      try {
        await write(random);
        break;
      } catch (error) {
        last = error instanceof Error ? error.message : String(error);
      }
      if (performance.now() - freed > RESUME_MS) {
        return `${where}: writes do not resume: ${last}`;
      }
      await sleep(50);
    }
  }
  return undefined;
}

async function verify(where: string): Promise<string | undefined> {
  for (const table of TABLES) {
    const { dataset } = await exec(server, summaryQuery(table));
    const problem = ledger.settle(table, dataset);
    if (problem !== undefined) {
      return `${where}: ${problem}`;
    }
  }
  return undefined;
}

/**
 * npm run soak -- [--minutes N] [--clients N] [--limit MIB] [--seed S]
 *
 * Half of the clients write, change, read, drop and truncate. The other half send excessive
 * statements over HTTP and the wire protocol, and wait, time out, or disconnect. The server
 * survives, answers `/ping`, returns no internal error, and stays within its memory limit plus 512
 * MiB. Its memory does not grow from the second to the last fifth of the run. It loses no
 * acknowledged row, frees the space of dropped data and stops cleanly, and `check` finds nothing.
 */
import { readdirSync, statSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exitCode, runCli, startTestServer } from '../golden/server.js';
import { exec, importCsv, Refused } from './client.js';
import { Harness, quantile, type Random, sleep } from './harness.js';
import { ADVERSARIAL_SHAPES, adversarialStatement } from './adversarial.js';
import { Batch, COLUMNS, Ledger, summaryQuery, tableDefinition } from './ledger.js';
import { residentBytes, spilledFiles } from './process.js';
import { pgClient } from '../pg-client.js';

const MIB = 1024 * 1024;
/** MiB by which the process may exceed its memory limit. */
const SLACK_MIB = 512;
/**
 * Maximum growth in MiB from the second to the last fifth; caches and allocator pages still fill
 * during this time.
 */
const GROWTH_MIB = 128;
const BIG_ROWS = 100_000;
const TIMEOUT_MS = 3_000;
/**
 * Maximum time that a client waits for an excessive statement, in milliseconds. Responses that take
 * longer are counted.
 */
const WAIT_MS = 60_000;
/** Milliseconds after the last statement within which every client must be answered. */
const LAST_ANSWERS_MS = 2 * WAIT_MS;
const DISK_SPACE_MS = 5_000;
/** MiB for the log, manifest and symbols of an empty root; the reserve file is not counted. */
const EMPTY_ROOT_MIB = 16;
/** The file that reserves space for operations that free space when the disk is full. */
const RESERVE = 'reserve';
const INTERNAL = /internal error|panicked|assertion failed|Schema error|DataFusion/;
const LEDGER_TABLES = ['alpha', 'beta'] as const;

const harness: Harness = new Harness('soak', ['minutes', 'clients', 'limit']);
const minutes = harness.number('minutes', 30);
const clients = harness.number('clients', 32);
const limitMib = harness.number('limit', 1_500);
const root = await mkdtemp(join(tmpdir(), 'tidemark-soak-'));
const server = await startTestServer({
  root,
  set: [`memory.limit=${limitMib}M`, 'query.memory.pool=512M', 'query.memory.limit=256M'],
});
const ledger = new Ledger();
const state = { over: false, nextBatch: 0 };
const answers = new Map<string, number>();
const problems = new Map<string, string>();
const memoryMib: number[] = [];
const pings: number[] = [];
let lateAnswers = 0;

await prepare();
const watchers = [watchMemory(), watchPing()];
const started = performance.now();
const work = Array.from({ length: clients }, (_, index) => {
  const random = harness.random.fork();
  return index % 2 === 0 ? ordinaryClient(index, random) : adversarialClient(index, random);
});
await sleep(minutes * 60_000);
state.over = true;
await Promise.race([Promise.all(work), sleep(LAST_ANSWERS_MS).then(tooLong)]);
await Promise.all(watchers);
harness.say(`${Math.round((performance.now() - started) / 1000)} s of load`);
judgeAnswers();
judgeMemory();
await judgeRows();
await judgeDiskSpace();
await judgeEnd();
await rm(root, { recursive: true, force: true });
harness.finish();

/**
 * Fails the run if clients are still waiting: it means that their statements cannot be cancelled.
 */
function tooLong(): never {
  harness.fail(`statements are still running ${LAST_ANSWERS_MS / 1000} s after the last was sent`);
  harness.finish();
}

async function prepare(): Promise<void> {
  await exec(
    server,
    `CREATE TABLE big AS (SELECT x k, (x * 7919) % 1000003 v, 'text of row ' || x s,
     timestamp_sequence('2024-01-01', 1000000) ts FROM long_sequence(${BIG_ROWS}))
     TIMESTAMP(ts) PARTITION BY DAY`,
  );
  await exec(server, 'CREATE TABLE one AS (SELECT x k FROM long_sequence(1000))');
  for (const table of LEDGER_TABLES) {
    await exec(server, tableDefinition(table, 'DAY'));
  }
}

function count(kind: string): void {
  answers.set(kind, (answers.get(kind) ?? 0) + 1);
}

/** Judges a client's error. An internal error or a closed connection is a problem. */
function judgeError(query: string, error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  const isRefusal = error instanceof Refused || (error as { code?: unknown }).code !== undefined;
  const isInternal = (error instanceof Refused && error.status === 500) || INTERNAL.test(text);
  if (isInternal || !isRefusal) {
    const kind = text.replace(/\d+/g, 'N').slice(0, 120);
    problems.set(kind, problems.get(kind) ?? `${query.slice(0, 160)}: ${text.slice(0, 300)}`);
  }
  count(isInternal ? 'internal' : isRefusal ? 'refused' : 'unanswered');
}

async function ordinaryClient(index: number, random: Random): Promise<void> {
  const mine = `own${index}`;
  const jobs = [insertRows, importRows, readRows, (): Promise<void> => renew(mine, random)];
  while (!state.over) {
    const job = random.pick(jobs);
    try {
      await job(index, random);
      count('done');
    } catch (error) {
      judgeError(job.name, error);
      await sleep(50);
    }
    await sleep(random.between(0, 40));
  }
}

function newBatch(client: number, random: Random, maximum: number): Batch {
  const batch = new Batch(random.pick(LEDGER_TABLES), client, state.nextBatch++, random, maximum);
  ledger.add(batch);
  return batch;
}

async function insertRows(client: number, random: Random): Promise<void> {
  const batch = newBatch(client, random, 8);
  await exec(server, `INSERT INTO ${batch.table} (${COLUMNS}) VALUES ${batch.values()}`);
  batch.acknowledged = true;
}

async function importRows(client: number, random: Random): Promise<void> {
  const batch = newBatch(client, random, 400);
  await importCsv(server, batch.table, batch.csv());
  batch.acknowledged = true;
}

async function readRows(_: number, random: Random): Promise<void> {
  const table = random.pick(LEDGER_TABLES);
  const { dataset } = await exec(
    server,
    `select * from (select client, batch, count() c, max(rows) r from ${table} ` +
      'group by client, batch) where c <> r',
  );
  if (dataset.length > 0) {
    problems.set('torn', `a query saw a partial batch: ${JSON.stringify(dataset[0])}`);
  }
}

/** Creates, fills, changes and removes a table in every possible way. */
async function renew(table: string, random: Random): Promise<void> {
  await exec(server, `DROP TABLE IF EXISTS ${table}`);
  await exec(
    server,
    `CREATE TABLE ${table} AS (SELECT x, rnd_str(20, 20, 0) s,
     timestamp_sequence('2024-01-01', 60000000) ts FROM long_sequence(20000))
     TIMESTAMP(ts) PARTITION BY DAY`,
  );
  const change = random.pick([
    `TRUNCATE TABLE ${table}`,
    `ALTER TABLE ${table} DROP PARTITION LIST '2024-01-02'`,
    `UPDATE ${table} SET s = 'changed' WHERE x % 3 = 0`,
    `DELETE FROM ${table} WHERE x % 2 = 0`,
    `ALTER TABLE ${table} ADD COLUMN extra DOUBLE`,
  ]);
  await exec(server, change);
}

async function adversarialClient(index: number, random: Random): Promise<void> {
  while (!state.over) {
    const query = adversarialStatement(random.pick(ADVERSARIAL_SHAPES), random);
    const sentAt = performance.now();
    try {
      await (index % 4 === 1 ? overHttp(query, random) : overWire(query, random));
      count('done');
    } catch (error) {
      judgeError(query, error);
    }
    if (performance.now() - sentAt > WAIT_MS) {
      lateAnswers += 1;
    }
  }
}

/** One client in five disconnects before the response. */
async function overHttp(query: string, random: Random): Promise<void> {
  const disconnects = random.next() < 0.2;
  const signal = AbortSignal.timeout(disconnects ? random.between(5, 1_500) : 10 * WAIT_MS);
  const headers = { 'Statement-Timeout': String(TIMEOUT_MS) };
  const body = new URLSearchParams({ query, limit: '100' });
  try {
    const response = await fetch(`${server.url}/exec`, { method: 'POST', headers, body, signal });
    const text = await response.text();
    if (!response.ok) {
      throw new Refused(response.status, text.slice(-400));
    }
  } catch (error) {
    if (!disconnects || error instanceof Refused) {
      throw error;
    }
  }
}

async function overWire(query: string, random: Random): Promise<void> {
  const client = pgClient(server.pg);
  client.on('error', () => undefined);
  const disconnects = random.next() < 0.2;
  let timer: NodeJS.Timeout | undefined;
  try {
    await client.connect();
    await client.query(`SET statement_timeout = ${TIMEOUT_MS}`);
    const answer = client.query(query);
    if (disconnects) {
      const gone = (): unknown =>
        (
          client as unknown as { connection: { stream: { destroy(): void } } }
        ).connection.stream.destroy();
      timer = setTimeout(gone, random.between(5, 1_500));
    }
    await answer;
  } catch (error) {
    if (!disconnects) {
      throw error;
    }
  } finally {
    clearTimeout(timer);
    void client.end().catch(() => undefined);
  }
}

async function watchMemory(): Promise<void> {
  while (!state.over && server.process.exitCode === null) {
    memoryMib.push(residentBytes(server) / MIB);
    await sleep(500);
  }
}

async function watchPing(): Promise<void> {
  while (!state.over) {
    const sentAt = performance.now();
    try {
      await fetch(`${server.url}/ping`, { signal: AbortSignal.timeout(30_000) });
      pings.push(performance.now() - sentAt);
    } catch (error) {
      judgeError('/ping', error);
      if (server.process.exitCode !== null || server.process.signalCode !== null) {
        const end = server.process.signalCode ?? server.process.exitCode;
        harness.fail(`the server ended: ${end}: ${server.log().slice(-500)}`);
        harness.finish();
      }
    }
    await sleep(250);
  }
}

function judgeAnswers(): void {
  const kinds = [...answers].map(([kind, number]) => `${number} ${kind}`);
  harness.say(`${kinds.join(', ')}, ${lateAnswers} answered after ${WAIT_MS / 1000} s`);
  const [p50, p99] = [0.5, 0.99].map((fraction) => quantile(pings, fraction).toFixed(0));
  harness.say(`/ping: ${pings.length} answers, p50 ${p50} ms, p99 ${p99} ms`);
  for (const problem of problems.values()) {
    harness.fail(problem);
  }
  harness.judge(problems.size === 0 ? undefined : `${problems.size} kinds of wrong answers`);
  harness.judge(lateAnswers === 0 ? undefined : `${lateAnswers} statements passed their timeout`);
}

function judgeMemory(): void {
  const fifth = Math.floor(memoryMib.length / 5);
  const fifths = [0, 1, 2, 3, 4].map((at) => memoryMib.slice(at * fifth, (at + 1) * fifth));
  const by = (fraction: number): number[] => fifths.map((part) => quantile(part, fraction));
  const shown = (values: number[]): string => values.map((mib) => mib.toFixed(0)).join(', ');
  const [, second = 0, , , last = 0] = by(0.5);
  const peak = quantile(memoryMib, 1);
  harness.say(
    `memory, MiB by fifths: medians ${shown(by(0.5))}, lowest tenths ${shown(by(0.1))}, ` +
      `peak ${peak.toFixed(0)} of ${limitMib}`,
  );
  const over = peak > limitMib + SLACK_MIB;
  harness.judge(over ? `${peak.toFixed(0)} MiB at the peak` : undefined);
  const grown = last - second;
  harness.judge(grown > GROWTH_MIB ? `memory grew by ${grown.toFixed(0)} MiB` : undefined);
}

async function judgeRows(): Promise<void> {
  for (const table of LEDGER_TABLES) {
    const { dataset } = await exec(server, summaryQuery(table));
    harness.judge(ledger.settle(table, dataset));
  }
  const { dataset } = await exec(server, 'SELECT query FROM query_activity()');
  const left = dataset.map(([query]) => String(query)).filter((q) => !q.includes('query_activity'));
  harness.judge(
    left.length === 0 ? undefined : `${left.length} queries are still running: ${left[0] ?? ''}`,
  );
  harness.judge(spilledFiles(server) === 0 ? undefined : `${spilledFiles(server)} spilled files`);
}

/** Returns the sizes of the table files in MiB. */
function rootFiles(): ReadonlyMap<string, number> {
  const all = readdirSync(join(root, 'db'), { recursive: true, withFileTypes: true });
  const entries = all.filter((entry) => entry.name !== RESERVE);
  return new Map(
    entries.map((entry) => {
      const path = join(entry.parentPath, entry.name);
      const file = statSync(path, { throwIfNoEntry: false });
      return [path, file?.isFile() === true ? (file.blocks * 512) / MIB : 0];
    }),
  );
}

function rootMib(): number {
  return [...rootFiles().values()].reduce((sum, size) => sum + size, 0);
}

function largestFiles(): string {
  const files = [...rootFiles()].sort(([, one], [, other]) => other - one).slice(0, 5);
  return files.map(([path, size]) => `${path.slice(root.length)} ${size.toFixed(1)}`).join(', ');
}

async function judgeDiskSpace(): Promise<void> {
  const full = rootMib();
  const { dataset } = await exec(server, 'SELECT table_name FROM tables()');
  for (const [name] of dataset) {
    await exec(server, `DROP TABLE ${String(name)}`);
  }
  const began = performance.now();
  while (rootMib() > EMPTY_ROOT_MIB && performance.now() - began < DISK_SPACE_MS) {
    await sleep(100);
  }
  const left = rootMib();
  harness.say(
    `disk usage: ${full.toFixed(0)} MiB, ${left.toFixed(0)} MiB after the tables were dropped`,
  );
  harness.judge(
    left > EMPTY_ROOT_MIB ? `${left.toFixed(0)} MiB remain: ${largestFiles()}` : undefined,
  );
}

async function judgeEnd(): Promise<void> {
  const began = performance.now();
  const code = await server.stop();
  harness.say(`stopped with code ${code} in ${Math.round(performance.now() - began)} ms`);
  harness.judge(code === 0 ? undefined : `the server ended with code ${code}`);
  const check = runCli(['check', '--root', root]);
  const checked = await exitCode(check.process);
  harness.judge(checked === 0 ? undefined : `check: ${check.out().slice(0, 500)}`);
}

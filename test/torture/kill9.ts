/**
 * npm run kill9 -- [--rounds N] [--seed S] [--check-every N]
 *
 * Runs the server under mixed load (imports, inserts over HTTP and the wire protocol, late rows,
 * updates, new columns, queries), kills it after 50 to 1,500 ms, restarts it, and compares its
 * contents with the acknowledged writes. The seed determines the requests and when the kill
 * happens. How far the server has got by then depends on the machine.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exitCode, runCli, startTestServer, type TestServer } from '../golden/server.js';
import { exec, importCsv, isDisconnected, Refused } from './client.js';
import { Harness, quantile, type Random, sleep } from './harness.js';
import { Batch, COLUMNS, Ledger, summaryQuery, tableDefinition } from './ledger.js';
import { pgClient } from '../pg-client.js';

const TABLES = ['alpha', 'beta', 'gamma'] as const;
const UNITS = ['DAY', 'HOUR', 'MONTH'] as const;
const MODES = ['sync', 'async', 'nosync'] as const;
/**
 * Number of rounds after which new tables are used, which keeps rounds short and drops tables under
 * load.
 */
const RENEW_ROUNDS = 25;
const START_LIMIT_MS = 1_000;
/** Minimum number of starts for a meaningful 99th percentile. */
const MAX_STARTS = 100;

const harness: Harness = new Harness('kill9', ['rounds', 'check-every']);
const rounds = harness.number('rounds', 20);
const checkEvery = harness.number('check-every', 10);
const ledger = new Ledger();
const counts = { imports: 0, inserts: 0, transactions: 0, updates: 0, columns: 0, queries: 0 };
const refusals = new Map<string, number>();
const startsMs: number[] = [];
/** Columns that must exist, and columns that are allowed to exist. */
const added = { known: new Set<string>(), possible: new Set<string>() };
let nextBatch = 0;

const clientRandoms = Array.from({ length: 5 }, () => harness.random.fork());

const root = await mkdtemp(join(tmpdir(), 'tidemark-kill9-'));
for (let round = 0; round < rounds && harness.failures < 10; round++) {
  await runRound(round).catch((error: unknown) => {
    harness.fail(`round ${round}: ${error instanceof Error ? error.message : String(error)}`);
  });
}
await rm(root, { recursive: true, force: true });
const tried = Object.entries(counts).map(([name, count]) => `${count} ${name}`);
harness.say(`acknowledged: ${tried.join(', ')}`);
for (const [message, count] of refusals) {
  harness.say(`refused ${count} times: ${message}`);
}
const p99 = quantile(startsMs, 0.99);
harness.say(`starts: p50 ${quantile(startsMs, 0.5).toFixed(0)} ms, p99 ${p99.toFixed(0)} ms`);
if (startsMs.length >= MAX_STARTS) {
  harness.judge(p99 <= START_LIMIT_MS ? undefined : `p99 of the start is ${p99.toFixed(0)} ms`);
}
harness.finish();

async function runRound(round: number): Promise<void> {
  const random = harness.random.fork();
  const mode = random.pick(MODES);
  const started = performance.now();
  const server = await startTestServer({ root, set: [`cairo.commit.mode=${mode}`] });
  startsMs.push(performance.now() - started);
  try {
    if (round % RENEW_ROUNDS === 0) {
      await renewTables(server);
    }
    harness.judge(await verify(server).then((p) => p && `round ${round} in ${mode}: ${p}`));
    const state = { dying: false };
    const clients = [importer, inserter, transactor, changer, reader].map((client, index) =>
      untilDeath(state, () => client(server, index, clientRandoms[index] ?? random)),
    );
    await sleep(random.between(50, 1_500));
    state.dying = true;
    // Every fifth kill happens during shutdown, in the last checkpoint.
    if (random.next() < 0.2) {
      server.process.kill('SIGTERM');
      await sleep(random.between(0, 120));
    }
    server.process.kill('SIGKILL');
    await Promise.all([exitCode(server.process), ...clients]);
  } finally {
    server.process.kill('SIGKILL');
    await exitCode(server.process);
  }
  if (checkEvery > 0 && round % checkEvery === checkEvery - 1) {
    const check = runCli(['check', '--root', root]);
    const code = await exitCode(check.process);
    harness.judge(code === 0 ? undefined : `round ${round}: check reports ${check.out()}`);
  }
}

async function renewTables(server: TestServer): Promise<void> {
  added.known.clear();
  added.possible.clear();
  for (const [index, table] of TABLES.entries()) {
    await exec(server, `DROP TABLE IF EXISTS ${table}`);
    ledger.clear(table);
    await exec(server, tableDefinition(table, UNITS[index] ?? 'DAY'));
  }
}

async function verify(server: TestServer): Promise<string | undefined> {
  for (const table of TABLES) {
    const { dataset } = await exec(server, summaryQuery(table));
    const problem = ledger.settle(table, dataset);
    if (problem !== undefined) {
      return problem;
    }
    const columns = await exec(server, `SHOW COLUMNS FROM ${table}`);
    const names = new Set(columns.dataset.map(([name]) => `${table}.${String(name)}`));
    for (const name of added.known) {
      if (name.startsWith(`${table}.`) && !names.has(name)) {
        return `column ${name} was acknowledged and is missing`;
      }
    }
    for (const name of added.possible) {
      if (names.has(name)) {
        added.known.add(name);
      }
    }
  }
  added.possible.clear();
  return undefined;
}

/** Repeats an action until the server is dead. Refusals are counted; a lost response is normal. */
async function untilDeath(state: { dying: boolean }, action: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      await action();
    } catch (error) {
      if (isDisconnected(error)) {
        if (!state.dying) {
          await sleep(5);
        }
      } else if (error instanceof Refused && !(state.dying && isStopping(error))) {
        refuse(error);
        await sleep(20);
      }
    }
    if (state.dying) {
      return;
    }
  }
}

/** Whether the refusal comes from a server that is stopping before it is killed. */
const isStopping = ({ status, message }: Refused): boolean =>
  status === 503 && message.includes('the server is shutting down');

/** The load is valid, so an internal error fails the run. Refusals are counted by message. */
function refuse(error: Refused): void {
  const text = /"error":"([^"]*)/.exec(error.message)?.[1] ?? error.message;
  const kind = `${error.status} ${text.replace(/\d+/g, 'N')}`;
  if (error.status >= 500 && !refusals.has(kind)) {
    harness.fail(`a valid statement was answered with ${kind}`);
  }
  refusals.set(kind, (refusals.get(kind) ?? 0) + 1);
}

function newBatch(client: number, random: Random, maximum: number): Batch {
  const batch = new Batch(random.pick(TABLES), client, nextBatch++, random, maximum);
  ledger.add(batch);
  return batch;
}

async function importer(server: TestServer, client: number, random: Random): Promise<void> {
  const batch = newBatch(client, random, 400);
  await importCsv(server, batch.table, batch.csv());
  batch.acknowledged = true;
  counts.imports += 1;
}

async function inserter(server: TestServer, client: number, random: Random): Promise<void> {
  const batch = newBatch(client, random, 8);
  await exec(server, `INSERT INTO ${batch.table} (${COLUMNS}) VALUES ${batch.values()}`);
  batch.acknowledged = true;
  counts.inserts += 1;
}

/** Commits several inserts in one transaction over the wire protocol. */
async function transactor(server: TestServer, client: number, random: Random): Promise<void> {
  const connection = pgClient(server.pg);
  connection.on('error', () => undefined);
  try {
    await connection.connect();
    for (let count = 0; count < 20; count++) {
      const batch = newBatch(client, random, 6);
      await connection.query('BEGIN');
      const columns = COLUMNS.split(', ');
      const holes = columns.map((_, index) => `$${index + 1}`).join(', ');
      for (const row of batch.rows) {
        const text = `INSERT INTO ${batch.table} (${COLUMNS}) VALUES (${holes})`;
        await connection.query({ name: `insert ${batch.table}`, text, values: [...row] });
      }
      await connection.query('COMMIT');
      batch.acknowledged = true;
      counts.transactions += 1;
    }
  } finally {
    void connection.end().catch(() => undefined);
  }
}

/** Updates one of this client's batches, sometimes after adding a column. */
async function changer(server: TestServer, client: number, random: Random): Promise<void> {
  const table = random.pick(TABLES);
  if (random.next() < 0.1 && added.known.size + added.possible.size < 40) {
    const column = `extra${random.between(0, 1_000_000)}`;
    added.possible.add(`${table}.${column}`);
    await exec(server, `ALTER TABLE ${table} ADD COLUMN ${column} DOUBLE`);
    added.known.add(`${table}.${column}`);
    counts.columns += 1;
    return;
  }
  const batch = ledger.some(table, client, random);
  if (batch === undefined || random.next() < 0.4) {
    const fresh = newBatch(client, random, 20);
    await exec(server, `INSERT INTO ${fresh.table} (${COLUMNS}) VALUES ${fresh.values()}`);
    fresh.acknowledged = true;
    counts.inserts += 1;
    return;
  }
  const generation = random.between(1, 1_000_000);
  batch.generations.push(generation);
  const where = `client = ${batch.client} and batch = ${batch.number}`;
  await exec(server, `UPDATE ${table} SET gen = ${generation} WHERE ${where}`);
  batch.generations = [generation];
  counts.updates += 1;
}

/** Checks that no query ever sees a partial batch. */
async function reader(server: TestServer, _: number, random: Random): Promise<void> {
  const table = random.pick(TABLES);
  const { dataset } = await exec(
    server,
    `select * from (select client, batch, count() c, max(rows) r from ${table} ` +
      'group by client, batch) where c <> r',
  );
  counts.queries += 1;
  if (dataset.length > 0) {
    harness.fail(`a query saw a partial batch: ${JSON.stringify(dataset[0])}`);
  }
  await sleep(10);
}

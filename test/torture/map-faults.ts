/**
 * npm run map-faults -- [--rounds N] [--seed S]
 *
 * Truncates segment files under running queries, or overwrites them before they are first read. The
 * process must survive, every answer must be correct or an error, and other tables must continue to
 * work. An overwrite after the checksum comparison is not a disk fault and is not tested. A query
 * that is reading a page sees zeros if the file is truncated within that page. This has the same
 * effect as such an overwrite, so files are truncated within a page only between queries.
 */
import {
  closeSync,
  cpSync,
  openSync,
  readdirSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exitCode, startTestServer, type TestServer } from '../golden/server.js';
import { exec, importCsv, isDisconnected } from './client.js';
import { Harness, type Random, sleep } from './harness.js';

const ROWS = 200_000;
const PAGE_BYTES = 4_096;
const READERS = 3;
const QUERIES = [
  'select count(), sum(x), min(x), max(x), sum(length(note)) from hurt',
  'select count_distinct(note), sum(x * 2) from hurt',
] as const;
const WELL = 'select count(), sum(x) from well';

const harness: Harness = new Harness('map-faults', ['rounds']);
const rounds = harness.number('rounds', 6);
const folder = await mkdtemp(join(tmpdir(), 'tidemark-map-'));
const good = join(folder, 'good');
const root = join(folder, 'root');
const counts = { right: 0, refused: 0 };
const expected = await build();
for (let round = 0; round < rounds && harness.failures < 10; round++) {
  const random = harness.random.fork();
  const problem = await runRound(random).catch((error: unknown) => String(error));
  harness.judge(problem === undefined ? undefined : `round ${round}: ${problem}`);
}
await rm(folder, { recursive: true, force: true });
harness.say(`${counts.right} answers right, ${counts.refused} refused`);
harness.finish();

/** Creates a closed root with two tables, and returns the query results. */
async function build(): Promise<ReadonlyMap<string, string>> {
  const server = await startTestServer({ root: good });
  for (const table of ['well', 'hurt']) {
    const line = (_: unknown, row: number): string =>
      `${new Date(Date.UTC(2024, 0, 1) + row * 2_000).toISOString()},${row},note ${row % 977}`;
    const csv = Array.from({ length: ROWS }, line).join('\n');
    await importCsv(server, table, `ts,x,note\n${csv}\n`);
  }
  const answers = new Map<string, string>();
  for (const query of [...QUERIES, WELL]) {
    answers.set(query, JSON.stringify((await exec(server, query)).dataset));
  }
  await server.stop();
  return answers;
}

/** Returns the segments of the damaged table. */
function segments(): readonly string[] {
  const tables = join(root, 'db', 't');
  const ids = readdirSync(tables).sort((a, b) => Number(a) - Number(b));
  const directory = join(tables, ids.at(-1) ?? '');
  return readdirSync(directory)
    .filter((name) => name.endsWith('.seg'))
    .map((name) => join(directory, name));
}

async function runRound(random: Random): Promise<string | undefined> {
  await rm(root, { recursive: true, force: true });
  cpSync(good, root, { recursive: true });
  const cut = random.next() < 0.7;
  const victim = random.pick(segments());
  if (!cut) {
    overwrite(victim, random);
  }
  const server = await startTestServer({ root });
  try {
    const size = random.between(0, statSync(victim).size - 1);
    const between = random.next() < 0.3;
    const readers = readFrom(server, random);
    await sleep(random.between(5, 150));
    const before = between ? await readers.end() : undefined;
    if (cut) {
      truncateSync(victim, between ? size : size - (size % PAGE_BYTES));
    }
    const after = between ? readFrom(server, random) : readers;
    await sleep(200);
    const wrong = before ?? (await after.end());
    if (wrong !== undefined) {
      return wrong;
    }
    const well = JSON.stringify((await exec(server, WELL)).dataset);
    return well === expected.get(WELL) ? undefined : `the other table answers ${well}`;
  } finally {
    server.process.kill('SIGKILL');
    await exitCode(server.process);
  }
}

interface Readers {
  /** Stops the queries; resolves to the first wrong answer. */
  end(): Promise<string | undefined>;
}

function readFrom(server: TestServer, random: Random): Readers {
  const state = { over: false };
  const readers = Array.from({ length: READERS }, () => read(server, state, random.fork()));
  return {
    end: async () => {
      state.over = true;
      return (await Promise.all(readers)).find((problem) => problem !== undefined);
    },
  };
}

function overwrite(path: string, random: Random): void {
  const file = openSync(path, 'r+');
  const { size } = statSync(path);
  const offset = random.between(0, size - 1);
  const bytes = Buffer.alloc(random.between(1, 5_000), random.between(0, 255));
  writeSync(file, bytes.subarray(0, size - offset), 0, undefined, offset);
  closeSync(file);
}

async function read(
  server: TestServer,
  state: { over: boolean },
  random: Random,
): Promise<string | undefined> {
  while (!state.over) {
    const query = random.pick(QUERIES);
    try {
      const found = JSON.stringify((await exec(server, query)).dataset);
      if (found !== expected.get(query)) {
        return `${query} answered ${found}, expected ${expected.get(query) ?? ''}`;
      }
      counts.right += 1;
    } catch (error) {
      if (isDisconnected(error)) {
        return `the server exited: ${server.process.signalCode ?? ''} ${server.log().slice(-300)}`;
      }
      counts.refused += 1;
    }
  }
  return undefined;
}

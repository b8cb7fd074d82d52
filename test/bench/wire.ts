/**
 * npm run wire-speed -- [--rows N] [--runs N] [--points N] [--base-port N]
 *
 * Compares PostgreSQL drivers on Tidemark, QuestDB and PostgreSQL, in turn within one run. Measures
 * reading all rows of a five-column table with psycopg (binary) and node-postgres, and the median
 * of a prepared query that finds one row by its time. QuestDB is started by `start_questdb.sh`;
 * PostgreSQL comes from Debian's package. A missing database is reported and skipped.
 */
import { execFile, spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';

import pg from 'pg';

import { startTestServer } from '../golden/server.js';

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    runs: { type: 'string', default: '5' },
    points: { type: 'string', default: '2000' },
    'base-port': { type: 'string', default: '21400' },
  },
});
const rowCount = Number(values.rows);
const runs = Number(values.runs);
const points = Number(values.points);
const basePort = Number(values['base-port']);
const here = new URL('../../../test/bench/', import.meta.url);
const run = promisify(execFile);
const POSTGRES = '/usr/lib/postgresql';
const ALL = 'SELECT ts, id, price, amount, name FROM wire';
const POINT = 'SELECT id, price, name FROM wire WHERE ts = $1';

interface Peer {
  readonly name: string;
  readonly port: number;
  readonly setup: readonly string[];
  stop(): Promise<void>;
}

const START = '2024-01-01T00:00:00.000000Z';
const COLUMNS = `x id, x * 0.25 price, x % 97 amount, 'name-' || (x % 1000) name`;
/** One row per second, generated in the same way on both servers. */
const OURS = [
  'CREATE TABLE wire (ts TIMESTAMP, id LONG, price DOUBLE, amount LONG, name VARCHAR) ' +
    'TIMESTAMP(ts) PARTITION BY DAY',
  `INSERT INTO wire SELECT dateadd('s', x::int, '${START}'), ${COLUMNS} FROM long_sequence(${rowCount})`,
];
const THEIRS = [
  'CREATE TABLE wire (ts TIMESTAMP, id BIGINT, price FLOAT8, amount BIGINT, name VARCHAR)',
  `INSERT INTO wire SELECT timestamp '2024-01-01' + x * interval '1 second', ${COLUMNS} ` +
    `FROM generate_series(1, ${rowCount}) x`,
  'CREATE INDEX ON wire (ts)',
  'VACUUM ANALYZE wire',
];

async function tidemark(): Promise<Peer> {
  const server = await startTestServer();
  const stop = async (): Promise<void> => void (await server.stop());
  return { name: 'Tidemark', port: Number(server.pg.split(':').at(-1)), setup: OURS, stop };
}

async function questdb(): Promise<Peer> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-bench-questdb-'));
  const script = fileURLToPath(new URL('start_questdb.sh', here));
  const ports = [0, 1, 2].map((offset) => String(basePort + offset));
  const { stdout } = await run('bash', [script, root, ...ports]);
  const stop = async (): Promise<void> => {
    process.kill(Number(stdout.trim()));
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    await rm(root, { recursive: true, force: true });
  };
  return { name: 'QuestDB', port: basePort + 1, setup: OURS, stop };
}

/** Starts Debian's newest PostgreSQL version, whose server refuses to run as root. */
async function postgresql(): Promise<Peer> {
  const [version] = readdirSync(POSTGRES).sort((a, b) => Number(b) - Number(a));
  const bin = (name: string): string => join(POSTGRES, version ?? '', 'bin', name);
  if (!existsSync(bin('initdb'))) {
    throw new Error('the package postgresql is not installed');
  }
  const root = await mkdtemp(join(tmpdir(), 'tidemark-bench-postgresql-'));
  const port = basePort + 5;
  const isRoot = process.getuid?.() === 0;
  const as = (...command: string[]): [string, string[]] =>
    isRoot ? ['runuser', ['-u', 'postgres', '--', ...command]] : [command[0] ?? '', command.slice(1)];
  await writeFile(join(root, 'password'), 'quest\n');
  await chmod(join(root, 'password'), 0o644);
  await chmod(root, 0o777);
  const data = join(root, 'data');
  const secret = `--pwfile=${join(root, 'password')}`;
  await run(...as(bin('initdb'), '-D', data, '-U', 'admin', '-A', 'scram-sha-256', secret));
  const set = ['-c', `port=${port}`, '-c', 'listen_addresses=127.0.0.1'];
  const [command, args] = as(
    ...[bin('postgres'), '-D', data, ...set, '-c', `unix_socket_directories=${root}`],
  );
  const child = spawn(command, args, { stdio: 'ignore' });
  const stop = async (): Promise<void> => {
    await run(...as(bin('pg_ctl'), '-D', data, '-m', 'fast', 'stop'));
    child.kill();
    await rm(root, { recursive: true, force: true });
  };
  return { name: 'PostgreSQL', port, setup: THEIRS, stop };
}

const database = (peer: Peer): string => (peer.name === 'PostgreSQL' ? 'postgres' : 'qdb');

async function connect(peer: Peer): Promise<pg.Client> {
  for (let attempt = 1; ; attempt += 1) {
    const client = new pg.Client({
      host: '127.0.0.1',
      port: peer.port,
      user: 'admin',
      password: 'quest',
      database: database(peer),
    });
    // A database that exits while a client is connected must not hide the original error.
    client.on('error', () => undefined);
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (attempt === 50) {
        throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }
}

function median(all: readonly number[]): number {
  return [...all].sort((a, b) => a - b)[all.length >> 1] ?? Number.NaN;
}

async function psycopg(peer: Peer): Promise<number> {
  const program = fileURLToPath(new URL('wire_psycopg.py', here));
  const { stdout } = await run('python3', [program, String(peer.port), database(peer), ALL]);
  const [seconds, rows] = stdout.trim().split(' ').map(Number);
  if (rows !== rowCount || seconds === undefined) {
    throw new Error(`${peer.name}: ${stdout}`);
  }
  return seconds * 1000;
}

async function nodePg(client: pg.Client): Promise<number> {
  const started = performance.now();
  const { rows } = await client.query({ text: ALL, rowMode: 'array' });
  if (rows.length !== rowCount) {
    throw new Error(`${rows.length} rows`);
  }
  return performance.now() - started;
}

/** Measures microseconds per single-row query. */
async function pointQueries(client: pg.Client): Promise<number[]> {
  const micros: number[] = [];
  for (let index = -200; index < points; index += 1) {
    const second = 1 + ((Math.abs(index) * 7_919) % rowCount);
    const when = new Date(Date.parse(START) + second * 1000).toISOString().slice(0, -1);
    const started = performance.now();
    const { rows } = await client.query({ name: 'point', text: POINT, values: [when] });
    if (index >= 0) {
      micros.push((performance.now() - started) * 1000);
    }
    if (rows.length !== 1) {
      throw new Error(`${rows.length} rows at ${when}, expected 1`);
    }
  }
  return micros;
}

const peers: Peer[] = [];
try {
  for (const start of [tidemark, questdb, postgresql]) {
    try {
      peers.push(await start());
    } catch (error) {
      process.stdout.write(`LEFT OUT ${start.name}: ${String(error).split('\n')[0]}\n`);
    }
  }
  const clients = new Map<Peer, pg.Client>();
  for (const peer of peers) {
    const client = await connect(peer);
    for (const text of peer.setup) {
      await client.query(text);
    }
    let count = 0;
    while (count < rowCount) {
      const { rows } = await client.query<[string]>({
        text: 'SELECT count(*) FROM wire',
        rowMode: 'array',
      });
      count = Number(rows[0]?.[0]);
    }
    clients.set(peer, client);
  }
  const times = new Map<string, number[]>();
  const note = (peer: Peer, what: string, all: readonly number[]): void => {
    const key = `${what}|${peer.name}`;
    times.set(key, [...(times.get(key) ?? []), ...all]);
  };
  // The first round is a warm-up.
  for (let round = 0; round <= runs; round += 1) {
    for (const [peer, client] of clients) {
      const measured = [
        ['psycopg, binary, ms', [await psycopg(peer)]],
        ['node-postgres, ms', [await nodePg(client)]],
        ['prepared point query, µs', await pointQueries(client)],
      ] as const;
      for (const [what, all] of measured.filter(() => round > 0)) {
        note(peer, what, all);
      }
    }
  }
  await Promise.all([...clients.values()].map((client) => client.end()));
  const names = peers.map(({ name }) => name);
  process.stdout.write(`| ${rowCount} rows × 5, medians of ${runs} | ${names.join(' | ')} |\n`);
  process.stdout.write(`|---|${names.map(() => '---|').join('')}\n`);
  for (const what of new Set([...times.keys()].map((key) => key.split('|')[0] ?? ''))) {
    const cells = names.map((name) => median(times.get(`${what}|${name}`) ?? []).toFixed(0));
    process.stdout.write(`| ${what} | ${cells.join(' | ')} |\n`);
  }
} finally {
  for (const peer of peers) {
    await peer.stop().catch((error: unknown) => process.stdout.write(`${String(error)}\n`));
  }
}

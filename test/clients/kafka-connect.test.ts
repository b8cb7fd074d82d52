/** Kafka Connect with the configuration of `docs/connect/kafka-connect.md`. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { ADMIN, exec, rows, run as runAll, startAccessServer } from '../access/harness.js';
import { freePort } from '../free-port.js';
import type { TestServer } from '../golden/server.js';
import { until } from '../until.js';
import type { Scope } from './daemon.js';
import { Broker, isKafkaInstalled, Worker } from './kafka.js';
import {
  at,
  type Fields,
  logical,
  message,
  optional,
  reading,
  START_MS,
  text,
} from './kafka-messages.js';
import { adapt, blocksOf } from './pages.js';
import { skip } from './tools.js';

const PAGE = 'kafka-connect';
const CONNECTORS = ['readings', 'events', 'devices', 'kinds'];

let server: TestServer;
let broker: Broker;
let worker: Worker;
let folder = '';
let isInstalled = false;
/** The same ports before and after a restart of the server. */
let ports: readonly string[] = [];
const stops: (() => unknown)[] = [];
const scope: Scope = { teardown: (stop) => stops.unshift(stop) };

const key = (second: number, sensor: string): string =>
  message({ ts: at(second), sensor: text(sensor) });

/** Every type of a schema, with a value and without. */
const KINDS: Fields = {
  bool: [{ type: 'boolean' }, true],
  i8: [{ type: 'int8' }, 1],
  i16: [{ type: 'int16' }, 2],
  i32: [{ type: 'int32' }, 3],
  i64: [{ type: 'int64' }, 4],
  f32: [{ type: 'float' }, 0.5],
  f64: [{ type: 'double' }, 1.5],
  s: [{ type: 'string' }, 'text'],
  bytes: [{ type: 'bytes' }, 'AQI='],
  dec: [
    logical('bytes', 'Decimal', {
      parameters: { scale: '2', 'connect.decimal.precision': '10' },
    }),
    'BNI=',
  ],
  day: [logical('int32', 'Date'), 20_454],
  time: [logical('int32', 'Time'), 3_600_000],
  other: [logical('int64', 'Timestamp'), START_MS],
};

/** The page's properties, for this test's servers. */
async function properties(): Promise<string[]> {
  const known: Readonly<Record<string, string>> = {
    '127.0.0.1:9092': broker.address,
    '127.0.0.1:8812': server.pg,
    '/var/lib/kafka-connect/offsets': join(folder, 'offsets'),
    '/opt/connectors': join(folder, 'connectors'),
  };
  const blocks = await blocksOf(PAGE, 'properties');
  return blocks.map((block) => {
    const own = Object.entries(known).filter(([value]) => block.includes(value));
    return adapt(block, Object.fromEntries(own));
  });
}

async function startServer(): Promise<TestServer> {
  return await startAccessServer(join(folder, 'root'), ...ports);
}

/** Sends the first messages of every topic, because a sink looks for new topics rarely. */
async function sendFirst(): Promise<void> {
  const [example = ''] = await blocksOf(PAGE, 'json');
  await broker.send('readings', [
    JSON.stringify(JSON.parse(example)),
    reading(1, 'south', 2.5),
    reading(0, 'north', 9.5),
  ]);
  const kind = (second: number): string =>
    message({ ts: at(second), kind: text('start'), level: [{ type: 'int32' }, second] });
  await broker.send('events', [kind(1), kind(2)]);
  const row = (second: number, sensor: string): string =>
    `${key(second, sensor)}\t${reading(second, sensor, second)}`;
  await broker.send('devices', [row(1, 'north'), row(2, 'north'), row(1, 'south')]);
  const empty = Object.entries(KINDS).map(([name, [schema]]) => [name, [optional(schema), null]]);
  const full = Object.entries(KINDS).map(([name, [schema, value]]) => [
    name,
    [optional(schema), value],
  ]);
  const kinds = [full, empty].map((fields, second) =>
    message({ ts: at(second), sensor: text('x'), ...(Object.fromEntries(fields) as Fields) }),
  );
  await broker.send('kinds', kinds);
}

test.before(async () => {
  isInstalled = await isKafkaInstalled();
  if (!isInstalled) {
    return;
  }
  folder = await mkdtemp(join(tmpdir(), 'tidemark-kafka-'));
  ports = [`http.bind.to=127.0.0.1:${await freePort()}`];
  ports = [...ports, `pg.net.bind.to=127.0.0.1:${await freePort()}`];
  await mkdir(join(folder, 'connectors'));
  server = await startServer();
  const sql = await blocksOf(PAGE, 'sql');
  const statements = sql.flatMap((block) => block.split(/;\s*$/m)).map((one) => one.trim());
  await runAll(server, ...statements.filter((one) => one !== ''));
  broker = await Broker.start(scope, folder);
  await sendFirst();
  const [common = '', readings = '', events = '', deletes = '', time = ''] = await properties();
  worker = await Worker.start(scope, folder, common, [
    readings,
    events,
    `${readings}${deletes}name=devices\ntopics=devices\n`,
    `${readings}${time}name=kinds\ntopics=kinds\n`,
  ]);
});
test.after.always(async () => {
  for (const stop of stops) {
    await stop();
  }
  if (isInstalled) {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
});

function isMissing(t: ExecutionContext): boolean {
  t.timeout(120_000);
  if (!isInstalled) {
    skip(t, 'Kafka Connect is not installed: node scripts/setup-tests.mjs');
  }
  return !isInstalled;
}

/** Waits until a query returns these rows; throws if a connector fails first. */
async function shows(
  query: string,
  expected: readonly (readonly unknown[])[],
  ...more: readonly string[]
): Promise<void> {
  let found = '';
  const holds = async (): Promise<boolean> => {
    for (const connector of [...CONNECTORS, ...more]) {
      const failure = await worker.failure(connector);
      if (failure !== null) {
        throw new Error(`${connector}: ${failure}`);
      }
    }
    const { dataset, error } = await exec(server, ADMIN, query);
    found = error ?? JSON.stringify(dataset);
    return found === JSON.stringify(expected);
  };
  await until(holds, query).catch((error: unknown) => {
    throw new Error(`${found}\n${worker.output().slice(-20_000)}`, { cause: error });
  });
}

const stored = (second: number): string =>
  new Date(START_MS + second * 1000).toISOString().replace('Z', '000Z');

test.serial('upserts store each key once and create the table with keys', async (t) => {
  if (isMissing(t)) {
    return;
  }
  await shows('SELECT ts, sensor, value FROM readings', [
    [stored(0), 'north', 9.5],
    [stored(1), 'south', 2.5],
  ]);
  const [[create = ''] = []] = await rows(server, ADMIN, 'SHOW CREATE TABLE readings');
  t.regex(String(create), /TIMESTAMP\(ts\) PARTITION BY DAY\s+DEDUP UPSERT KEYS\(ts,sensor\)/i);
});

test.serial('inserts write into a table that exists', async (t) => {
  if (isMissing(t)) {
    return;
  }
  await shows('SELECT ts, kind, level FROM events', [
    [stored(1), 'start', 1],
    [stored(2), 'start', 2],
  ]);
  t.pass();
});

test.serial('a message without a value deletes the row of its key', async (t) => {
  if (isMissing(t)) {
    return;
  }
  const query = 'SELECT ts, sensor, value FROM devices';
  await shows(query, [
    [stored(1), 'north', 1],
    [stored(1), 'south', 1],
    [stored(2), 'north', 2],
  ]);
  const changed = `${key(1, 'south')}\t${reading(1, 'south', 7)}`;
  await broker.send('devices', [`${key(2, 'north')}\tNULL`, changed, `${key(1, 'north')}\tNULL`]);
  await shows(query, [[stored(1), 'south', 7]]);
  t.pass();
});

test.serial('a new field becomes a column', async (t) => {
  if (isMissing(t)) {
    return;
  }
  const note = [optional({ type: 'string' }), 'new'] as const;
  await broker.send('readings', [
    reading(2, 'south', 3.5),
    reading(3, 'south', 4.5, { note }),
    reading(4, 'south', 5.5),
  ]);
  await shows('SELECT value, note FROM readings WHERE ts > 1767261601000000', [
    [3.5, null],
    [4.5, 'new'],
    [5.5, null],
  ]);
  t.pass();
});

test.serial('each type of a schema becomes the column type of the page', async (t) => {
  if (isMissing(t)) {
    return;
  }
  const last = ['2026-01-01T00:00:00.000Z', '01:00:00', stored(0)];
  const names = Object.keys(KINDS).filter((name) => name !== 'bytes');
  await shows(`SELECT length(bytes), ${names.join(', ')} FROM kinds`, [
    [2, true, 1, 2, 3, 4, 0.5, 1.5, 'text', '12.34', ...last],
    [-1, false, 0, 0, ...Array<null>(9).fill(null)],
  ]);
  const types = await rows(server, ADMIN, `SELECT "column", type FROM table_columns('kinds')`);
  t.deepEqual(Object.fromEntries(types), {
    ts: 'TIMESTAMP',
    sensor: 'STRING',
    bool: 'BOOLEAN',
    i8: 'SHORT',
    i16: 'SHORT',
    i32: 'INT',
    i64: 'LONG',
    f32: 'FLOAT',
    f64: 'DOUBLE',
    s: 'STRING',
    bytes: 'BINARY',
    dec: 'DECIMAL(10,2)',
    day: 'DATE',
    time: 'STRING',
    other: 'TIMESTAMP',
  });
});

test.serial('messages that arrive again are stored once', async (t) => {
  if (isMissing(t)) {
    return;
  }
  const query = 'SELECT ts, sensor, value, note FROM readings';
  const before = await rows(server, ADMIN, query);
  t.is(before.length, 5);
  // The row of the last message returns when all messages have arrived again.
  await runAll(server, `DELETE FROM readings WHERE ts = '${stored(4)}'`);
  const [, readings = ''] = await properties();
  await worker.add('again', readings);
  await shows(query, before, 'again');
});

test.serial('messages that arrive while the server is down are stored later', async (t) => {
  if (isMissing(t)) {
    return;
  }
  await server.stop();
  await broker.send('readings', [reading(10, 'late', 1), reading(11, 'late', 2)]);
  server = await startServer();
  await shows("SELECT value FROM readings WHERE sensor = 'late'", [[1], [2]]);
  t.pass();
});

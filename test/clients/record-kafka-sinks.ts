/**
 * Records what JDBC sinks of Kafka Connect send, for sinks that are not in a package registry:
 * `npm run record-kafka-sinks -- NAME=PACKAGE=CLASSPATH…`. The test replays the recording.
 * Needed only if the page's configuration changes.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp } from 'node:fs/promises';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ADMIN, exec, run as runAll, startAccessServer } from '../access/harness.js';
import { until } from '../until.js';
import type { Scope } from './daemon.js';
import { Broker, Worker } from './kafka.js';
import { reading } from './kafka-messages.js';
import { adapt, blocksOf } from './pages.js';
import { type RecordedSink, SINKS_FILE } from './kafka-sinks.js';

/** SSLRequest and GSSENCRequest, which precede the start-up message. */
const NEGOTIATIONS = new Set([80_877_103, 80_877_104]);

/** Returns a connection's messages after the login, grouped up to each Sync or Query. */
function groupsOf(bytes: Buffer): string[] {
  let at = 0;
  while (NEGOTIATIONS.has(bytes.readInt32BE(at + 4))) {
    at += bytes.readInt32BE(at);
  }
  at += bytes.readInt32BE(at);
  const groups: string[] = [];
  let start = at;
  while (at < bytes.length) {
    const type = String.fromCharCode(bytes[at] ?? 0);
    at += 1 + bytes.readInt32BE(at + 1);
    if (type === 'p') {
      start = at;
    } else if (type === 'S' || type === 'Q') {
      groups.push(bytes.toString('base64', start, at));
      start = at;
    }
  }
  return groups;
}

/** Forwards connections to the server and stores what clients send. */
async function proxyTo(port: number, connections: Buffer[][]): Promise<Server> {
  const proxy = createServer((socket) => {
    const upstream = connect(port, '127.0.0.1');
    const chunks: Buffer[] = [];
    connections.push(chunks);
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.pipe(upstream).pipe(socket);
    socket.on('error', () => upstream.destroy());
    upstream.on('error', () => socket.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  return proxy;
}

async function record(sink: string, classpath: string): Promise<RecordedSink> {
  const stops: (() => unknown)[] = [];
  const scope: Scope = { teardown: (stop) => stops.unshift(stop) };
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-record-'));
  await mkdir(join(folder, 'connectors'));
  const server = await startAccessServer();
  const [account = ''] = await blocksOf('kafka-connect', 'sql');
  await runAll(server, ...account.split(/;\s*/).filter((one) => one !== ''));
  const connections: Buffer[][] = [];
  const proxy = await proxyTo(Number(server.pg.split(':').at(-1)), connections);
  const { port } = proxy.address() as AddressInfo;
  const broker = await Broker.start(scope, folder);
  const stores = async (query: string, count: number): Promise<void> => {
    const found = async (): Promise<boolean> =>
      (await exec(server, ADMIN, query)).dataset?.length === count;
    await until(found, query);
  };
  const blocks = await blocksOf('kafka-connect', 'properties');
  const config = blocks.at(-1) ?? '';
  const worker = adapt(blocks[0] ?? '', {
    '127.0.0.1:9092': broker.address,
    '/var/lib/kafka-connect/offsets': join(folder, 'offsets'),
    '/opt/connectors': join(folder, 'connectors'),
  });
  const values = { '127.0.0.1:8812': `127.0.0.1:${port}`, 'io.confluent': sink };
  await broker.send('readings', [reading(0, 'north', 1.5), reading(1, 'south', 2.5)]);
  await Worker.start(scope, folder, worker, [adapt(config, values)], classpath);
  await stores('SELECT * FROM readings', 2);
  const note = [{ type: 'string', optional: true }, 'new'] as const;
  await broker.send('readings', [reading(0, 'north', 9.5, { note }), reading(2, 'south', 3.5)]);
  await stores('SELECT * FROM readings', 3);
  for (const stop of stops) {
    await stop();
  }
  proxy.close();
  await server.stop();
  return { config, connections: connections.map((chunks) => groupsOf(Buffer.concat(chunks))) };
}

const recorded = JSON.parse(readFileSync(SINKS_FILE, 'utf8')) as Record<string, RecordedSink>;
for (const argument of process.argv.slice(2)) {
  const [name = '', vendor = '', classpath = ''] = argument.split('=');
  recorded[name] = await record(vendor, classpath);
}
writeFileSync(SINKS_FILE, `${JSON.stringify(recorded, null, 2)}\n`);

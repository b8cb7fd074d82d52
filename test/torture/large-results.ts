/**
 * npm run large-results -- [--rows N] [--most MIB] [--pause MS] [--seed S]
 *
 * One large result in every format, for a client that reads at full speed and for one that pauses.
 * In both cases the server buffers little and the complete result arrives.
 */
import { request } from 'node:http';
import { createGunzip } from 'node:zlib';

import { startTestServer } from '../golden/server.js';
import { exec } from './client.js';
import { Harness, sleep } from './harness.js';
import { residentBytes } from './process.js';

const MIB = 1024 * 1024;
const POLL_MS = 20;
const TIMEOUT = { 'Statement-Timeout': '1200000' };

interface Case {
  readonly name: string;
  readonly target: string;
  readonly gzip?: boolean;
  /** Expected end of the response. */
  readonly end: string;
  /** Additional MiB that this format may use, for row groups and a codec in each thread. */
  readonly besides?: number;
}

const harness: Harness = new Harness('large-results', ['rows', 'most', 'pause']);
const rows = harness.number('rows', 10_000_000);
const maximum = harness.number('most', 64);
const pauseMs = harness.number('pause', 3_000);
const server = await startTestServer();
await exec(
  server,
  `CREATE TABLE t AS (SELECT x k, x * 0.5 v, 'name ' || (x % 1000) s,
   timestamp_sequence(0, 1000000) ts FROM long_sequence(${rows})) TIMESTAMP(ts) PARTITION BY MONTH`,
  600_000,
);
const QUERY = encodeURIComponent('SELECT k, v, s, ts FROM t');
const CASES: readonly Case[] = [
  { name: 'JSON', target: `/exec?query=${QUERY}`, end: `],"count":${rows}}` },
  { name: 'JSON in gzip', target: `/exec?query=${QUERY}`, gzip: true, end: `],"count":${rows}}` },
  { name: 'CSV', target: `/exp?query=${QUERY}`, end: '"\r\n' },
  { name: 'Parquet', target: `/exp?fmt=parquet&query=${QUERY}`, end: 'PAR1', besides: 128 },
];
// Warms up threads and caches before measuring.
for (const test of CASES) {
  await download({ ...test, target: `${test.target}%20LIMIT%20100000` }, 0);
}
for (const test of CASES) {
  for (const pause of [0, pauseMs]) {
    harness.judge(await runCase(test, pause));
  }
}
await server.stop();
harness.finish();

async function runCase(test: Case, pause: number): Promise<string | undefined> {
  const before = residentBytes(server);
  let peak = before;
  const watch = setInterval(() => {
    peak = Math.max(peak, residentBytes(server));
  }, POLL_MS);
  const started = performance.now();
  const { bytes, end } = await download(test, pause);
  clearInterval(watch);
  const name = pause === 0 ? test.name : `${test.name}, reader pauses ${pause} ms`;
  const grown = ((peak - before) / MIB).toFixed(1);
  const took = ((performance.now() - started) / 1000).toFixed(1);
  harness.say(`${name}: ${Math.round(bytes / MIB)} MiB in ${took} s, ${grown} MiB more held`);
  if (!end.endsWith(test.end)) {
    return `${name}: the end is '${end}', expected '${test.end}'`;
  }
  const limit = maximum + (test.besides ?? 0);
  return peak - before > limit * MIB ? `${name}: ${grown} MiB more, at most ${limit}` : undefined;
}

interface Download {
  /** Number of decoded bytes received. */
  readonly bytes: number;
  readonly end: string;
}

/** Reads a complete response, with a pause after the first MiB. */
async function download({ target, gzip = false }: Case, pause: number): Promise<Download> {
  const headers = gzip ? { ...TIMEOUT, 'Accept-Encoding': 'gzip' } : TIMEOUT;
  return await new Promise((resolve, reject) => {
    const call = request(`${server.url}${target}`, { headers }, (response) => {
      const body = gzip ? response.pipe(createGunzip()) : response;
      response.on('error', reject);
      readAll(body, pause).then(resolve, reject);
    });
    call.on('error', reject).end();
  });
}

async function readAll(body: AsyncIterable<unknown>, pause: number): Promise<Download> {
  let bytes = 0;
  let tail = Buffer.alloc(0);
  let paused = pause === 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    tail = Buffer.concat([tail.subarray(-32), chunk.subarray(-32)]);
    if (!paused && bytes > MIB) {
      paused = true;
      await sleep(pause);
    }
  }
  return { bytes, end: tail.subarray(-32).toString('latin1') };
}

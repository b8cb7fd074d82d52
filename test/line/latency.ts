/**
 * npm run line-latency -- [--clients N] [--rows N] [--batches N] [--every MS] [--rounds N]
 *     [--mode sync] [--folder DIR]
 *
 * Measures the time until a batch of lines over HTTP is acknowledged, with N concurrent clients.
 * First, each client sends batches at a fixed interval. Then each sends its next batch as soon as
 * it has the response, which yields the maximum throughput. A separate server runs in DIR. For
 * comparison, fdatasync of another file in DIR is measured. Commit and request times come from the
 * server's metrics. The rows of a batch are in time order.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { startTestServer } from '../golden/server.js';
import { line, sendBodies } from './load.js';

const { values } = parseArgs({
  options: {
    clients: { type: 'string', default: '16' },
    rows: { type: 'string', default: '1000' },
    batches: { type: 'string', default: '1600' },
    every: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '3' },
    folder: { type: 'string', default: tmpdir() },
    mode: { type: 'string', default: 'sync' },
  },
});
const [rows, batches] = [Number(values.rows), Number(values.batches)];
const SYNC_EVERY_MS = 20;
/** Approximate size of a batch in the log. */
const SYNCED_BYTES = 64 * 1024;

const folder = mkdtempSync(join(values.folder, 'tidemark-latency-'));
process.once('exit', () => {
  rmSync(folder, { recursive: true, force: true });
});

function shown(times: readonly number[]): string {
  const at = (fraction: number): string =>
    (times[Math.min(times.length - 1, Math.floor(times.length * fraction))] ?? 0).toFixed(2);
  return `p50 ${at(0.5)} ms, p90 ${at(0.9)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms`;
}

/** Writes to a file while `work` runs, and returns the sorted fdatasync times in milliseconds. */
async function syncsBeside(work: Promise<unknown>): Promise<readonly number[]> {
  const file = await open(join(folder, 'synced'), 'w');
  const bytes = Buffer.alloc(SYNCED_BYTES, 1);
  const times: number[] = [];
  const state = { isOver: false };
  const over = work.finally(() => {
    state.isOver = true;
  });
  // Overwrites the file instead of appending to it, because writes to the log do not extend its
  // file either.
  await file.write(bytes, 0, bytes.length, 0);
  await file.datasync();
  while (!state.isOver) {
    await file.write(bytes, 0, bytes.length, 0);
    const began = performance.now();
    await file.datasync();
    times.push(performance.now() - began);
    await Promise.race([over, sleep(SYNC_EVERY_MS)]);
  }
  await file.close();
  return times.sort((a, b) => a - b);
}

function bodies(round: number): Buffer[] {
  return Array.from({ length: batches }, (_, batch) => {
    const first = (round * batches + batch) * rows;
    return Buffer.from(Array.from({ length: rows }, (__, at) => line(first + at)).join(''));
  });
}

const server = await startTestServer({
  root: join(folder, 'root'),
  set: [`cairo.commit.mode=${values.mode}`, 'metrics.enabled=true'],
});

/** Returns the sums and counts of the server's histograms for lines over HTTP, and its CPU time. */
async function figures(): Promise<ReadonlyMap<string, number>> {
  const text = await fetch(`${server.url}/metrics`).then((response) => response.text());
  const found = text.matchAll(/^tidemark_ingest_(\w+)\{protocol="line_http"\} (\S+)$/gm);
  const cpu = /^process_cpu_seconds_total (\S+)$/m.exec(text)?.[1];
  return new Map([
    ...[...found].map(([, name = '', value]) => [name, Number(value)] as const),
    ['cpu_sum', Number(cpu)],
  ]);
}

async function measure(name: string, all: readonly Buffer[], everyMs: number): Promise<void> {
  const before = await figures();
  const own = process.cpuUsage();
  const load = sendBodies(server.url, all, Number(values.clients), everyMs);
  const disk = await syncsBeside(load);
  const { seconds, times } = await load;
  const { user, system } = process.cpuUsage(own);
  const after = await figures();
  const each = (what: string): string => {
    const spent = (after.get(`${what}_sum`) ?? 0) - (before.get(`${what}_sum`) ?? 0);
    return ((spent * 1_000) / all.length).toFixed(2);
  };
  process.stdout.write(
    `${name}: ${shown(times)}; ${Math.round((rows * all.length) / seconds)} rows/s\n` +
      `  an fdatasync of ${SYNCED_BYTES / 1024} KiB meanwhile: ${shown(disk)}\n` +
      `  mean of a batch: commit ${each('commit_seconds')} ms, ` +
      `request ${each('request_seconds')} ms; CPU time of the server ${each('cpu')} ms, ` +
      `of the clients ${((user + system) / 1_000 / all.length).toFixed(2)} ms\n`,
  );
}

try {
  const warm = bodies(0).slice(0, 200);
  await sendBodies(server.url, warm, Number(values.clients));
  for (let round = 1; round <= Number(values.rounds); round += 1) {
    const every = Number(values.every);
    await measure(`a batch each ${every} ms`, bodies(2 * round), every);
    await measure('one after the other', bodies(2 * round + 1), 0);
  }
} finally {
  await server.stop();
}

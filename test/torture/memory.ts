/**
 * npm run memory -- [--rows N] [--pool MIB] [--latency MS] [--seed S]
 *
 * Queries that need many times their memory limit. Each spills and is correct, or fails with an
 * error that names memory. The process stays within the pool plus 256 MiB, `SELECT 1` from another
 * client is answered within the time limit, and the memory is released. Then rows are written
 * faster than they can be compacted: writes are throttled, and nothing acknowledged is missing.
 */
import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, Refused } from './client.js';
import { Harness, quantile, sleep } from './harness.js';
import { residentBytes, spilledFiles } from './process.js';

const MIB = 1024 * 1024;
/** How far the process's memory may exceed the pool. */
const SLACK_BYTES = 256 * MIB;
const BACK_MS = 10_000;
const QUERY_MS = 600_000;
const NAMED = /out of memory for queries|memory is low|stopped as the largest query|disk full/;

interface Case {
  readonly name: string;
  readonly query: string;
  /** The single row that the result must have. */
  readonly expected: readonly unknown[];
}

const harness: Harness = new Harness('memory', ['rows', 'pool', 'latency']);
const rows = harness.number('rows', 50_000_000);
const pool = harness.number('pool', 256);
const latencyMs = harness.number('latency', 50);
const server = await startTestServer({
  set: [`query.memory.pool=${pool}M`, `query.memory.limit=${pool}M`, 'query.timeout=10m'],
});
await exec(server, tableOf('big', rows), QUERY_MS);
await warmUp();
const watched = { peak: 0, over: false, latencies: [] as number[] };
const watchers = [watchMemory(), watchLatency()];
const before = residentBytes(server);
for (const test of casesOf('big', rows)) {
  harness.judge(await runCase(test));
}
await judgeConcurrent();
watched.over = true;
await Promise.all(watchers);
judgeLatency();
await server.stop();
await judgeWrites();
harness.finish();

/** Warms up threads and caches before measuring. */
async function warmUp(): Promise<void> {
  const few = Math.max(1, Math.floor(rows / 10));
  await exec(server, tableOf('few', few), QUERY_MS);
  await Promise.all(casesOf('few', few).map(({ query }) => answerOf(query)));
}

function tableOf(table: string, count: number): string {
  const columns = `x k, (x * 7919) % ${count} v, 'name ' || x s, timestamp_sequence(0, 1000) ts`;
  return `CREATE TABLE ${table} AS (SELECT ${columns} FROM long_sequence(${count}))
    TIMESTAMP(ts) PARTITION BY DAY`;
}

function casesOf(table: string, count: number): Case[] {
  const n = BigInt(count);
  const triangle = Number((n * (n + 1n)) / 2n);
  const groups = `SELECT k, v, count() c FROM ${table} GROUP BY k, v`;
  const ranks = `SELECT row_number() OVER (ORDER BY v, k) r FROM ${table}`;
  const texts = `SELECT s, count() c FROM ${table} GROUP BY s`;
  const sequence = `SELECT row_number() OVER (ORDER BY x DESC) r FROM long_sequence(${count})`;
  const bytes = `SELECT length(string_agg(s, ',')) FROM ${table}`;
  return [
    { name: 'groups', query: `SELECT count(), sum(c) FROM (${groups})`, expected: [count, count] },
    { name: 'texts', query: `SELECT count(), sum(c) FROM (${texts})`, expected: [count, count] },
    { name: 'sort', query: `SELECT sum(r) FROM (${ranks})`, expected: [triangle] },
    {
      name: 'join',
      query: `SELECT count() FROM ${table} a JOIN ${table} b ON a.k = b.k`,
      expected: [count],
    },
    { name: 'distinct', query: `SELECT count_distinct(k) FROM ${table}`, expected: [count] },
    { name: 'sequence', query: `SELECT sum(r) FROM (${sequence})`, expected: [triangle] },
    { name: 'one text', query: bytes, expected: [lengthOfNames(count)] },
  ];
}

/** Returns the total length of all names, including separating commas. */
function lengthOfNames(count: number): number {
  let digits = 0;
  for (let low = 1, width = 1; low <= count; low *= 10, width += 1) {
    digits += (Math.min(count, low * 10 - 1) - low + 1) * width;
  }
  return digits + 'name ,'.length * count - 1;
}

async function runCase({ name, query, expected }: Case): Promise<string | undefined> {
  watched.peak = 0;
  const started = performance.now();
  const outcome = await answerOf(query);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  const peak = watched.peak;
  harness.say(`${name}: ${outcome} in ${seconds} s, at most ${mib(peak)} MiB`);
  if (outcome !== JSON.stringify(expected) && !NAMED.test(outcome)) {
    return `${name}: expected ${JSON.stringify(expected)}, found ${outcome}`;
  }
  if (peak > before + pool * MIB + SLACK_BYTES) {
    return `${name}: ${mib(peak)} MiB with a pool of ${pool} MiB, ${mib(before)} MiB at rest`;
  }
  return await comesBack(name);
}

async function answerOf(query: string): Promise<string> {
  try {
    const { dataset } = await exec(server, query, QUERY_MS);
    return JSON.stringify(dataset[0]);
  } catch (error) {
    if (error instanceof Refused) {
      return error.message;
    }
    return `no answer: ${String(error)}`;
  }
}

/**
 * Waits until memory and temporary files are released. The allocator returns pages when a thread
 * next allocates, so another client runs small queries in the meantime.
 */
async function comesBack(name: string): Promise<string | undefined> {
  const maximum = before * 1.2 + 64 * MIB;
  const end = performance.now() + BACK_MS;
  while (performance.now() < end) {
    if (residentBytes(server) <= maximum && spilledFiles(server) === 0) {
      return undefined;
    }
    await exec(server, 'SELECT count() FROM (SELECT k, count() FROM few GROUP BY k)');
    await sleep(50);
  }
  const resident = mib(residentBytes(server));
  return `${name}: ${resident} MiB and ${spilledFiles(server)} files remain, ${mib(before)} before`;
}

/**
 * Several concurrent queries share the pool. Each is correct or fails with a named limit, whatever
 * happens to the others.
 */
async function judgeConcurrent(): Promise<void> {
  watched.peak = 0;
  const cases = casesOf('big', rows).slice(0, 4);
  const outcomes = await Promise.all(cases.map(({ query }) => answerOf(query)));
  for (const [index, outcome] of outcomes.entries()) {
    const expected = JSON.stringify(cases[index]?.expected);
    const wrong = outcome !== expected && !NAMED.test(outcome);
    harness.judge(wrong ? `concurrent queries: expected ${expected}, found ${outcome}` : undefined);
  }
  const over = watched.peak > before + pool * MIB + SLACK_BYTES;
  harness.judge(over ? `concurrent queries: ${mib(watched.peak)} MiB` : undefined);
  harness.judge(await comesBack('at once'));
}

async function watchMemory(): Promise<void> {
  while (!watched.over) {
    watched.peak = Math.max(watched.peak, residentBytes(server));
    await sleep(10);
  }
}

async function watchLatency(): Promise<void> {
  while (!watched.over) {
    const started = performance.now();
    await exec(server, 'SELECT 1');
    watched.latencies.push(performance.now() - started);
    await sleep(20);
  }
}

function judgeLatency(): void {
  const [p50, p99] = [0.5, 0.99].map((fraction) => quantile(watched.latencies, fraction));
  harness.say(`SELECT 1 meanwhile: p50 ${p50?.toFixed(1)} ms, p99 ${p99?.toFixed(1)} ms`);
  const late = (p99 ?? Infinity) > latencyMs;
  harness.judge(late ? `SELECT 1 takes more than ${latencyMs} ms (p99)` : undefined);
}

/**
 * The number of rows waiting for compaction is limited: writers are throttled or refused, and no
 * row is lost.
 */
async function judgeWrites(): Promise<void> {
  const limited = await startTestServer({
    set: ['cairo.unwritten.limit=4M', 'cairo.commit.mode=nosync'],
  });
  await exec(limited, 'CREATE TABLE t (x LONG, s VARCHAR, ts TIMESTAMP) TIMESTAMP(ts)');
  let [written, refused] = [0, 0];
  const value = `'${'x'.repeat(200)}'`;
  const write = async (first: number): Promise<void> => {
    for (let batch = 0; batch < 10; batch += 1) {
      const at = (row: number): number => first + batch * 500 + row;
      const values = Array.from({ length: 500 }, (_, row) => `(${at(row)}, ${value}, ${at(row)})`);
      try {
        await post(limited, `INSERT INTO t VALUES ${values.join()}`);
        written += 500;
      } catch (error) {
        refused += 1;
        if (!(error instanceof Refused) || !error.message.includes('memory is full')) {
          harness.fail(`a write with little memory: ${String(error)}`);
        }
      }
    }
  };
  await Promise.all(Array.from({ length: 8 }, (_, client) => write(client * 1_000_000)));
  const { dataset } = await exec(limited, 'SELECT count() FROM t');
  harness.say(`${written} rows written, ${refused} batches refused`);
  const found = dataset[0]?.[0];
  harness.judge(found === written ? undefined : `${written} rows written, ${String(found)} found`);
  await limited.stop();
}

async function post(target: TestServer, query: string): Promise<void> {
  const body = new URLSearchParams({ query });
  const response = await fetch(`${target.url}/exec`, { method: 'POST', body });
  const text = await response.text();
  if (!response.ok) {
    throw new Refused(response.status, text.slice(-300));
  }
}

function mib(bytes: number): number {
  return Math.round(bytes / MIB);
}

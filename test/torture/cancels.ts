/**
 * npm run cancels -- [--count N] [--rows N] [--within MS] [--seed S]
 *
 * Ends running queries at random times in every possible way: closed socket, CancelRequest, CANCEL
 * QUERY, statement timeout, and the columnar protocol's CANCEL and timeout. The query must end
 * within the time limit, use no further CPU time, leave no temporary file, and release its memory.
 */
import { once } from 'node:events';
import { request } from 'node:http';

import { startTestServer } from '../golden/server.js';
import { clientMessage, RawClient, startup } from '../pgwire/raw-client.js';
import { STATUS } from '../qwp/messages.js';
import { ReadClient } from '../qwp/read-client.js';
import { exec, Refused } from './client.js';
import { Harness, quantile, type Random, sleep } from './harness.js';
import { cpuTicks, residentBytes, spilledFiles } from './process.js';

const CANCEL_CODE = 80_877_102;
const GONE_MS = 5_000;
/**
 * How long CPU time is observed, in milliseconds, and the maximum CPU time of an idle server, in
 * ticks of 10 ms.
 */
const IDLE_MS = 500;
const MAX_IDLE_TICKS = 25;
const GROWTH_BYTES = 256 * 1024 * 1024;
/**
 * A thread returns freed memory to the system only when it next allocates, which may be seconds
 * later.
 */
const BACK_MS = 10_000;
const WAYS = ['socket', 'request', 'statement', 'timeout', 'columns', 'columns timeout'] as const;

const harness: Harness = new Harness('cancels', ['count', 'rows', 'within']);
const count = harness.number('count', 1_000);
const rows = harness.number('rows', 3_000_000);
const withinMs = harness.number('within', 100);
const server = await startTestServer({
  set: ['pg.auth.method=cleartext', 'query.memory.pool=256M', 'query.memory.limit=64M'],
});
await exec(
  server,
  `CREATE TABLE t AS (SELECT x k, (x * 7919) % 1000003 v, 'text of row ' || x s,
   timestamp_sequence(0, 1000000) ts FROM long_sequence(${rows})) TIMESTAMP(ts) PARTITION BY DAY`,
);
const QUERIES = [
  'SELECT count() FROM t a CROSS JOIN t b WHERE a.k + b.k = -1',
  'SELECT sum(r) FROM (SELECT row_number() OVER (ORDER BY v, k) r FROM t a)',
  'SELECT * FROM (SELECT * FROM t ORDER BY v, k DESC) WHERE k = -1',
  `SELECT count() FROM t WHERE s ~ '(t|e|x|)+(o|f|)* (.|..|...)+(r|o|w)+ 9.*x'`,
  'SELECT count() FROM (SELECT s, v, count() c FROM t GROUP BY s, v)',
  'SELECT sum(x) FROM long_sequence(100000000000)',
  // Joins with very many matches per row, which are returned or filtered out.
  'SELECT count() FROM t a JOIN t b ON a.k % 10 = b.k % 10',
  'SELECT count() FROM t a JOIN t b ON a.k % 100 = b.k % 100 WHERE a.v + b.v < 0',
  'SELECT count() FROM t a LEFT JOIN t b ON a.k % 10 = b.k % 10 AND a.v + b.v < 0',
  'SELECT sum(a.k * b.v) FROM t a CROSS JOIN t b',
  'SELECT max(a.s || b.s) FROM t a JOIN t b ON a.k % 50 = b.k % 50',
  'SELECT a.v, count() FROM t a JOIN t b ON a.k % 20 = b.k % 20 GROUP BY a.v',
  // Functions over long strings, aggregates that store them, and windows.
  `SELECT max(length(replace(rpad(s, 100000, 'ab'), 'a', 'ccc'))) FROM t`,
  `SELECT count() FROM t WHERE rpad(s, 100000, 'abc') ~ '(a|b|c|x)*(.|..)+[^abc]$'`,
  `SELECT count_distinct(rpad(s, 1000, 'ab')) FROM t`,
  `SELECT max(ltrim(rpad(s, 100000, 'te'), 'text of row ')) FROM t`,
  'SELECT max(r) FROM (SELECT percentile(v, 0.9) OVER (ORDER BY ts) r FROM t)',
  'SELECT k % 1000 g, median(v), mode(v) FROM t GROUP BY g',
] as const;
const EXPORT = 'SELECT * FROM t';
const before = residentBytes(server);
const times: number[] = [];
const slowest: { readonly ms: number; readonly way: string; readonly query: string }[] = [];
const SLOWEST_MAX = 5;
let early = 0;
for (let index = 0; index < count && harness.failures < 10; index += 1) {
  const problem = await runCancel(harness.random.fork(), index).catch(String);
  harness.judge(problem);
}
judgeTimes();
await judgeIdle();
await server.stop();
harness.finish();

/** Runs one query and ends it; returns the problem, if any. */
async function runCancel(random: Random, index: number): Promise<string | undefined> {
  const isExport = random.next() < 0.15;
  const way = isExport ? 'socket' : (WAYS[index % WAYS.length] ?? 'socket');
  const marker = `/* cancel ${index} */`;
  const query = `${isExport ? EXPORT : random.pick(QUERIES)} ${marker}`;
  const afterMs = random.between(5, 250);
  const ended = await endBy(way, query, marker, afterMs, isExport);
  if (ended === undefined) {
    early += 1;
    return undefined;
  }
  const gone = await stopTime(marker, ended);
  if (gone === undefined) {
    return `${way}: '${query}' still runs ${GONE_MS} ms after its end`;
  }
  times.push(gone);
  slowest.push({ ms: gone, way, query });
  slowest.sort((left, right) => right.ms - left.ms).splice(SLOWEST_MAX);
  return undefined;
}

/** Returns the time at which the query was ended, or `undefined` if it had already completed. */
function endBy(
  way: (typeof WAYS)[number],
  query: string,
  marker: string,
  afterMs: number,
  isExport: boolean,
): Promise<number | undefined> {
  switch (way) {
    case 'socket':
      return bySocket(query, afterMs, isExport);
    case 'request':
      return byRequest(query, afterMs);
    case 'statement':
      return byStatement(query, marker, afterMs);
    case 'timeout':
      return byTimeout(query, afterMs);
    case 'columns':
      return byColumns(query, afterMs, STATUS.cancelled);
    case 'columns timeout':
      return byColumns(query, afterMs, STATUS.queryTimeout);
  }
}

async function bySocket(
  query: string,
  afterMs: number,
  isExport: boolean,
): Promise<number | undefined> {
  const path = isExport ? '/exp?fmt=parquet&query=' : '/exec?query=';
  const call = request(`${server.url}${path}${encodeURIComponent(query)}`);
  const state = { done: false };
  call.on('response', (response) => {
    response.resume().on('end', () => {
      state.done = true;
    });
  });
  call.on('error', () => undefined);
  call.end();
  await sleep(afterMs);
  call.destroy();
  return state.done ? undefined : performance.now();
}

async function byRequest(query: string, afterMs: number): Promise<number | undefined> {
  const port = Number(server.pg.split(':')[1]);
  const client = await RawClient.open(port);
  client.send(startup('admin'), clientMessage('p', 'quest'));
  const key = (await client.until('Z')).find(({ type }) => type === 'K');
  if (key === undefined) {
    throw new Error('the server sends no key to cancel with');
  }
  const state = { done: false };
  client.send(clientMessage('Q', query));
  const answer = client.until('Z').then((messages) => {
    state.done = true;
    return messages;
  });
  await sleep(afterMs);
  if (state.done) {
    client.close();
    return undefined;
  }
  const other = await RawClient.open(port);
  const ended = performance.now();
  other.send(clientMessage('', CANCEL_CODE, key.body));
  await once(other.socket, 'close');
  const messages = await answer;
  client.close();
  const failed = messages.some(({ type, body }) => type === 'E' && body.includes('57014'));
  return failed ? ended : undefined;
}

async function byStatement(
  query: string,
  marker: string,
  afterMs: number,
): Promise<number | undefined> {
  const answer = exec(server, query).then(
    () => 'done',
    (error: unknown) => (error instanceof Refused ? error.message : 'gone'),
  );
  await sleep(afterMs);
  const id = (await running()).find(([, text]) => text.includes(marker))?.[0];
  if (id === undefined) {
    await answer;
    return undefined;
  }
  const ended = performance.now();
  // The query may have completed in the meantime.
  await exec(server, `CANCEL QUERY ${id}`).catch(() => undefined);
  return (await answer).includes('cancelled by user') ? ended : undefined;
}

async function byTimeout(query: string, afterMs: number): Promise<number | undefined> {
  const started = performance.now();
  const url = `${server.url}/exec?query=${encodeURIComponent(query)}`;
  const response = await fetch(url, { headers: { 'Statement-Timeout': String(afterMs) } });
  const text = await response.text();
  return text.includes('timeout, query aborted') ? started + afterMs : undefined;
}

/** Ends a query over the columnar protocol, by CANCEL or by the request's timeout. */
async function byColumns(
  query: string,
  afterMs: number,
  status: number,
): Promise<number | undefined> {
  const client = await ReadClient.open(Number(new URL(server.url).port));
  const isTimeout = status === STATUS.queryTimeout;
  const started = performance.now();
  client.request(1, query, isTimeout ? { timeoutMs: afterMs } : {});
  const answer = client.answer();
  if (!isTimeout) {
    await sleep(afterMs);
    client.cancel(1);
  }
  const ended = isTimeout ? started + afterMs : performance.now();
  const { last } = await answer;
  client.close();
  return last.kind === 'error' && last.status === status ? ended : undefined;
}

async function running(): Promise<[id: string, text: string][]> {
  const { dataset } = await exec(server, 'SELECT query_id, query FROM query_activity()');
  return dataset.map(([id, text]) => [String(id), String(text)]);
}

/** Returns the milliseconds from ending a query until the query is no longer listed. */
async function stopTime(marker: string, ended: number): Promise<number | undefined> {
  while (performance.now() - ended < GONE_MS) {
    const list = await running();
    if (!list.some(([, text]) => text.includes(marker))) {
      return performance.now() - ended;
    }
    await sleep(2);
  }
  return undefined;
}

function judgeTimes(): void {
  const [p50, p99] = [0.5, 0.99].map((fraction) => quantile(times, fraction));
  const figures = `p50 ${p50?.toFixed(0)} ms, p99 ${p99?.toFixed(0)} ms`;
  harness.say(`${times.length} cancelled, ${early} completed before; ended after ${figures}`);
  for (const { ms, way, query } of slowest) {
    harness.say(`among the slowest: ${ms.toFixed(0)} ms, ${way}: ${query}`);
  }
  const late = times.length === 0 || (p99 ?? Infinity) > withinMs;
  harness.judge(late ? `a query ended after ${figures}, expected ${withinMs} ms` : undefined);
}

/** Checks that the queries have left nothing behind. */
async function judgeIdle(): Promise<void> {
  await sleep(IDLE_MS);
  const ticks = cpuTicks(server);
  await sleep(IDLE_MS);
  const used = cpuTicks(server) - ticks;
  harness.judge(used > MAX_IDLE_TICKS ? `${used * 10} ms of CPU time in ${IDLE_MS} ms` : undefined);
  const files = spilledFiles(server);
  harness.judge(files > 0 ? `${files} temporary files remain` : undefined);
  const mib = (): number => Math.round((residentBytes(server) - before) / 1024 / 1024);
  const first = mib();
  const began = performance.now();
  while (mib() * 1024 * 1024 > GROWTH_BYTES && performance.now() - began < BACK_MS) {
    await sleep(IDLE_MS);
  }
  const waited = Math.round(performance.now() - began);
  harness.say(`${first} MiB more than before, ${mib()} MiB ${waited} ms later`);
  harness.say(`${used * 10} ms of CPU time in ${IDLE_MS} ms of idleness`);
  harness.judge(first * 1024 * 1024 > GROWTH_BYTES ? `${first} MiB more than before` : undefined);
}

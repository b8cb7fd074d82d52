/**
 * npm run connections -- [--connections N] [--heavy N] [--seconds S] [--within MS] [--seed S]
 *
 * Many kept-alive connections send `SELECT 1` while heavy queries occupy every core. All requests
 * must be answered, 99 of 100 within the time limit. A connection over the limit is refused cleanly
 * without affecting the others. With `--within 0` times are printed but not judged.
 */
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';

import { startTestServer } from '../golden/server.js';
import { exec } from './client.js';
import { Harness, quantile, type Random, sleep } from './harness.js';

const ANSWER_MS = 60_000;
/** Average interval between a connection's requests, in milliseconds. */
const THINK_MS = 1_000;
const REQUEST = 'GET /exec?query=SELECT+1 HTTP/1.1\r\nHost: localhost\r\n\r\n';
const HEAVY =
  'SELECT count() FROM long_sequence(1000000) a CROSS JOIN long_sequence(1000000) b ' +
  'WHERE a.x * b.x % 7 = 3';

const harness: Harness = new Harness('connections', ['connections', 'heavy', 'seconds', 'within']);
const connections = harness.number('connections', 1_000);
const heavy = harness.number('heavy', 8);
const seconds = harness.number('seconds', 20);
const withinMs = harness.number('within', 100);
const limit = connections + heavy + 1;
const server = await startTestServer({
  set: [`http.net.connection.limit=${limit}`, `query.concurrency=${Math.max(heavy, 1)}`],
});
const port = Number(new URL(server.url).port);
const times: number[] = [];

await exec(server, 'SELECT 1');
const clients = await openAll(connections);
harness.say(`${connections} connections are open`);
// Warms up the JIT compiler before measuring.
await query(3);
times.length = 0;
await query(5);
harness.say(`alone: ${timesText()}`);
times.length = 0;
const queries = await openAll(heavy);
for (const [index, socket] of queries.entries()) {
  socket.write(`GET /exec?query=${encodeURIComponent(`${HEAVY} /* ${index} */`)} HTTP/1.1\r\n`);
  socket.write('Host: localhost\r\n\r\n');
}
harness.judge(await allRun());
await query(seconds);
harness.say(`beside ${heavy} heavy queries: ${timesText()}`);
judgeTimes();
harness.judge(await oneTooMany());
for (const socket of [...queries, ...clients]) {
  socket.destroy();
}
await server.stop();
harness.finish();

async function openAll(count: number): Promise<Socket[]> {
  const sockets: Socket[] = [];
  for (let index = 0; index < count; index += 1) {
    sockets.push(await open());
  }
  return sockets;
}

async function open(): Promise<Socket> {
  const socket = createConnection({ host: '127.0.0.1', port }).setNoDelay(true);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Sends requests over every connection until the time is up. */
async function query(forSeconds: number): Promise<void> {
  const end = performance.now() + forSeconds * 1000;
  const problems = await Promise.all(
    clients.map((socket) => queryUntil(end, socket, harness.random.fork())),
  );
  const found = problems.filter((problem) => problem !== undefined);
  harness.judge(found.length === 0 ? undefined : `${found.length} connections: ${found[0] ?? ''}`);
}

async function queryUntil(
  end: number,
  socket: Socket,
  random: Random,
): Promise<string | undefined> {
  await sleep(random.between(0, THINK_MS));
  while (performance.now() < end) {
    const started = performance.now();
    const answer = await answerOf(socket, REQUEST);
    times.push(performance.now() - started);
    if (!answer.startsWith('HTTP/1.1 200 OK') || !answer.endsWith('"dataset":[[1]],"count":1}')) {
      return `expected 1, found '${answer.slice(0, 200)}'`;
    }
    await sleep(random.between(THINK_MS / 2, (THINK_MS * 3) / 2));
  }
  return undefined;
}

/**
 * Returns the response to a request. The response ends after its declared length or when the
 * connection closes.
 */
async function answerOf(socket: Socket, request: string): Promise<string> {
  return await new Promise((resolve) => {
    let text = '';
    const done = (): void => {
      clearTimeout(late);
      socket.off('data', take).off('close', done);
      resolve(text);
    };
    const take = (bytes: Buffer): void => {
      text += bytes.toString('latin1');
      const head = text.indexOf('\r\n\r\n');
      const length = /^content-length: (\d+)$/im.exec(text)?.[1];
      if (head >= 0 && length !== undefined && text.length >= head + 4 + Number(length)) {
        done();
      }
    };
    const late = setTimeout(done, ANSWER_MS);
    socket.on('data', take).once('close', done);
    socket.write(request);
  });
}

async function allRun(): Promise<string | undefined> {
  const activity = "SELECT count() FROM query_activity() WHERE query LIKE '%CROSS JOIN%'";
  let running = 0;
  for (let tries = 0; tries < 300; tries += 1) {
    const { dataset } = await exec(server, `${activity} AND query NOT LIKE '%activity%'`);
    running = Number(dataset[0]?.[0]);
    if (running === heavy) {
      return undefined;
    }
    await sleep(20);
  }
  return `${running} of ${heavy} heavy queries run`;
}

/** One extra connection reaches the limit, and the next one gets 503. */
async function oneTooMany(): Promise<string | undefined> {
  // The connection kept open by `exec` may or may not count.
  const extra: Socket[] = [];
  let refusal = '';
  for (let tries = 0; tries < 4 && refusal === ''; tries += 1) {
    const socket = await open();
    extra.push(socket);
    const answer = await answerOf(socket, REQUEST);
    refusal = answer.startsWith('HTTP/1.1 200') ? '' : answer;
  }
  const polite =
    refusal.startsWith('HTTP/1.1 503 ') &&
    /^retry-after: \d+\r$/im.test(refusal) &&
    refusal.includes(`too many connections [limit=${limit}]`);
  const [first] = clients;
  const within = first === undefined ? '' : await answerOf(first, REQUEST);
  for (const socket of extra) {
    socket.destroy();
  }
  if (!polite) {
    return `over the limit: expected 503, found '${refusal.slice(0, 200)}'`;
  }
  return within.startsWith('HTTP/1.1 200') ? undefined : `within the limit: '${within}'`;
}

function timesText(): string {
  const [p50, p99, maximum] = [0.5, 0.99, 1].map((part) => quantile(times, part).toFixed(1));
  return `${times.length} answers, p50 ${p50} ms, p99 ${p99} ms, at most ${maximum} ms`;
}

function judgeTimes(): void {
  const p99 = quantile(times, 0.99);
  const late = withinMs > 0 && p99 > withinMs;
  harness.judge(late ? `p99 ${p99.toFixed(1)} ms, expected ${withinMs} ms at most` : undefined);
}

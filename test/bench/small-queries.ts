/**
 * npm run small-queries -- [--peer NAME=HOST:PORT[,PID]]… [--query SQL] [--form]
 *     [--requests N] [--turns N]
 *
 * Cost of a small query over 1 and 32 kept-alive connections in a closed loop: median and fastest
 * response time, responses per second, and the server's CPU time per response, which is least
 * affected by noise. `--form` sends the query as a form. In the query, `{}` is a counter that makes
 * all queries different, `{60}` a random two-digit number below 60. Running peers (another build,
 * QuestDB) are measured in turn; without any, a server is started. A warm-up runs first.
 */
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { parseArgs } from 'node:util';

import { startTestServer, type TestServer } from '../golden/server.js';

const { values } = parseArgs({
  options: {
    peer: { type: 'string', multiple: true, default: [] },
    query: { type: 'string', default: 'SELECT 1' },
    form: { type: 'boolean', default: false },
    requests: { type: 'string', default: '20000' },
    turns: { type: 'string', default: '5' },
  },
});
const requests = Number(values.requests);
const turns = Number(values.turns);
const CONNECTIONS = [1, 32];
const TICK_MICROS = 10_000;

interface Peer {
  readonly name: string;
  readonly host: string;
  readonly port: number;
  /** Process ID of the server; undefined if its CPU time cannot be measured. */
  readonly pid: number | undefined;
}

interface Measured {
  readonly p50: number;
  readonly minimum: number;
  readonly perSecond: number;
  /** CPU time per request in microseconds: user time and system time. */
  readonly user: number;
  readonly system: number;
}

function peerOf(text: string): Peer {
  const [, name = '', host = '', port = '', pid] =
    /^([^=]+)=(.+):(\d+)(?:,(\d+))?$/.exec(text) ?? [];
  if (port === '') {
    throw new Error(`--peer ${text}: expected NAME=HOST:PORT or NAME=HOST:PORT,PID`);
  }
  return { name, host, port: Number(port), pid: pid === undefined ? undefined : Number(pid) };
}

function ticks(pid: number | undefined): readonly [user: number, system: number] {
  if (pid === undefined) {
    return [Number.NaN, Number.NaN];
  }
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return [Number(fields[11]), Number(fields[12])];
}

async function open({ host, port }: Peer): Promise<Socket> {
  const socket = connect(port, host);
  socket.setNoDelay(true);
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  return socket;
}

const END_OF_HEAD = Buffer.from('\r\n\r\n');
const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n');
/** QuestDB writes the size of the last chunk with two digits. */
const LAST_CHUNK_LONG = Buffer.from('\r\n00\r\n\r\n');

/** Returns whether a response is complete; throws if it is not a valid response. */
function isWhole(answer: Buffer): boolean {
  const end = answer.indexOf(END_OF_HEAD);
  if (end < 0) {
    return false;
  }
  const head = answer.toString('latin1', 0, end);
  if (!head.startsWith('HTTP/1.1 200')) {
    throw new Error(head);
  }
  const length = /content-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) {
    return answer.length >= end + 4 + Number(length);
  }
  const tail = answer.subarray(-LAST_CHUNK_LONG.length);
  return tail.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK) || tail.equals(LAST_CHUNK_LONG);
}

const NUMBER = /\{(\d*)\}/g;
const isAlike = values.query.search(NUMBER) < 0;

/** Sends requests until `left` is used up, and records each response time. */
function loop(
  socket: Socket,
  request: (number: number) => Buffer,
  left: { count: number },
  micros: number[],
) {
  return new Promise<void>((resolve, reject) => {
    let chunks: Buffer | null = null;
    let started = 0;
    // Responses to the same query have equal length.
    let length = 0;
    const send = (): void => {
      if (left.count <= 0) {
        resolve();
        return;
      }
      left.count -= 1;
      const bytes = request(left.count);
      started = performance.now();
      socket.write(bytes);
    };
    socket.on('error', reject);
    socket.on('close', () => reject(new Error('the server closed the connection')));
    socket.on('data', (bytes: Buffer) => {
      const answer: Buffer = chunks === null ? bytes : Buffer.concat([chunks, bytes]);
      try {
        if (!(isAlike && answer.length === length) && !isWhole(answer)) {
          chunks = answer;
          return;
        }
      } catch (error) {
        reject(error as Error);
        return;
      }
      chunks = null;
      length = answer.length;
      micros.push((performance.now() - started) * 1000);
      send();
    });
    send();
  });
}

/** Counter for query numbers; no number repeats within a run. */
let sent = 0;

function requestTo(peer: Peer): (number: number) => Buffer {
  if (isAlike) {
    const request = requestOf(peer, values.query);
    return () => request;
  }
  const from = sent;
  sent += requests;
  return (number) => {
    const one = (_: string, below: string): string =>
      below === '' ? String(from + number) : numberBelow(below);
    return requestOf(peer, values.query.replaceAll(NUMBER, one));
  };
}

function numberBelow(below: string): string {
  const digits = String(Number(below) - 1).length;
  return String(Math.floor(Math.random() * Number(below))).padStart(digits, '0');
}

function requestOf({ host, port }: Peer, text: string): Buffer {
  const query = `query=${encodeURIComponent(text)}`;
  const to = `HTTP/1.1\r\nHost: ${host}:${port}\r\n`;
  const type = 'Content-Type: application/x-www-form-urlencoded';
  return Buffer.from(
    values.form
      ? `POST /exec ${to}${type}\r\nContent-Length: ${query.length}\r\n\r\n${query}`
      : `GET /exec?${query} ${to}\r\n`,
  );
}

async function measure(peer: Peer, connections: number, count: number): Promise<Measured> {
  const request = requestTo(peer);
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(peer)));
  const left = { count };
  const micros: number[] = [];
  const before = ticks(peer.pid);
  const started = performance.now();
  await Promise.all(sockets.map((socket) => loop(socket, request, left, micros)));
  const seconds = (performance.now() - started) / 1000;
  const after = ticks(peer.pid);
  for (const socket of sockets) {
    socket.removeAllListeners('close').destroy();
  }
  micros.sort((a, b) => a - b);
  return {
    p50: micros[micros.length >> 1] ?? Number.NaN,
    minimum: micros[0] ?? Number.NaN,
    perSecond: micros.length / seconds,
    user: ((after[0] - before[0]) * TICK_MICROS) / count,
    system: ((after[1] - before[1]) * TICK_MICROS) / count,
  };
}

let own: TestServer | undefined;
let peers = values.peer.map(peerOf);
if (peers.length === 0) {
  own = await startTestServer();
  peers = [peerOf(`Tidemark=${own.url.slice('http://'.length)},${own.process.pid ?? ''}`)];
}
try {
  for (const connections of CONNECTIONS) {
    const all = new Map<Peer, Measured[]>();
    for (let round = 0; round <= turns; round += 1) {
      for (const peer of peers) {
        const measured = await measure(peer, connections, requests);
        if (round > 0) {
          all.set(peer, [...(all.get(peer) ?? []), measured]);
        }
      }
    }
    for (const [{ name }, found] of all) {
      const minimum = (key: keyof Measured): number => Math.min(...found.map((one) => one[key]));
      const maximum = Math.max(...found.map(({ perSecond }) => perSecond));
      const p50s = found.map(({ p50 }) => p50.toFixed(0)).join(' ');
      process.stdout.write(
        `${name.padEnd(12)} ${String(connections).padStart(3)} connections: ` +
          `p50 ${p50s} µs, least ${minimum('minimum').toFixed(0)} µs, ` +
          `${maximum.toFixed(0)}/s at most, ` +
          `user ${minimum('user').toFixed(1)} + system ${minimum('system').toFixed(1)} µs each\n`,
      );
    }
  }
} finally {
  await own?.stop();
}

/**
 * npm run frames -- [--frames N] [--seed S]
 *
 * Sends mutated wire protocol messages, before and after the login, in any order. Each session must
 * be answered with well-formed messages and must end. Errors must have an SQLSTATE. The server must
 * survive, answer other clients, and use at most 64 MiB more.
 */
import { connect } from 'node:net';

import { startTestServer } from '../golden/server.js';
import { clientMessage, RawClient, startup } from '../pgwire/raw-client.js';
import { Harness, type Random } from './harness.js';
import { residentBytes } from './process.js';

const SESSION_MS = 20_000;
const GROWTH_BYTES = 64 * 1024 * 1024;
/** Milliseconds of silence after which a client disconnects. */
const QUIET_MS = 250;
/** Number of concurrent sessions. */
const WIDTH = 32;
/** Maximum number of frames per session. */
const MAX_FRAMES = 24;
/**
 * Number of warm-up sessions, in which caches fill and code is compiled. Memory is measured only
 * afterwards.
 */
const WARM_UP = 200;
const MEASURE_EVERY = 50;
const HUGE = 0x7fffffff;
const SERVER_TYPES = 'RSKZTDCEINtn123sGHdcvI';

const TEXTS = [
  'SELECT 1',
  'SELECT $1::int, $2',
  'SELECT x FROM long_sequence(1000)',
  'INSERT INTO t VALUES ($1, $2)',
  "INSERT INTO t VALUES (1, 'a')",
  'BEGIN',
  'SAVEPOINT a',
  'ROLLBACK TO a',
  'COMMIT',
  'DECLARE c CURSOR FOR SELECT x FROM long_sequence(100)',
  'FETCH 3 FROM c',
  'COPY t FROM STDIN',
  'COPY t FROM STDIN (FORMAT csv)',
  'COPY t FROM STDIN BINARY',
  'COPY t TO STDOUT BINARY',
  'COPY (SELECT * FROM t) TO STDOUT CSV',
  'SELECT * FROM nowhere; SELECT 2',
  'DEALLOCATE ALL',
  '',
] as const;

const harness: Harness = new Harness('frames', ['frames']);
const frames = harness.number('frames', 1_000_000);
const server = await startTestServer({
  set: ['pg.auth.method=cleartext', 'pg.net.connection.limit=256'],
});
const port = Number(server.pg.split(':').at(-1));
const first = await RawClient.login(port);
first.send(clientMessage('Q', 'CREATE TABLE t (a INT, b VARCHAR)'));
await first.until('Z');
first.close();

/** Number of server messages by type letter. */
const answers = new Map<string, number>();
let sent = 0;
let sessions = 0;
let base = 0;
let peak = 0;
await Promise.all(Array.from({ length: WIDTH }, () => work(harness.random.fork())));
harness.judge(await isAlive().catch(String));
const grown = peak - base;
harness.say(`${sent} frames in ${sessions} sessions; ${(grown / 2 ** 20).toFixed(0)} MiB more`);
const summary = ['E', 'C', 'Z', 'G', 'H']
  .map((type) => `${type} ${answers.get(type) ?? 0}`)
  .join(', ');
harness.say(`answers: ${summary}`);
// If sessions ended before they got under way, the run would prove nothing.
const isDeep = (answers.get('C') ?? 0) * 40 > sent && (answers.get('E') ?? 0) * 20 > sent;
harness.judge(isDeep ? undefined : 'few frames were answered');
harness.judge(grown <= GROWTH_BYTES ? undefined : `memory grew by ${grown} bytes`);
await server.stop();
harness.finish();

async function work(random: Random): Promise<void> {
  while (sent < frames && harness.failures < 10) {
    const afterLogin = random.next() < 0.8;
    const bytes = afterLogin ? conversation(random) : opening(random);
    harness.judge(await session(bytes).catch(String));
    sessions += 1;
    if (sessions % MEASURE_EVERY === 0) {
      const now = residentBytes(server);
      base = sessions <= WARM_UP ? now : base;
      peak = Math.max(peak, now);
    }
  }
}

/** Checks that a new client is served. */
async function isAlive(): Promise<string | undefined> {
  const client = await RawClient.login(port);
  client.send(clientMessage('Q', 'SELECT 1'));
  const types = await client.types();
  client.close();
  return types === 'TDCZ' ? undefined : `the server answers ${types}`;
}

// ---- requests ----

/** Returns mutated packets in place of the startup packet and the password. */
function opening(random: Random): Buffer {
  sent += 2;
  const packets = [
    startup('nobody', random.between(0, 3)),
    clientMessage('', 80_877_103),
    clientMessage('', 80_877_102, random.between(0, HUGE), random.between(0, HUGE)),
    clientMessage('', 131_072),
  ];
  return Buffer.concat([
    malformed(random.pick(packets), random),
    malformed(clientMessage('p', 'secret'), random),
  ]);
}

/** Returns a login followed by frames: some valid, most of them mutated. */
function conversation(random: Random): Buffer {
  const parts = [startup('admin'), clientMessage('p', 'quest')];
  const count = random.between(1, MAX_FRAMES);
  for (let index = 0; index < count; index += 1) {
    const frame = message(random);
    const fate = random.next();
    if (fate < 0.4) {
      parts.push(frame);
    } else {
      // A frame with a correct length lets the conversation continue.
      parts.push(fate < 0.97 ? malformedBody(frame, random) : malformed(frame, random));
    }
    if (random.next() < 0.5) {
      parts.push(clientMessage('S'));
    }
  }
  sent += count;
  return Buffer.concat([...parts, clientMessage('S'), clientMessage('X')]);
}

function message(random: Random): Buffer {
  const text = random.pick(TEXTS);
  const name = random.pick(['', '', 'a', 'c']);
  const value = Buffer.from(random.pick(['1', 'text', '\0\0\0\x07', '']));
  const messages = [
    (): Buffer => clientMessage('Q', text),
    (): Buffer => clientMessage('Q', text),
    (): Buffer => clientMessage('Q', 'ROLLBACK'),
    (): Buffer => pipeline(text),
    (): Buffer => pipeline(text),
    (): Buffer => clientMessage('P', name, text, [1], random.pick([0, 23, 25, 99_999])),
    (): Buffer => clientMessage('P', name, text, [0]),
    (): Buffer => clientMessage('B', name, name, [1], [1], [1], value.length, value, [0]),
    (): Buffer => clientMessage('B', name, name, [0], [0], [1], [1]),
    (): Buffer => clientMessage('D', Buffer.from(random.pick(['S', 'P'])), name),
    (): Buffer => clientMessage('C', Buffer.from(random.pick(['S', 'P'])), name),
    (): Buffer => clientMessage('E', name, random.pick([0, 1, -1, HUGE])),
    (): Buffer => clientMessage('d', Buffer.from(random.pick(['1\tx\n', '1,"x\n', 'PGCOPY\n']))),
    (): Buffer => clientMessage(random.pick(['c', 'S', 'H', 'S'])),
    (): Buffer => clientMessage('f', 'enough'),
    (): Buffer => clientMessage('F', random.between(0, HUGE), [0], [0], [0]),
  ];
  return random.pick(messages)();
}

/** Returns all messages for one statement in the extended protocol. */
function pipeline(text: string): Buffer {
  return Buffer.concat([
    clientMessage('P', '', text, [0]),
    clientMessage('B', '', '', [0], [0], [0]),
    clientMessage('E', '', 0),
    clientMessage('S'),
  ]);
}

/** Returns a frame of correct length with a mutated body. */
function malformedBody(frame: Buffer, random: Random): Buffer {
  const body = Buffer.from(frame.subarray(5));
  const offset = random.between(0, Math.max(0, body.length - 1));
  const type = frame.toString('latin1', 0, 1);
  switch (random.between(0, 3)) {
    case 0:
      if (body.length > 0) {
        body[offset] = (body[offset] ?? 0) ^ (1 << random.between(0, 7));
      }
      return clientMessage(type, body);
    case 1:
      return clientMessage(type, body.subarray(0, offset));
    case 2:
      return clientMessage(type, body, noise(random));
    default:
      body.fill(random.between(0, 255), offset);
      return clientMessage(type, body);
  }
}

/** Returns a frame with mutations anywhere. */
function malformed(frame: Buffer, random: Random): Buffer {
  const bytes = Buffer.from(frame);
  const offset = random.between(0, bytes.length - 1);
  switch (random.between(0, 7)) {
    case 0:
      bytes[offset] = (bytes[offset] ?? 0) ^ (1 << random.between(0, 7));
      return bytes;
    case 1:
      bytes[0] = random.between(0, 255);
      return bytes;
    case 2:
      return withLength(bytes, random.pick([0, 3, -1, HUGE, 66_000_000, 70_000_000]));
    case 3:
      return withLength(bytes, bytes.length - 1 + random.between(-6, 6));
    case 4:
      return bytes.subarray(0, offset);
    case 5:
      return Buffer.concat([bytes.subarray(0, offset), bytes]);
    case 6:
      return clientMessage('QPBDCEdcfFpz'.charAt(random.between(0, 11)), noise(random));
    default:
      bytes.fill(random.between(0, 255), offset);
      return withLength(bytes, bytes.length - 1);
  }
}

function withLength(bytes: Buffer, length: number): Buffer {
  if (bytes.length >= 5) {
    bytes.writeInt32BE(length | 0, 1);
  }
  return bytes;
}

function noise(random: Random): Buffer {
  return Buffer.from(Array.from({ length: random.between(0, 300) }, () => random.between(0, 255)));
}

// ---- responses ----

/** Runs one session to its end; returns the problem, if any. */
function session(bytes: Buffer): Promise<string | undefined> {
  return new Promise((resolve) => {
    const received: Buffer[] = [];
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(bytes);
    });
    // A server that waits for the remainder of a frame stays silent.
    socket.setTimeout(QUIET_MS, () => {
      socket.end();
    });
    const deadline = setTimeout(() => {
      socket.destroy();
      resolve(`no end after ${SESSION_MS} ms: ${bytes.toString('base64')}`);
    }, SESSION_MS);
    socket.on('data', (chunk: Buffer) => received.push(chunk));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      clearTimeout(deadline);
      const problem = wrongAnswer(Buffer.concat(received));
      resolve(problem === undefined ? undefined : `${problem}: ${bytes.toString('base64')}`);
    });
  });
}

/**
 * Responses must consist of complete, valid server messages. Only the last message may be
 * truncated.
 */
function wrongAnswer(bytes: Buffer): string | undefined {
  // Responses to encryption requests are single letters.
  let at = /^[NS](?!\0)/.test(bytes.toString('latin1', 0, 2)) ? 1 : 0;
  while (at + 5 <= bytes.length) {
    const type = String.fromCharCode(bytes[at] ?? 0);
    const length = bytes.readInt32BE(at + 1);
    if (!SERVER_TYPES.includes(type) || length < 4) {
      return `a message '${type}' of ${length} bytes`;
    }
    const body = bytes.toString('utf8', at + 5, at + 1 + length);
    if (type === 'E' && at + 1 + length <= bytes.length) {
      if (!/(?:^|\0)C[0-9A-Z]{5}\0/.test(body) || body.includes('\0CXX000\0')) {
        return `an internal error: ${body.replaceAll('\0', ' ')}`;
      }
    }
    answers.set(type, (answers.get(type) ?? 0) + 1);
    at += 1 + length;
  }
  return undefined;
}

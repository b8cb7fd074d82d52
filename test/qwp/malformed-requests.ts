/**
 * Mutated requests from clients that read results over QWP, against an in-process engine. Each
 * message gets a response or ends the conversation. `npm run requests` runs many of them.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { openDatabase } from '../../ts/engine/index.js';
import { Conversation, type Peer } from '../../ts/http/egress/conversation.js';
import { LastingLogin } from '../../ts/http/websocket/lasting-login.js';
import { SessionHost } from '../../ts/session/index.js';
import { readStatement } from '../../ts/sql/index.js';
import { createLogger } from '../../ts/observability/index.js';
import { Random } from '../torture/harness.js';
import { within } from '../until.js';
import { type Bind, given, int64, NULL, queryRequest, textBind } from './requests.js';
import { ResultDecoder, type ServerMessage } from './result-decoder.js';

const LIMITS = { statementBytes: 4096, binds: 16 };
const BATCHES = { maxRows: 100, maxBytes: 4096, zstdLevel: null, pauseMs: 1000 };
/** Number of messages per conversation. */
const MESSAGES = 50;
/** Size of the message kind and the query id. */
const HEAD_BYTES = 9;
/** After this many event loop iterations a client continues without a response. */
const MAX_ROUNDS = 2_000;

const BINDS: readonly Bind[] = [
  [0x01, given(Buffer.from([1]))],
  [0x05, given(int64(42))],
  [0x07, given(Buffer.alloc(8, 0x40))],
  textBind('some text'),
  [0x0a, given(int64(1_700_000_000_000_000))],
  [0x0e, given(Buffer.from([20, 1, 2, 3]))],
  [0x11, given(Buffer.from('0102000000000000000000f83f000000000000f83f', 'hex'))],
  [0x13, given(Buffer.concat([Buffer.from([2]), int64(1234)]))],
  [0x17, given(Buffer.from('00000000020000006162', 'hex'))],
  [0x0f, NULL],
];
const TEXTS = [
  'SELECT $1, $2',
  'SELECT x, $1 FROM long_sequence(300)',
  "SELECT rnd_symbol('a', 'b') FROM long_sequence(250)",
  'SELECT nothing',
  'SELECT $1::double[], $2::decimal(9,2)',
  '',
];

/** Half of the requests have no timeout. */
const TIMEOUTS_MS = [...Array<undefined>(4), 1, 1000, 0, 2n ** 63n];

interface MalformedResult {
  readonly messages: number;
  /** Number of responses, by kind. */
  readonly answers: ReadonlyMap<string, number>;
}

/**
 * Some messages stay unchanged. Most keep their kind and id, because changing these ends the
 * conversation.
 */
function malform(bytes: Buffer, random: Random): Buffer {
  let malformed = Buffer.from(bytes);
  const start = random.next() < 0.98 ? HEAD_BYTES : 0;
  for (let times = Math.floor(random.next() * 4); times > 0; times -= 1) {
    const at = start + Math.floor(random.next() * (malformed.length - start));
    switch (Math.floor(random.next() * 4)) {
      case 0:
        malformed = malformed.subarray(0, at);
        break;
      case 1:
        malformed = Buffer.concat([malformed, Buffer.from([Math.floor(random.next() * 256)])]);
        break;
      case 2:
        malformed[at] = (malformed[at] ?? 0) ^ (1 << Math.floor(random.next() * 8));
        break;
      default:
        malformed[at] = [0, 0x7f, 0x80, 0xff][Math.floor(random.next() * 4)] ?? 0;
    }
  }
  return malformed;
}

function message(id: number, random: Random): Buffer {
  const one = random.next();
  if (one < 0.1) {
    return Buffer.concat([Buffer.from([0x14]), int64(id)]);
  }
  if (one < 0.2) {
    return Buffer.concat([Buffer.from([0x15]), int64(id), Buffer.from([0xff, 0x7f])]);
  }
  const binds = Array.from({ length: Math.floor(random.next() * 4) }, () => {
    const at = Math.floor(random.next() * BINDS.length);
    return BINDS[at] ?? ([0x0f, NULL] as const);
  });
  const text = TEXTS[Math.floor(random.next() * TEXTS.length)] ?? '';
  const flags = random.next() < 0.5 ? 0 : 1;
  const timeoutMs = TIMEOUTS_MS[Math.floor(random.next() * TIMEOUTS_MS.length)];
  return queryRequest(id, text, {
    binds,
    flags,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });
}

/** A client that sends these messages and records the responses. */
class MalformedPeer implements Peer {
  readonly replies: ServerMessage[] = [];
  readonly ended: AbortSignal = new AbortController().signal;
  readonly isStopping = false;
  isClosed = false;
  /** Number of messages accepted. */
  input = 0;
  readonly #input: readonly Buffer[];
  readonly #decoder = new ResultDecoder();

  constructor(input: readonly Buffer[]) {
    this.#input = input;
  }

  async *messages(): AsyncGenerator<Buffer> {
    for (const [index, bytes] of this.#input.entries()) {
      this.input += 1;
      const before = this.replies.length;
      yield bytes;
      // Some requests are cancelled by later messages; others complete first.
      const isAnswered = (): boolean => {
        const last = this.replies.length > before ? this.replies.at(-1)?.kind : undefined;
        return last === 'end' || last === 'error' || last === 'done';
      };
      const rounds = index % 3 === 0 || bytes[0] !== 0x10 ? 1 : MAX_ROUNDS;
      for (let round = 0; round < rounds && !isAnswered(); round += 1) {
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
  }

  send(...parts: readonly Buffer[]): Promise<void> {
    this.replies.push(this.#decoder.read(Buffer.concat(parts)));
    return Promise.resolve();
  }

  close(): void {
    this.isClosed = true;
  }
}

/** Sends `count` messages; throws if a conversation does not end as it should. */
export async function runMalformed(count: number, seed: number): Promise<MalformedResult> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-spoiled-'));
  const database = await openDatabase({ root });
  const sessions = new SessionHost({ database, parse: readStatement });
  const identity = { name: 'admin', kind: 'admin' } as const;
  const login = new LastingLogin({ kind: 'known', identity }, false);
  const random = new Random(seed);
  const answers = new Map<string, number>();
  let messages = 0;
  try {
    while (messages < count) {
      const input = Array.from({ length: MESSAGES }, (_, id) =>
        malform(message(id, random), random),
      );
      const peer = new MalformedPeer(input);
      const logger = createLogger({ level: 'error', write: () => undefined });
      const batches = () => BATCHES;
      const parts = { peer, sessions, login, limits: LIMITS, batches, logger };
      const hex = (): string => input.map((one) => one.toString('hex')).join(' ');
      await within(new Conversation(parts).run(), hex);
      messages += peer.input;
      for (const replies of peer.replies) {
        const kind = replies.kind === 'error' ? `error ${replies.status}` : replies.kind;
        answers.set(kind, (answers.get(kind) ?? 0) + 1);
        if (replies.kind === 'error' && replies.status === 6) {
          throw new Error(`${replies.text}: ${hex()}`);
        }
      }
    }
    return { messages, answers };
  } finally {
    await database.close();
    await rm(root, { recursive: true, force: true });
  }
}

/** Messages to clients of the columnar protocol: a head of 12 bytes, then what they say. */
import type { Failure } from './failure.js';

const MAGIC = 'QWP1';
const VERSION = 1;
const HEAD_BYTES = 12;
const KIND = {
  resultBatch: 0x11,
  resultEnd: 0x12,
  queryError: 0x13,
  execDone: 0x16,
  cacheReset: 0x17,
  serverInfo: 0x18,
} as const;
/** Before what a chunk of the engine has: the kind and the query's number. */
const BATCH_HEAD_BYTES = 9;
const RESET_DICTIONARY = 0x01;
const ROLE_STANDALONE = 0;
/** The flags of a request are read, and the time that it gives its query counts. */
const CAPABILITIES = 0x2 | 0x8;
const MAX_TEXT_BYTES = 0xff_ff;
/** What is named where a cluster and its node are. */
const NAME = 'tidemark';

function head(flags: number, tables: number, length: number): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES);
  bytes.write(MAGIC, 'latin1');
  bytes.set([VERSION, flags, tables], MAGIC.length);
  bytes.writeUInt32LE(length, 8);
  return bytes;
}

function message(...parts: readonly Buffer[]): Buffer {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([head(0, 0, length), ...parts]);
}

/** The kind, and the query that it is about. */
function about(kind: number, id: bigint): Buffer {
  const bytes = Buffer.alloc(BATCH_HEAD_BYTES);
  bytes[0] = kind;
  bytes.writeBigInt64LE(id, 1);
  return bytes;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = BigInt(value);
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  bytes.push(Number(rest));
  return Buffer.from(bytes);
}

/** A text of at most 65,535 bytes; what is longer ends before a character that is not whole. */
function text(value: string): Buffer {
  let bytes = Buffer.from(value);
  if (bytes.length > MAX_TEXT_BYTES) {
    let end = MAX_TEXT_BYTES;
    while (((bytes[end] ?? 0) & 0xc0) === 0x80) {
      end -= 1;
    }
    bytes = bytes.subarray(0, end);
  }
  const length = Buffer.alloc(2);
  length.writeUInt16LE(bytes.length);
  return Buffer.concat([length, bytes]);
}

/** What is said first, without being asked. */
export function serverInfo(): Buffer {
  const bytes = Buffer.alloc(22);
  bytes.set([KIND.serverInfo, ROLE_STANDALONE]);
  bytes.writeUInt32LE(CAPABILITIES, 10);
  bytes.writeBigInt64LE(BigInt(Date.now()) * 1_000_000n, 14);
  return message(bytes, text(NAME), text(NAME));
}

/** A chunk of the engine as a message in two parts: a head, and its bytes as they are. */
export function resultBatch(id: bigint, chunk: Buffer): readonly [Buffer, Buffer] {
  const rest = chunk.subarray(1);
  const kind = about(KIND.resultBatch, id);
  return [Buffer.concat([head(chunk[0] ?? 0, 1, kind.length + rest.length), kind]), rest];
}

export function resultEnd(id: bigint, lastSequence: number, rows: number): Buffer {
  return message(about(KIND.resultEnd, id), varint(lastSequence), varint(rows));
}

/** `id` -1: no query is to blame. */
export function queryError(id: bigint, failure: Failure): Buffer {
  const status = Buffer.from([failure.status]);
  return message(about(KIND.queryError, id), status, text(failure.message));
}

/** `statement`: what clients hand on as it is. */
export function execDone(id: bigint, statement: number, rows: number): Buffer {
  return message(about(KIND.execDone, id), Buffer.from([statement]), varint(rows));
}

export function cacheReset(): Buffer {
  return message(Buffer.from([KIND.cacheReset, RESET_DICTIONARY]));
}

/** Messages to clients of the columnar protocol: a 12-byte header, then the payload. */
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
/** Size in bytes of the message kind and query id, which precede an engine chunk. */
const BATCH_HEAD_BYTES = 9;
const RESET_DICTIONARY = 0x01;
const ROLE_STANDALONE = 0;
/** Capabilities: the server reads the flags of a request, and enforces its timeout. */
const CAPABILITIES = 0x2 | 0x8;
const MAX_TEXT_BYTES = 0xff_ff;
/** Used as both the cluster name and the node name. */
const NAME = 'tidemark';

function head(flags: number, tables: number, length: number): Buffer {
  const bytes = Buffer.alloc(HEAD_BYTES);
  bytes.write(MAGIC, 'latin1');
  bytes.set([VERSION, flags, tables], MAGIC.length);
  bytes.writeUInt32LE(length, 8);
  return bytes;
}

function message(...buffers: readonly Buffer[]): Buffer {
  const length = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
  return Buffer.concat([head(0, 0, length), ...buffers]);
}

/** Encodes the message kind and the query id. */
function about(kind: number, id: bigint): Buffer {
  const bytes = Buffer.alloc(BATCH_HEAD_BYTES);
  bytes[0] = kind;
  bytes.writeBigInt64LE(id, 1);
  return bytes;
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  let remaining = BigInt(value);
  while (remaining >= 0x80n) {
    bytes.push(Number(remaining & 0x7fn) | 0x80);
    remaining >>= 7n;
  }
  bytes.push(Number(remaining));
  return Buffer.from(bytes);
}

/** Encodes a string of at most 65,535 bytes; a longer one is truncated at a character boundary. */
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

/** The first message on a connection, sent without a request. */
export function serverInfo(): Buffer {
  const bytes = Buffer.alloc(22);
  bytes.set([KIND.serverInfo, ROLE_STANDALONE]);
  bytes.writeUInt32LE(CAPABILITIES, 10);
  bytes.writeBigInt64LE(BigInt(Date.now()) * 1_000_000n, 14);
  return message(bytes, text(NAME), text(NAME));
}

/**
 * Converts an engine chunk to a message in two buffers: a header, and the chunk's bytes unchanged.
 */
export function resultBatch(id: bigint, chunk: Buffer): readonly [Buffer, Buffer] {
  const payload = chunk.subarray(1);
  const kind = about(KIND.resultBatch, id);
  return [Buffer.concat([head(chunk[0] ?? 0, 1, kind.length + payload.length), kind]), payload];
}

export function resultEnd(id: bigint, lastSequence: number, rows: number): Buffer {
  return message(about(KIND.resultEnd, id), varint(lastSequence), varint(rows));
}

/** `id` -1 means that no query caused the error. */
export function queryError(id: bigint, failure: Failure): Buffer {
  const status = Buffer.from([failure.status]);
  return message(about(KIND.queryError, id), status, text(failure.message));
}

/**
 * `statement` is the code for the statement's kind, which client libraries pass on to their
 * callers.
 */
export function execDone(id: bigint, statement: number, rows: number): Buffer {
  return message(about(KIND.execDone, id), Buffer.from([statement]), varint(rows));
}

export function cacheReset(): Buffer {
  return message(Buffer.from([KIND.cacheReset, RESET_DICTIONARY]));
}

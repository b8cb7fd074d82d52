/**
 * Decodes a client's messages for queries over the columnar protocol (QWP): QUERY_REQUEST, CANCEL
 * and CREDIT. Nothing is copied; a length is accepted only if that many bytes remain.
 */
import { isUtf8 } from 'node:buffer';

import { type BoundBinds, readBind } from './binds.js';
import { LimitExceeded, MalformedMessage } from './failure.js';
import { MessageReader } from './message-reader.js';

const KIND = { query: 0x10, cancel: 0x14, credit: 0x15 } as const;
/**
 * Request flags. `resetDictionary` discards the symbols of earlier queries; `timeout` means that a
 * timeout field follows.
 */
const FLAG = { resetDictionary: 0x01, timeout: 0x02 } as const;
const ALL_FLAGS = FLAG.resetDictionary | FLAG.timeout;
/**
 * Maximum timeout. Other servers read it as a signed 64-bit number, so a larger value would be
 * negative.
 */
const MAX_TIMEOUT_MS = 2n ** 63n - 1n;

/** A statement to run. */
export interface QueryRequest {
  readonly kind: 'query';
  readonly id: bigint;
  readonly sql: string;
  /** Number of bytes that may be sent; 0 means no limit. */
  readonly credit: number;
  readonly binds: BoundBinds;
  readonly resetsDictionary: boolean;
  /** The client's timeout in milliseconds; `undefined` to use the server's. */
  readonly timeoutMs: number | undefined;
}

type ClientMessage =
  | QueryRequest
  | { readonly kind: 'cancel'; readonly id: bigint }
  | { readonly kind: 'credit'; readonly id: bigint; readonly bytes: number };

/** Request limits. */
export interface RequestLimits {
  readonly statementBytes: number;
  readonly binds: number;
}

/** Throws `MalformedMessage` or `LimitExceeded`, with the query id if it could be read. */
export function readClientMessage(bytes: Buffer, limits: RequestLimits): ClientMessage {
  const reader = new MessageReader(bytes);
  const kind = reader.byte('the message kind');
  switch (kind) {
    case KIND.query:
      return readRequest(reader, limits);
    case KIND.cancel: {
      const id = reader.int64('the query id');
      reader.end();
      return { kind: 'cancel', id };
    }
    case KIND.credit: {
      const id = reader.int64('the query id');
      const credit = reader.varint('the credit');
      reader.end();
      return { kind: 'credit', id, bytes: credit };
    }
    default:
      throw new MalformedMessage(`unknown message kind 0x${hex(kind)}`);
  }
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, '0');
}

function readRequest(reader: MessageReader, limits: RequestLimits): QueryRequest {
  const id = reader.int64('the query id');
  reader.blame(id);
  const length = reader.varint('the statement length');
  if (length > limits.statementBytes) {
    const limit = `limit=${limits.statementBytes}, key=qwp.egress.max.sql.size`;
    throw new LimitExceeded(`statement is too long [length=${length}, ${limit}]`, id);
  }
  const text = reader.bytes(length, 'the statement');
  if (!isUtf8(text)) {
    throw new MalformedMessage('the statement is not valid UTF-8', id);
  }
  const credit = reader.varint('the credit');
  const count = reader.varint('the parameter count');
  if (count > limits.binds) {
    const limit = `limit=${limits.binds}, key=qwp.egress.max.binds`;
    throw new LimitExceeded(`too many parameters [count=${count}, ${limit}]`, id);
  }
  const binds: BoundBinds = { types: [], sent: [], values: [] };
  for (let index = 1; index <= count; index += 1) {
    readBind(reader, index, binds);
  }
  const flags = reader.isAtEnd ? 0 : reader.varint('the flags');
  if (flags > ALL_FLAGS) {
    throw new MalformedMessage(`unknown request flags [flags=${flags}]`, id);
  }
  const timeoutMs = (flags & FLAG.timeout) === 0 ? undefined : readTimeout(reader, id);
  reader.end();
  const resetsDictionary = (flags & FLAG.resetDictionary) !== 0;
  const sql = text.toString('utf8');
  return { kind: 'query', id, sql, credit, binds, resetsDictionary, timeoutMs };
}

/** Milliseconds. A client without a timeout omits the field. */
function readTimeout(reader: MessageReader, id: bigint): number {
  const timeoutMs = reader.bigVarint('the timeout');
  if (timeoutMs < 1n || timeoutMs > MAX_TIMEOUT_MS) {
    const requestedMs = BigInt.asIntN(64, timeoutMs);
    const message = `the timeout must be at least 1 ms [timeout=${requestedMs}ms]`;
    throw new MalformedMessage(message, id);
  }
  return Number(timeoutMs);
}

/**
 * Reads the typed parameters of a request; each is encoded as a column with one row. This module
 * only finds the bytes of each value; the engine decodes them.
 */
import { BindMismatch } from './failure.js';
import type { MessageReader } from './message-reader.js';

/** Format code that tells the engine that a value came from the columnar protocol. */
const COLUMNAR = 2;
/** Size of the value's start and end offsets, in bytes. */
const OFFSETS_BYTES = 8;
const ELEMENT_BYTES = 8;
const LENGTH_BYTES = 4;
const MAX_DIMENSIONS = 32;

/** A request's parameters, in the form that binding requires. */
export interface BoundBinds {
  /** SQL types; `null` lets the engine infer the type. */
  readonly types: (string | null)[];
  readonly sent: { readonly format: number; readonly oid: number }[];
  readonly values: (Buffer | null)[];
}

interface BindType {
  /** Returns `null` if the statement determines the type. */
  readonly type: (bytes: Buffer) => string | null;
  /** Returns the number of bytes of the next value. */
  readonly length: (reader: MessageReader, what: string) => number;
}

function fixed(type: string | null, bytes: number): BindType {
  return { type: () => type, length: () => bytes };
}

function between(type: string | null): BindType {
  return {
    type: () => type,
    length: (reader, what) =>
      OFFSETS_BYTES + reader.peek(OFFSETS_BYTES, what).readUInt32LE(OFFSETS_BYTES / 2),
  };
}

function decimal(precision: number, bytes: number): BindType {
  return {
    type: (value) => `DECIMAL(${precision},${Math.min(value[0] ?? 0, precision)})`,
    length: () => 1 + bytes,
  };
}

const GEOHASH: BindType = {
  type: (value) => `GEOHASH(${value[0] ?? 1}b)`,
  length: (reader, what) => {
    const bits = reader.peek(1, what)[0] ?? 0;
    if (bits < 1 || bits > 60) {
      throw reader.malformed(`${what}: invalid geohash of ${bits} bits, expected 1 to 60`);
    }
    return 1 + Math.ceil(bits / 8);
  },
};

const DOUBLES: BindType = {
  // Not `DOUBLE[]`, which the binder would interpret as a PostgreSQL array, whose values are text.
  type: (value) => `FLOAT8${'[]'.repeat(value[0] ?? 1)}`,
  length: (reader, what) => {
    const dimensions = reader.peek(1, what)[0] ?? 0;
    if (dimensions < 1 || dimensions > MAX_DIMENSIONS) {
      const there = `expected 1 to ${MAX_DIMENSIONS}`;
      throw reader.malformed(`${what}: invalid array with ${dimensions} dimensions, ${there}`);
    }
    const head = reader.peek(1 + dimensions * LENGTH_BYTES, what);
    let elements = 1;
    for (let index = 0; index < dimensions; index += 1) {
      const length = head.readInt32LE(1 + index * LENGTH_BYTES);
      if (length < 0) {
        throw reader.malformed(`${what}: invalid dimension length ${length}`);
      }
      // A product that is too large to be an exact number also exceeds the message length.
      elements *= length;
    }
    return head.length + elements * ELEMENT_BYTES;
  },
};

const TYPES: ReadonlyMap<number, BindType> = new Map([
  [0x01, fixed('BOOLEAN', 1)],
  [0x02, fixed('BYTE', 1)],
  [0x03, fixed('SHORT', 2)],
  [0x04, fixed('INT', 4)],
  [0x05, fixed('LONG', 8)],
  [0x06, fixed('FLOAT', 4)],
  [0x07, fixed('DOUBLE', 8)],
  [0x09, between(null)],
  [0x0a, fixed('TIMESTAMP', 8)],
  [0x0b, fixed('DATE', 8)],
  [0x0c, fixed('UUID', 16)],
  [0x0d, fixed('LONG256', 32)],
  [0x0e, GEOHASH],
  [0x0f, between(null)],
  [0x10, fixed('TIMESTAMP_NS', 8)],
  [0x11, DOUBLES],
  [0x13, decimal(18, 8)],
  [0x14, decimal(38, 16)],
  [0x15, decimal(76, 32)],
  [0x16, fixed('CHAR', 2)],
  [0x17, between('BINARY')],
  [0x18, fixed('IPV4', 4)],
]);

/** Reads the parameter with this 1-based index. */
export function readBind(reader: MessageReader, index: number, into: BoundBinds): void {
  const what = `parameter $${index}`;
  const code = reader.byte(what);
  const type = TYPES.get(code);
  if (type === undefined) {
    const named = code.toString(16).padStart(2, '0');
    throw new BindMismatch(`unknown parameter type 0x${named} [${what}]`, reader.id);
  }
  const hasBitmap = reader.byte(what) !== 0;
  const isNull = hasBitmap && (reader.byte(what) & 1) === 1;
  const value = isNull ? null : reader.bytes(type.length(reader, what), what);
  into.sent.push({ format: COLUMNAR, oid: code });
  into.values.push(value);
  // The type of a null depends only on the statement, because clients send `None` as text.
  into.types.push(value === null ? null : type.type(value));
}

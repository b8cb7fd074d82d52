/** JavaScript values as Arrow vectors of a column's SQL type. */
import {
  Binary,
  Bool,
  Data,
  type DataType,
  Dictionary,
  Field,
  Float32,
  Float64,
  Int16,
  Int32,
  Int64,
  Int8,
  List,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow';

import { isArray, temporalText } from './parameters.js';

/**
 * Values of one column. A typed array whose elements have the column's width is copied as a whole.
 */
export type ColumnValues = ArrayLike<unknown>;

/** A day, and optionally a time with up to nine fractional digits and a zone. */
const ISO =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:?\d{2})?)?$/;
/** Maximum UTF-8 bytes per UTF-16 code unit. */
const UNIT_BYTES = 3;
/** Maximum length of a value in an error message. */
const MAX_SHOWN_LENGTH = 100;
/** How values of an SQL type are encoded. */
interface Encoding {
  readonly type: DataType;
  /** Typed array of the type's own values. */
  readonly own?: new (length: number) => object;
  readonly encode: (value: unknown) => unknown;
}

const TEXT: Encoding = { type: new Utf8(), encode: textOf };
const SYMBOL: Encoding = { type: new Dictionary(new Utf8(), new Int32()), encode: textOf };
const DOUBLES: Encoding = { type: new Float64(), own: Float64Array, encode: numberOf };
const integers = (type: DataType, own: Encoding['own'], bits: number): Encoding => ({
  type,
  ...(own === undefined ? {} : { own }),
  encode: (value) => integerOf(value, 2 ** (bits - 1)),
});
const timestamps = (type: DataType, perMilli: bigint): Encoding => ({
  type,
  own: BigInt64Array,
  encode: (value) => in64Bits(timestampOf(value, perMilli), value),
});

/** Types that are not listed are sent as strings. */
const ENCODINGS: Readonly<Record<string, Encoding>> = {
  BOOLEAN: { type: new Bool(), encode: booleanOf },
  BYTE: integers(new Int8(), Int8Array, 8),
  SHORT: integers(new Int16(), Int16Array, 16),
  INT: integers(new Int32(), Int32Array, 32),
  LONG: { type: new Int64(), own: BigInt64Array, encode: longOf },
  FLOAT: { type: new Float32(), own: Float32Array, encode: numberOf },
  DOUBLE: DOUBLES,
  DATE: timestamps(new TimestampMillisecond(), 1n),
  TIMESTAMP: timestamps(new TimestampMicrosecond(), 1_000n),
  TIMESTAMP_NS: timestamps(new TimestampNanosecond(), 1_000_000n),
  BINARY: { type: new Binary(), encode: bytesOf },
  SYMBOL,
};

export function encodingOf(sqlType: string): Encoding {
  const brackets = /^DOUBLE((?:\[\])+)$/.exec(sqlType)?.[1];
  if (brackets === undefined) {
    return ENCODINGS[sqlType] ?? TEXT;
  }
  const dimensions = brackets.length / 2;
  let type: DataType = new Float64();
  for (let depth = 0; depth < dimensions; depth += 1) {
    type = new List(new Field('item', type, true));
  }
  return { type, encode: (value) => numbersOf(value, dimensions) };
}

/** Encodes a column's values. Throws for a value that the type cannot represent. */
export function vectorOf(values: ColumnValues, sqlType: string): Vector {
  const { type, own, encode } = encodingOf(sqlType);
  const { length } = values;
  if (own !== undefined && values instanceof own) {
    return new Vector([new Data(type, 0, length, 0, [undefined, values])]);
  }
  const given = Array.from(values, (value) => ifPresent(value, encode));
  if (own !== undefined) {
    return fixedVector(type, given, new own(length) as unknown[]);
  }
  if (type instanceof Dictionary) {
    return symbolVector(type as Dictionary, given as (string | null)[]);
  }
  return type instanceof Utf8
    ? textVector(given as (string | null)[])
    : vectorFromArray(given, type);
}

/** Creates a vector of fixed-width values. `cells` is the typed array that receives them. */
function fixedVector(type: DataType, values: readonly unknown[], cells: unknown[]): Vector {
  const nullBitmap = new Uint8Array(Math.ceil(values.length / 8));
  let nullCount = 0;
  values.forEach((value, row) => {
    if (value === null) {
      nullCount += 1;
    } else {
      cells[row] = value;
      nullBitmap[row >> 3] = (nullBitmap[row >> 3] ?? 0) | (1 << (row & 7));
    }
  });
  const buffers = [undefined, cells, nullBitmap];
  return new Vector([new Data(type, 0, values.length, nullCount, buffers as never)]);
}

/** Creates a vector in which each distinct string is stored only once. */
function symbolVector(type: Dictionary, values: readonly (string | null)[]): Vector {
  const keys = new Map<string, number>();
  const cells = values.map((value) => {
    const key = value === null ? null : (keys.get(value) ?? keys.size);
    if (value !== null && key === keys.size) {
      keys.set(value, key);
    }
    return key;
  });
  const [data] = fixedVector(
    type,
    cells,
    new Int32Array(values.length) as unknown as unknown[],
  ).data;
  const { nullCount, buffers } = data as Data;
  const texts = textVector([...keys.keys()]);
  return new Vector([new Data(type, 0, values.length, nullCount, buffers, [], texts)]);
}

/**
 * Encodes all strings into one buffer, which is faster than calling the encoder for each string.
 */
function textVector(values: readonly (string | null)[]): Vector {
  const units = values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
  const bytes = Buffer.allocUnsafe(units * UNIT_BYTES);
  const offsets = new Int32Array(values.length + 1);
  const nullBitmap = new Uint8Array(Math.ceil(values.length / 8));
  let nullCount = 0;
  let at = 0;
  values.forEach((value, row) => {
    if (value === null) {
      nullCount += 1;
    } else {
      at += bytes.write(value, at);
      nullBitmap[row >> 3] = (nullBitmap[row >> 3] ?? 0) | (1 << (row & 7));
    }
    offsets[row + 1] = at;
  });
  const buffers = [offsets, bytes.subarray(0, at), nullBitmap];
  return new Vector([new Data(TEXT.type, 0, values.length, nullCount, buffers as never)]);
}

function ifPresent(value: unknown, encode: (value: unknown) => unknown): unknown {
  return value === null || value === undefined ? null : encode(value);
}

function textOf(value: unknown): string {
  if (typeof value === 'string') {
    return value;
  }
  const text = value instanceof Date ? value.toISOString() : (temporalText(value) ?? String(value));
  const isText = !isArray(value) && typeof value !== 'symbol' && typeof value !== 'function';
  return isText && !text.startsWith('[object ') ? text : refuse(value, 'a string');
}

function booleanOf(value: unknown): boolean {
  return typeof value === 'boolean' || value === 0 || value === 1
    ? Boolean(value)
    : refuse(value, 'a boolean');
}

function numberOf(value: unknown): number {
  return typeof value === 'number' || typeof value === 'bigint'
    ? Number(value)
    : refuse(value, 'a number');
}

function numbersOf(value: unknown, dimensions: number): unknown {
  if (!isArray(value)) {
    return refuse(value, `an array with ${dimensions} dimension${dimensions === 1 ? '' : 's'}`);
  }
  return value instanceof Float64Array && dimensions === 1
    ? value
    : Array.from(value, (item) =>
        ifPresent(item, dimensions === 1 ? numberOf : () => numbersOf(item, dimensions - 1)),
      );
}

/** `limit` is the smallest positive number that the type cannot represent. */
function integerOf(value: unknown, limit: number): number {
  const number = numberOf(value);
  return Number.isInteger(number) && number >= -limit && number < limit
    ? number
    : refuse(value, `an integer from ${-limit} to ${limit - 1}`);
}

function longOf(value: unknown): bigint {
  const isInteger = typeof value === 'bigint' || Number.isSafeInteger(value);
  const long = isInteger ? BigInt(value as number) : refuse(value, 'a bigint or an integer');
  return in64Bits(long, value);
}

/** Returns an integer, which a typed array would truncate if it were larger. */
function in64Bits(integer: bigint, value: unknown): bigint {
  return BigInt.asIntN(64, integer) === integer ? integer : refuse(value, 'a value within 64 bits');
}

function bytesOf(value: unknown): Uint8Array {
  return value instanceof Uint8Array ? value : refuse(value, 'a Uint8Array');
}

/**
 * Converts a value to a timestamp. A number counts the column's units since 1970; a `Date` or a
 * string is a point in time.
 */
function timestampOf(value: unknown, perMilli: bigint): bigint {
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) {
    return BigInt(value as number);
  }
  const text = value instanceof Date ? value : (temporalText(value) ?? value);
  if (text instanceof Date && !Number.isNaN(text.getTime())) {
    return BigInt(text.getTime()) * perMilli;
  }
  const [, day = '', time = '00:00:00', fraction = '', zone = 'Z'] =
    ISO.exec(typeof text === 'string' ? text : '') ?? [];
  const millis = Date.parse(`${day}T${time}${zone}`);
  if (Number.isNaN(millis) || !isDay(day)) {
    return refuse(value, 'a Date, a Temporal value, an ISO 8601 string or an integer');
  }
  return BigInt(millis) * perMilli + (BigInt(fraction.padEnd(9, '0')) * perMilli) / 1_000_000n;
}

/** Whether the month has the day. `Date.parse` continues in the next month instead. */
function isDay(day: string): boolean {
  return day.slice(-2) <= '28' || new Date(day).toISOString().startsWith(day);
}

export function refuse(value: unknown, expected: string): never {
  throw new TypeError(`cannot convert ${shownValue(value)}, expected ${expected}`);
}

/** Formats a value for an error message. */
export function shownValue(value: unknown): string {
  const shown = typeof value === 'string' ? `'${value}'` : String(value);
  return shown.length > MAX_SHOWN_LENGTH ? `${shown.slice(0, MAX_SHOWN_LENGTH)}…` : shown;
}

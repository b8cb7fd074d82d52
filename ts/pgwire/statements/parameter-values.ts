/** Bind: format codes, and values to the text the engine takes, whatever their format. */
import { decodeText } from '../protocol/client-messages.js';
import { ProtocolError } from '../protocol/protocol-error.js';
import { Oid } from '../protocol/type-oids.js';

/** 2000-01-01 in microseconds since 1970, the protocol's origin of time. */
const ORIGIN_MICROS = 946_684_800_000_000n;
const DAY_MICROS = 86_400_000_000n;

/** One value as text; `format` 0 is text, 1 binary. */
export function parameterText(value: string | Buffer, format: number, oid: number): string {
  if (typeof value === 'string') {
    return textValue(value, oid);
  }
  if (format !== 1) {
    throw new ProtocolError('22023', `unsupported format code: ${format}`);
  }
  return binaryValue(value, oid);
}

/** Whether the engine takes the text of a value as it came. */
export function isPlainText(oid: number): boolean {
  return oid !== Oid.Bool;
}

function textValue(text: string, oid: number): string {
  if (text.includes('\0')) {
    throw new ProtocolError('22021', 'invalid byte sequence for encoding "UTF8": 0x00');
  }
  return isPlainText(oid) ? text : booleanText(text);
}

/** PostgreSQL's words for truth. */
function booleanText(text: string): string {
  if (/^(?:t|true|y|yes|on|1)$/i.test(text)) {
    return 'true';
  }
  return /^(?:f|false|n|no|off|0)$/i.test(text) ? 'false' : text;
}

function binaryValue(bytes: Buffer, oid: number): string {
  switch (oid) {
    case Oid.Bool:
      return sized(bytes, 1)[0] === 0 ? 'false' : 'true';
    case Oid.Int2:
      return String(sized(bytes, 2).readInt16BE(0));
    case Oid.Int4:
    case Oid.Oid:
      return String(sized(bytes, 4).readInt32BE(0));
    case Oid.Int8:
      return String(sized(bytes, 8).readBigInt64BE(0));
    case Oid.Float4:
      return String(sized(bytes, 4).readFloatBE(0));
    case Oid.Float8:
      return String(sized(bytes, 8).readDoubleBE(0));
    case Oid.Date:
      return microsText(BigInt(sized(bytes, 4).readInt32BE(0)) * DAY_MICROS + ORIGIN_MICROS);
    case Oid.Timestamp:
    case Oid.Timestamptz:
      return microsText(sized(bytes, 8).readBigInt64BE(0) + ORIGIN_MICROS);
    case Oid.Uuid:
      return sized(bytes, 16)
        .toString('hex')
        .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    case Oid.Bytea:
      return `\\x${bytes.toString('hex')}`;
    case Oid.Float8Array:
    case Oid.Float4Array:
      return arrayText(bytes, FLOATS);
    case Oid.Numeric:
      return numericText(bytes);
    default:
      return ARRAYS.has(oid) ? arrayText(bytes, ELEMENTS) : textValue(decodeText(bytes), oid);
  }
}

const FLOATS: ReadonlySet<number> = new Set([Oid.Float8, Oid.Float4]);
/** What the elements of a parameter that is an array may be. */
const ELEMENTS: ReadonlySet<number> = new Set([
  ...FLOATS,
  ...[Oid.Bool, Oid.Int2, Oid.Int4, Oid.Int8, Oid.Oid, Oid.Text, Oid.Varchar, Oid.Bpchar],
  ...[Oid.Name, Oid.Date, Oid.Timestamp, Oid.Timestamptz, Oid.Uuid, Oid.Numeric, Oid.Unknown],
]);
const ARRAYS: ReadonlySet<number> = new Set([
  ...[Oid.BoolArray, Oid.NameArray, Oid.Int2Array, Oid.Int4Array, Oid.Int8Array, Oid.OidArray],
  ...[Oid.TextArray, Oid.VarcharArray, Oid.TimestampArray, Oid.TimestamptzArray, Oid.UuidArray],
]);

function sized(bytes: Buffer, size: number): Buffer {
  if (bytes.length !== size) {
    throw new ProtocolError('22P03', 'incorrect binary data format in bind parameter');
  }
  return bytes;
}

/** ISO text of microseconds since 1970, exact to the last digit. */
export function microsText(micros: bigint): string {
  const fraction = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const date = new Date(Number((micros - fraction) / 1_000n));
  if (Number.isNaN(date.getTime())) {
    throw new ProtocolError('22008', 'timestamp out of range');
  }
  return date.toISOString().replace(/\.\d{3}Z$/, `.${String(fraction).padStart(6, '0')}Z`);
}

/** `{1.0,NULL,{…}}` of a binary array. */
function arrayText(bytes: Buffer, elements: ReadonlySet<number>): string {
  const malformed = (): ProtocolError =>
    new ProtocolError('22P03', 'incorrect binary data format in bind parameter');
  if (bytes.length < 12) {
    throw malformed();
  }
  const dimensions = bytes.readInt32BE(0);
  if (dimensions < 0 || dimensions > 32 || bytes.length < 12 + dimensions * 8) {
    throw malformed();
  }
  const lengths: number[] = [];
  for (let index = 0; index < dimensions; index += 1) {
    lengths.push(bytes.readInt32BE(12 + index * 8));
  }
  const element = bytes.readInt32BE(8);
  if (!elements.has(element)) {
    throw malformed();
  }
  let at = 12 + dimensions * 8;
  const value = (): string => {
    if (at + 4 > bytes.length) {
      throw malformed();
    }
    const size = bytes.readInt32BE(at);
    at += 4;
    if (size === -1) {
      return 'NULL';
    }
    if (size < 0 || at + size > bytes.length) {
      throw malformed();
    }
    at += size;
    return elementText(binaryValue(bytes.subarray(at - size, at), element));
  };
  const level = (depth: number): string => {
    const length = lengths[depth];
    if (length === undefined) {
      return value();
    }
    if (length < 0 || length > bytes.length) {
      throw malformed();
    }
    const members = Array.from({ length }, () => level(depth + 1));
    return `{${members.join(',')}}`;
  };
  return dimensions === 0 ? '{}' : level(0);
}

/** An element as the text of an array has it. */
function elementText(text: string): string {
  const isPlain = /^[^\s{}",\\]+$/.test(text) && !/^null$/i.test(text);
  return isPlain ? text : `"${text.replace(/["\\]/g, '\\$&')}"`;
}

/** Decimal text of the binary numeric: groups of four digits. */
function numericText(bytes: Buffer): string {
  if (bytes.length < 8 || bytes.length !== 8 + bytes.readInt16BE(0) * 2) {
    throw new ProtocolError('22P03', 'incorrect binary data format in bind parameter');
  }
  const groups = bytes.readInt16BE(0);
  const weight = bytes.readInt16BE(2);
  const sign = bytes.readUInt16BE(4);
  const scale = bytes.readInt16BE(6);
  if (sign === 0xc000) {
    return 'NaN';
  }
  if (sign === 0xd000) {
    return 'Infinity';
  }
  if (sign === 0xf000) {
    return '-Infinity';
  }
  const group = (index: number): string =>
    index >= 0 && index < groups
      ? String(bytes.readInt16BE(8 + index * 2)).padStart(4, '0')
      : '0000';
  let whole = '';
  for (let index = 0; index <= weight; index += 1) {
    whole += group(index);
  }
  let fraction = '';
  for (let index = weight + 1; fraction.length < scale; index += 1) {
    fraction += group(index);
  }
  const digits = whole.replace(/^0+(?=\d)/, '') || '0';
  const point = scale > 0 ? `.${fraction.slice(0, scale)}` : '';
  return `${sign === 0x4000 ? '-' : ''}${digits}${point}`;
}

const NONE: readonly number[] = [];

/** Format codes of Bind: none is text, one serves all, else one each. */
export function formatCodes(
  codes: readonly number[],
  count: number,
  what: string,
): readonly number[] {
  if (count === 0 && codes.length === 0) {
    return NONE;
  }
  if (codes.some((code) => code !== 0 && code !== 1)) {
    throw new ProtocolError('22023', 'unsupported format code');
  }
  if (codes.length === 0) {
    return new Array<number>(count).fill(0);
  }
  if (codes.length === 1) {
    return new Array<number>(count).fill(codes[0] ?? 0);
  }
  if (codes.length === count) {
    return [...codes];
  }
  const message = `bind message has ${codes.length} ${what} formats but ${count} ${what}s`;
  throw new ProtocolError('08P01', message);
}

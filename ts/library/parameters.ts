/** JavaScript values as parameters of a statement. */
import { DatabaseError, ParameterBatch, parameterHeader } from '../session/index.js';

/** A point in time of `Temporal`; all of its types convert to strings. */
interface TemporalValue {
  readonly [Symbol.toStringTag]: string;
  toString(): string;
}

/**
 * A value for `$1`, `$2`, …. Arrays and typed arrays of numbers are SQL arrays; bytes
 * (`Uint8Array`) are BINARY; strings are in the format of the parameter's type.
 */
export type Parameter =
  | string
  | number
  | bigint
  | boolean
  | Date
  | TemporalValue
  | Uint8Array
  | NumberArray
  | readonly ArrayItem[]
  | null;

type ArrayItem =
  string | number | bigint | boolean | Date | TemporalValue | null | readonly ArrayItem[];

type NumberArray =
  | Float64Array
  | Float32Array
  | Int32Array
  | Int16Array
  | Int8Array
  | Uint32Array
  | Uint16Array
  | BigInt64Array;

/** Maximum number of dimensions of an array. */
const MAX_DIMENSIONS = 32;
const TEXT_FORMAT = { format: 0, oid: 0 };
/** Bytes as they are: the binary format of PostgreSQL's BYTEA. */
const BYTES_FORMAT = { format: 1, oid: 17 };

/** Types for parameters whose type the SQL text does not determine. */
type TypeHint = 'BOOLEAN' | 'LONG' | 'DOUBLE' | null;

/** Encodes the values of one execution. Throws a `DatabaseError` for a value of another type. */
export function encodeParameters(values: readonly unknown[], count: number): ParameterBatch {
  if (values.length !== count) {
    const message = `the statement has ${counted(count)}, found ${values.length}`;
    throw new DatabaseError({ code: 'InvalidValue', message });
  }
  if (count === 0) {
    return ParameterBatch.none;
  }
  const row = values.map(encoded);
  const formats = row.map((value) => (Buffer.isBuffer(value) ? BYTES_FORMAT : TEXT_FORMAT));
  return ParameterBatch.of([row], parameterHeader(formats));
}

function counted(count: number): string {
  return count === 1 ? '1 parameter' : `${count} parameters`;
}

/** Returns the type that a value suggests if the statement does not determine one. */
export function typeHint(value: unknown): TypeHint {
  switch (typeof value) {
    case 'boolean':
      return 'BOOLEAN';
    case 'bigint':
      return 'LONG';
    case 'number':
      return Number.isSafeInteger(value) ? 'LONG' : 'DOUBLE';
    default:
      return null;
  }
}

function encoded(value: unknown, index: number): string | Buffer | null {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value);
    default:
      return encodedObject(value, index) ?? (value === null ? null : refuse(index));
  }
}

function encodedObject(value: unknown, index: number): string | Buffer | null {
  if (value instanceof Uint8Array) {
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  }
  if (isArray(value)) {
    return arrayText(value, index);
  }
  if (value instanceof Date && !Number.isNaN(value.getTime())) {
    return value.toISOString();
  }
  return temporalText(value);
}

/** Returns the text of a `Temporal` value; `null` for any other value. */
export function temporalText(value: unknown): string | null {
  const tag = Object.prototype.toString.call(value).slice('[object '.length, -1);
  if (!tag.startsWith('Temporal.')) {
    return null;
  }
  const zoned = value as TemporalValue & { toInstant?: () => TemporalValue };
  return (zoned.toInstant?.() ?? zoned).toString();
}

/** Whether a value is an array or a typed array. */
export function isArray(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

/** Formats an array as PostgreSQL does: `{1,2}`, `{"a b",NULL}`. */
function arrayText(values: ArrayLike<unknown>, index: number, dimension = 1): string {
  if (dimension > MAX_DIMENSIONS) {
    refuse(index);
  }
  const items = Array.from(values, (value) => {
    if (isArray(value)) {
      return arrayText(value, index, dimension + 1);
    }
    const text = encoded(value ?? null, index)?.toString() ?? 'NULL';
    const isText = typeof value === 'string' || (typeof value === 'object' && value !== null);
    return isText ? `"${text.replace(/["\\]/g, '\\$&')}"` : text;
  });
  return `{${items.join(',')}}`;
}

function refuse(index: number): never {
  throw new DatabaseError({
    code: 'InvalidValue',
    message:
      `invalid parameter $${index + 1}: expected a string, number, bigint, boolean, Date, ` +
      'Temporal value, Uint8Array, array or null',
  });
}

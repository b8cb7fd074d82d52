/** Rows of a result as JavaScript objects. */
import { DataType, type Data, type Field, type RecordBatch, type Vector } from 'apache-arrow';

import { DatabaseError } from '../session/index.js';

/** The value of a cell; its JavaScript type depends on the type of the column. */
export type Value =
  string | number | bigint | boolean | Date | Uint8Array | readonly NestedNumbers[] | null | object;

type NestedNumbers = number | null | readonly NestedNumbers[];

/** A row by column name. */
export type Row = Readonly<Record<string, Value>>;

/** How cells are converted to JavaScript values. */
export interface RowOptions {
  /**
   * Representation of DATE, TIMESTAMP and TIMESTAMP_NS. `date` (default) is a `Date`, which has
   * millisecond precision. `string` has all digits. `bigint` counts the column's units since 1970.
   * `instant` is a `Temporal.Instant`.
   */
  readonly timestamps?: 'date' | 'string' | 'bigint' | 'instant' | undefined;
  /**
   * Representation of LONG: `bigint` (default), or `number`, which throws for values beyond 2^53.
   */
  readonly longs?: 'bigint' | 'number' | undefined;
}

/** Reads the cell of a row. */
type Cell = (row: number) => Value;

/** Key of the field metadata that names the SQL type. */
const TYPE_KEY = 'tidemark.type';
const MILLIS = 1_000n;
/** Attributes of a property created by assignment, which would set the prototype instead. */
const PLAIN = { configurable: true, enumerable: true, writable: true };
const SECONDS_PER_400_YEARS = 12_622_780_800;
/** Units of each timestamp type per second. */
const PER_SECOND: Readonly<Record<string, bigint>> = {
  DATE: 1_000n,
  TIMESTAMP: 1_000_000n,
  TIMESTAMP_NS: 1_000_000_000n,
};

/** Returns the rows of a batch. */
export function rowsOf<R = Row>(batch: RecordBatch, options: RowOptions = {}): R[] {
  const fields: readonly Field[] = batch.schema.fields;
  const names = fields.map(({ name }) => name);
  const cells = fields.map((field, index) => cellOf(field, columnOf(batch, index), options));
  return Array.from({ length: batch.numRows }, (_, row) => {
    const values: Record<string, Value> = {};
    cells.forEach((cell, index) => {
      const name = names[index] ?? '';
      if (name === '__proto__') {
        Object.defineProperty(values, name, { ...PLAIN, value: cell(row) });
      } else {
        values[name] = cell(row);
      }
    });
    return values as R;
  });
}

function columnOf(batch: RecordBatch, index: number): Vector {
  const column = batch.getChildAt(index);
  if (column === null) {
    throw new RangeError(`the batch has no column ${index}`);
  }
  return column;
}

function cellOf(field: Field, column: Vector, options: RowOptions): Cell {
  const sqlType = field.metadata.get(TYPE_KEY) ?? '';
  const data = column.data[0] as Data;
  const type = field.type as DataType;
  if (DataType.isTimestamp(type)) {
    return orNull(data, timestampCell(data.values as BigInt64Array, sqlType, options));
  }
  if (DataType.isDictionary(type)) {
    const texts = (data.dictionary?.toArray() ?? []) as ArrayLike<string>;
    const keys = data.values as Int32Array;
    return orNull(data, (row) => texts[keys[row] ?? 0] ?? null);
  }
  if (DataType.isInt(type) && type.bitWidth === 64) {
    return orNull(data, longCell(data.values as BigInt64Array, field.name, options));
  }
  if (DataType.isInt(type) || DataType.isFloat(type)) {
    const values = data.values as Float64Array;
    return orNull(data, (row) => values[row] ?? null);
  }
  if (DataType.isFixedSizeBinary(type)) {
    const format = sqlType === 'UUID' ? uuidText : long256Text;
    return (row) => {
      const bytes = column.get(row) as Uint8Array | null;
      return bytes === null ? null : format(bytes);
    };
  }
  if (DataType.isList(type)) {
    return (row) => nested(column.get(row) as Vector | null);
  }
  return (row) => column.get(row) as Value;
}

function orNull(data: Data, cell: Cell): Cell {
  return data.nullCount === 0 ? cell : (row) => (data.getValid(row) ? cell(row) : null);
}

function longCell(values: BigInt64Array, column: string, { longs }: RowOptions): Cell {
  if (longs !== 'number') {
    return (row) => values[row] ?? null;
  }
  return (row) => {
    const number = Number(values[row]);
    if (!Number.isSafeInteger(number)) {
      throw new DatabaseError({
        code: 'InvalidValue',
        message: `column '${column}' has the value ${values[row]}, which no number represents`,
        hint: "omit longs: 'number'",
      });
    }
    return number;
  };
}

function timestampCell(values: BigInt64Array, sqlType: string, { timestamps }: RowOptions): Cell {
  const perSecond = PER_SECOND[sqlType] ?? MILLIS;
  const nanos = 1_000_000_000n / perSecond;
  switch (timestamps) {
    case 'bigint':
      return (row) => values[row] ?? null;
    case 'string':
      return (row) => timestampText(values[row] ?? 0n, perSecond);
    case 'instant': {
      const { Instant } = temporal();
      return (row) => Instant.fromEpochNanoseconds((values[row] ?? 0n) * nanos);
    }
    default:
      return (row) => new Date(millisOf(values[row] ?? 0n, perSecond));
  }
}

interface Temporal {
  readonly Instant: { fromEpochNanoseconds(nanos: bigint): object };
}

function temporal(): Temporal {
  const found = (globalThis as { Temporal?: Temporal }).Temporal;
  if (found === undefined) {
    const message = "timestamps: 'instant' requires Temporal, which this version of Node.js lacks";
    throw new DatabaseError({ code: 'NotSupported', message });
  }
  return found;
}

/** Rounds down, also before 1970. */
function millisOf(value: bigint, perSecond: bigint): number {
  const perMilli = perSecond / MILLIS;
  const remainder = ((value % perMilli) + perMilli) % perMilli;
  return Number((value - remainder) / perMilli);
}

/** Formats a timestamp like `/exec`, with all digits of its unit. */
function timestampText(value: bigint, perSecond: bigint): string {
  const digits = String(perSecond).length - 1;
  const fraction = ((value % perSecond) + perSecond) % perSecond;
  // A `Date` covers fewer years than the type, but the calendar repeats every 400 years.
  const seconds = (value - fraction) / perSecond;
  const cycles = Math.floor(Number(seconds) / SECONDS_PER_400_YEARS);
  const inCycle = Number(seconds - BigInt(cycles) * BigInt(SECONDS_PER_400_YEARS));
  const date = new Date(inCycle * 1_000);
  const year = date.getUTCFullYear() + 400 * cycles;
  const padded = `${year < 0 ? '-' : ''}${String(Math.abs(year)).padStart(4, '0')}`;
  const rest = date.toISOString().slice('2000'.length, -'.000Z'.length);
  return `${padded}${rest}.${String(fraction).padStart(digits, '0')}Z`;
}

function uuidText(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

/** Formats a LONG256 as the text protocols do, without leading zero bytes. */
function long256Text(bytes: Uint8Array): string {
  return `0x${Buffer.from(bytes)
    .toString('hex')
    .replace(/^(?:00)+(?=..)/, '')}`;
}

function nested(list: Vector | null): NestedNumbers[] | null {
  if (list === null) {
    return null;
  }
  return Array.from({ length: list.length }, (_, index) => {
    const item: unknown = list.get(index);
    const isList = typeof item === 'object' && item !== null;
    return isList ? (nested(item as Vector) ?? null) : ((item as number | undefined) ?? null);
  });
}

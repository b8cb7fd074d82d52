/** Appends rows to a table: objects, columns, or Arrow data, in one commit. */
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
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
  TimestampMicrosecond,
  TimestampMillisecond,
  TimestampNanosecond,
  Utf8,
  Vector,
  vectorFromArray,
  makeData,
} from 'apache-arrow';

import {
  type CopyAppender,
  DatabaseError,
  type PreparedStatement,
  quoteName,
} from '../session/index.js';
import { temporalText } from './parameters.js';

/**
 * A row to append, keyed by column name. Columns without a value get their default. The type
 * accepts any object, because TypeScript does not assign interfaces to record types.
 */
export type NewRow = object;
type Row = Readonly<Record<string, unknown>>;

/**
 * Values of one column. A typed array whose elements have the column's width is copied as a whole.
 */
export type ColumnValues = ArrayLike<unknown>;

export interface AppenderOptions {
  /** The columns to write; by default those of the first rows. */
  readonly columns?: readonly string[];
}

/** Name and SQL type of the table's columns. */
interface TableColumns {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly type: string }[];
}

/** Prepares an INSERT, in the transaction if there is one. */
type Prepare = (text: string) => Promise<PreparedStatement>;

/** A day, and optionally a time with up to nine fractional digits and a zone. */
const ISO =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}:\d{2})(?:\.(\d{1,9}))?(Z|[+-]\d{2}:?\d{2})?)?$/;
/** Maximum UTF-8 bytes per UTF-16 code unit. */
const UNIT_BYTES = 3;
/** Maximum number of rows encoded at once. */
const BATCH_ROWS = 65_536;

interface Target {
  readonly columns: readonly string[];
  readonly insert: PreparedStatement;
  readonly copy: CopyAppender;
}

/**
 * Writes rows to one table. They become visible together: at `finish`, or at the commit of the
 * transaction. An appender that is disposed of before `finish` discards its rows.
 */
export class TableAppender implements AsyncDisposable {
  readonly #table: TableColumns;
  readonly #prepare: Prepare;
  readonly #columns: readonly string[] | undefined;
  #target: Promise<Target> | null = null;
  #isOver = false;

  /** Internal; call `appender` instead. */
  constructor(table: TableColumns, prepare: Prepare, { columns }: AppenderOptions) {
    this.#table = table;
    this.#prepare = prepare;
    this.#columns = columns?.map((name) => this.#column(name).name);
  }

  /** Appends rows. Resolves when they are queued, which applies back-pressure. */
  async append(rows: NewRow | readonly NewRow[]): Promise<void> {
    const all = (isRows(rows) ? rows : [rows]) as readonly Row[];
    const names = namesOf(all);
    for (let start = 0; start < all.length; start += BATCH_ROWS) {
      const part = all.slice(start, start + BATCH_ROWS);
      const columns = names.map((name) => [name, part.map((row) => row[name])] as const);
      await this.#write(columns, part.length);
    }
  }

  /** Appends columns of equal length. */
  async appendColumns(columns: Readonly<Record<string, ColumnValues>>): Promise<void> {
    const entries = Object.entries(columns);
    const rows = entries[0]?.[1].length ?? 0;
    for (const [name, values] of entries) {
      if (values.length !== rows) {
        const message = `column '${name}' has ${values.length} values, expected ${rows}`;
        throw new DatabaseError({ code: 'InvalidValue', message });
      }
    }
    await this.#write(entries, rows);
  }

  /** Appends the rows of an Arrow table or batch; its columns are matched by name. */
  async appendTable(table: Table | RecordBatch): Promise<void> {
    const names = table.schema.fields.map(({ name }) => name);
    const batches = table instanceof Table ? table.batches : [table];
    for (const batch of batches) {
      await this.#send(new Table([batch]), names);
    }
  }

  /** Commits the rows, or adds them to the transaction. Resolves to the number of rows. */
  async finish(): Promise<number> {
    this.#refuseIfOver();
    this.#isOver = true;
    if (this.#target === null) {
      return 0;
    }
    const { copy, insert } = await this.#target;
    try {
      const { failure, rows } = await copy.finish();
      if (failure !== undefined) {
        const { line, message, ...rest } = failure;
        throw new DatabaseError({ ...rest, message: `row ${line}: ${message}` });
      }
      return rows;
    } finally {
      insert.close();
    }
  }

  /** Discards the rows. */
  async abort(): Promise<void> {
    if (!this.#isOver) {
      this.#isOver = true;
      const target = await this.#target?.catch(() => null);
      await target?.copy.abort();
      target?.insert.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.abort();
  }

  async #write(
    columns: readonly (readonly [name: string, values: ColumnValues])[],
    rows: number,
  ): Promise<void> {
    const vectors = columns.map(([name, values]) => {
      const column = this.#column(name);
      try {
        return vectorOf(values, column.type);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        const message = `column '${column.name}' (${column.type}): ${reason}`;
        throw new DatabaseError({ code: 'InvalidValue', message }, { cause: error });
      }
    });
    const fields = columns.map(
      ([name], index) => new Field(name, vectors[index]?.type ?? new Utf8(), true),
    );
    const children = vectors.flatMap(({ data }): readonly Data[] => data);
    const data = makeData({ type: new Struct(fields), length: rows, children });
    await this.#send(
      new Table([new RecordBatch(new Schema(fields), data)]),
      columns.map(([name]) => name),
    );
  }

  async #send(table: Table, names: readonly string[]): Promise<void> {
    this.#refuseIfOver();
    if (table.numRows === 0) {
      return;
    }
    this.#target ??= this.#open(this.#columns ?? names);
    const { columns, copy } = await this.#target;
    const other = names.find((name) => !columns.some((column) => isSame(column, name)));
    if (other !== undefined) {
      throw new DatabaseError({
        code: 'InvalidValue',
        message: `column '${other}' is not among the columns of the appender: ${columns.join(', ')}`,
        hint: 'name all columns in the option `columns`',
      });
    }
    await copy.write(Buffer.from(tableToIPC(table, 'stream')));
  }

  async #open(names: readonly string[]): Promise<Target> {
    const columns = names.map((name) => this.#column(name).name);
    const placeholders = columns.map((_, index) => `$${index + 1}`).join(', ');
    const target = `${quoteName(this.#table.name)} (${columns.map(quoteName).join(', ')})`;
    const insert = await this.#prepare(`INSERT INTO ${target} VALUES (${placeholders})`);
    const marks = {
      delimiter: ',',
      quote: '"',
      escape: '"',
      nullText: '',
      header: 'none',
    } as const;
    const how = { oid: 0, forceNotNull: false, forceNull: false };
    const form = { format: 'arrow', ...marks, columns: columns.map(() => how) } as const;
    try {
      return { columns, insert, copy: await insert.openCopy(form) };
    } catch (error) {
      insert.close();
      throw error;
    }
  }

  #column(name: string): TableColumns['columns'][number] {
    const column = this.#table.columns.find((known) => isSame(known.name, name));
    if (column === undefined) {
      const message = `column does not exist [table=${this.#table.name}, column=${name}]`;
      throw new DatabaseError({ code: 'ColumnNotFound', message });
    }
    return column;
  }

  #refuseIfOver(): void {
    if (this.#isOver) {
      throw new DatabaseError({ code: 'Closed', message: 'the appender is closed' });
    }
  }
}

function isRows(rows: NewRow | readonly NewRow[]): rows is readonly NewRow[] {
  return Array.isArray(rows);
}

/** Returns the names that occur in any row. */
function namesOf(rows: readonly Row[]): string[] {
  const names = new Set<string>();
  for (const row of rows) {
    for (const name of Object.keys(row)) {
      names.add(name);
    }
  }
  return [...names];
}

/** Whether two names mean the same column. */
function isSame(one: string, other: string): boolean {
  return one.toLowerCase() === other.toLowerCase();
}

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
const timestamps = (type: DataType, perMilli: bigint): Encoding => ({
  type,
  own: BigInt64Array,
  encode: (value) => timestampOf(value, perMilli),
});

/** Types that are not listed are sent as strings. */
const ENCODINGS: Readonly<Record<string, Encoding>> = {
  BOOLEAN: { type: new Bool(), encode: (value) => value },
  BYTE: { type: new Int8(), own: Int8Array, encode: integerOf },
  SHORT: { type: new Int16(), own: Int16Array, encode: integerOf },
  INT: { type: new Int32(), own: Int32Array, encode: integerOf },
  LONG: { type: new Int64(), own: BigInt64Array, encode: longOf },
  FLOAT: { type: new Float32(), own: Float32Array, encode: numberOf },
  DOUBLE: DOUBLES,
  DATE: timestamps(new TimestampMillisecond(), 1n),
  TIMESTAMP: timestamps(new TimestampMicrosecond(), 1_000n),
  TIMESTAMP_NS: timestamps(new TimestampNanosecond(), 1_000_000n),
  BINARY: { type: new Binary(), encode: bytesOf },
  SYMBOL,
};

function encodingOf(sqlType: string): Encoding {
  const dimensions = /^DOUBLE((?:\[\])+)$/.exec(sqlType)?.[1];
  if (dimensions === undefined) {
    return ENCODINGS[sqlType] ?? TEXT;
  }
  let type: DataType = new Float64();
  for (let depth = 0; depth < dimensions.length / 2; depth += 1) {
    type = new List(new Field('item', type, true));
  }
  return { type, encode: (value) => value };
}

function vectorOf(values: ColumnValues, sqlType: string): Vector {
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
  return value instanceof Date ? value.toISOString() : (temporalText(value) ?? String(value));
}

function numberOf(value: unknown): number {
  const number = typeof value === 'string' ? Number.NaN : Number(value);
  return Number.isNaN(number) && typeof value !== 'number' ? refuse(value, 'a number') : number;
}

function integerOf(value: unknown): number {
  const number = numberOf(value);
  return Number.isInteger(number) ? number : refuse(value, 'an integer');
}

function longOf(value: unknown): bigint {
  const isInteger = typeof value === 'bigint' || Number.isSafeInteger(value);
  return isInteger ? BigInt(value as number) : refuse(value, 'a bigint or an integer');
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
  if (Number.isNaN(millis)) {
    return refuse(value, 'a Date, a Temporal value, an ISO 8601 string or an integer');
  }
  return BigInt(millis) * perMilli + (BigInt(fraction.padEnd(9, '0')) * perMilli) / 1_000_000n;
}

function refuse(value: unknown, expected: string): never {
  const shown = typeof value === 'string' ? `'${value}'` : String(value);
  throw new TypeError(`cannot convert ${shown}, expected ${expected}`);
}

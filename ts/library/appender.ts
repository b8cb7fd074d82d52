/** Appends rows to a table: objects, columns, or Arrow data, in one commit. */
import {
  type Data,
  Field,
  RecordBatch,
  Schema,
  Struct,
  Table,
  tableToIPC,
  Utf8,
  makeData,
} from 'apache-arrow';

import {
  type CopyAppender,
  DatabaseError,
  type PreparedStatement,
  quoteName,
} from '../session/index.js';
import { checkArrowValues } from './arrow-values.js';
import { type ColumnValues, encodingOf, shownValue, vectorOf } from './vectors.js';

/**
 * A row to append, keyed by column name. Columns without a value get their default. The type
 * accepts any object, because TypeScript does not assign interfaces to record types.
 */
export type NewRow = object;
type Row = Readonly<Record<string, unknown>>;

export interface AppenderOptions {
  /** The columns to write; by default those of the first rows. */
  readonly columns?: readonly string[] | undefined;
}

interface Column {
  readonly name: string;
  readonly type: string;
}

/** The table's name and columns. */
interface TableColumns {
  readonly name: string;
  readonly columns: readonly Column[];
}

/** A column's name in the input, and its values. */
type NamedValues = readonly [name: string, values: ColumnValues];

/** Rows to send, and the names of their columns. */
interface Batch {
  readonly table: Table;
  readonly names: readonly string[];
}

/** Prepares an INSERT, in the transaction if there is one. */
type Prepare = (text: string) => Promise<PreparedStatement>;

/** Maximum number of rows encoded at once. */
const BATCH_ROWS = 65_536;
/** Maximum length of a column's strings, bytes or lists that are encoded at once. */
const MAX_BATCH_LENGTH = 16 * 1024 * 1024;

interface Target {
  readonly columns: readonly string[];
  /** The names of the columns in lower case. */
  readonly known: ReadonlySet<string>;
  readonly insert: PreparedStatement;
  readonly copy: CopyAppender;
}

/**
 * Writes rows to one table. They become visible together: at `finish`, or at the commit of the
 * transaction. An appender that is disposed of before `finish` discards its rows.
 */
export class TableAppender implements AsyncDisposable {
  readonly #table: string;
  /** The table's columns by lower-case name. */
  readonly #known: ReadonlyMap<string, Column>;
  readonly #prepare: Prepare;
  readonly #columns: readonly string[] | undefined;
  readonly #running = new Set<Promise<void>>();
  #target: Promise<Target> | null = null;
  #isOver = false;
  #isAborted = false;
  /** The error of an append that had already queued some of its rows. */
  #failure: unknown = null;

  /** Internal; call `appender` instead. */
  constructor(table: TableColumns, prepare: Prepare, { columns }: AppenderOptions) {
    this.#table = table.name;
    this.#known = new Map(table.columns.map((column) => [lowerCase(column.name), column]));
    this.#prepare = prepare;
    this.#columns = columns?.map((name) => this.#column(name).name);
  }

  /** Appends rows. Resolves when they are queued, which applies back-pressure. */
  async append(rows: NewRow | readonly NewRow[]): Promise<void> {
    const all = (isRows(rows) ? rows : [rows]) as readonly Row[];
    const names = namesOf(all);
    await this.#accept(this.#rowBatches(all, names));
  }

  /** Appends columns of equal length. */
  async appendColumns<T extends { readonly [name in keyof T]: ColumnValues }>(
    columns: T,
  ): Promise<void> {
    const entries: [string, ColumnValues][] = Object.entries(columns);
    for (const [name, values] of entries) {
      const { length: rows } = entries[0]?.[1] ?? [];
      if (!Number.isSafeInteger((values as ColumnValues | null)?.length)) {
        throw invalid(`column '${name}': expected an array or a typed array`);
      }
      if (values.length !== rows) {
        throw invalid(`column '${name}' has ${values.length} values, expected ${rows}`);
      }
    }
    await this.#accept(this.#batches(entries, entries[0]?.[1].length ?? 0));
  }

  /** Appends the rows of an Arrow table or batch; its columns are matched by name. */
  async appendTable(table: Table | RecordBatch): Promise<void> {
    const names = table.schema.fields.map(({ name }) => name);
    const batches = table instanceof Table ? table.batches : [table];
    batches.forEach(({ data }) => {
      this.#checkValues(data, names);
    });
    await this.#accept(batches.map((batch) => ({ table: new Table([batch]), names })));
  }

  /** Commits the rows, or adds them to the transaction. Resolves to the number of rows. */
  async finish(): Promise<number> {
    this.#refuseIfOver();
    this.#isOver = true;
    await Promise.allSettled(this.#running);
    if (this.#target === null) {
      return 0;
    }
    const { copy, insert } = await this.#target;
    try {
      if (this.#failure !== null) {
        await copy.abort();
        const message = 'nothing was written, because an append failed after queuing some rows';
        throw new DatabaseError({ code: 'InvalidValue', message }, { cause: this.#failure });
      }
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
      this.#isAborted = true;
      await Promise.allSettled(this.#running);
      const target = await this.#target?.catch(() => null);
      await target?.copy.abort();
      target?.insert.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.abort();
  }

  /** Queues batches. Several appends may run at the same time. */
  async #accept(batches: Iterable<Batch>): Promise<void> {
    this.#refuseIfOver();
    const running = this.#queue(batches);
    this.#running.add(running);
    try {
      await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #queue(batches: Iterable<Batch>): Promise<void> {
    let hasQueued = false;
    try {
      for (const batch of batches) {
        if (this.#isAborted) {
          throw new DatabaseError({ code: 'Closed', message: 'the appender is closed' });
        }
        await this.#send(batch);
        hasQueued = true;
      }
    } catch (error) {
      if (hasQueued) {
        this.#failure ??= error;
      }
      throw error;
    }
  }

  *#rowBatches(rows: readonly Row[], names: readonly string[]): Generator<Batch, void> {
    for (let start = 0; start < rows.length; start += BATCH_ROWS) {
      const part = rows.slice(start, start + BATCH_ROWS);
      const columns = names.map((name) => [name, valuesOf(part, name)] as const);
      yield* this.#batches(columns, part.length);
    }
  }

  /** Encodes columns. Halves them while any column is too long, because Arrow limits its size. */
  *#batches(columns: readonly NamedValues[], rows: number): Generator<Batch, void> {
    const isLong = ([name, values]: NamedValues): boolean =>
      encodingOf(this.#column(name).type).own === undefined && lengthOf(values) > MAX_BATCH_LENGTH;
    if (rows < 2 || !columns.some(isLong)) {
      yield this.#encoded(columns, rows);
      return;
    }
    const middle = Math.ceil(rows / 2);
    for (const [start, end] of [
      [0, middle],
      [middle, rows],
    ] as const) {
      const half = columns.map(([name, values]): NamedValues => {
        return [name, Array.prototype.slice.call(values, start, end)];
      });
      yield* this.#batches(half, end - start);
    }
  }

  #encoded(columns: readonly NamedValues[], rows: number): Batch {
    const vectors = columns.map(([name, values]) => {
      const column = this.#column(name);
      return inColumn(column, () => vectorOf(values, column.type));
    });
    const fields = columns.map(
      ([name], index) => new Field(name, vectors[index]?.type ?? new Utf8(), true),
    );
    const children = vectors.flatMap(({ data }): readonly Data[] => data);
    const data = makeData({ type: new Struct(fields), length: rows, children });
    const table = new Table([new RecordBatch(new Schema(fields), data)]);
    return { table, names: columns.map(([name]) => name) };
  }

  /** Refuses Arrow values that the column would change. An unknown column is refused later. */
  #checkValues({ children }: Data, names: readonly string[]): void {
    children.forEach((values: Data, index) => {
      const column = this.#known.get(lowerCase(names[index] ?? ''));
      if (column !== undefined) {
        inColumn(column, () => {
          checkArrowValues(values, column.type);
        });
      }
    });
  }

  async #send({ table, names }: Batch): Promise<void> {
    if (table.numRows === 0) {
      return;
    }
    const { columns, known, copy } = await this.#opened(names);
    const other = names.find((name) => !known.has(lowerCase(name)));
    if (other !== undefined) {
      throw new DatabaseError({
        code: 'InvalidValue',
        message: `column '${other}' is not among the columns of the appender: ${columns.join(', ')}`,
        hint: 'name all columns in the option `columns`',
      });
    }
    await copy.write(Buffer.from(tableToIPC(table, 'stream')));
  }

  /** Returns the target. If it cannot be opened, the next append tries again. */
  async #opened(names: readonly string[]): Promise<Target> {
    const target = (this.#target ??= this.#open(this.#columns ?? names));
    try {
      return await target;
    } catch (error) {
      if (this.#target === target) {
        this.#target = null;
      }
      throw error;
    }
  }

  async #open(names: readonly string[]): Promise<Target> {
    const columns = names.map((name) => this.#column(name).name);
    if (columns.length === 0) {
      throw invalid('the rows have no columns');
    }
    const known = new Set(columns.map(lowerCase));
    const placeholders = columns.map((_, index) => `$${index + 1}`).join(', ');
    const target = `${quoteName(this.#table)} (${columns.map(quoteName).join(', ')})`;
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
      return { columns, known, insert, copy: await insert.openCopy(form) };
    } catch (error) {
      insert.close();
      throw error;
    }
  }

  #column(name: string): Column {
    const column = this.#known.get(lowerCase(name));
    if (column === undefined) {
      const message = `column does not exist [table=${this.#table}, column=${name}]`;
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

/** Adds the column to the error of a value. */
function inColumn<T>({ name, type }: Column, work: () => T): T {
  try {
    return work();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw invalid(`column '${name}' (${type}): ${reason}`, error);
  }
}

function isRows(rows: NewRow | readonly NewRow[]): rows is readonly NewRow[] {
  return Array.isArray(rows);
}

/** Returns the names that occur in any row. Refuses values that are not rows. */
function namesOf(rows: readonly unknown[]): string[] {
  const names = new Set<string>();
  for (const row of rows) {
    const own = typeof row === 'object' && row !== null ? Object.keys(row) : null;
    // Sets, maps and generators have no properties.
    if (own === null || (own.length === 0 && Symbol.iterator in (row as object))) {
      throw invalid(`expected an object or an array of objects, found ${shownValue(row)}`);
    }
    for (const name of own) {
      names.add(name);
    }
  }
  return [...names];
}

/** Returns a column's values. Ignores what every object inherits, such as `constructor`. */
function valuesOf(rows: readonly Row[], name: string): unknown[] {
  return name in Object.prototype
    ? rows.map((row) => (Object.hasOwn(row, name) ? row[name] : null))
    : rows.map((row) => row[name]);
}

/** Names that are equal in lower case mean the same column. */
function lowerCase(name: string): string {
  return name.toLowerCase();
}

/** Returns the total length of the strings, bytes and lists in a column. */
function lengthOf(values: ColumnValues): number {
  let length = 0;
  for (const value of Array.isArray(values) ? (values as unknown[]) : Array.from(values)) {
    length += (value as { length?: number } | null | undefined)?.length ?? 0;
  }
  return length;
}

function invalid(message: string, cause?: unknown): DatabaseError {
  return new DatabaseError({ code: 'InvalidValue', message }, { cause });
}

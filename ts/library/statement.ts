/** A prepared statement of the library, and the forms of its result. */
import {
  type Data,
  type DataType,
  makeData,
  RecordBatch,
  Schema,
  Struct,
  Table,
} from 'apache-arrow';

import type { PreparedStatement, ResultColumn, Summary } from '../session/index.js';
import { cancellable, execution, type ExecutionOptions, NOTHING_COUNTED } from './execution.js';
import type { Parameter } from './parameters.js';
import { type Row, type RowOptions, rowsOf } from './rows.js';

/** Kinds of statements that write rows. DELETE is an update. */
const WRITES: ReadonlySet<string> = new Set(['insert', 'update']);

/** Options of a query whose rows become objects. */
export interface QueryOptions extends ExecutionOptions, RowOptions {}

/**
 * A statement that can be executed many times. Executions may overlap; close the statement when it
 * is no longer needed.
 */
export class Statement implements AsyncDisposable {
  readonly #prepared: PreparedStatement;

  /** Internal; call `prepare` instead. */
  constructor(prepared: PreparedStatement) {
    this.#prepared = prepared;
  }

  /** Names and SQL types of the result's columns; empty without a result. */
  get columns(): readonly ResultColumn[] {
    return this.#prepared.description.columns;
  }

  /** SQL types of the parameters `$1`, `$2`, …. */
  get parameterTypes(): readonly string[] {
    return this.#prepared.description.parameters;
  }

  /** Returns all rows as objects. */
  async query<R = Row>(
    parameters: readonly Parameter[] = [],
    options: QueryOptions = {},
  ): Promise<R[]> {
    const rows: R[] = [];
    for await (const batch of execution(this.#prepared, parameters, options)) {
      for (const row of rowsOf<R>(batch, options)) {
        rows.push(row);
      }
    }
    return rows;
  }

  /** Returns the first row, `undefined` without rows, and cancels the query. */
  async get<R = Row>(
    parameters: readonly Parameter[] = [],
    options: QueryOptions = {},
  ): Promise<R | undefined> {
    for await (const row of this.iterate<R>(parameters, options)) {
      return row;
    }
    return undefined;
  }

  /** Yields the rows as objects; leaving the loop cancels the query at once. */
  iterate<R = Row>(
    parameters: readonly Parameter[] = [],
    options: QueryOptions = {},
  ): AsyncIterableIterator<R> {
    const { signal: given, ...rest } = options;
    return cancellable((signal) => this.#rows<R>(parameters, { ...rest, signal }), given);
  }

  async *#rows<R>(
    parameters: readonly Parameter[],
    options: QueryOptions,
  ): AsyncGenerator<R, void> {
    for await (const batch of execution(this.#prepared, parameters, options)) {
      yield* rowsOf<R>(batch, options);
    }
  }

  /** Returns all rows as an Arrow table. */
  async table(
    parameters: readonly Parameter[] = [],
    options: ExecutionOptions = {},
  ): Promise<Table> {
    const batches: RecordBatch[] = [];
    for await (const batch of execution(this.#prepared, parameters, options)) {
      batches.push(batch);
    }
    return tableOf(batches);
  }

  /** Yields the rows as Arrow batches; leaving the loop cancels the query at once. */
  stream(
    parameters: readonly Parameter[] = [],
    options: ExecutionOptions = {},
  ): AsyncIterableIterator<RecordBatch> {
    const { signal: given, ...rest } = options;
    return cancellable(
      (signal) => execution(this.#prepared, parameters, { ...rest, signal }),
      given,
    );
  }

  /**
   * Executes the statement and discards its rows. A query is cancelled after its first rows. A
   * write runs to its end, and the rows of its RETURNING clause are the rows that it affected.
   */
  async execute(
    parameters: readonly Parameter[] = [],
    options: ExecutionOptions = {},
  ): Promise<Summary> {
    const run = execution(this.#prepared, parameters, options);
    const isWrite = WRITES.has(this.#prepared.description.kind);
    let rows = 0;
    let step = await run.next();
    while (step.done !== true) {
      rows += step.value.numRows;
      step = await (isWrite ? run.next() : run.return(NOTHING_COUNTED));
    }
    return isWrite && rows > 0 ? { ...step.value, rowsAffected: rows } : step.value;
  }

  close(): void {
    this.#prepared.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.close();
    return Promise.resolve();
  }
}

/**
 * Returns a table of these batches. All batches are converted to one schema, because Arrow batches
 * can differ in their dictionary types and in whether a column is nullable.
 */
function tableOf(batches: readonly RecordBatch[]): Table {
  const [first] = batches;
  if (first === undefined) {
    return new Table();
  }
  const fields = first.schema.fields.map((field, index) =>
    field.clone({ nullable: batches.some(({ schema }) => schema.fields[index]?.nullable) }),
  );
  const schema = new Schema(fields, first.schema.metadata);
  const type = new Struct(fields);
  const same = batches.map(({ data }) => {
    const children = data.children.map((child: Data, index): Data => {
      return child.clone(fields[index]?.type as DataType);
    });
    return new RecordBatch(schema, makeData({ type, length: data.length, children }));
  });
  return new Table(schema, same);
}

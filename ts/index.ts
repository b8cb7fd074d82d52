/**
 * The embedded library: a database in this process, and the server as a function.
 *
 *   import { open } from 'tidemark';
 *   const db = await open({ root: './data' });
 *   const table = await db.query('SELECT symbol, avg(price) FROM trades SAMPLE BY 1h');
 *   await db.close();
 */
import { join, resolve } from 'node:path';

import { type RecordBatch, Table } from 'apache-arrow';

import { type Copy, createCopy } from './copy/index.js';
import {
  type Appender,
  type AppenderSpec,
  type Database,
  DatabaseError,
  openDatabase,
  type OpenOptions,
} from './engine/index.js';
// Not imported through the directory's index, because the server must not load Arrow.
import { arenaToBatch } from './engine/arrow.js';
import { TextFiles } from './ingest/index.js';
import {
  type TextShapeDetector,
  type ParameterValues,
  type PreparedStatement,
  type Session,
  SessionHost,
  type Summary,
} from './session/index.js';
import { readStatement } from './sql/index.js';

export { DatabaseError } from './engine/index.js';
export type { Appender, AppenderSpec, OpenOptions } from './engine/index.js';
export { type RunningServer, type ServeOptions, startServer as serve } from './main.js';
export type { ParameterValues, Summary } from './session/index.js';
export { StartError } from './start-error.js';

const USER = { name: 'admin', readOnly: false };

/**
 * A value for `$1`, `$2`, …: a string in the parameter type's format, or a value that converts to
 * one.
 */
export type Parameter = string | number | bigint | boolean | Date | null;

/** A database open in this process; no other process can open its root at the same time. */
export class EmbeddedDatabase {
  readonly #database: Database;
  readonly #copy: Copy;
  readonly #session: Session;

  /** Internal constructor; call `open` instead. */
  constructor(database: Database, copy: Copy, detectTextShape: TextShapeDetector) {
    this.#database = database;
    this.#copy = copy;
    const server = { Copy: copy.statements };
    this.#session = new SessionHost({
      database,
      parse: readStatement,
      server,
      detectTextShape,
    }).open(USER);
  }

  /**
   * Runs a query and returns its rows as an Arrow table; 64-bit integers are bigint values.
   * `parameters` are the values of `$1`, `$2`, …
   */
  async query(sql: string, parameters: readonly Parameter[] = []): Promise<Table> {
    const batches: RecordBatch[] = [];
    for await (const batch of this.stream(sql, parameters)) {
      batches.push(batch);
    }
    return new Table(batches);
  }

  /** Like `query`, but yields one batch at a time; leaving the loop cancels the query. */
  async *stream(sql: string, parameters: readonly Parameter[] = []): AsyncGenerator<RecordBatch> {
    const statement = await this.#session.prepare(sql);
    try {
      yield* batchesOf(statement, parameters.map(textOf));
    } finally {
      statement.close();
    }
  }

  /** Runs a statement that returns no rows: INSERT, UPDATE, CREATE TABLE, … */
  async execute(sql: string, parameters: readonly Parameter[] = []): Promise<Summary> {
    const statement = await this.#session.prepare(sql);
    try {
      const { summary, stream } = await statement.execute(parameters.map(textOf), {
        rows: { format: 'json' },
      });
      stream?.cancel();
      return summary ?? NOTHING_COUNTED;
    } finally {
      statement.close();
    }
  }

  /** Opens an appender for bulk loads of CSV lines, which `finish` commits. */
  async appender(spec: AppenderSpec): Promise<Appender> {
    return await this.#database.openAppender(spec);
  }

  async close(): Promise<void> {
    await this.#copy.close();
    await this.#database.close();
  }
}

const NOTHING_COUNTED: Summary = {
  rowsReturned: 0,
  rowsTotal: 0,
  rowsAffected: 0,
  executeNanos: 0,
};

/**
 * Opens a root directory and recovers it after a crash; creates the directory if it does not exist.
 */
export async function open(options: OpenOptions): Promise<EmbeddedDatabase> {
  const database = await openDatabase(options);
  const root = resolve(options.root);
  const texts = new TextFiles({ directory: join(root, 'tmp', 'texts') });
  const detectTextShape: TextShapeDetector = (request, signal) =>
    texts.detectShape(request, signal);
  const copy = createCopy({
    database,
    detectTextShape,
    importRoot: resolve(options.importRoot ?? join(root, 'import')),
    exportRoot: join(root, 'export'),
  });
  return new EmbeddedDatabase(database, copy, detectTextShape);
}

/** Checks the type, because JavaScript callers can pass any value. */
function textOf(value: unknown, index: number): string | null {
  switch (typeof value) {
    case 'string':
      return value;
    case 'number':
    case 'bigint':
    case 'boolean':
      return String(value);
    default:
      if (value === null) {
        return null;
      }
      if (value instanceof Date && !Number.isNaN(value.getTime())) {
        return value.toISOString();
      }
      throw new DatabaseError({
        code: 'InvalidValue',
        message:
          `invalid parameter $${index + 1}: expected a string, number, bigint, boolean, ` +
          'Date or null',
      });
  }
}

async function* batchesOf(
  statement: PreparedStatement,
  parameters: ParameterValues,
): AsyncGenerator<RecordBatch> {
  const reply = await statement.execute(parameters, { rows: { format: 'arrow' } });
  let finished = false;
  try {
    let chunk = reply.chunk ?? (await reply.stream?.next()) ?? null;
    while (chunk !== null) {
      yield arenaToBatch(chunk.bytes);
      chunk = (await reply.stream?.next()) ?? null;
    }
    finished = true;
  } finally {
    if (!finished) {
      reply.stream?.cancel();
    }
  }
}

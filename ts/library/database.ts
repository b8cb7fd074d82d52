/** A database in this process. */
import { type RecordBatch, type Table } from 'apache-arrow';

import type { Copy } from '../copy/index.js';
import {
  cleanTableName,
  ImportError,
  type ImportReport,
  importText,
  isDelimiter,
  readImportParameters,
} from '../ingest/index.js';
import {
  type Database,
  DatabaseError,
  type ParsedStatement,
  type PreparedStatement,
  type Session,
  type SessionHost,
  splitStatements,
  type Summary,
} from '../session/index.js';
import { type AppenderOptions, TableAppender } from './appender.js';
import { type Change, type ChangeOptions, followChanges } from './changes.js';
import { cancellable, type ExecutionOptions } from './execution.js';
import { type Parameter, typeHint } from './parameters.js';
import type { Row } from './rows.js';
import { refuseSessionStatement } from './session-statements.js';
import { statementOf, type Text, textOf } from './sql.js';
import { type QueryOptions, Statement } from './statement.js';

/** Options of a CSV import; their names and meaning are those of `/imp`. */
export interface CsvOptions {
  /** One character; detected by default. */
  readonly delimiter?: string | undefined;
  /** Whether the first line contains names; detected by default. */
  readonly header?: boolean | undefined;
  /** Designated timestamp of a new table. */
  readonly timestamp?: string | undefined;
  /** Partitioning of a new table, such as `DAY`. */
  readonly partitionBy?: string | undefined;
  /** Whether to replace the table. */
  readonly overwrite?: boolean | undefined;
  /** Whether to create the table if it does not exist; true by default. */
  readonly create?: boolean | undefined;
}

/** Queries and writes of a database or of a transaction. */
export class Connection {
  protected readonly database: Database;
  readonly #session: Session;
  #isOver = false;

  /** Internal. */
  constructor(database: Database, session: Session) {
    this.database = database;
    this.#session = session;
  }

  protected get session(): Session {
    if (this.#isOver) {
      throw new DatabaseError({ code: 'Closed', message: 'the transaction has ended' });
    }
    return this.#session;
  }

  /** Refuses all further statements. */
  protected end(): void {
    this.#isOver = true;
  }

  /** Prepares a statement for repeated execution. `types` declares types of parameters. */
  async prepare(sql: string, types: readonly (string | null)[] = []): Promise<Statement> {
    return new Statement(await this.session.prepare(this.#read(sql), types));
  }

  /**
   * Returns the rows of a query as objects. By default, a LONG becomes a bigint and a timestamp
   * becomes a `Date`.
   */
  async query<R = Row>(
    sql: Text,
    parameters: readonly Parameter[] = [],
    options: QueryOptions = {},
  ): Promise<R[]> {
    const { statement, values } = await this.#prepared(sql, parameters, options);
    return await closing(statement, () => statement.query<R>(values, options));
  }

  /** Returns the first row of a query; `undefined` without rows. */
  async get<R = Row>(
    sql: Text,
    parameters: readonly Parameter[] = [],
    options: QueryOptions = {},
  ): Promise<R | undefined> {
    const { statement, values } = await this.#prepared(sql, parameters, options);
    return await closing(statement, () => statement.get<R>(values, options));
  }

  /** Returns the rows of a query as an Arrow table. */
  async table(
    sql: Text,
    parameters: readonly Parameter[] = [],
    options: ExecutionOptions = {},
  ): Promise<Table> {
    const { statement, values } = await this.#prepared(sql, parameters, options);
    return await closing(statement, () => statement.table(values, options));
  }

  /** Yields the rows of a query as objects; leaving the loop cancels the query at once. */
  iterate<R = Row>(
    sql: Text,
    parameters: readonly Parameter[] = [],
    options: QueryOptions = {},
  ): AsyncIterableIterator<R> {
    return this.#loop(sql, parameters, options, (statement, values, limits) =>
      statement.iterate<R>(values, limits),
    );
  }

  /** Yields the rows of a query as Arrow batches; leaving the loop cancels the query at once. */
  stream(
    sql: Text,
    parameters: readonly Parameter[] = [],
    options: ExecutionOptions = {},
  ): AsyncIterableIterator<RecordBatch> {
    return this.#loop(sql, parameters, options, (statement, values, limits) =>
      statement.stream(values, limits),
    );
  }

  #loop<T>(
    sql: Text,
    parameters: readonly Parameter[],
    { signal: given, ...rest }: QueryOptions,
    rowsOf: (
      statement: Statement,
      values: readonly Parameter[],
      options: QueryOptions,
    ) => AsyncIterableIterator<T>,
  ): AsyncIterableIterator<T> {
    const prepare = this.#prepared.bind(this);
    return cancellable(async function* (signal) {
      const { statement, values } = await prepare(sql, parameters, { signal });
      try {
        yield* rowsOf(statement, values, { ...rest, signal });
      } finally {
        statement.close();
      }
    }, given);
  }

  /** Runs a statement and discards its rows: INSERT, UPDATE, CREATE TABLE, …. */
  async execute(
    sql: Text,
    parameters: readonly Parameter[] = [],
    options: ExecutionOptions = {},
  ): Promise<Summary> {
    const { statement, values } = await this.#prepared(sql, parameters, options);
    return await closing(statement, () => statement.execute(values, options));
  }

  /** Opens an appender for an existing table. */
  async appender(table: string, options: AppenderOptions = {}): Promise<TableAppender> {
    const metadata = await this.database.tableMetadata(table);
    if (metadata === null) {
      const message = `table does not exist [table=${table}]`;
      throw new DatabaseError({ code: 'TableNotFound', message });
    }
    return new TableAppender(metadata, (text) => this.session.prepare(text), options);
  }

  /** Parses SQL text. Refuses BEGIN, SET and so on, which would have no effect. */
  #read(sql: string): ParsedStatement {
    const parsed = this.session.read(textOf(sql));
    const { dispatch } = parsed;
    if (dispatch.runner === 'session') {
      refuseSessionStatement(dispatch.statement);
    }
    return parsed;
  }

  /**
   * Prepares a statement. If the statement does not determine the type of a parameter, the
   * JavaScript value does.
   */
  async #prepared(
    sql: Text,
    parameters: readonly Parameter[],
    { signal }: ExecutionOptions,
  ): Promise<{ statement: Statement; values: readonly Parameter[] }> {
    signal?.throwIfAborted();
    const { text, parameters: values } = statementOf(sql, parameters);
    const parsed = this.#read(text);
    const prepared = await this.session.prepare(parsed);
    const hints = hintsFor(prepared, values);
    const better =
      hints === null ? null : await this.session.prepare(parsed, hints).catch(() => null);
    if (better !== null) {
      prepared.close();
    }
    return { statement: new Statement(better ?? prepared), values };
  }
}

const TEXT_TYPES: ReadonlySet<string> = new Set(['VARCHAR', 'STRING']);

/**
 * Returns types for parameters that would otherwise be strings; `null` if no parameter needs one.
 */
function hintsFor(
  { description }: PreparedStatement,
  values: readonly unknown[],
): (string | null)[] | null {
  const hints = description.parameters.map((type, index) =>
    TEXT_TYPES.has(type) ? typeHint(values[index]) : null,
  );
  return hints.some((hint) => hint !== null) ? hints : null;
}

async function closing<T>(statement: Statement, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } finally {
    statement.close();
  }
}

/** A transaction: its INSERTs and appenders become visible together. */
export class Transaction extends Connection {
  /**
   * Runs `work` in a new transaction of the session. Commits when it resolves; discards everything
   * when it rejects.
   */
  static async run<T>(
    database: Database,
    session: Session,
    work: (transaction: Transaction) => Promise<T>,
  ): Promise<T> {
    const block = database.begin();
    session.transaction = block;
    const transaction = new Transaction(database, session);
    let result: T;
    try {
      result = await work(transaction);
    } catch (error) {
      block.rollback();
      throw error;
    } finally {
      transaction.end();
    }
    await block.commit();
    return result;
  }
}

/** Resources of the process that a database needs. */
interface Surroundings<Server, ServeOptions> {
  readonly sessions: SessionHost;
  readonly copy: Copy;
  readonly user: { readonly name: string; readonly readOnly: boolean };
  readonly serve: (options: ServeOptions) => Promise<Server>;
  /** Called after the database is closed. */
  readonly closed: () => Promise<void>;
}

/**
 * An open database. Several handles in one process, including its worker threads, share a root; the
 * last handle to close releases it.
 */
export class EmbeddedDatabase<Server, ServeOptions> extends Connection implements AsyncDisposable {
  readonly #surroundings: Surroundings<Server, ServeOptions>;
  #closing: Promise<void> | null = null;

  /** Internal; call `open` instead. */
  constructor(database: Database, surroundings: Surroundings<Server, ServeOptions>) {
    super(database, surroundings.sessions.open(surroundings.user, true));
    this.#surroundings = surroundings;
  }

  /**
   * Runs `work` in a transaction. Commits when it resolves; discards everything when it rejects.
   */
  async transaction<T>(work: (transaction: Transaction) => Promise<T>): Promise<T> {
    const { sessions, user } = this.#surroundings;
    return await Transaction.run(this.database, sessions.open(user, true), work);
  }

  /** Runs the statements of a script one after another, and stops at the first error. */
  async script(text: string, options: ExecutionOptions = {}): Promise<Summary[]> {
    const summaries: Summary[] = [];
    for (const { text: statement } of splitStatements(textOf(text))) {
      summaries.push(await this.execute(statement, [], options));
    }
    return summaries;
  }

  /**
   * Imports CSV in one commit, and creates the table if it does not exist. Types, delimiter and
   * header are detected.
   */
  async importCsv(
    table: string,
    source: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
    options: CsvOptions = {},
  ): Promise<ImportReport> {
    if (this.#surroundings.user.readOnly) {
      throw new DatabaseError({
        code: 'ReadOnly',
        message: 'the database is open for reading only',
      });
    }
    const { delimiter, header, timestamp, partitionBy, overwrite = false, create = true } = options;
    const given = { delimiter, timestamp, partitionBy, forceHeader: header === true };
    const query = new URLSearchParams({
      name: table,
      overwrite: `${overwrite}`,
      create: `${create}`,
    });
    for (const [name, value] of Object.entries(given)) {
      if (value !== undefined) {
        query.set(name, String(value));
      }
    }
    try {
      refuseImport(table, delimiter);
      const parameters = { ...readImportParameters(query), header: header ?? null, json: false };
      const content = bytesOf(source);
      return await importText(this.database, { parameters, schema: new Map(), content });
    } catch (error) {
      if (error instanceof ImportError) {
        const { message } = error;
        throw new DatabaseError({ code: 'InvalidValue', message }, { cause: error });
      }
      throw error;
    }
  }

  /** Yields the changes of a table, or of a query over one table; leaving the loop ends it. */
  changes<R = Row>(sql: string, options: ChangeOptions = {}): AsyncIterableIterator<Change<R>> {
    const { signal: given, ...rest } = options;
    return cancellable((signal) => followChanges<R>(this.session, sql, { ...rest, signal }), given);
  }

  /** Starts a server for this database. When the server closes, the database stays open. */
  async serve(options: ServeOptions): Promise<Server> {
    if (this.#closing !== null) {
      throw new DatabaseError({ code: 'Closed', message: 'the database is closed' });
    }
    return await this.#surroundings.serve(options);
  }

  /** Closes the handle. Running statements are cancelled if it is the last one. */
  async close(): Promise<void> {
    this.#closing ??= this.#close();
    await this.#closing;
  }

  async #close(): Promise<void> {
    await this.#surroundings.copy.close();
    await this.database.close();
    await this.#surroundings.closed();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Throws for a name or delimiter that `/imp` would change or ignore. */
function refuseImport(table: string, delimiter: string | undefined): void {
  if (cleanTableName(table) !== table) {
    throw new ImportError(`invalid table name [table=${table}]`);
  }
  if (delimiter !== undefined && !isDelimiter(delimiter)) {
    throw new ImportError(`invalid delimiter '${delimiter}': expected one ASCII character`);
  }
}

async function* bytesOf(
  source: AsyncIterable<Uint8Array | string> | Iterable<Uint8Array | string>,
): AsyncGenerator<Buffer, void> {
  for await (const chunk of source) {
    yield Buffer.from(chunk as Uint8Array);
  }
}

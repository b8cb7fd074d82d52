/** COPY … FROM: imports a file from the import directory into a table, in one commit. */
import type { FileHandle } from 'node:fs/promises';
import { sep } from 'node:path';

import {
  cleanTableName,
  ImportError,
  importText,
  type ImportReport,
  type ImportSchema,
} from '../ingest/index.js';
import {
  asDatabaseError,
  DatabaseError,
  type Guard,
  type Principal,
  principalKey,
  type TableMetadata,
  WriteAuthorizer,
  type WriteTarget,
} from '../session/index.js';
import type { Work } from './jobs.js';
import type { CopyLog, ImportPhase } from './log.js';
import type { ImportSettings } from './options.js';
import { openBelow, type Root } from './paths.js';
import { type JobContext, quoteName, quoteText, type Sql } from './sql.js';

interface ImportRequest {
  readonly user: string;
  readonly principal: Principal;
  /** The statement's SQL text. */
  readonly text: string;
  readonly table: string;
  /** Path components below the import directory. */
  readonly file: readonly string[];
  readonly settings: ImportSettings;
}

/** Dependencies that all imports share. */
export interface ImportServices {
  readonly sql: Sql;
  readonly log: CopyLog;
  readonly root: Root;
  /** Read size in bytes. */
  readonly bufferBytes: number;
  readonly analysedLines: number;
  /** Absent without access control. */
  readonly guard?: Guard;
}

/** Numbers of imported and rejected rows. */
interface Outcome {
  readonly handled: number;
  readonly imported: number;
  readonly errors: number;
  /** Error positions and guessed settings; absent if there are none. */
  readonly message?: string;
}

const PARQUET_MAGIC = 'PAR1';
/** Prefix of error messages about a line in the file. */
const BAD_LINE = /^line \d+[,:]/;

export class ImportWork implements Work {
  readonly name: string;
  readonly target: string;
  readonly #services: ImportServices;
  readonly #request: ImportRequest;
  readonly #fileName: string;
  readonly #writeAuthorizer: WriteAuthorizer;
  #phase: ImportPhase | null = null;

  constructor(services: ImportServices, request: ImportRequest) {
    this.#services = services;
    this.#request = request;
    this.#fileName = request.file.join(sep);
    this.#writeAuthorizer = new WriteAuthorizer(services.guard, request);
    this.target = `from ${request.table.toLowerCase()}`;
    this.name = `COPY ${request.table} FROM ${this.#fileName}`;
  }

  async announce(id: string): Promise<void> {
    await this.#services.log.importStep({ ...this.#row(id), phase: null, status: 'started' });
  }

  async run(id: string, signal: AbortSignal): Promise<void> {
    const { log, root } = this.#services;
    const file = await openBelow(root, this.#request.file);
    let outcome: Outcome;
    try {
      outcome = await this.#import(id, file, signal);
    } catch (error) {
      throw this.#named(error);
    } finally {
      await file.close();
    }
    const { handled: rowsHandled, imported: rowsImported, errors, message } = outcome;
    await this.#step(id, 'finished', errors);
    const end = { ...this.#row(id), phase: null, status: 'finished', errors } as const;
    const described = message === undefined ? {} : { message };
    await log.importStep({ ...end, ...described, rowsHandled, rowsImported });
  }

  async #begin(id: string, phase: ImportPhase): Promise<void> {
    this.#phase = phase;
    await this.#step(id, 'started');
  }

  async #step(id: string, status: 'started' | 'finished', errors = 0): Promise<void> {
    const row = { ...this.#row(id), phase: this.#phase, status, errors };
    await this.#services.log.importStep(row);
  }

  async failed(id: string, how: 'failed' | 'cancelled', message: string): Promise<void> {
    const counts = { rowsHandled: 0, rowsImported: 0 };
    const row = { ...this.#row(id), phase: null, status: how, message, ...counts };
    await this.#services.log.importStep(row);
  }

  #row(id: string): { id: string; table: string; file: string } {
    return { id, table: this.#request.table, file: this.#fileName };
  }

  /** Adds the file position to an error, and a hint for a rejected row. */
  #named(error: unknown): unknown {
    const { message, hint } = error instanceof ImportError ? noHint(error) : asDatabaseError(error);
    if (BAD_LINE.test(message)) {
      return new DatabaseError(
        {
          code: 'InvalidValue',
          message: `file '${this.#fileName}', ${message}`,
          hint: 'correct the file or use ON ERROR SKIP_ROW',
        },
        { cause: error },
      );
    }
    const text = `file '${this.#fileName}': ${message}`;
    const code = error instanceof ImportError ? 'InvalidValue' : asDatabaseError(error).code;
    return new DatabaseError({ code, message: text, hint }, { cause: error });
  }

  async #import(id: string, file: FileHandle, signal: AbortSignal): Promise<Outcome> {
    const { table, settings } = this.#request;
    const { sql } = this.#services;
    const existing = await sql.database.tableMetadata(table);
    if (existing === null && cleanTableName(table) !== table) {
      throw new ImportError(`invalid table name [table=${table}]`);
    }
    // The table may have been created or dropped since the statement was authorised.
    this.#writeAuthorizer.authorise(importTarget(table, existing));
    const isParquet = settings.fileFormat === 'parquet' || (await this.#seemsParquet(file));
    return isParquet
      ? await this.#importParquet(id, existing, signal)
      : await this.#importCsv(id, file, existing, signal);
  }

  async #commit<T>(existing: TableMetadata | null, run: () => Promise<T>): Promise<T> {
    return await this.#writeAuthorizer.commit(importTarget(this.#request.table, existing), run);
  }

  async #seemsParquet(file: FileHandle): Promise<boolean> {
    if (this.#request.settings.fileFormat === 'csv') {
      return false;
    }
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
    return buffer.toString('latin1', 0, bytesRead) === PARQUET_MAGIC;
  }

  // ---- CSV ----

  async #importCsv(
    id: string,
    file: FileHandle,
    existing: TableMetadata | null,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { sql, bufferBytes, analysedLines } = this.#services;
    const { table, settings } = this.#request;
    const { header, delimiter, encoding, timestamp, partitionBy, onError } = settings;
    const parameters = {
      name: table,
      delimiter,
      format: 'json',
      header,
      atomicity: onError,
      overwrite: false,
      create: existing === null,
      skipExtraValues: false,
      timestamp,
      partitionBy,
      o3MaxLag: null,
      maxUncommittedRows: null,
      encoding,
      decimal: null,
      schema: null,
      badLines: false,
      requireRows: false,
      json: true,
      widens: !settings.onErrorIsGiven,
      problem: null,
    } as const;
    const schema = this.#schema(existing);
    const content = (): AsyncIterable<Buffer> => chunksOf(file, bufferBytes, signal);
    const analysed = async (): Promise<void> => {
      await this.#step(id, 'finished');
      await this.#begin(id, 'partition_import');
    };
    await this.#begin(id, 'analyze_file_structure');
    const report = await importText(
      sql.database,
      { parameters, schema, content },
      { analysedLines, analysed, commit: (_access, run) => this.#commit(existing, run) },
    );
    return outcomeOf(report, onError);
  }

  /**
   * Applies the pattern to the designated timestamp column. In a file without a header, this column
   * is found by its position.
   */
  #schema(existing: TableMetadata | null): ImportSchema {
    const { header, timestamp, pattern } = this.#request.settings;
    const name = timestamp ?? existing?.timestamp ?? null;
    if (name === null || pattern === null) {
      return new Map();
    }
    const at = existing?.columns.findIndex((column) => column.name === name) ?? -1;
    const type = { type: existing?.columns[at]?.type ?? 'TIMESTAMP', pattern };
    const named = new Map([[name.toLowerCase(), type]]);
    return at < 0 || header === true ? named : named.set(`f${at}`, type);
  }

  // ---- Parquet ----

  async #importParquet(
    id: string,
    existing: TableMetadata | null,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const { sql } = this.#services;
    const { user, principal, text } = this.#request;
    const identity = principalKey(principal);
    const context: JobContext = { user, identity, text: `${text} /* ${id} */`, signal };
    const source = `read_parquet(${quoteText(this.#fileName)})`;
    await this.#begin(id, 'partition_import');
    const statement =
      existing === null
        ? this.#createFrom(source)
        : await this.#insertFrom(source, existing, context);
    const [[handled] = []] = await sql.rows(`SELECT count() FROM ${source}`, context);
    await this.#commit(existing, () => sql.run(statement, [], context));
    return { handled: Number(handled), imported: Number(handled), errors: 0 };
  }

  #createFrom(source: string): string {
    const { table, settings } = this.#request;
    const { timestamp, partitionBy } = settings;
    const designated = timestamp === null ? '' : ` TIMESTAMP(${quoteName(timestamp)})`;
    const partitions = partitionBy === null ? '' : ` PARTITION BY ${partitionBy}`;
    const query = `(SELECT * FROM ${source})`;
    return `CREATE TABLE ${quoteName(table)} AS ${query}${designated}${partitions}`;
  }

  /** Inserts the rows of a file; its columns are matched by name. */
  async #insertFrom(source: string, table: TableMetadata, context: JobContext): Promise<string> {
    const { timestamp } = this.#request.settings;
    if (timestamp !== null && timestamp !== table.timestamp) {
      throw new ImportError(`not a timestamp '${timestamp}'`);
    }
    const query = await this.#services.sql.prepare(`SELECT * FROM ${source}`, context);
    const sources = query.description.columns;
    query.close();
    const targets = sources.map(({ name }) => {
      const column = table.columns.find(
        (column) => column.name.toLowerCase() === name.toLowerCase(),
      );
      if (column === undefined) {
        throw new ImportError(
          `column '${name}' does not exist [table=${table.name}]; add it or remove it from ` +
            'the file',
        );
      }
      return column;
    });
    const columns = sources
      .map(({ name, type }, index) => assigned(quoteName(name), type, targets[index]?.type ?? type))
      .join(', ');
    const names = targets.map(({ name }) => quoteName(name)).join(', ');
    return `INSERT INTO ${quoteName(table.name)} (${names}) ` + `SELECT ${columns} FROM ${source}`;
  }
}

const INTEGERS = new Set(['BYTE', 'SHORT', 'INT', 'LONG']);
const NUMBERS_AND_TIMES = new Set([
  ...INTEGERS,
  'FLOAT',
  'DOUBLE',
  'DATE',
  'TIMESTAMP',
  'TIMESTAMP_NS',
]);
const TEXTS = new Set(['STRING', 'VARCHAR', 'SYMBOL']);

/**
 * Returns the cast from a file column to the table column's type. A CSV import converts numbers to
 * addresses and strings, whereas an INSERT does so only with a cast.
 */
function assigned(column: string, from: string, to: string): string {
  if (INTEGERS.has(from) && to.toUpperCase() === 'IPV4') {
    if (from !== 'LONG') {
      return `${column}::ipv4`;
    }
    // A number that is not an address is cast to a string of digits. It is then refused like any
    // other string that is not an address.
    return (
      `CASE WHEN ${column} BETWEEN -2147483648 AND 4294967295 THEN ${column}::ipv4::varchar ` +
      `ELSE ${column}::varchar END`
    );
  }
  return NUMBERS_AND_TIMES.has(from) && TEXTS.has(to) ? `${column}::varchar` : column;
}

/** Returns the access that an import into an existing or new table requires. */
export function importTarget(name: string, existing: TableMetadata | null): WriteTarget {
  const table = existing?.name ?? name;
  return { table, creates: existing === null, overwrites: false };
}

function noHint({ message }: ImportError): { readonly message: string; readonly hint?: string } {
  return { message };
}

/**
 * Returns the numbers of imported and rejected rows. Rejected cells are counted separately if their
 * rows are imported without them.
 */
function outcomeOf(report: ImportReport, onError: ImportSettings['onError']): Outcome {
  const { rowsImported: imported, rowsRejected, badLines, warnings } = report;
  const cells = [...report.errors.values()].reduce((sum, count) => sum + count, 0);
  const errors = onError === 'skipCol' ? cells + rowsRejected : rowsRejected;
  const counts = { handled: imported + rowsRejected, imported, errors };
  const more = badLines.length > 0 && errors > badLines.length ? ['…'] : [];
  const messages = [
    ...warnings.filter((warning) => !badLines.includes(warning)),
    ...badLines,
    ...more,
  ];
  return messages.length === 0 ? counts : { ...counts, message: messages.join('; ') };
}

async function* chunksOf(
  file: FileHandle,
  bytes: number,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  for (let position = 0; ;) {
    signal.throwIfAborted();
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(bytes), 0, bytes, position);
    if (bytesRead === 0) {
      break;
    }
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
  // The last check for cancellation before the commit.
  signal.throwIfAborted();
}

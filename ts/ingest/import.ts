/** The path of an import: parts of a request in, one answer out. */
import type { Appender, AppenderSpec, TableMetadata } from '../engine/types.js';
import type { ImportParameters } from './parameters.js';

/** What an import needs of the database. */
export interface ImportDatabase {
  openAppender(spec: AppenderSpec): Promise<Appender>;
  tableMetadata(name: string): Promise<TableMetadata | null>;
}

/** One part of a multipart request, in the order of the request. */
export interface ImportPart {
  readonly name: string;
  readonly filename: string | null;
  /** Ends early by throwing, when the client goes away. */
  readonly content: AsyncIterable<Buffer>;
}

/** What an import is about to do, for the permission check. */
export interface ImportAccess {
  readonly table: string;
  readonly creates: boolean;
  readonly overwrites: boolean;
}

/** The whole answer. */
export interface ImportAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/**
 * Imports the `data` parts. Errors of the text and of the parameters become answers; a broken
 * request (the iterables throw) or a failing database is thrown, with nothing left behind.
 * `authorise` throws when the access is not granted; it runs before anything is written.
 */
export async function importCsv(
  database: ImportDatabase,
  parameters: ImportParameters,
  parts: AsyncIterable<ImportPart>,
  authorise?: (access: ImportAccess) => Promise<void> | void,
): Promise<ImportAnswer> {
  void database;
  void parts;
  void authorise;
  void parameters;
  throw new Error('the import comes with the next change');
}

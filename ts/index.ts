/**
 * The embedded library: a database in this process, and the server as a function.
 *
 *   import { open, sql } from 'tidemark';
 *   await using db = await open('./data');
 *   const rows = await db.query(sql`SELECT * FROM trades WHERE symbol = ${symbol}`);
 */
import { join, resolve } from 'node:path';

import { createCopy } from './copy/index.js';
import { DatabaseError, openDatabase, type OpenOptions as EngineOptions } from './engine/index.js';
import { TextFiles } from './ingest/index.js';
import { EmbeddedDatabase } from './library/database.js';
import { createTemporaryRoot, removeTemporaryRoot } from './library/temporary-root.js';
import { type RunningServer, type ServeOptions, startServer } from './main.js';
import { checkServeOptions } from './serve-options.js';
import { SessionHost, type TextShapeDetector } from './session/index.js';
import { readStatement } from './sql/index.js';

export { DatabaseError } from './engine/index.js';
export type { AppenderOptions, NewRow, TableAppender } from './library/appender.js';
export type { Change, ChangeOptions } from './library/changes.js';
export type { Connection, CsvOptions, Transaction } from './library/database.js';
export type { ExecutionOptions } from './library/execution.js';
export type { Parameter } from './library/parameters.js';
export type { Row, RowOptions, Value } from './library/rows.js';
export { identifier, type Sql, sql } from './library/sql.js';
export type { QueryOptions, Statement } from './library/statement.js';
export type { ColumnValues } from './library/vectors.js';
export type { RunningServer, ServeOptions } from './main.js';
export type { Summary } from './session/index.js';
export { StartError } from './start-error.js';

/** Options of a database. */
export interface OpenOptions extends EngineOptions {
  /** Whether statements and appenders that write are refused. */
  readonly readOnly?: boolean | undefined;
}

/** A database open in this process. */
export type TidemarkDatabase = EmbeddedDatabase<RunningServer, Omit<ServeOptions, 'root'>>;

/** Opens a root directory and starts a server for it. */
export async function serve(options: ServeOptions): Promise<RunningServer> {
  checkServeOptions(options);
  return await startServer(options);
}

const IN_MEMORY = ':memory:';

/**
 * Opens a root directory, recovers it after a crash, and creates it if it does not exist. If this
 * process has already opened the root, the handles share the database.
 *
 * `:memory:` opens an empty database in a temporary directory, which is removed when the database
 * is closed or the process exits.
 */
export async function open(options: string | OpenOptions): Promise<TidemarkDatabase> {
  const { readOnly = false, ...given }: OpenOptions =
    typeof options === 'string' ? { root: options } : { ...options };
  if (typeof given.root !== 'string' || given.root === '') {
    throw new DatabaseError({
      code: 'InvalidValue',
      message: 'root must be the path of a directory',
    });
  }
  const isTemporary = given.root === IN_MEMORY;
  const root = isTemporary ? await createTemporaryRoot() : resolve(given.root);
  const remove = async (): Promise<void> => {
    if (isTemporary) {
      await removeTemporaryRoot(root);
    }
  };
  try {
    const mode = isTemporary ? { commitMode: 'nosync' as const } : {};
    return await opened({ ...mode, ...given, root }, readOnly, remove);
  } catch (error) {
    await remove();
    throw error;
  }
}

async function opened(
  options: EngineOptions,
  readOnly: boolean,
  closed: () => Promise<void>,
): Promise<TidemarkDatabase> {
  const database = await openDatabase(options);
  const { root } = options;
  const texts = new TextFiles({ directory: join(root, 'tmp', 'texts') });
  const detectTextShape: TextShapeDetector = (request, signal) =>
    texts.detectShape(request, signal);
  const copy = createCopy({
    database,
    detectTextShape,
    importRoot: resolve(root, options.importRoot ?? 'import'),
    exportRoot: resolve(root, options.exportRoot ?? 'export'),
  });
  const server = { Copy: copy.statements };
  const sessions = new SessionHost({ database, parse: readStatement, server, detectTextShape });
  return new EmbeddedDatabase(database, {
    sessions,
    copy,
    user: { name: 'admin', readOnly },
    serve: async (given: Omit<ServeOptions, 'root'>) => {
      checkServeOptions(given);
      return await startServer({ ...given, root }, database);
    },
    closed,
  });
}

/**
 * COPY: imports files into tables, and exports rows to files. The jobs continue after the statement
 * has returned. Imports use `ts/ingest` and queries use the engine, as in `/imp` and `/exp`. This
 * module is independent of protocols; sessions call it through server statements.
 */
import type { Logger } from '../observability/index.js';
import {
  asDatabaseError,
  type Database,
  type ServerStatements,
  type Guard,
  type TextShapeDetector,
} from '../session/index.js';
import { unfinishedExports, removeUnfinishedExport } from './export-work.js';
import { Jobs } from './jobs.js';
import { CopyLog } from './log.js';
import { Sql } from './sql.js';
import { CopyStatements } from './statements.js';

interface CopyOptions {
  readonly database: Database;
  /** Directories for reading and writing files, as absolute paths. */
  readonly importRoot: string;
  readonly exportRoot: string;
  /** Days to retain the log; 3 by default. */
  readonly logRetentionDays?: number;
  /** Maximum number of queued jobs; 32 by default. */
  readonly queueCapacity?: number;
  /** Read size in bytes; 2 MiB by default. */
  readonly bufferBytes?: number;
  /** Lines used to detect the structure and types of a CSV file; 1000 by default. */
  readonly analysedLines?: number;
  /**
   * Disk space that an export leaves free, in bytes; 0, the default, means 5 % of the disk, at most
   * 1 GiB.
   */
  readonly reservedDiskBytes?: number;
  /** Schema detection for text files in queries. */
  readonly detectTextShape?: TextShapeDetector;
  readonly logger?: Logger;
  /** Absent without access control. */
  readonly guard?: Guard | undefined;
}

export interface Copy {
  readonly statements: ServerStatements;
  /** Stops running jobs and waits for them. Call it before closing the database. */
  close(): Promise<void>;
}

const MIN_BUFFER_BYTES = 4096;
const DEFAULTS = {
  logRetentionDays: 3,
  queueCapacity: 32,
  bufferBytes: 2 * 1024 * 1024,
  analysedLines: 1000,
  reservedDiskBytes: 0,
};

/** Creates the COPY service. It first cleans up jobs that a previous process left unfinished. */
export function createCopy(options: CopyOptions): Copy {
  const { database, importRoot, exportRoot, logger } = options;
  const { logRetentionDays, queueCapacity, bufferBytes, analysedLines, reservedDiskBytes } = {
    ...DEFAULTS,
    ...options,
  };
  const sql = new Sql(database, options.detectTextShape);
  const log = new CopyLog(sql, logRetentionDays);
  const root = {
    directory: exportRoot,
    key: 'cairo.sql.copy.export.root',
    purpose: 'export',
  } as const;
  const guard = options.guard === undefined ? {} : { guard: options.guard };
  const exports = { sql, log, root, reservedDiskBytes, ...guard };
  const imports = {
    sql,
    log,
    root: { directory: importRoot, key: 'cairo.sql.copy.root', purpose: 'import' } as const,
    bufferBytes: Math.max(bufferBytes, MIN_BUFFER_BYTES),
    analysedLines,
    ...guard,
  };
  const ready = cleanUp().catch((error: unknown) => {
    logger?.warn('copy_clean_up_failed', { message: asDatabaseError(error).message });
  });
  const jobs = new Jobs({ capacity: queueCapacity, logger, ready });
  return {
    statements: new CopyStatements({ sql, jobs, imports, exports }),
    close: async () => {
      await ready;
      await jobs.close();
    },
  };

  async function cleanUp(): Promise<void> {
    for (const id of await unfinishedExports(root)) {
      await removeUnfinishedExport(exports, id);
    }
    await log.closeInterrupted();
  }
}

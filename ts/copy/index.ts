/**
 * COPY: files into tables and rows into files, as jobs that go on after their statement was
 * answered. Runs imports through `ts/ingest` and queries through the engine, like `/imp` and
 * `/exp`; knows no protocol. Sessions reach it as statements of the server's own.
 */
import type { Logger } from '../observability/index.js';
import {
  asDatabaseError,
  type Database,
  type ServerStatements,
  type Guard,
  type Looks,
} from '../session/index.js';
import { leftOver, removeLeftOver } from './export-work.js';
import { Jobs } from './jobs.js';
import { CopyLog } from './log.js';
import { Sql } from './sql.js';
import { CopyStatements } from './statements.js';

interface CopyOptions {
  readonly database: Database;
  /** The directory files are read from, and the one they are written to; both absolute. */
  readonly importRoot: string;
  readonly exportRoot: string;
  /** Days that the log is kept; 3 by default. */
  readonly logRetentionDays?: number;
  /** Jobs that may wait for their turn; 32 by default. */
  readonly queueCapacity?: number;
  /** Bytes read at once; 2 MiB by default. */
  readonly bufferBytes?: number;
  /** Lines from which structure and types of a CSV file are detected; 1000 by default. */
  readonly analysedLines?: number;
  /** Bytes an export leaves free on the disk; 0, the default, is 5 % of it, 1 GiB at most. */
  readonly diskKept?: number;
  /** How texts in files are read that queries name. */
  readonly looks?: Looks;
  readonly logger?: Logger;
  /** Absent where every user may do everything. */
  readonly guard?: Guard | undefined;
}

export interface Copy {
  readonly statements: ServerStatements;
  /** Stops what runs and waits for its end; before the database is closed. */
  close(): Promise<void>;
}

const MIN_BUFFER_BYTES = 4096;
const DEFAULTS = {
  logRetentionDays: 3,
  queueCapacity: 32,
  bufferBytes: 2 * 1024 * 1024,
  analysedLines: 1000,
  diskKept: 0,
};

/** Starts with removing what jobs left that ended with an earlier process. */
export function createCopy(options: CopyOptions): Copy {
  const { database, importRoot, exportRoot, logger } = options;
  const { logRetentionDays, queueCapacity, bufferBytes, analysedLines, diskKept } = {
    ...DEFAULTS,
    ...options,
  };
  const sql = new Sql(database, options.looks);
  const log = new CopyLog(sql, logRetentionDays);
  const root = {
    directory: exportRoot,
    key: 'cairo.sql.copy.export.root',
    purpose: 'export',
  } as const;
  const guard = options.guard === undefined ? {} : { guard: options.guard };
  const exports = { sql, log, root, diskKept, ...guard };
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
    for (const id of await leftOver(root)) {
      await removeLeftOver(exports, id);
    }
    await log.closeInterrupted();
  }
}

/**
 * `sys.text_import_log` and `sys.copy_export_log`: one row for every step of a job. They are
 * ordinary tables that the first job creates. Their rows are deleted after a configured number of
 * days.
 */
import { asDatabaseError } from '../session/index.js';
import { quoteName, type Sql } from './sql.js';

type Status = 'started' | 'finished' | 'failed' | 'cancelled';

export type ImportPhase = 'analyze_file_structure' | 'partition_import';

interface ImportRow {
  readonly id: string;
  readonly table: string;
  readonly file: string;
  /** The job's phase; `null` for the job as a whole. */
  readonly phase: ImportPhase | null;
  readonly status: Status;
  readonly message?: string;
  readonly rowsHandled?: number;
  readonly rowsImported?: number;
  readonly errors?: number;
}

export type ExportPhase =
  | 'wait_to_run'
  | 'populating_temp_table'
  | 'converting_partitions'
  | 'sending_data'
  | 'move_files'
  | 'dropping_temp_table'
  | 'success';

interface ExportRow {
  readonly id: string;
  readonly table: string;
  readonly phase: ExportPhase;
  readonly status: Status;
  readonly path?: string;
  readonly files?: number;
  readonly message?: string;
}

interface LogTable {
  readonly name: string;
  /** The columns after `ts TIMESTAMP`. */
  readonly columns: readonly string[];
}

const IMPORTS: LogTable = {
  name: 'sys.text_import_log',
  columns: [
    'id VARCHAR',
    'table_name SYMBOL',
    'file SYMBOL',
    'phase SYMBOL',
    'status SYMBOL',
    'message VARCHAR',
    'rows_handled LONG',
    'rows_imported LONG',
    'errors LONG',
  ],
};

const EXPORTS: LogTable = {
  name: 'sys.copy_export_log',
  columns: [
    'id VARCHAR',
    'table_name SYMBOL',
    'export_path SYMBOL',
    'num_exported_files INT',
    'phase SYMBOL',
    'status SYMBOL',
    'message VARCHAR',
    'errors LONG',
  ],
};

const STOPPED = 'the server stopped before the job ended';

type Value = string | number | null | undefined;

export class CopyLog {
  readonly #sql: Sql;
  readonly #retentionDays: number;
  /** Timestamp of the last row; timestamps are unique. */
  #lastMicros = 0;
  /** Write queue; writes run one after another. */
  #queue: Promise<unknown> = Promise.resolve();

  constructor(sql: Sql, retentionDays: number) {
    this.#sql = sql;
    this.#retentionDays = retentionDays;
  }

  async importStep(row: ImportRow): Promise<void> {
    const { id, table, file, phase, status, message } = row;
    const counts = [row.rowsHandled, row.rowsImported, row.errors ?? 0];
    await this.#append(IMPORTS, [id, table, file, phase, status, message, ...counts]);
  }

  async exportStep(row: ExportRow): Promise<void> {
    const { id, table, path, files, phase, status, message } = row;
    const errors = status === 'failed' ? 1 : 0;
    await this.#append(EXPORTS, [id, table, path, files, phase, status, message, errors]);
  }

  /**
   * Records as failed every job that was interrupted when the server stopped. The last row of such
   * a job has no final status.
   */
  async closeInterrupted(): Promise<void> {
    const { database } = this.#sql;
    const exists = async ({ name }: LogTable): Promise<boolean> =>
      (await database.tableMetadata(name)) !== null;
    if (await exists(IMPORTS)) {
      for (const [id, table, file] of await this.#interrupted(IMPORTS, 'table_name, file')) {
        const message = `${STOPPED}: either all or none of its rows were imported`;
        const values = [id, table, file, null, 'failed', message, 0, 0, 0] as Value[];
        await this.#append(IMPORTS, values);
      }
    }
    if (await exists(EXPORTS)) {
      for (const [id, table, phase] of await this.#interrupted(EXPORTS, 'table_name, phase')) {
        const values = [id, table, null, null, phase, 'failed', STOPPED, 1] as Value[];
        await this.#append(EXPORTS, values);
      }
    }
  }

  /** Returns jobs whose last row reports neither failure nor completion. */
  async #interrupted(table: LogTable, columns: string): Promise<readonly unknown[][]> {
    const isEnd =
      table === IMPORTS
        ? "status != 'started' AND phase IS NULL"
        : "status IN ('failed', 'cancelled') OR phase = 'success'";
    const name = quoteName(table.name);
    const ended = `SELECT id FROM ${name} WHERE ${isEnd}`;
    return await this.#sql.rows(
      `SELECT id, ${columns} FROM ${name} WHERE id NOT IN (${ended}) LATEST ON ts PARTITION BY id`,
    );
  }

  async #append(table: LogTable, values: readonly Value[]): Promise<void> {
    const texts = [this.#now(), ...values.map((value) => (value == null ? null : String(value)))];
    const queued = this.#queue.then(() => this.#insert(table, texts));
    this.#queue = queued.catch(() => undefined);
    await queued;
  }

  async #insert(table: LogTable, texts: readonly (string | null)[]): Promise<void> {
    const placeholders = texts.map((_, index) => `$${index + 1}`).join(', ');
    const insert = `INSERT INTO ${quoteName(table.name)} VALUES (${placeholders})`;
    try {
      await this.#sql.run(insert, texts);
    } catch (error) {
      if (asDatabaseError(error).code !== 'TableNotFound') {
        throw error;
      }
      await this.#sql.run(
        `CREATE TABLE IF NOT EXISTS ${quoteName(table.name)} (ts TIMESTAMP, ` +
          `${table.columns.join(', ')}) TIMESTAMP(ts) PARTITION BY DAY ` +
          `TTL ${this.#retentionDays} DAYS`,
      );
      await this.#sql.run(insert, texts);
    }
  }

  #now(): string {
    const micros = Math.floor((performance.timeOrigin + performance.now()) * 1000);
    this.#lastMicros = Math.max(micros, this.#lastMicros + 1);
    const seconds = new Date(this.#lastMicros / 1000).toISOString().slice(0, -'.000Z'.length);
    return `${seconds}.${String(this.#lastMicros % 1_000_000).padStart(6, '0')}Z`;
  }
}

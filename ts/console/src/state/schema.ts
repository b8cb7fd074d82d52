/** Data of the schema tree: all tables, and the columns of expanded tables. */
import type { Accessor } from 'solid-js';
import { query, SqlError, Unreachable } from '../api/client.js';
import type { Answer } from '../api/cells.js';
import {
  columnEntries,
  functionEntries,
  keywordsOf,
  tableEntries,
  type ColumnEntry,
  type FunctionEntry,
  type KnownNames,
  type TableEntry,
  type TableKind,
} from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { signal } from '../model/signal.js';
import { settle, readyOf, type Loading } from './loading.js';

/** Query for all data of the collapsed tree, sent by every page. */
export const TREE_QUESTION = treeQuestion('now()');
/** The same query without the current time, which would make every result different. */
export const LIVE_TREE_QUESTION = treeQuestion('null::timestamp');

function treeQuestion(now: string): string {
  return `SELECT t.table_name, t.table_type, t.table_row_count, t.partitionBy,
    t.designatedTimestamp, t.table_suspended, t.id table_id, t.table_txn, v.refresh_type,
    v.base_table_name, v.view_status, v.invalidation_reason, v.last_refresh_finish_timestamp,
    v.refresh_base_table_txn, v.base_table_txn, v.timer_start, l.base_table_name live_base,
    l.view_status live_status, l.invalidation_reason live_reason, l.lag_seqtxn,
    l.lag_micros, l.last_processed_seqtxn,
    j.state job_state, ${now} asked_at
  FROM tables() t
  LEFT JOIN materialized_views() v ON v.view_name = t.table_name
  LEFT JOIN live_views() l ON l.view_name = t.table_name
  LEFT JOIN jobs() j ON j.name = l.view_name AND j.kind = 'refresh'
  UNION ALL
  SELECT view_name, 'V', null, null, null, view_status = 'invalid', null, null, null, null, null,
    null, null, null, null, null, null, null, null, null, null, null, null, ${now}
  FROM views()`.replace(/\s+/g, ' ');
}

export class Schema {
  readonly #tables = signal<Loading<readonly TableEntry[]>>({ state: 'loading' });
  readonly tables: Accessor<Loading<readonly TableEntry[]>> = this.#tables;
  readonly #columns = signal<ReadonlyMap<string, Loading<readonly ColumnEntry[]>>>(new Map());
  readonly columns: Accessor<ReadonlyMap<string, Loading<readonly ColumnEntry[]>>> = this.#columns;
  /** Resolves when the requests for tables and functions have succeeded or failed. */
  readonly requested: Promise<void>;
  #resolveRequested!: () => void;
  /** Functions of the server. The list does not change while the server runs. */
  #functions: readonly FunctionEntry[] = [];

  constructor() {
    this.requested = new Promise((resolve) => (this.#resolveRequested = resolve));
  }

  /** Reloads the tables, and the columns of expanded tables. */
  async refresh(): Promise<void> {
    this.#tables.set(await settle(listAll));
    if (this.#functions.length === 0) {
      const loaded = await settle(async () => functionEntries(await listFunctions()));
      this.#functions = readyOf(loaded) ?? [];
    }
    this.#resolveRequested();
    await Promise.all([...this.columns().keys()].map((name) => this.#loadColumns(name)));
  }

  /** Refreshes the tree after a statement that may have changed tables. */
  async refreshAfter(statement: string): Promise<void> {
    const { onlyReads } = await import('../sql/effects.js');
    if (!onlyReads(statement)) {
      await this.refresh();
    }
  }

  /**
   * Reloads all data of the collapsed tree. Rejects if the server does not respond; the old data
   * then remains visible.
   */
  async poll(): Promise<void> {
    this.#tables.set(await settle(listAll, Unreachable));
  }

  /** Applies a response to `LIVE_TREE_QUESTION`, as of `now`. */
  take({ head, rows }: Answer, now: string): void {
    const timeColumn = head.columns.findIndex(({ name }) => name === 'asked_at');
    const dated = rows.map((row) => row.with(timeColumn, now));
    this.#tables.set({ state: 'ready', value: tableEntries({ head, rows: dated }) });
  }

  async open(table: string): Promise<void> {
    if (this.columns().get(table)?.state === 'ready') {
      return;
    }
    this.#put(table, { state: 'loading' });
    await this.#loadColumns(table);
  }

  /** All tables and views; empty until they are loaded. */
  get known(): readonly TableEntry[] {
    return readyOf(this.tables()) ?? [];
  }

  /** Returns the entry of a table or view, if the entry is loaded. */
  entryOf(name: string | undefined): TableEntry | undefined {
    return this.known.find((one) => one.name === name);
  }

  /** Returns the last known version of each table, which may be out of date. */
  versions(): ReadonlyMap<string, string> {
    return new Map(
      this.known.flatMap(({ name, version }) =>
        version === undefined ? [] : [[name.toLowerCase(), version]],
      ),
    );
  }

  /** Total number of rows in all visible tables; `undefined` if no row count is known. */
  get rowCount(): number | undefined {
    const counts = this.known.flatMap(({ rows }) => rows ?? []);
    return counts.length === 0 ? undefined : counts.reduce((sum, rows) => sum + rows, 0);
  }

  /** Returns the columns of a table that was expanded. */
  columnsOf(table: string): readonly ColumnEntry[] {
    return readyOf(this.columns().get(table)) ?? [];
  }

  /** Returns all tables, all column names loaded so far, and all functions. */
  names(): KnownNames {
    const entries = [...this.columns().values()].flatMap((entry) => readyOf(entry) ?? []);
    return {
      tables: this.known,
      columns: [...new Set(entries.map(({ name }) => name))],
      functions: this.#functions,
      columnsOf: (table) => this.columnsOf(table),
    };
  }

  async #loadColumns(table: string): Promise<void> {
    const request = async (): Promise<ColumnEntry[]> =>
      columnEntries(await query(`SHOW COLUMNS FROM ${quoted(table)}`));
    this.#put(table, await settle(request));
  }

  #put(table: string, entry: Loading<readonly ColumnEntry[]>): void {
    this.#columns.set(new Map(this.columns()).set(table, entry));
  }
}

/** Loads tables and views of all kinds. A server without views still supports `SHOW TABLES`. */
async function listAll(): Promise<TableEntry[]> {
  try {
    return tableEntries(await query(TREE_QUESTION));
  } catch (cause) {
    if (cause instanceof SqlError) {
      return tableEntries(await query('SHOW TABLES'));
    }
    throw cause;
  }
}

/** Returns the statement that creates a table or view, as formatted by the server. */
export async function createStatement(name: string, kind: TableKind): Promise<string> {
  const { rows } = await query(`SHOW CREATE ${keywordsOf(kind)} ${quoted(name)}`);
  return rows.map((row) => String(row[0])).join('\n');
}

function listFunctions(): ReturnType<typeof query> {
  return query('SELECT name, type, signature, description FROM functions()');
}

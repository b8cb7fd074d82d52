/** The tree's content: tables at once, columns of a table when it is opened. */
import { createSignal, type Accessor } from 'solid-js';
import { query, SqlError } from '../api/client.js';
import type { KnownNames } from '../editor/completion.js';
import {
  columnEntries,
  functionEntries,
  quoted,
  tableEntries,
  viewEntries,
  type ColumnEntry,
  type FunctionEntry,
  type TableEntry,
} from '../schema/model.js';

export type Loading<T> =
  | { readonly state: 'loading' }
  | { readonly state: 'ready'; readonly value: T }
  | { readonly state: 'failed'; readonly message: string };

export class Schema {
  readonly tables: Accessor<Loading<readonly TableEntry[]>>;
  readonly columns: Accessor<ReadonlyMap<string, Loading<readonly ColumnEntry[]>>>;
  /** Resolves once tables and functions have been asked for, whatever came of it. */
  readonly asked: Promise<void>;
  #wasAsked!: () => void;
  /** What the server binds calls to; the list does not change while it runs. */
  #functions: readonly FunctionEntry[] = [];
  readonly #setTables: (tables: Loading<readonly TableEntry[]>) => void;
  readonly #setColumns: (columns: ReadonlyMap<string, Loading<readonly ColumnEntry[]>>) => void;

  constructor() {
    const [tables, setTables] = createSignal<Loading<readonly TableEntry[]>>({ state: 'loading' });
    const [columns, setColumns] = createSignal<
      ReadonlyMap<string, Loading<readonly ColumnEntry[]>>
    >(new Map());
    this.tables = tables;
    this.columns = columns;
    this.#setTables = setTables;
    this.#setColumns = setColumns;
    this.asked = new Promise((resolve) => (this.#wasAsked = resolve));
  }

  /** Asks anew for the tables, and for the columns of those that were opened. */
  async refresh(): Promise<void> {
    this.#setTables(await settle(listAll));
    if (this.#functions.length === 0) {
      const asked = await settle(async () => functionEntries(await listFunctions()));
      this.#functions = asked.state === 'ready' ? asked.value : [];
    }
    this.#wasAsked();
    await Promise.all([...this.columns().keys()].map((name) => this.#loadColumns(name)));
  }

  async open(table: string): Promise<void> {
    if (this.columns().get(table)?.state === 'ready') {
      return;
    }
    this.#put(table, { state: 'loading' });
    await this.#loadColumns(table);
  }

  /** The columns of a table that has been opened. */
  columnsOf(table: string): readonly ColumnEntry[] {
    const known = this.columns().get(table);
    return known?.state === 'ready' ? known.value : [];
  }

  /** Every table name, every column name that has been seen, and the functions. */
  names(): KnownNames {
    const tables = this.tables();
    const columns = new Set<string>();
    for (const entry of this.columns().values()) {
      if (entry.state === 'ready') {
        for (const column of entry.value) {
          columns.add(column.name);
        }
      }
    }
    return {
      tables: tables.state === 'ready' ? tables.value.map((table) => table.name) : [],
      columns: [...columns],
      functions: this.#functions,
      columnsOf: (table) => this.columnsOf(table),
    };
  }

  async #loadColumns(table: string): Promise<void> {
    const ask = async (): Promise<ColumnEntry[]> =>
      columnEntries(await query(`SHOW COLUMNS FROM ${quoted(table)}`));
    this.#put(table, await settle(ask));
  }

  #put(table: string, entry: Loading<readonly ColumnEntry[]>): void {
    this.#setColumns(new Map(this.columns()).set(table, entry));
  }
}

/** Tables and views by name. */
async function listAll(): Promise<TableEntry[]> {
  const [tables, views] = await Promise.all([listTables(), listViews()]);
  const known = new Set(tables.map(({ name }) => name));
  const entries = [...tables, ...views.filter(({ name }) => !known.has(name))];
  return entries.sort((left, right) => left.name.localeCompare(right.name));
}

/** `tables()` tells more; a server without it still answers `SHOW TABLES`. */
async function listTables(): Promise<TableEntry[]> {
  try {
    return tableEntries(await query('SELECT * FROM tables()'));
  } catch (cause) {
    if (cause instanceof SqlError) {
      return tableEntries(await query('SHOW TABLES'));
    }
    throw cause;
  }
}

async function listViews(): Promise<TableEntry[]> {
  try {
    return viewEntries(await query('SELECT view_name, view_status FROM views()'));
  } catch (cause) {
    if (cause instanceof SqlError) {
      return [];
    }
    throw cause;
  }
}

function listFunctions(): ReturnType<typeof query> {
  return query('SELECT name, type, signature, description FROM functions()');
}

/** The outcome of asking, as a view shows it. */
export async function settle<T>(ask: () => Promise<T>): Promise<Loading<T>> {
  try {
    return { state: 'ready', value: await ask() };
  } catch (cause) {
    return { state: 'failed', message: cause instanceof Error ? cause.message : String(cause) };
  }
}

/**
 * Parses the server's metadata on tables, columns and functions. The parser accepts several
 * spellings of the metadata columns' names.
 */
import type { Value } from '../api/answer.js';
import { numberOf, recordsOf, textOf, type Answer, type RowRecord } from '../api/cells.js';
import { viewFacts, type ViewFacts } from './views.js';
import { texts } from '../texts.js';

export type TableKind = 'table' | 'view' | 'materialized' | 'live';

export interface TableEntry {
  readonly name: string;
  readonly kind: TableKind;
  readonly rows: number | undefined;
  readonly partitionBy: string | undefined;
  readonly timestamp: string | undefined;
  readonly suspended: boolean;
  /** A string that changes whenever the table's rows change, if the server reports changes. */
  readonly version: string | undefined;
  /** State of the view, if the object is a materialized or live view. */
  readonly view?: ViewFacts | undefined;
}

export interface ColumnEntry {
  readonly name: string;
  readonly type: string;
  readonly designated: boolean;
}

export interface FunctionEntry {
  readonly name: string;
  /** True if the function is used in FROM rather than in expressions. */
  readonly isSource: boolean;
  readonly signatures: readonly string[];
  readonly description: string;
}

export interface KnownNames {
  readonly tables: readonly Pick<TableEntry, 'name' | 'kind'>[];
  /** Names of all columns loaded so far. Used where the tables are unknown. */
  readonly columns: readonly string[];
  readonly functions: readonly FunctionEntry[];
  /** Returns the columns of a table, if they have been loaded. */
  readonly columnsOf: (table: string) => readonly ColumnEntry[];
}

/** Parses the rows of `tables()`, or of `SHOW TABLES`, whose rows contain only names. */
export function tableEntries(answer: Answer): TableEntry[] {
  return recordsOf(answer)
    .map((cell) => ({
      name: String(cell('table_name', 'table', 'name')),
      kind: kindOf(cell('table_type')),
      rows: numberOf(cell('table_row_count', 'row_count', 'rows')),
      partitionBy: textOf(cell('partitionBy', 'partition_by')),
      timestamp: textOf(cell('designatedTimestamp', 'designated_timestamp')),
      suspended: cell('table_suspended', 'suspended') === true,
      version: versionOf(cell),
      view: viewFacts(cell),
    }))
    .sort((left, right) => left.name.localeCompare(right.name));
}

/**
 * Combines the table's id with its last visible transaction. The table's name is not enough,
 * because names are reused.
 */
export function versionOf(cell: RowRecord): string | undefined {
  return textOf(cell('table_txn')) === undefined
    ? undefined
    : `${String(cell('table_id'))}/${String(cell('table_txn'))}`;
}

/** Parses the rows of `SHOW COLUMNS`. */
export function columnEntries(answer: Answer): ColumnEntry[] {
  return recordsOf(answer).map((cell) => ({
    name: String(cell('column', 'column_name', 'name')),
    type: String(cell('type', 'data_type')),
    designated: cell('designated') === true,
  }));
}

/** Parses the rows of `functions()`, which have one row per signature. */
export function functionEntries(answer: Answer): FunctionEntry[] {
  const entries = new Map<string, FunctionEntry>();
  for (const cell of recordsOf(answer)) {
    const key = String(cell('name'));
    entries.set(key, {
      name: key,
      isSource: cell('type') === 'CURSOR',
      signatures: [...(entries.get(key)?.signatures ?? []), String(cell('signature'))],
      description: textOf(cell('description')) ?? '',
    });
  }
  return [...entries.values()];
}

/** Returns the SQL keywords for a kind: `MATERIALIZED VIEW`. */
export function keywordsOf(kind: TableKind): string {
  const isView = kind === 'materialized' || kind === 'live';
  return (isView ? `${kind} view` : kind).toUpperCase();
}

/** Name of each kind of table or view, as used in sentences. */
export const KIND_LABELS: Readonly<Record<TableKind, string>> = {
  table: texts.kinds.table,
  view: texts.kinds.view,
  materialized: texts.kinds.materialized,
  live: texts.kinds.live,
};

export const KIND_ICONS = {
  table: 'table',
  view: 'view',
  materialized: 'layers',
  live: 'pulse',
} as const satisfies Record<TableKind, string>;

const LETTERS: Readonly<Record<string, TableKind>> = { V: 'view', M: 'materialized', L: 'live' };

/** Returns the kind that a letter in `table_type` stands for. */
export function kindOf(value: Value): TableKind {
  return LETTERS[String(value)] ?? 'table';
}

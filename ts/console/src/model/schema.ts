/**
 * Parses the server's metadata on tables and columns, regardless of the names of the metadata
 * columns.
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
  /** Changes whenever the table's rows change, if the server reports it. */
  readonly version: string | undefined;
  /** State of a materialized or live view, if the server reports it. */
  readonly view?: ViewFacts | undefined;
}

export interface ColumnEntry {
  readonly name: string;
  readonly type: string;
  readonly designated: boolean;
}

export interface FunctionEntry {
  readonly name: string;
  /** Whether the function is used in FROM rather than in expressions. */
  readonly isSource: boolean;
  readonly signatures: readonly string[];
  readonly description: string;
}

export interface KnownNames {
  readonly tables: readonly Pick<TableEntry, 'name' | 'kind'>[];
  /** All columns seen so far, for positions whose tables are unknown. */
  readonly columns: readonly string[];
  readonly functions: readonly FunctionEntry[];
  /** Columns of a table, once they have been loaded. */
  readonly columnsOf: (table: string) => readonly ColumnEntry[];
}

/** Parses the rows of `tables()`, or of `SHOW TABLES`, which contain only names. */
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
 * Combines the table's identity with its visible transaction. The name is not enough, because names
 * are reused.
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

/** Parses the rows of `functions()`, one per signature. */
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

/** A kind in statements: `MATERIALIZED VIEW`. */
export function keywordsOf(kind: TableKind): string {
  const isView = kind === 'materialized' || kind === 'live';
  return (isView ? `${kind} view` : kind).toUpperCase();
}

/** Name of each kind, for use in sentences. */
export const KIND_LABELS: Readonly<Record<TableKind, string>> = {
  table: texts.kinds.table,
  view: texts.kinds.view,
  materialized: texts.kinds.materialized,
  live: texts.kinds.live,
};

/** Icon name of each kind. */
export const KIND_ICONS = {
  table: 'table',
  view: 'view',
  materialized: 'layers',
  live: 'pulse',
} as const satisfies Record<TableKind, string>;

const LETTERS: Readonly<Record<string, TableKind>> = { V: 'view', M: 'materialized', L: 'live' };

/** The kind for a letter of `table_type`. */
export function kindOf(value: Value): TableKind {
  return LETTERS[String(value)] ?? 'table';
}

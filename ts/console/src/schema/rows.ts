/** Converts the schema tree to a flat list of visible rows. */
import { type Loading, readyOf } from '../state/loading.js';
import { ageText, freshnessOf, lagText, STATE_LABELS, stateText } from '../model/views.js';
import type { ColumnEntry, TableEntry } from '../model/schema.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export type TreeRow =
  | {
      readonly kind: 'group';
      readonly id: string;
      readonly name: string;
      readonly count: number;
      /** Number of invalid views in the group. */
      readonly invalid: number;
      readonly open: boolean;
    }
  | {
      readonly kind: 'table';
      readonly id: string;
      readonly table: TableEntry;
      readonly open: boolean;
    }
  | {
      readonly kind: 'column';
      readonly id: string;
      readonly table: TableEntry;
      readonly column: ColumnEntry;
    }
  | {
      readonly kind: 'fact';
      readonly id: string;
      readonly name: string;
      readonly text: string;
      readonly isBad: boolean;
    }
  | { readonly kind: 'note'; readonly id: string; readonly text: string; readonly failed: boolean };

type Columns = ReadonlyMap<string, Loading<readonly ColumnEntry[]>>;

const GROUPS = [
  { kind: 'table', name: texts.common.tables },
  { kind: 'materialized', name: texts.schema.materializedViews },
  { kind: 'live', name: texts.schema.liveViews },
  { kind: 'view', name: texts.common.views },
] as const;

/**
 * Returns the visible rows. `closed` contains the collapsed groups, and `opened` the expanded
 * tables.
 */
export function treeRows(
  tables: readonly TableEntry[],
  columns: Columns,
  opened: ReadonlySet<string>,
  closed: ReadonlySet<string>,
  filter: string,
): TreeRow[] {
  const rows: TreeRow[] = [];
  const search = filter.trim().toLowerCase();
  for (const group of GROUPS) {
    const members = tables.filter((table) => table.kind === group.kind);
    const matching = members.filter((table) => matches(table, columns, search));
    if (members.length === 0) {
      continue;
    }
    const open = !closed.has(group.kind);
    const invalid = matching.filter(({ view }) => view?.status === 'invalid').length;
    const { kind: id, name } = group;
    rows.push({ kind: 'group', id, name, count: matching.length, invalid, open });
    if (!open) {
      continue;
    }
    for (const table of matching) {
      pushTable(rows, table, columns, opened, search);
    }
  }
  return rows;
}

function matches(table: TableEntry, columns: Columns, search: string): boolean {
  if (search === '' || matchesSearch(table, search)) {
    return true;
  }
  return columnsOf(table, columns).some(({ name }) => name.toLowerCase().includes(search));
}

/** True if the search text matches an entry's name or the state shown beside the name. */
function matchesSearch({ name, suspended, view }: TableEntry, search: string): boolean {
  return (
    name.toLowerCase().includes(search) ||
    (suspended && search === 'suspended') ||
    (view !== undefined && search === STATE_LABELS[freshnessOf(view).kind])
  );
}

function columnsOf(table: TableEntry, columns: Columns): readonly ColumnEntry[] {
  const entry = columns.get(table.name);
  return readyOf(entry) ?? [];
}

function pushTable(
  rows: TreeRow[],
  table: TableEntry,
  columns: Columns,
  opened: ReadonlySet<string>,
  search: string,
): void {
  const byColumn = search !== '' && !matchesSearch(table, search);
  const open = opened.has(table.name) || byColumn;
  const id = `table:${table.name}`;
  rows.push({ kind: 'table', id, table, open });
  if (!open) {
    return;
  }
  pushFacts(rows, id, table);
  const entry = columns.get(table.name);
  if (entry?.state === 'failed') {
    rows.push({ kind: 'note', id: `${id}:failed`, text: entry.message, failed: true });
  } else if (entry?.state !== 'ready') {
    rows.push({
      kind: 'note',
      id: `${id}:loading`,
      text: texts.schema.loadingColumns,
      failed: false,
    });
  }
  for (const column of columnsOf(table, columns)) {
    if (byColumn && !column.name.toLowerCase().includes(search)) {
      continue;
    }
    rows.push({ kind: 'column', id: `${id}:${column.name}`, table, column });
  }
}

/** Adds rows for a view's base table and state, which precede its columns. */
function pushFacts(rows: TreeRow[], id: string, { view }: TableEntry): void {
  if (!view) {
    return;
  }
  const fact = (name: string, text: string | undefined, isBad = false): void => {
    if (text !== undefined) {
      rows.push({ kind: 'fact', id: `${id}:${name}`, name, text, isBad });
    }
  };
  const { base, ageMs } = view;
  fact(texts.schema.baseTable, base);
  fact(texts.schema.state, stateText(view), freshnessOf(view).kind === 'invalid');
  fact(texts.schema.lag, lagText(view));
  fact(
    texts.schema.lastRefresh,
    ageMs === undefined ? texts.schema.never : fill(texts.common.ago, { age: ageText(ageMs) }),
  );
}

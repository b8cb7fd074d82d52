/** The tree as the flat list of rows that is on screen. */
import type { Loading } from '../state/schema.js';
import type { ColumnEntry, TableEntry } from './model.js';

export type TreeRow =
  | {
      readonly kind: 'group';
      readonly id: string;
      readonly name: string;
      readonly count: number;
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
  | { readonly kind: 'note'; readonly id: string; readonly text: string; readonly failed: boolean };

type Columns = ReadonlyMap<string, Loading<readonly ColumnEntry[]>>;

const GROUPS = [
  { kind: 'table', name: 'Tables' },
  { kind: 'materialized', name: 'Materialized views' },
  { kind: 'view', name: 'Views' },
] as const;

/** `closed` holds the groups that were shut, `opened` the tables that were opened. */
export function treeRows(
  tables: readonly TableEntry[],
  columns: Columns,
  opened: ReadonlySet<string>,
  closed: ReadonlySet<string>,
  filter: string,
): TreeRow[] {
  const rows: TreeRow[] = [];
  const wanted = filter.trim().toLowerCase();
  for (const group of GROUPS) {
    const members = tables.filter((table) => table.kind === group.kind);
    const kept = members.filter((table) => matches(table, columns, wanted));
    if (members.length === 0) {
      continue;
    }
    const open = !closed.has(group.kind);
    rows.push({ kind: 'group', id: group.kind, name: group.name, count: kept.length, open });
    if (!open) {
      continue;
    }
    for (const table of kept) {
      pushTable(rows, table, columns, opened, wanted);
    }
  }
  return rows;
}

function matches(table: TableEntry, columns: Columns, wanted: string): boolean {
  if (wanted === '' || isMeant(table, wanted)) {
    return true;
  }
  return columnsOf(table, columns).some(({ name }) => name.toLowerCase().includes(wanted));
}

/** By its name, or by the word beside it in the tree. */
function isMeant({ name, suspended }: TableEntry, wanted: string): boolean {
  return name.toLowerCase().includes(wanted) || (suspended && wanted === 'suspended');
}

function columnsOf(table: TableEntry, columns: Columns): readonly ColumnEntry[] {
  const entry = columns.get(table.name);
  return entry?.state === 'ready' ? entry.value : [];
}

function pushTable(
  rows: TreeRow[],
  table: TableEntry,
  columns: Columns,
  opened: ReadonlySet<string>,
  wanted: string,
): void {
  const byColumn = wanted !== '' && !isMeant(table, wanted);
  const open = opened.has(table.name) || byColumn;
  const id = `table:${table.name}`;
  rows.push({ kind: 'table', id, table, open });
  if (!open) {
    return;
  }
  const entry = columns.get(table.name);
  if (entry?.state === 'failed') {
    rows.push({ kind: 'note', id: `${id}:failed`, text: entry.message, failed: true });
  } else if (entry?.state !== 'ready') {
    rows.push({ kind: 'note', id: `${id}:loading`, text: 'Loading columns', failed: false });
  }
  for (const column of columnsOf(table, columns)) {
    if (byColumn && !column.name.toLowerCase().includes(wanted)) {
      continue;
    }
    rows.push({ kind: 'column', id: `${id}:${column.name}`, table, column });
  }
}

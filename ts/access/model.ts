/**
 * Grants as values: what one user, group or service account was granted, and what follows. Pure
 * functions; nothing here knows of names, records or sessions.
 *
 * A grant lies at the database, on a table, or on a column. Kept is the least that says it: what a
 * higher level covers is folded away, unless it adds the grant option.
 */
import { DATABASE_ADMIN } from './catalogue.js';

/** Not granted, granted, or granted with the right to pass it on. */
type Held = 'no' | 'yes' | 'option';

interface ColumnGrant {
  readonly name: string;
  readonly held: Held;
}

interface TableGrant {
  readonly name: string;
  /** On the table as a whole, with the columns to come. */
  readonly whole: Held;
  readonly columns: ReadonlyMap<string, ColumnGrant>;
}

/** One permission's grants. Tables and columns by folded name. */
interface PermissionGrant {
  /** On all tables, with those to come. */
  readonly database: Held;
  readonly tables: ReadonlyMap<string, TableGrant>;
}

/** By permission. */
export type Grants = ReadonlyMap<string, PermissionGrant>;

export const NO_GRANTS: Grants = new Map();

/** What is granted or revoked on; no `columns` is the whole table. */
export type Target = 'database' | { readonly table: string; readonly columns?: readonly string[] };

/** The tables and columns there are. */
export interface Schema {
  tables(): readonly string[];
  /** None for a table that is not there. */
  columns(table: string): readonly string[];
}

/** Names differ by more than the case of their letters. */
export function fold(name: string): string {
  return name.toLowerCase();
}

const NOTHING: PermissionGrant = { database: 'no', tables: new Map() };

export function grant(grants: Grants, permission: string, target: Target, option: boolean): Grants {
  const held: Held = option ? 'option' : 'yes';
  const before = grants.get(permission) ?? NOTHING;
  if (target === 'database') {
    return withPermission(grants, permission, { database: held, tables: new Map() });
  }
  if (before.database === 'option') {
    return grants;
  }
  const isCovered = before.database === 'yes';
  const known = before.tables.get(fold(target.table));
  const after =
    target.columns === undefined
      ? grantWhole(target.table, held, isCovered)
      : grantColumns(known ?? emptyTable(target.table), target.columns, held, isCovered);
  return withPermission(grants, permission, withTable(before, target.table, after));
}

function emptyTable(name: string): TableGrant {
  return { name, whole: 'no', columns: new Map() };
}

function grantWhole(name: string, held: Held, isCovered: boolean): TableGrant {
  return { ...emptyTable(name), whole: isCovered && held === 'yes' ? 'no' : held };
}

function grantColumns(
  table: TableGrant,
  names: readonly string[],
  held: Held,
  isCoveredAbove: boolean,
): TableGrant {
  if (table.whole === 'option') {
    return table;
  }
  const isCovered = isCoveredAbove || table.whole === 'yes';
  const columns = new Map(table.columns);
  for (const name of names) {
    if (isCovered && held === 'yes') {
      columns.delete(fold(name));
    } else {
      columns.set(fold(name), { name, held });
    }
  }
  return { ...table, columns };
}

/**
 * Takes a permission away. Below the level of the grant, the grant goes down to everything else
 * that is there; what is not there yet is no longer covered.
 */
export function revoke(grants: Grants, permission: string, target: Target, schema: Schema): Grants {
  const known = grants.get(permission);
  if (known === undefined) {
    return grants;
  }
  if (target === 'database') {
    return withPermission(grants, permission, NOTHING);
  }
  const spread = spreadOverTables(known, schema);
  const table = spread.tables.get(fold(target.table));
  if (target.columns === undefined || table === undefined) {
    return withPermission(grants, permission, withTable(spread, target.table, null));
  }
  const columns = new Map(spreadOverColumns(table, schema).columns);
  for (const name of target.columns) {
    columns.delete(fold(name));
  }
  const after: TableGrant = { ...table, whole: 'no', columns };
  return withPermission(grants, permission, withTable(spread, target.table, after));
}

/** A grant on the database as grants on each table there is. */
function spreadOverTables(known: PermissionGrant, schema: Schema): PermissionGrant {
  const { database } = known;
  if (database === 'no') {
    return known;
  }
  const tables = new Map<string, TableGrant>();
  for (const name of schema.tables()) {
    const table = known.tables.get(fold(name)) ?? emptyTable(name);
    tables.set(fold(name), { ...table, whole: table.whole === 'no' ? database : table.whole });
  }
  return { database: 'no', tables };
}

/** A grant on a table as grants on each column there is. */
function spreadOverColumns(table: TableGrant, schema: Schema): TableGrant {
  if (table.whole === 'no') {
    return table;
  }
  const columns = new Map<string, ColumnGrant>();
  for (const name of schema.columns(table.name)) {
    const known = table.columns.get(fold(name));
    columns.set(fold(name), known ?? { name, held: table.whole });
  }
  return { ...table, whole: 'no', columns };
}

function withPermission(grants: Grants, permission: string, after: PermissionGrant): Grants {
  const changed = new Map(grants);
  if (after.database === 'no' && after.tables.size === 0) {
    changed.delete(permission);
  } else {
    changed.set(permission, after);
  }
  return changed;
}

function withTable(
  before: PermissionGrant,
  name: string,
  after: TableGrant | null,
): PermissionGrant {
  const tables = new Map(before.tables);
  if (after === null || (after.whole === 'no' && after.columns.size === 0)) {
    tables.delete(fold(name));
  } else {
    tables.set(fold(name), after);
  }
  return { ...before, tables };
}

/** Changes what every permission says of one table. */
function mapTable(
  grants: Grants,
  name: string,
  change: (table: TableGrant) => TableGrant | null,
): Grants {
  let changed = grants;
  for (const [permission, known] of grants) {
    const table = known.tables.get(fold(name));
    if (table !== undefined) {
      changed = withPermission(changed, permission, withTable(known, name, change(table)));
    }
  }
  return changed;
}

/** A table is gone: a later one of its name inherits nothing from it. */
export function dropTable(grants: Grants, name: string): Grants {
  return mapTable(grants, name, () => null);
}

export function renameTable(grants: Grants, from: string, to: string): Grants {
  const moved = new Map<string, TableGrant>();
  for (const [permission, { tables }] of grants) {
    const table = tables.get(fold(from));
    if (table !== undefined) {
      moved.set(permission, { ...table, name: to });
    }
  }
  let changed = dropTable(dropTable(grants, from), to);
  for (const [permission, table] of moved) {
    const known = changed.get(permission) ?? NOTHING;
    changed = withPermission(changed, permission, withTable(known, to, table));
  }
  return changed;
}

/** What every permission says of a table, without these columns. */
export function withoutColumns(grants: Grants, table: string, names: readonly string[]): Grants {
  return moveColumns(grants, table, new Map(names.map((name) => [name, null])));
}

/**
 * Gives columns other names, all at once; null takes a column away. What was granted ahead on a
 * name that a column gets now is not for that column.
 */
export function moveColumns(
  grants: Grants,
  table: string,
  moves: ReadonlyMap<string, string | null>,
): Grants {
  const names = new Map([...moves].map(([from, to]) => [fold(from), to]));
  const taken = new Set([...names.values()].map((to) => fold(to ?? '')));
  return mapTable(grants, table, (known) => {
    const columns = new Map<string, ColumnGrant>();
    for (const [key, column] of known.columns) {
      const to = names.get(key);
      if (typeof to === 'string') {
        columns.set(fold(to), { ...column, name: to });
      } else if (to === undefined && !taken.has(key)) {
        columns.set(key, column);
      }
    }
    return { ...known, columns };
  });
}

/** A table's designated timestamp comes along with any column under these permissions. */
const WITH_TIMESTAMP: ReadonlySet<string> = new Set(['SELECT', 'UPDATE']);

/** What is asked of grants: a permission on the database, a table, or columns of it. */
interface Question {
  readonly permission: string;
  /** Empty: the database. */
  readonly table: string;
  /** Empty: the table as a whole; for SELECT some column of it, whichever. */
  readonly columns: readonly string[];
  /** The table's designated timestamp, where it has one. */
  readonly timestamp?: string | undefined;
}

/** A question with the answer no: the column it is about, if it is one. */
interface Refusal {
  readonly column: string | null;
}

/** Null when all of it is granted by these grants together; `least` is what must be held. */
export function refusal(
  sets: readonly Grants[],
  question: Question,
  least: 'yes' | 'option' = 'yes',
): Refusal | null {
  const { permission, table, columns } = question;
  const key = fold(table);
  const found: TableGrant[] = [];
  for (const grants of sets) {
    if (covers(grants.get(DATABASE_ADMIN)?.database, least)) {
      return null;
    }
    const known = grants.get(permission);
    if (known === undefined) {
      continue;
    }
    if (covers(known.database, least)) {
      return null;
    }
    const grantOfTable = table === '' ? undefined : known.tables.get(key);
    if (covers(grantOfTable?.whole, least)) {
      return null;
    }
    if (grantOfTable !== undefined) {
      found.push(grantOfTable);
    }
  }
  const some = found.some(({ columns: held }) =>
    [...held.values()].some((column) => covers(column.held, least)),
  );
  if (columns.length === 0) {
    return some && permission === 'SELECT' && least === 'yes' ? null : { column: null };
  }
  const isImplied = (column: string): boolean =>
    least === 'yes' &&
    some &&
    WITH_TIMESTAMP.has(permission) &&
    question.timestamp !== undefined &&
    fold(question.timestamp) === fold(column);
  const missing = columns.find(
    (column) =>
      !found.some((one) => covers(one.columns.get(fold(column))?.held, least)) &&
      !isImplied(column),
  );
  return missing === undefined ? null : { column: missing };
}

function covers(held: Held | undefined, least: 'yes' | 'option'): boolean {
  return held === 'option' || (held === 'yes' && least === 'yes');
}

/** Whether the grants reach beyond every refusal. */
export function isDatabaseAdmin(sets: readonly Grants[]): boolean {
  return sets.some((grants) => covers(grants.get(DATABASE_ADMIN)?.database, 'yes'));
}

/** One row of SHOW PERMISSIONS. */
export interface GrantRow {
  readonly permission: string;
  readonly table: string | null;
  readonly column: string | null;
  readonly option: boolean;
}

/** Everything explicitly granted, by permission, table, column. */
export function grantRows(grants: Grants): readonly GrantRow[] {
  const rows: GrantRow[] = [];
  const add = (
    permission: string,
    table: string | null,
    column: string | null,
    held: Held,
  ): void => {
    if (held !== 'no') {
      rows.push({ permission, table, column, option: held === 'option' });
    }
  };
  for (const [permission, { database, tables }] of sorted(grants)) {
    add(permission, null, null, database);
    for (const [, table] of sorted(tables)) {
      add(permission, table.name, null, table.whole);
      for (const [, column] of sorted(table.columns)) {
        add(permission, table.name, column.name, column.held);
      }
    }
  }
  return rows;
}

/** The grants that `grantRows` tells; rows as stored. */
export function grantsOf(rows: readonly GrantRow[]): Grants {
  let grants = NO_GRANTS;
  for (const { permission, table, column, option } of rows) {
    const target = table === null ? 'database' : { table };
    const place =
      target === 'database' || column === null ? target : { ...target, columns: [column] };
    grants = grant(grants, permission, place, option);
  }
  return grants;
}

function sorted<T>(map: ReadonlyMap<string, T>): readonly (readonly [string, T])[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}

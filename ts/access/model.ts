/**
 * Grants as values: the grants of one user, group or service account, and the permissions that they
 * imply. The functions are pure, and do not depend on names, records or sessions.
 *
 * A grant applies to the database, a table or a column. Grants are stored in minimal form: a grant
 * that is covered at a higher level is removed, unless it adds the grant option.
 */
import { DATABASE_ADMIN } from './catalogue.js';

/** Not granted, granted, or granted with the grant option. */
type GrantState = 'no' | 'yes' | 'option';

interface ColumnGrant {
  readonly name: string;
  readonly state: GrantState;
}

interface TableGrant {
  readonly name: string;
  /** The grant on the whole table, which also covers columns added later. */
  readonly state: GrantState;
  readonly columns: ReadonlyMap<string, ColumnGrant>;
}

/** Grants of one permission. Tables and columns are keyed by case-folded name. */
interface PermissionGrant {
  /** The grant on all tables, which also covers tables created later. */
  readonly database: GrantState;
  readonly tables: ReadonlyMap<string, TableGrant>;
}

/** Grants, keyed by permission. */
export type Grants = ReadonlyMap<string, PermissionGrant>;

export const NO_GRANTS: Grants = new Map();

/** Target of a grant or revoke. A table without `columns` denotes the whole table. */
export type Target = 'database' | { readonly table: string; readonly columns?: readonly string[] };

/** The existing tables and columns. */
export interface Schema {
  tables(): readonly string[];
  /** Returns the table's columns; none if the table does not exist. */
  columns(table: string): readonly string[];
}

/** Names are case-insensitive. */
export function fold(name: string): string {
  return name.toLowerCase();
}

const NOTHING: PermissionGrant = { database: 'no', tables: new Map() };

export function grant(grants: Grants, permission: string, target: Target, option: boolean): Grants {
  const state: GrantState = option ? 'option' : 'yes';
  const before = grants.get(permission) ?? NOTHING;
  if (target === 'database') {
    return withPermission(grants, permission, { database: state, tables: new Map() });
  }
  if (before.database === 'option') {
    return grants;
  }
  const isCovered = before.database === 'yes';
  const known = before.tables.get(fold(target.table));
  const after =
    target.columns === undefined
      ? grantTable(target.table, state, isCovered)
      : grantColumns(known ?? emptyTable(target.table), target.columns, state, isCovered);
  return withPermission(grants, permission, withTable(before, target.table, after));
}

function emptyTable(name: string): TableGrant {
  return { name, state: 'no', columns: new Map() };
}

function grantTable(name: string, state: GrantState, isCovered: boolean): TableGrant {
  return { ...emptyTable(name), state: isCovered && state === 'yes' ? 'no' : state };
}

function grantColumns(
  table: TableGrant,
  names: readonly string[],
  state: GrantState,
  isCoveredAbove: boolean,
): TableGrant {
  if (table.state === 'option') {
    return table;
  }
  const isCovered = isCoveredAbove || table.state === 'yes';
  const columns = new Map(table.columns);
  for (const name of names) {
    if (isCovered && state === 'yes') {
      columns.delete(fold(name));
    } else {
      columns.set(fold(name), { name, state });
    }
  }
  return { ...table, columns };
}

/**
 * Revokes a permission. If the target is below the level of the grant, the grant is replaced by
 * separate grants on every other existing object at the lower level. Objects created later are then
 * not covered.
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
  const after: TableGrant = { ...table, state: 'no', columns };
  return withPermission(grants, permission, withTable(spread, target.table, after));
}

/** Replaces a database grant with grants on every existing table. */
function spreadOverTables(known: PermissionGrant, schema: Schema): PermissionGrant {
  const { database } = known;
  if (database === 'no') {
    return known;
  }
  const tables = new Map<string, TableGrant>();
  for (const name of schema.tables()) {
    const table = known.tables.get(fold(name)) ?? emptyTable(name);
    tables.set(fold(name), { ...table, state: table.state === 'no' ? database : table.state });
  }
  return { database: 'no', tables };
}

/** Replaces a table grant with grants on every existing column. */
function spreadOverColumns(table: TableGrant, schema: Schema): TableGrant {
  if (table.state === 'no') {
    return table;
  }
  const columns = new Map<string, ColumnGrant>();
  for (const name of schema.columns(table.name)) {
    const known = table.columns.get(fold(name));
    columns.set(fold(name), known ?? { name, state: table.state });
  }
  return { ...table, state: 'no', columns };
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
  if (after === null || (after.state === 'no' && after.columns.size === 0)) {
    tables.delete(fold(name));
  } else {
    tables.set(fold(name), after);
  }
  return { ...before, tables };
}

/** Changes one table's grants, for every permission. */
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

/** Removes the grants on a dropped table. A later table of the same name inherits none of them. */
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

/** Removes the grants on these columns of a table, for every permission. */
export function withoutColumns(grants: Grants, table: string, names: readonly string[]): Grants {
  return moveColumns(grants, table, new Map(names.map((name) => [name, null])));
}

/**
 * Renames columns simultaneously; `null` removes a column. Existing grants on a name are not passed
 * on to the column that receives that name.
 */
export function moveColumns(
  grants: Grants,
  table: string,
  moves: ReadonlyMap<string, string | null>,
): Grants {
  const names = new Map([...moves].map(([from, to]) => [fold(from), to]));
  const reassigned = new Set([...names.values()].map((to) => fold(to ?? '')));
  return mapTable(grants, table, (known) => {
    const columns = new Map<string, ColumnGrant>();
    for (const [key, column] of known.columns) {
      const to = names.get(key);
      if (typeof to === 'string') {
        columns.set(fold(to), { ...column, name: to });
      } else if (to === undefined && !reassigned.has(key)) {
        columns.set(key, column);
      }
    }
    return { ...known, columns };
  });
}

/** With these permissions, a grant on any column includes the table's designated timestamp. */
const WITH_TIMESTAMP: ReadonlySet<string> = new Set(['SELECT', 'UPDATE']);

/** An access to check: a permission on the database, a table or columns. */
interface RequiredGrant {
  readonly permission: string;
  /** Empty for an access to the database. */
  readonly table: string;
  /** Empty for the table as a whole; for SELECT, a grant on any column suffices. */
  readonly columns: readonly string[];
  /** The table's designated timestamp, if any. */
  readonly timestamp?: string | undefined;
}

/** A refused access, with the first refused column, if any. */
interface Refusal {
  readonly column: string | null;
}

/**
 * Returns `null` if the grants together cover the access. `required` is the minimum grant needed.
 */
export function refusal(
  sets: readonly Grants[],
  question: RequiredGrant,
  required: 'yes' | 'option' = 'yes',
): Refusal | null {
  const { permission, table, columns } = question;
  const key = fold(table);
  const tableGrants: TableGrant[] = [];
  for (const grants of sets) {
    if (covers(grants.get(DATABASE_ADMIN)?.database, required)) {
      return null;
    }
    const known = grants.get(permission);
    if (known === undefined) {
      continue;
    }
    if (covers(known.database, required)) {
      return null;
    }
    const grantOfTable = table === '' ? undefined : known.tables.get(key);
    if (covers(grantOfTable?.state, required)) {
      return null;
    }
    if (grantOfTable !== undefined) {
      tableGrants.push(grantOfTable);
    }
  }
  const hasColumnGrant = tableGrants.some(({ columns: columnGrants }) =>
    [...columnGrants.values()].some((column) => covers(column.state, required)),
  );
  if (columns.length === 0) {
    return hasColumnGrant && permission === 'SELECT' && required === 'yes'
      ? null
      : { column: null };
  }
  const isImplied = (column: string): boolean =>
    required === 'yes' &&
    hasColumnGrant &&
    WITH_TIMESTAMP.has(permission) &&
    question.timestamp !== undefined &&
    fold(question.timestamp) === fold(column);
  const missing = columns.find(
    (column) =>
      !tableGrants.some((tableGrant) =>
        covers(tableGrant.columns.get(fold(column))?.state, required),
      ) && !isImplied(column),
  );
  return missing === undefined ? null : { column: missing };
}

function covers(state: GrantState | undefined, required: 'yes' | 'option'): boolean {
  return state === 'option' || (state === 'yes' && required === 'yes');
}

/** Returns whether the grants include DATABASE ADMIN, which allows everything. */
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

/** Returns all explicit grants, ordered by permission, table and column. */
export function grantRows(grants: Grants): readonly GrantRow[] {
  const rows: GrantRow[] = [];
  const add = (
    permission: string,
    table: string | null,
    column: string | null,
    state: GrantState,
  ): void => {
    if (state !== 'no') {
      rows.push({ permission, table, column, option: state === 'option' });
    }
  };
  for (const [permission, { database, tables }] of sorted(grants)) {
    add(permission, null, null, database);
    for (const [, table] of sorted(tables)) {
      add(permission, table.name, null, table.state);
      for (const [, column] of sorted(table.columns)) {
        add(permission, table.name, column.name, column.state);
      }
    }
  }
  return rows;
}

/** The inverse of `grantRows`: converts stored rows to grants. */
export function grantsOf(rows: readonly GrantRow[]): Grants {
  let grants = NO_GRANTS;
  for (const { permission, table, column, option } of rows) {
    const target = table === null ? 'database' : { table };
    const fullTarget =
      target === 'database' || column === null ? target : { ...target, columns: [column] };
    grants = grant(grants, permission, fullTarget, option);
  }
  return grants;
}

function sorted<T>(map: ReadonlyMap<string, T>): readonly (readonly [string, T])[] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}

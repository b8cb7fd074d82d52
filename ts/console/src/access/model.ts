/**
 * Converts the server's permission lists into grants, and the user's clicks into pending changes
 * and SQL.
 */
import { recordsOf, textOf, type Answer } from '../api/cells.js';
import { literal, quoted } from '../sql/names.js';
import { isOfTables, type Catalogue } from './catalogue.js';
import { texts } from '../texts.js';

export type PrincipalKind = 'user' | 'group' | 'service account';

/** Name of each kind of principal, as used in sentences. */
export const PRINCIPAL_LABELS: Readonly<Record<PrincipalKind, string>> = {
  user: texts.access.user,
  group: texts.access.group,
  'service account': texts.access.serviceAccount,
};

export interface Principal {
  readonly kind: PrincipalKind;
  readonly name: string;
}

/** The object of a grant: a column, a table, or all tables if both fields are `undefined`. */
export interface GrantTarget {
  readonly table: string | undefined;
  readonly column: string | undefined;
}

/** Target of a grant on all tables or on the whole database. */
export const EVERYWHERE: GrantTarget = { table: undefined, column: undefined };

export interface Grant extends GrantTarget {
  readonly permission: string;
  /** True if the holder may grant the permission to others. */
  readonly option: boolean;
  /**
   * True if another grant implies this one. For example, a grant on any column implies a grant on
   * the time column.
   */
  readonly isImplied: boolean;
  /**
   * Names of the grantees: the principal or its groups. Empty if the server does not report them.
   */
  readonly grantedTo: readonly string[];
}

/** A pending grant or revoke. It is executed when the user applies the changes. */
export interface Change extends GrantTarget {
  readonly permission: string;
  readonly isGrant: boolean;
}

/**
 * How a principal holds a permission: directly, with grant option, through a group, through a grant
 * on all tables, through `DATABASE ADMIN`, through another grant that implies it, on some columns
 * only, or not at all.
 */
export type Mark =
  'granted' | 'option' | 'group' | 'inherited' | 'administrator' | 'implied' | 'part' | 'none';

/** The permission that includes all others. */
const DATABASE_ADMIN = 'DATABASE ADMIN';
const ASSUME = 'ASSUME SERVICE ACCOUNT ';

/** Returns the name that the server gives to the permission to assume a service account. */
export function assumes(account: string): string {
  return ASSUME + account;
}

/** Parses the rows of `SHOW PERMISSIONS`. */
export function grantsOf(answer: Answer): Grant[] {
  return recordsOf(answer).map((cell) => ({
    permission: String(cell('permission')),
    table: textOf(cell('table_name')),
    column: textOf(cell('column_name')),
    option: cell('grant_option') === true || cell('grant_option') === 't',
    isImplied: cell('origin') === 'I',
    grantedTo: textOf(cell('granted_to'))?.split(', ') ?? [],
  }));
}

/** Returns the groups through which a principal holds a permission on an object. */
export function groupsOf(
  grants: readonly Grant[],
  permission: string,
  target: GrantTarget,
  name: string,
): readonly string[] {
  const here = grantAt(grants, permission, target);
  return here?.grantedTo.filter((one) => !same(one, name)) ?? [];
}

function grantAt(
  grants: readonly Grant[],
  permission: string,
  target: GrantTarget,
): Grant | undefined {
  return grants.find((grant) => grant.permission === permission && isSame(grant, target));
}

/** Determines how the named principal holds a permission on an object. */
export function markOf(
  grants: readonly Grant[],
  permission: string,
  target: GrantTarget,
  name: string,
): Mark {
  const here = grantAt(grants, permission, target);
  if (here) {
    const isOwn = here.grantedTo.length === 0 || here.grantedTo.some((one) => same(one, name));
    return here.isImplied ? 'implied' : !isOwn ? 'group' : here.option ? 'option' : 'granted';
  }
  const matching = grants.filter((grant) => grant.permission === permission);
  if (matching.some((grant) => grant.column === undefined && covers(grant, target))) {
    return 'inherited';
  }
  if (grants.some((grant) => grant.permission === DATABASE_ADMIN)) {
    return 'administrator';
  }
  const isSomeColumns =
    target.column === undefined && matching.some(({ table }) => same(table, target.table));
  return isSomeColumns && target.table !== undefined ? 'part' : 'none';
}

/** True if a grant on a table or on all tables covers an object. */
function covers(grant: Grant, target: GrantTarget): boolean {
  return grant.table === undefined || same(grant.table, target.table);
}

function isSame(left: GrantTarget, right: GrantTarget): boolean {
  return same(left.table, right.table) && same(left.column, right.column);
}

/** Compares names without regard to case, like the server. */
function same(left: string | undefined, right: string | undefined): boolean {
  return left?.toLowerCase() === right?.toLowerCase();
}

const REVOCABLE: ReadonlySet<Mark> = new Set(['granted', 'option', 'inherited']);

/**
 * True if a click grants the permission, false if it revokes it. A permission held only through a
 * group is granted.
 */
export function isGranting(mark: Mark): boolean {
  return !REVOCABLE.has(mark);
}

/**
 * Returns the pending changes after a click: a new change is added, and a change that was already
 * pending is removed.
 */
export function toggled(
  changes: readonly Change[],
  permission: string,
  { table, column }: GrantTarget,
  mark: Mark,
): Change[] {
  const rest = changes.filter((change) => !concerns(change, permission, { table, column }));
  const change = { permission, table, column, isGrant: isGranting(mark) };
  return rest.length < changes.length ? rest : [...rest, change];
}

export function concerns(change: Change, permission: string, target: GrantTarget): boolean {
  return change.permission === permission && isSame(change, target);
}

/** A statement, and the pending changes that it executes. */
export interface Step {
  readonly statement: string;
  readonly changes: readonly Change[];
}

/**
 * Builds the statements for the pending changes. Column changes come last, so that a change to the
 * whole table does not undo them. The same change to several columns of a table becomes one
 * statement.
 */
export function stepsOf(
  changes: readonly Change[],
  principal: Principal,
  catalogue: Catalogue,
): Step[] {
  const isNarrow = ({ column }: Change): number => (column === undefined ? 0 : 1);
  const groups = new Map<string, Change[]>();
  for (const change of changes.toSorted((left, right) => isNarrow(left) - isNarrow(right))) {
    const { permission, table, column, isGrant } = change;
    const key = JSON.stringify([permission, table, column !== undefined, isGrant]);
    groups.set(key, [...(groups.get(key) ?? []), change]);
  }
  return [...groups.values()].map((group) => ({
    statement: statementOf(group, principal, catalogue),
    changes: group,
  }));
}

function statementOf(group: readonly Change[], principal: Principal, catalogue: Catalogue): string {
  const [first] = group;
  const { permission = '', table, isGrant } = first ?? {};
  const columns = group.flatMap(({ column }) => (column === undefined ? [] : quoted(column)));
  const columnList = columns.length === 0 ? '' : `(${columns.join(', ')})`;
  const target = table === undefined ? 'ALL TABLES' : `${quoted(table)}${columnList}`;
  const on = isOfTables(catalogue, permission) ? ` ON ${target}` : '';
  const right = permission.startsWith(ASSUME)
    ? ASSUME + quoted(permission.slice(ASSUME.length))
    : permission;
  const name = quoted(principal.name);
  return isGrant ? `GRANT ${right}${on} TO ${name}` : `REVOKE ${right}${on} FROM ${name}`;
}

/**
 * Builds the statement that creates a principal. A principal without a password cannot log in with
 * one.
 */
export function creationOf({ kind, name }: Principal, password: string): string {
  const secret = password === '' ? '' : ` WITH PASSWORD ${literal(password)}`;
  return `CREATE ${kind.toUpperCase()} ${quoted(name)}${secret}`;
}

/** Builds the statement that sets a password. An empty string removes the password. */
export function passwordStatement(principal: Principal, password: string): string {
  const secret = password === '' ? 'NO PASSWORD' : `PASSWORD ${literal(password)}`;
  return `${alteration(principal)} WITH ${secret}`;
}

/**
 * Builds the statement that creates an HTTP token with lifetime `ttl`. With `isRenewed`, each login
 * renews the lifetime.
 */
export function tokenStatement(principal: Principal, ttl: string, isRenewed: boolean): string {
  const statement = `${alteration(principal)} CREATE TOKEN TYPE REST WITH TTL ${literal(ttl)}`;
  return isRenewed ? `${statement} REFRESH` : statement;
}

/**
 * Builds the statement that revokes the given token, or all tokens of the principal if `token` is
 * empty.
 */
export function tokenEnd(principal: Principal, token = ''): string {
  const statement = `${alteration(principal)} DROP TOKEN TYPE REST`;
  return token === '' ? statement : `${statement} ${literal(token)}`;
}

function alteration({ kind, name }: Principal): string {
  return `ALTER ${kind.toUpperCase()} ${quoted(name)}`;
}

/** Permissions as listed by the server, pending changes made by clicking, and the resulting SQL. */
import { recordsOf, textOf, type Answer } from '../api/cells.js';
import { literal, quoted } from '../sql/names.js';
import { isOfTables, type Catalogue } from './catalogue.js';
import { texts } from '../texts.js';

export type PrincipalKind = 'user' | 'group' | 'service account';

/** Name of each kind of principal, for use in sentences. */
export const PRINCIPAL_LABELS: Readonly<Record<PrincipalKind, string>> = {
  user: texts.access.user,
  group: texts.access.group,
  'service account': texts.access.serviceAccount,
};

export interface Principal {
  readonly kind: PrincipalKind;
  readonly name: string;
}

/** Object of a grant: a column, a table or, with neither, all tables. */
export interface GrantTarget {
  readonly table: string | undefined;
  readonly column: string | undefined;
}

/** All tables, or the whole database. */
export const EVERYWHERE: GrantTarget = { table: undefined, column: undefined };

export interface Grant extends GrantTarget {
  readonly permission: string;
  /** Whether the holder may grant the permission to others. */
  readonly option: boolean;
  /**
   * Whether another grant implies this grant. For example, a grant on any column implies a grant on
   * the time column.
   */
  readonly isImplied: boolean;
  /** Grantees (the principal itself or its groups); empty if the server does not report them. */
  readonly grantedTo: readonly string[];
}

/** A pending grant or revoke; it is executed only when the user applies it. */
export interface Change extends GrantTarget {
  readonly permission: string;
  readonly isGrant: boolean;
}

/**
 * How a permission is displayed: granted directly, with grant option, through a group, on all
 * tables, through `DATABASE ADMIN`, implied by another grant, on some columns only, or not at all.
 */
export type Mark =
  'granted' | 'option' | 'group' | 'inherited' | 'administrator' | 'implied' | 'part' | 'none';

/** Includes every other permission. */
const DATABASE_ADMIN = 'DATABASE ADMIN';
const ASSUME = 'ASSUME SERVICE ACCOUNT ';

/** Permission to assume a service account, as the server lists it. */
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

/** Groups through which a principal holds a permission on an object. */
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

/** How the named principal holds a permission on an object. */
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

/** Whether a grant on a table or on all tables covers an object. */
function covers(grant: Grant, target: GrantTarget): boolean {
  return grant.table === undefined || same(grant.table, target.table);
}

function isSame(left: GrantTarget, right: GrantTarget): boolean {
  return same(left.table, right.table) && same(left.column, right.column);
}

/** Names are case-insensitive on the server. */
function same(left: string | undefined, right: string | undefined): boolean {
  return left?.toLowerCase() === right?.toLowerCase();
}

const REVOCABLE: ReadonlySet<Mark> = new Set(['granted', 'option', 'inherited']);

/**
 * Whether a click grants the permission, for example if only a group has it. Otherwise the click
 * revokes it.
 */
export function isGranting(mark: Mark): boolean {
  return !REVOCABLE.has(mark);
}

/** Pending changes after a click: adds the change, or removes it if it was already pending. */
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

/** A statement and the pending changes that it applies. */
export interface Step {
  readonly statement: string;
  readonly changes: readonly Change[];
}

/**
 * Statements for the pending changes. Column changes come last, so that a change to the whole table
 * does not undo them. Identical changes to several columns of a table share a statement.
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

/** Statement that creates a principal; without a password, password login is not possible. */
export function creationOf({ kind, name }: Principal, password: string): string {
  const secret = password === '' ? '' : ` WITH PASSWORD ${literal(password)}`;
  return `CREATE ${kind.toUpperCase()} ${quoted(name)}${secret}`;
}

/** Statement that sets a password; an empty password removes it. */
export function passwordStatement(principal: Principal, password: string): string {
  const secret = password === '' ? 'NO PASSWORD' : `PASSWORD ${literal(password)}`;
  return `${alteration(principal)} WITH ${secret}`;
}

/**
 * Statement that creates an HTTP token with lifetime `ttl`. With `isRenewed`, the lifetime is
 * counted from the last login.
 */
export function tokenStatement(principal: Principal, ttl: string, isRenewed: boolean): string {
  const statement = `${alteration(principal)} CREATE TOKEN TYPE REST WITH TTL ${literal(ttl)}`;
  return isRenewed ? `${statement} REFRESH` : statement;
}

/** Statement that revokes one token, or all tokens of the principal if none is given. */
export function tokenEnd(principal: Principal, token = ''): string {
  const statement = `${alteration(principal)} DROP TOKEN TYPE REST`;
  return token === '' ? statement : `${statement} ${literal(token)}`;
}

function alteration({ kind, name }: Principal): string {
  return `ALTER ${kind.toUpperCase()} ${quoted(name)}`;
}

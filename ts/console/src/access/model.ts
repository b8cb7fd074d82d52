/** Rights as the server lists them, what a click plans, and the SQL it comes to. */
import { recordsOf, textOf, type Answer } from '../api/cells.js';
import { literal, quoted } from '../sql/names.js';
import { isOfTables, type Catalogue } from './catalogue.js';

export type PrincipalKind = 'user' | 'group' | 'service account';

export interface Principal {
  readonly kind: PrincipalKind;
  readonly name: string;
}

/** Where a right lies: on a column, on a table, or, with neither, on all tables. */
export interface Place {
  readonly table: string | undefined;
  readonly column: string | undefined;
}

/** All tables, or the whole database. */
export const EVERYWHERE: Place = { table: undefined, column: undefined };

export interface Grant extends Place {
  readonly permission: string;
  /** Whether it may be passed on. */
  readonly option: boolean;
  /** Whether it follows from another one: the time column comes along with any other. */
  readonly isImplied: boolean;
  /** Who was given it: the principal, or groups; empty where the server does not know. */
  readonly grantedTo: readonly string[];
}

/** One right to be given or taken; nothing happens before it is applied. */
export interface Change extends Place {
  readonly permission: string;
  readonly isGrant: boolean;
}

/** How a right shows: held here, to be passed on, a group's, from above, from others, in part. */
export type Mark =
  'granted' | 'option' | 'group' | 'inherited' | 'administrator' | 'implied' | 'part' | 'none';

/** Comes with every right there is. */
const DATABASE_ADMIN = 'DATABASE ADMIN';
const ASSUME = 'ASSUME SERVICE ACCOUNT ';

/** The right to become a service account, as the server lists it. */
export function assumes(account: string): string {
  return ASSUME + account;
}

/** Rows of `SHOW PERMISSIONS`. */
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

/** The groups through which a principal has a right at a place. */
export function groupsOf(
  grants: readonly Grant[],
  permission: string,
  place: Place,
  name: string,
): readonly string[] {
  const here = grantAt(grants, permission, place);
  return here?.grantedTo.filter((one) => !same(one, name)) ?? [];
}

function grantAt(grants: readonly Grant[], permission: string, place: Place): Grant | undefined {
  return grants.find((grant) => grant.permission === permission && isSame(grant, place));
}

/** How the principal of this name holds a right at a place. */
export function markOf(
  grants: readonly Grant[],
  permission: string,
  place: Place,
  name: string,
): Mark {
  const here = grantAt(grants, permission, place);
  if (here) {
    const isOwn = here.grantedTo.length === 0 || here.grantedTo.some((one) => same(one, name));
    return here.isImplied ? 'implied' : !isOwn ? 'group' : here.option ? 'option' : 'granted';
  }
  const held = grants.filter((grant) => grant.permission === permission);
  if (held.some((grant) => grant.column === undefined && covers(grant, place))) {
    return 'inherited';
  }
  if (grants.some((grant) => grant.permission === DATABASE_ADMIN)) {
    return 'administrator';
  }
  const isPart = place.column === undefined && held.some(({ table }) => same(table, place.table));
  return isPart && place.table !== undefined ? 'part' : 'none';
}

/** Whether a grant on a table or on all of them reaches a place. */
function covers(grant: Grant, place: Place): boolean {
  return grant.table === undefined || same(grant.table, place.table);
}

function isSame(left: Place, right: Place): boolean {
  return same(left.table, right.table) && same(left.column, right.column);
}

/** The server's names do not tell cases apart. */
function same(left: string | undefined, right: string | undefined): boolean {
  return left?.toLowerCase() === right?.toLowerCase();
}

const TAKEN: ReadonlySet<Mark> = new Set(['granted', 'option', 'inherited']);

/** Whether a click on a right gives it, as where a group has it; otherwise it takes it. */
export function isGiven(mark: Mark): boolean {
  return !TAKEN.has(mark);
}

/** The plan after a click: the change is added, or taken back when it was planned already. */
export function toggled(
  changes: readonly Change[],
  permission: string,
  { table, column }: Place,
  mark: Mark,
): Change[] {
  const rest = changes.filter((change) => !concerns(change, permission, { table, column }));
  const change = { permission, table, column, isGrant: isGiven(mark) };
  return rest.length < changes.length ? rest : [...rest, change];
}

export function concerns(change: Change, permission: string, place: Place): boolean {
  return change.permission === permission && isSame(change, place);
}

/** A statement of the plan and what it brings about. */
export interface Step {
  readonly statement: string;
  readonly changes: readonly Change[];
}

/**
 * The plan in its order, columns last, so that what concerns a whole table does not undo them;
 * columns of one table that go together are one statement.
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
  const part = columns.length === 0 ? '' : `(${columns.join(', ')})`;
  const target = table === undefined ? 'ALL TABLES' : `${quoted(table)}${part}`;
  const on = isOfTables(catalogue, permission) ? ` ON ${target}` : '';
  const right = permission.startsWith(ASSUME)
    ? ASSUME + quoted(permission.slice(ASSUME.length))
    : permission;
  const name = quoted(principal.name);
  return isGrant ? `GRANT ${right}${on} TO ${name}` : `REVOKE ${right}${on} FROM ${name}`;
}

/** Creates a principal; without a password they cannot log in by one. */
export function creationOf({ kind, name }: Principal, password: string): string {
  const secret = password === '' ? '' : ` WITH PASSWORD ${literal(password)}`;
  return `CREATE ${kind.toUpperCase()} ${quoted(name)}${secret}`;
}

/** Changes how a principal logs in; an empty password takes it away. */
export function passwordStatement(principal: Principal, password: string): string {
  const secret = password === '' ? 'NO PASSWORD' : `PASSWORD ${literal(password)}`;
  return `${alteration(principal)} WITH ${secret}`;
}

/** Makes a token for HTTP that lives as long as `ttl` says; renewed, since the last login. */
export function tokenStatement(principal: Principal, ttl: string, isRenewed: boolean): string {
  const words = `${alteration(principal)} CREATE TOKEN TYPE REST WITH TTL ${literal(ttl)}`;
  return isRenewed ? `${words} REFRESH` : words;
}

/** Ends one token, or all of them where none is given. */
export function tokenEnd(principal: Principal, token = ''): string {
  const words = `${alteration(principal)} DROP TOKEN TYPE REST`;
  return token === '' ? words : `${words} ${literal(token)}`;
}

function alteration({ kind, name }: Principal): string {
  return `ALTER ${kind.toUpperCase()} ${quoted(name)}`;
}

/** Rights as the server lists them, what a click plans, and the SQL it comes to. */
import { reader, textOf, type Answer } from '../api/cells.js';
import { literal, quoted } from '../schema/model.js';

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
export type Mark = 'granted' | 'option' | 'group' | 'inherited' | 'implied' | 'part' | 'none';

/** Rights that say how a principal may connect. */
export const ENDPOINTS: readonly (readonly [permission: string, name: string])[] = [
  ['HTTP', 'Console and HTTP'],
  ['PGWIRE', 'PostgreSQL clients'],
];

interface RightGroup {
  readonly name: string;
  readonly rights: readonly string[];
}

export const RIGHT_GROUPS: readonly RightGroup[] = [
  { name: 'Read', rights: ['SELECT'] },
  { name: 'Write', rights: ['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE TABLE'] },
  { name: 'Change', rights: ['ADD COLUMN', 'RENAME COLUMN'] },
  { name: 'Remove', rights: ['DROP COLUMN', 'DROP TABLE'] },
];

export const RIGHTS: readonly string[] = RIGHT_GROUPS.flatMap(({ rights }) => rights);

const COLUMN_RIGHTS: ReadonlySet<string> = new Set([
  'SELECT',
  'UPDATE',
  'RENAME COLUMN',
  'DROP COLUMN',
]);

/** Whether a right can be held on a thing at all; views are granted as a whole, to be read. */
export function applies(permission: string, what: 'all' | 'table' | 'view' | 'column'): boolean {
  if (what === 'column') {
    return COLUMN_RIGHTS.has(permission);
  }
  return what !== 'view' || permission === 'SELECT';
}

const EVERYTHING: ReadonlySet<string> = new Set(['ALL', 'DATABASE ADMIN']);

/** Rows of `SHOW PERMISSIONS`. */
export function grantsOf(answer: Answer): Grant[] {
  const permission = reader(answer, 'permission');
  const table = reader(answer, 'table_name');
  const column = reader(answer, 'column_name');
  const option = reader(answer, 'grant_option');
  const origin = reader(answer, 'origin');
  const grantedTo = reader(answer, 'granted_to');
  return answer.rows.map((row) => ({
    permission: String(permission(row)),
    table: textOf(table(row)),
    column: textOf(column(row)),
    option: option(row) === true || option(row) === 't',
    isImplied: origin(row) === 'I',
    grantedTo: textOf(grantedTo(row))?.split(', ') ?? [],
  }));
}

function heldOf(grants: readonly Grant[], permission: string): readonly Grant[] {
  return grants.filter(
    (grant) => grant.permission === permission || EVERYTHING.has(grant.permission),
  );
}

/** The groups through which a principal has a right at a place. */
export function groupsOf(
  grants: readonly Grant[],
  permission: string,
  place: Place,
  name: string,
): readonly string[] {
  const here = heldOf(grants, permission).find((grant) => isSame(grant, place));
  return here?.grantedTo.filter((one) => !same(one, name)) ?? [];
}

/** How the principal of this name holds a right at a place. */
export function markOf(
  grants: readonly Grant[],
  permission: string,
  place: Place,
  name: string,
): Mark {
  const held = heldOf(grants, permission);
  const here = held.find((grant) => isSame(grant, place));
  if (here) {
    const isOwn = here.grantedTo.length === 0 || here.grantedTo.some((one) => same(one, name));
    return here.isImplied ? 'implied' : !isOwn ? 'group' : here.option ? 'option' : 'granted';
  }
  if (held.some((grant) => grant.column === undefined && covers(grant, place))) {
    return 'inherited';
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

/** Whether a click on a right gives it, as where a group has it; otherwise it takes it. */
export function isGiven(mark: Mark): boolean {
  return mark === 'none' || mark === 'part' || mark === 'implied' || mark === 'group';
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
interface Step {
  readonly statement: string;
  readonly changes: readonly Change[];
}

/**
 * The plan in its order, columns last, so that what concerns a whole table does not undo them;
 * columns of one table that go together are one statement.
 */
export function stepsOf(changes: readonly Change[], principal: Principal): Step[] {
  const isNarrow = ({ column }: Change): number => (column === undefined ? 0 : 1);
  const groups = new Map<string, Change[]>();
  for (const change of changes.toSorted((left, right) => isNarrow(left) - isNarrow(right))) {
    const { permission, table, column, isGrant } = change;
    const key = JSON.stringify([permission, table, column !== undefined, isGrant]);
    groups.set(key, [...(groups.get(key) ?? []), change]);
  }
  return [...groups.values()].map((group) => ({
    statement: statementOf(group, principal),
    changes: group,
  }));
}

function statementOf(group: readonly Change[], principal: Principal): string {
  const [first] = group;
  const { permission = '', table, isGrant } = first ?? {};
  const isDatabaseWide = !RIGHTS.includes(permission);
  const columns = group.flatMap(({ column }) => (column === undefined ? [] : quoted(column)));
  const part = columns.length === 0 ? '' : `(${columns.join(', ')})`;
  const target = table === undefined ? 'ALL TABLES' : `${quoted(table)}${part}`;
  const on = isDatabaseWide ? '' : ` ON ${target}`;
  const name = quoted(principal.name);
  return isGrant ? `GRANT ${permission}${on} TO ${name}` : `REVOKE ${permission}${on} FROM ${name}`;
}

/** Creates a principal; without a password they cannot log in by one. */
export function creationOf({ kind, name }: Principal, password: string): string {
  const secret = password === '' ? '' : ` WITH PASSWORD ${literal(password)}`;
  return `CREATE ${kind.toUpperCase()} ${quoted(name)}${secret}`;
}

/** Changes how a principal logs in; an empty password takes it away. */
export function passwordStatement({ kind, name }: Principal, password: string): string {
  const secret = password === '' ? 'NO PASSWORD' : `PASSWORD ${literal(password)}`;
  return `ALTER ${kind.toUpperCase()} ${quoted(name)} WITH ${secret}`;
}

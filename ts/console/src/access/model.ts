/** Rights as the server lists them, what a click plans, and the SQL it comes to. */
import { reader, textOf, type Answer } from '../api/cells.js';
import { quoted } from '../schema/model.js';

export type PrincipalKind = 'user' | 'group' | 'service account';

export interface Principal {
  readonly kind: PrincipalKind;
  readonly name: string;
}

export interface Grant {
  readonly permission: string;
  /** Absent: for all tables, or for the database as a whole. */
  readonly table: string | undefined;
  readonly column: string | undefined;
  /** Whether it may be passed on. */
  readonly option: boolean;
}

/** One right to be given or taken; nothing happens before it is applied. */
export interface Change {
  readonly permission: string;
  readonly table: string | undefined;
  readonly isGrant: boolean;
}

/** How a right shows: held here, held and to be passed on, from all tables, on some columns. */
export type Mark = 'granted' | 'option' | 'inherited' | 'part' | 'none';

/** Rights that say how somebody may connect. */
export const ENDPOINTS: readonly (readonly [permission: string, name: string])[] = [
  ['HTTP', 'Console and HTTP'],
  ['PGWIRE', 'PostgreSQL clients'],
];

export interface RightGroup {
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

const EVERYTHING: ReadonlySet<string> = new Set(['ALL', 'DATABASE ADMIN']);

/** Rows of `SHOW PERMISSIONS`. */
export function grantsOf(answer: Answer): Grant[] {
  const permission = reader(answer, 'permission');
  const table = reader(answer, 'table_name');
  const column = reader(answer, 'column_name');
  const option = reader(answer, 'grant_option');
  return answer.rows.map((row) => ({
    permission: String(permission(row)),
    table: textOf(table(row)),
    column: textOf(column(row)),
    option: option(row) === true || option(row) === 't',
  }));
}

/** How somebody holds a right on a table, or on all of them. */
export function markOf(
  grants: readonly Grant[],
  permission: string,
  table: string | undefined,
): Mark {
  const held = grants.filter(
    (grant) => grant.permission === permission || EVERYTHING.has(grant.permission),
  );
  const whole = held.find((grant) => grant.column === undefined && grant.table === table);
  if (whole) {
    return whole.option ? 'option' : 'granted';
  }
  if (held.some((grant) => grant.table === undefined)) {
    return 'inherited';
  }
  const isPart = held.some((grant) => grant.table === table && grant.column !== undefined);
  return isPart ? 'part' : 'none';
}

/** The plan after a click: the change is added, or taken back when it was planned already. */
export function toggled(
  changes: readonly Change[],
  permission: string,
  table: string | undefined,
  mark: Mark,
): Change[] {
  const rest = changes.filter((change) => !concerns(change, permission, table));
  const isGrant = mark === 'none' || mark === 'part';
  return rest.length < changes.length ? rest : [...rest, { permission, table, isGrant }];
}

export function concerns(change: Change, permission: string, table: string | undefined): boolean {
  return change.permission === permission && change.table === table;
}

export function statementOf(change: Change, principal: Principal): string {
  const isDatabaseWide = !RIGHTS.includes(change.permission);
  const target = change.table === undefined ? 'ALL TABLES' : quoted(change.table);
  const on = isDatabaseWide ? '' : ` ON ${target}`;
  const name = quoted(principal.name);
  return change.isGrant
    ? `GRANT ${change.permission}${on} TO ${name}`
    : `REVOKE ${change.permission}${on} FROM ${name}`;
}

/** Users and rights for SHOW CREATE DATABASE: statements that recreate them, without secrets. */
import type { Tree } from '../sql/index.js';
import { quoteName } from '../sql/printer/print-expression.js';
import { denied } from './authorise.js';
import { type GrantRow, grantRows } from './model.js';
import type { StoredPrincipal } from './principals.js';
import { type AccessContext, hasPermission } from './setting.js';
import type { Rights } from './store.js';

type Node = Tree['nodes'][number];
type Shown = Extract<Extract<Node, { kind: 'Show' }>['subject'], { subject: 'CreateDatabase' }>;

/** Categories that can be excluded, and the permission each requires. */
const CATEGORIES = {
  GROUPS: 'LIST USERS',
  USERS: 'LIST USERS',
  SERVICE_ACCOUNTS: 'LIST USERS',
  PERMISSIONS: 'USER DETAILS',
} as const;
type Category = keyof typeof CATEGORIES;

export function dumpOf(node: Node): Shown | null {
  return node.kind === 'Show' && node.subject.subject === 'CreateDatabase' ? node.subject : null;
}

/** Returns one statement per line. Each principal comes after the principals it depends on. */
export function dumped(context: AccessContext, rights: Rights, shown: Shown): readonly string[] {
  const included = new Set(
    (Object.keys(CATEGORIES) as Category[]).filter((category) =>
      isIncluded(shown, category, rights),
    ),
  );
  const all = [...context.store.list()].sort((a, b) => (a.name < b.name ? -1 : 1));
  const of = (kind: StoredPrincipal['kind'], category: Category): readonly StoredPrincipal[] =>
    included.has(category) ? all.filter((principal) => principal.kind === kind) : [];
  const users = of('user', 'USERS');
  return [
    ...of('group', 'GROUPS').flatMap(groupStatements),
    ...users.flatMap((principal) => loginStatements('USER', principal)),
    ...of('service account', 'SERVICE_ACCOUNTS').flatMap((principal) =>
      loginStatements('SERVICE ACCOUNT', principal),
    ),
    ...(included.has('GROUPS') ? users : []).flatMap(memberStatements),
    ...(included.has('PERMISSIONS') ? all : []).flatMap(grantStatements),
  ];
}

/**
 * Returns whether to include a category. A category that is named explicitly requires its
 * permission. Any other category is omitted if the user lacks the permission for it.
 */
function isIncluded({ exclude, categories }: Shown, category: Category, rights: Rights): boolean {
  const names = categories.map(({ text }) => text.toUpperCase());
  const isNamed = [category, 'ACL', 'ALL'].some((name) => names.includes(name));
  if (names.length > 0 && isNamed === exclude) {
    return false;
  }
  const isPermitted = hasPermission(rights, CATEGORIES[category]);
  if (!isPermitted && !exclude && (names.includes(category) || names.includes('ACL'))) {
    throw denied(CATEGORIES[category]);
  }
  return isPermitted;
}

function groupStatements({ name, aliases }: StoredPrincipal): readonly string[] {
  return [
    `CREATE GROUP ${quoteName(name)};`,
    ...aliases.map((alias) => `ALTER GROUP ${quoteName(name)} WITH EXTERNAL ALIAS ${text(alias)};`),
  ];
}

/** Passwords, tokens and keys are not part of the statements and must be set again. */
function loginStatements(
  kind: 'USER' | 'SERVICE ACCOUNT',
  { name, enabled }: StoredPrincipal,
): readonly string[] {
  const statement = `CREATE ${kind} ${quoteName(name)};`;
  return enabled ? [statement] : [statement, `ALTER ${kind} ${quoteName(name)} DISABLE;`];
}

function memberStatements({ name, groups }: StoredPrincipal): readonly string[] {
  const to = [...groups].sort().map(quoteName).join(', ');
  return groups.length === 0 ? [] : [`ADD USER ${quoteName(name)} TO ${to};`];
}

function grantStatements({ name, grants, accounts }: StoredPrincipal): readonly string[] {
  const to = (option: boolean): string =>
    `TO ${quoteName(name)}${option ? ' WITH GRANT OPTION' : ''};`;
  const columns = new Map<string, { readonly row: GrantRow; readonly names: string[] }>();
  for (const row of grantRows(grants)) {
    const key = JSON.stringify([row.permission, row.table, row.column === null, row.option]);
    const known = columns.get(key) ?? { row, names: [] };
    known.names.push(...(row.column === null ? [] : [row.column]));
    columns.set(key, known);
  }
  const permissions = new Map<string, string[]>();
  for (const { row, names } of columns.values()) {
    const list = names.length === 0 ? '' : `(${names.map(quoteName).join(', ')})`;
    const on = row.table === null ? '' : `ON ${quoteName(row.table)}${list} `;
    const clause = `${on}${to(row.option)}`;
    permissions.set(clause, [...(permissions.get(clause) ?? []), row.permission]);
  }
  return [
    ...[...permissions].map(([clause, names]) => `GRANT ${names.join(', ')} ${clause}`),
    ...[...accounts]
      .sort()
      .map(
        ([account, option]) => `GRANT ASSUME SERVICE ACCOUNT ${quoteName(account)} ${to(option)}`,
      ),
  ];
}

function text(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

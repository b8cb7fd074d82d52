/** GRANT and REVOKE: converts statements to changes in grants. */
import type { GrantTable, GrantTarget, Name, Permission } from '../sql/index.js';
import { denied } from './authorise.js';
import { ALL, ASSUME, hasLevel, type Level, permissionKind, permissionsAt } from './catalogue.js';
import { fold, grant, type Grants, refusal, revoke, type Target } from './model.js';
import type { StoredPrincipal } from './principals.js';
import type { CurrentSchema } from './schema.js';
import { refused, type Rights } from './store.js';

/** One permission and its target. */
interface Step {
  readonly permission: string;
  readonly target: Target;
}

interface GrantRequest {
  readonly permissions: readonly Permission[];
  readonly on: GrantTarget | null;
  readonly schema: CurrentSchema;
  /** Whether a missing table or column is an error. */
  readonly verification: boolean;
  /** Rights of the granting user. */
  readonly rights: Rights;
}

/** Returns the accounts named after ASSUME SERVICE ACCOUNT. */
export function assumedAccounts(permissions: readonly Permission[]): readonly Name[] {
  return permissions.flatMap(({ account }) => (account === null ? [] : [account]));
}

export function grantSteps(request: GrantRequest): readonly Step[] {
  const { permissions, on } = request;
  const targets: readonly (readonly [Level, Target])[] =
    on === null || on.target === 'AllTables'
      ? [['database', 'database']]
      : on.tables.map((table) => checkedTarget(request, table));
  const onTables = on?.target === 'AllTables';
  return permissions
    .filter(({ name }) => name !== ASSUME)
    .flatMap((permission) =>
      targets.flatMap(([level, target]) =>
        named(permission, level, onTables).map((name) => ({ permission: name, target })),
      ),
    );
}

/** Resolves the target. Errors are reported only to users who may grant on the whole table. */
function checkedTarget(request: GrantRequest, table: GrantTable): readonly [Level, Target] {
  try {
    return targetOf(table, request.schema, request.verification);
  } catch (error) {
    const target = { table: table.table.text };
    requireOption(
      request.rights,
      request.permissions.map(({ name }) => ({ permission: name, target })),
    );
    throw error;
  }
}

/** Returns the permissions that a name stands for at a level. */
function named(permission: Permission, level: Level, onTables: boolean): readonly string[] {
  const { name, span } = permission;
  if (name === ALL) {
    return permissionsAt(level).filter((permission) => !onTables || hasLevel(permission, 'table'));
  }
  if (permissionKind(name) === undefined) {
    throw refused(`unknown permission '${name}': see all_permissions()`, span);
  }
  const requiredLevel = onTables ? 'table' : level;
  if (!hasLevel(name, requiredLevel)) {
    const levelName = requiredLevel === 'database' ? 'database' : `${requiredLevel}s`;
    throw refused(`permission '${name}' cannot be granted on ${levelName}`, span);
  }
  return [name];
}

function targetOf(
  grantTable: GrantTable,
  schema: CurrentSchema,
  verification: boolean,
): readonly [Level, Target] {
  const { table, columns, all_columns: isAll, exclude } = grantTable;
  const isThere = schema.has(table.text);
  if (!isThere && (verification || isAll)) {
    throw refused(`table or view '${table.text}' does not exist`, table.span);
  }
  if (columns.length === 0 && !isAll) {
    return ['table', { table: table.text }];
  }
  if (schema.isView(table.text)) {
    throw refused(`'${table.text}' is a view: omit the column list`, table.span);
  }
  const there = schema.columns(table.text);
  const known = new Set(there.map(fold));
  const missing = [...(verification ? columns : []), ...exclude].find(
    ({ text }) => !known.has(fold(text)),
  );
  if (missing !== undefined) {
    throw refused(`column '${missing.text}' does not exist in '${table.text}'`, missing.span);
  }
  const excluded = new Set(exclude.map(({ text }) => fold(text)));
  const chosen = isAll
    ? there.filter((name) => !excluded.has(fold(name)))
    : columns.map(({ text }) => text);
  if (chosen.length === 0) {
    throw refused(`EXCLUDE removes all columns of '${table.text}'`, table.span);
  }
  return ['column', { table: table.text, columns: chosen }];
}

/** Throws unless the user has the grant option for every step. */
export function requireOption(rights: Rights, steps: readonly Step[]): void {
  if (rights.all) {
    return;
  }
  for (const { permission, target } of steps) {
    const question =
      target === 'database'
        ? { permission, table: '', columns: [] }
        : { permission, table: target.table, columns: target.columns ?? [] };
    if (refusal(rights.sets, question, 'option') !== null) {
      const on = question.table === '' ? '' : ` on ${question.table}`;
      throw denied(`${permission}${on} WITH GRANT OPTION`);
    }
  }
}

export function granted(grants: Grants, steps: readonly Step[], option: boolean): Grants {
  return steps.reduce(
    (grants, { permission, target }) => grant(grants, permission, target, option),
    grants,
  );
}

/** Throws if a member has the permission through one of its groups. */
export function revoked(
  from: StoredPrincipal,
  groups: readonly StoredPrincipal[],
  steps: readonly Step[],
  schema: CurrentSchema,
): Grants {
  return steps.reduce((current, { permission, target }) => {
    const after = revoke(current, permission, target, schema);
    const giver = groups.find(({ grants }) => grantsAny(grants, permission, target));
    if (giver !== undefined && !grantsAny(current, permission, target) && steps.length === 1) {
      throw refused(
        `'${from.name}' has '${permission}' through group '${giver.name}': revoke it there, ` +
          'or remove the user from the group',
      );
    }
    return after;
  }, from.grants);
}

/** Returns whether any part of the target is granted. */
function grantsAny(grants: Grants, permission: string, target: Target): boolean {
  const known = grants.get(permission);
  if (known === undefined || target === 'database') {
    return known !== undefined;
  }
  return known.database !== 'no' || known.tables.has(fold(target.table));
}

/** The permissions known to the server, and how the page groups them. */
import { recordsOf, textOf, type Answer } from '../api/cells.js';
import type { TableKind } from '../model/schema.js';
import { texts } from '../texts.js';

/**
 * Maps the name of each permission to the levels at which it can be granted: `database`, `table` or
 * `column`.
 */
export type Catalogue = ReadonlyMap<string, ReadonlySet<string>>;

interface RightGroup {
  readonly name: string;
  readonly rights: readonly string[];
}

/** Table permissions that the matrix shows together, one per column. */
export interface RightSet {
  readonly name: string;
  readonly groups: readonly RightGroup[];
}

/** Permissions to connect through a protocol, with the display name of each protocol. */
export const ENDPOINTS: readonly (readonly [permission: string, name: string])[] = [
  ['HTTP', texts.permissions.consoleAndHttp],
  ['PGWIRE', texts.common.postgresqlClients],
  ['ILP', texts.permissions.lineProtocolOverTcp],
];

const VIEW_GROUPS: readonly RightGroup[] = [
  { name: texts.common.view, rights: ['ALTER VIEW', 'COMPILE VIEW', 'DROP VIEW'] },
  {
    name: texts.permissions.materializedView,
    rights: ['ALTER MATERIALIZED VIEW', 'REFRESH MATERIALIZED VIEW', 'DROP MATERIALIZED VIEW'],
  },
  { name: texts.permissions.liveView, rights: ['DROP LIVE VIEW'] },
];

const TABLE_SETS: readonly RightSet[] = [
  {
    name: texts.permissions.common,
    groups: [
      { name: texts.permissions.read, rights: ['SELECT'] },
      { name: texts.permissions.write, rights: ['INSERT', 'UPDATE', 'DELETE', 'TRUNCATE TABLE'] },
      { name: texts.permissions.alter, rights: ['ADD COLUMN', 'RENAME COLUMN'] },
      { name: texts.permissions.drop, rights: ['DROP COLUMN', 'DROP TABLE'] },
    ],
  },
  {
    name: texts.permissions.columnsAndIndexes,
    groups: [
      { name: texts.common.columns, rights: ['ALTER COLUMN TYPE', 'ALTER COLUMN CACHE'] },
      { name: texts.permissions.indexes, rights: ['ADD INDEX', 'DROP INDEX', 'REINDEX'] },
    ],
  },
  {
    name: texts.permissions.tablesAndPartitions,
    groups: [
      {
        name: texts.common.table,
        rights: ['RENAME TABLE', 'SET TABLE PARAM', 'SET TABLE TYPE', 'RESUME WAL'],
      },
      { name: texts.permissions.deduplication, rights: ['DEDUP ENABLE', 'DEDUP DISABLE'] },
      {
        name: texts.common.partitions,
        rights: ['ATTACH PARTITION', 'DETACH PARTITION', 'DROP PARTITION', 'VACUUM TABLE'],
      },
    ],
  },
  {
    name: texts.permissions.storagePolicies,
    groups: [
      {
        name: texts.permissions.storagePolicy,
        rights: [
          'SET STORAGE POLICY',
          'ENABLE STORAGE POLICY',
          'DISABLE STORAGE POLICY',
          'REMOVE STORAGE POLICY',
        ],
      },
    ],
  },
  { name: texts.common.views, groups: VIEW_GROUPS },
];

const DATABASE_GROUPS: readonly RightGroup[] = [
  {
    name: texts.permissions.tablesAndViews,
    rights: ['CREATE TABLE', 'CREATE VIEW', 'CREATE MATERIALIZED VIEW', 'CREATE LIVE VIEW'],
  },
  {
    name: texts.permissions.filesAndBackups,
    rights: ['READ FILES', 'WRITE FILES', 'CANCEL ANY COPY', 'BACKUP DATABASE', 'SNAPSHOT'],
  },
  {
    name: texts.permissions.server,
    rights: ['SETTINGS', 'SQL ENGINE ADMIN', 'SYSTEM ADMIN', 'DATABASE ADMIN'],
  },
  {
    name: texts.common.users,
    rights: [
      'LIST USERS',
      'USER DETAILS',
      'CREATE USER',
      'DROP USER',
      'ENABLE USER',
      'DISABLE USER',
      'ADD PASSWORD',
      'REMOVE PASSWORD',
    ],
  },
  {
    name: texts.permissions.groupsServiceAccounts,
    rights: [
      'CREATE GROUP',
      'DROP GROUP',
      'ADD USER',
      'REMOVE USER',
      'ADD EXTERNAL ALIAS',
      'REMOVE EXTERNAL ALIAS',
      'CREATE SERVICE ACCOUNT',
      'DROP SERVICE ACCOUNT',
    ],
  },
  {
    name: texts.permissions.tokensAndKeys,
    rights: ['CREATE REST TOKEN', 'DROP REST TOKEN', 'CREATE JWK', 'DROP JWK'],
  },
];

/**
 * Shorthand for all permissions. It is skipped, because the server also lists each permission
 * separately.
 */
const SHORT_FORM = 'ALL';

/** Builds the catalogue from the rows of `all_permissions()`. */
export function catalogueOf(answer: Answer): Catalogue {
  const rows = recordsOf(answer).map(
    (cell) => [String(cell('permission')), new Set(textOf(cell('levels'))?.split(', '))] as const,
  );
  return new Map(rows.filter(([name]) => name !== SHORT_FORM));
}

/** True if a permission applies to tables. Every other permission applies to the whole database. */
export function isOfTables(catalogue: Catalogue, permission: string): boolean {
  return catalogue.get(permission)?.has('table') === true;
}

/**
 * Groups the server's table permissions into sets. Permissions that belong to no named set form a
 * set of their own.
 */
export function rightSets(catalogue: Catalogue): readonly RightSet[] {
  const left = new Set([...catalogue.keys()].filter((name) => isOfTables(catalogue, name)));
  const sets = TABLE_SETS.map(({ name, groups }) => ({ name, groups: groupsOf(groups, left) }));
  return [...sets, { name: texts.permissions.otherPermissions, groups: remainder(left) }].filter(
    ({ groups }) => groups.length > 0,
  );
}

/**
 * Groups the permissions on the whole database, without the permissions to connect (`ENDPOINTS`).
 */
export function databaseGroups(catalogue: Catalogue): readonly RightGroup[] {
  const isOfDatabase = (name: string): boolean =>
    catalogue.get(name)?.has('database') === true && !isOfTables(catalogue, name);
  const left = new Set([...catalogue.keys()].filter(isOfDatabase));
  ENDPOINTS.forEach(([permission]) => left.delete(permission));
  const groups = groupsOf(DATABASE_GROUPS, left);
  return [...groups, ...remainder(left)];
}

/** Keeps only the permissions in `left`, and removes them from `left`. */
function groupsOf(groups: readonly RightGroup[], left: Set<string>): readonly RightGroup[] {
  return groups
    .map(({ name, rights }) => ({ name, rights: rights.filter((right) => left.delete(right)) }))
    .filter(({ rights }) => rights.length > 0);
}

function remainder(left: ReadonlySet<string>): readonly RightGroup[] {
  return left.size === 0 ? [] : [{ name: texts.permissions.other, rights: [...left].sort() }];
}

const ON_VIEWS: Readonly<Record<Exclude<TableKind, 'table'>, ReadonlySet<string>>> = {
  view: new Set(['SELECT', 'ALTER VIEW', 'COMPILE VIEW', 'DROP VIEW']),
  materialized: new Set([
    'SELECT',
    'ALTER MATERIALIZED VIEW',
    'REFRESH MATERIALIZED VIEW',
    'DROP MATERIALIZED VIEW',
  ]),
  live: new Set(['SELECT', 'RESUME WAL', 'DROP LIVE VIEW']),
};
const OF_VIEWS: ReadonlySet<string> = new Set(VIEW_GROUPS.flatMap(({ rights }) => rights));

/**
 * True if a permission can be granted on an object of this kind. Views have no column permissions.
 */
export function applies(
  catalogue: Catalogue,
  permission: string,
  what: 'all' | 'column' | TableKind,
): boolean {
  switch (what) {
    case 'all':
      return isOfTables(catalogue, permission);
    case 'column':
      return catalogue.get(permission)?.has('column') === true;
    case 'table':
      return isOfTables(catalogue, permission) && !OF_VIEWS.has(permission);
    default:
      return ON_VIEWS[what].has(permission);
  }
}

/** All permissions, and the levels at which each can be granted. */
import type { Permission } from '../engine/types.js';

/** A grant's level: the database, a whole table or view, or columns. */
export type Level = 'database' | 'table' | 'column';

interface PermissionKind {
  readonly name: string;
  readonly levels: readonly Level[];
}

const DATABASE: readonly Level[] = ['database'];
const TABLE: readonly Level[] = ['database', 'table'];
const COLUMN: readonly Level[] = ['database', 'table', 'column'];

const LISTS = [
  [DATABASE, ['HTTP', 'PGWIRE', 'ILP']],
  [
    DATABASE,
    [
      'BACKUP DATABASE',
      'CANCEL ANY COPY',
      'CREATE TABLE',
      'CREATE MATERIALIZED VIEW',
      'CREATE LIVE VIEW',
      'CREATE VIEW',
      'READ FILES',
      'SETTINGS',
      'SNAPSHOT',
      'SQL ENGINE ADMIN',
      'SYSTEM ADMIN',
      'WRITE FILES',
    ],
  ],
  [
    TABLE,
    [
      'ADD COLUMN',
      'ALTER MATERIALIZED VIEW',
      'ALTER VIEW',
      'ATTACH PARTITION',
      'COMPILE VIEW',
      'DEDUP DISABLE',
      'DEDUP ENABLE',
      'DELETE',
      'DETACH PARTITION',
      'DISABLE STORAGE POLICY',
      'DROP LIVE VIEW',
      'DROP MATERIALIZED VIEW',
      'DROP PARTITION',
      'DROP TABLE',
      'DROP VIEW',
      'ENABLE STORAGE POLICY',
      'INSERT',
      'REFRESH MATERIALIZED VIEW',
      'REMOVE STORAGE POLICY',
      'RENAME TABLE',
      'RESUME WAL',
      'SET STORAGE POLICY',
      'SET TABLE PARAM',
      'SET TABLE TYPE',
      'TRUNCATE TABLE',
      'VACUUM TABLE',
    ],
  ],
  [
    COLUMN,
    [
      'ADD INDEX',
      'ALTER COLUMN CACHE',
      'ALTER COLUMN TYPE',
      'DROP COLUMN',
      'DROP INDEX',
      'REINDEX',
      'RENAME COLUMN',
      'SELECT',
      'UPDATE',
    ],
  ],
  [
    DATABASE,
    [
      'ADD EXTERNAL ALIAS',
      'ADD PASSWORD',
      'ADD USER',
      'CREATE GROUP',
      'CREATE JWK',
      'CREATE REST TOKEN',
      'CREATE SERVICE ACCOUNT',
      'CREATE USER',
      'DISABLE USER',
      'DROP GROUP',
      'DROP JWK',
      'DROP REST TOKEN',
      'DROP SERVICE ACCOUNT',
      'DROP USER',
      'ENABLE USER',
      'LIST USERS',
      'REMOVE EXTERNAL ALIAS',
      'REMOVE PASSWORD',
      'REMOVE USER',
      'USER DETAILS',
    ],
  ],
] as const satisfies readonly (readonly [readonly Level[], readonly string[]])[];

type Catalogued = (typeof LISTS)[number][1][number];
type Checked<Name extends Catalogued> = Name;

/**
 * Covers every permission, including those added in later versions, and the right to assume any
 * service account.
 */
export const DATABASE_ADMIN = 'DATABASE ADMIN';
/** Stands for every permission at the grant's level. */
export const ALL = 'ALL';
/** Granted on a service account, not on data. */
export const ASSUME = 'ASSUME SERVICE ACCOUNT';

const KINDS: ReadonlyMap<string, PermissionKind> = new Map(
  [
    ...LISTS.flatMap(([levels, names]) => names.map((name) => ({ name, levels }))),
    { name: DATABASE_ADMIN, levels: DATABASE },
  ].map((kind) => [kind.name, kind]),
);

/** Overload for the engine's permissions: omitting one from the list above is a compile error. */
export function permissionKind(name: Checked<Permission>): PermissionKind;
export function permissionKind(name: string): PermissionKind | undefined;
export function permissionKind(name: string): PermissionKind | undefined {
  return KINDS.get(name);
}

export function hasLevel(name: string, level: Level): boolean {
  return KINDS.get(name)?.levels.includes(level) === true;
}

/** Returns the permissions that `ALL` covers at a level. */
export function permissionsAt(level: Level): readonly string[] {
  const names = [...KINDS.values()].filter(({ levels }) => levels.includes(level));
  return names.map(({ name }) => name).filter((name) => name !== DATABASE_ADMIN);
}

/** Returns the rows of `all_permissions()`: every name with its levels, sorted. */
export function allPermissions(): readonly (readonly [name: string, levels: string])[] {
  const rows = [...KINDS.values()].map(({ name, levels }) => [name, levels.join(', ')] as const);
  const composite = [
    [ALL, COLUMN.join(', ')],
    [ASSUME, 'service account'],
  ] as const;
  return [...rows, ...composite].sort(([a], [b]) => (a < b ? -1 : 1));
}

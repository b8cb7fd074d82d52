/** Shared access control settings and context. */
import { type Identity, identityKey } from '../auth/index.js';
import type { Database, Owner, Principal } from '../session/index.js';
import type { AuditLog } from './audit.js';
import { denied } from './authorise.js';
import { refusal } from './model.js';
import { type AccessStore, EVERYTHING, type Rights } from './store.js';

export interface AccessSetting {
  /** The configured administrator's name, whether or not the administrator may log in. */
  readonly adminName: string;
  /** Maximum length of a principal's name, in characters. */
  readonly nameLengthMax: number;
  /** Hash iterations for a new password. */
  readonly hashIterations: number;
  /** Minimum time between two extensions of a token, in milliseconds. */
  readonly tokenRefreshMs: number;
}

/** Dependencies that all access control modules share. */
export interface AccessContext {
  readonly setting: AccessSetting;
  readonly database: Database;
  readonly store: AccessStore;
  readonly audit: AuditLog;
}

/** Key prefix of configured administrators. */
const ADMINISTRATORS = identityKey({ kind: 'admin', name: '' });
export const NO_IDENTITY: Identity = { name: '', kind: 'external', externalGroups: [] };

export function rightsOf(store: AccessStore, principal: Principal): Rights {
  return store.rightsOf(principal.identity ?? NO_IDENTITY);
}

/** Returns the rights of a view's owner. */
export function rightsOfOwner({ setting, store }: AccessContext, owner: Owner): Rights {
  const { name, id } = owner;
  const isAdmin = id === null ? name === setting.adminName : id.startsWith(ADMINISTRATORS);
  return isAdmin ? EVERYTHING : store.rightsOfOwner(owner);
}

/** Returns whether the rights include a permission on the whole database. */
export function hasPermission(rights: Rights, permission: string): boolean {
  return rights.all || refusal(rights.sets, { permission, table: '', columns: [] }) === null;
}

export function require(rights: Rights, permission: string): void {
  if (!hasPermission(rights, permission)) {
    throw denied(permission);
  }
}

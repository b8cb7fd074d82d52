/** What the parts of access control share. */
import { type Identity, identityKey } from '../auth/index.js';
import type { Database, Owner, Principal } from '../session/index.js';
import type { AuditLog } from './audit.js';
import { denied } from './authorise.js';
import { refusal } from './model.js';
import { type AccessStore, EVERYTHING, type Rights } from './store.js';

export interface AccessSetting {
  /** Name of the administrator of the configuration, whether it may log in or not. */
  readonly adminName: string;
  /** Characters of a principal's name. */
  readonly nameLengthMax: number;
  /** Rounds of the hash over a new password. */
  readonly hashIterations: number;
  /** Least time between two extensions of a token, in milliseconds. */
  readonly tokenRefreshMs: number;
}

/** What every part works with. */
export interface AccessContext {
  readonly setting: AccessSetting;
  readonly database: Database;
  readonly store: AccessStore;
  readonly audit: AuditLog;
}

/** How the keys of administrators of the configuration begin. */
const ADMINISTRATORS = identityKey({ kind: 'admin', name: '' });
export const NO_IDENTITY: Identity = { name: '', kind: 'external', externalGroups: [] };

export function rightsOf(store: AccessStore, principal: Principal): Rights {
  return store.rightsOf(principal.identity ?? NO_IDENTITY);
}

/** What the owner of a view may do. */
export function rightsOfOwner({ setting, store }: AccessContext, owner: Owner): Rights {
  const { name, id } = owner;
  const isAdmin = id === null ? name === setting.adminName : id.startsWith(ADMINISTRATORS);
  return isAdmin ? EVERYTHING : store.rightsOfOwner(owner);
}

/** Whether a permission on the database as a whole is held. */
export function holds(rights: Rights, permission: string): boolean {
  return rights.all || refusal(rights.sets, { permission, table: '', columns: [] }) === null;
}

export function require(rights: Rights, permission: string): void {
  if (!holds(rights, permission)) {
    throw denied(permission);
  }
}

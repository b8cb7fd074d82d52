/** From what a statement touches to yes or `AccessDenied`. */
import { type Access, DatabaseError, type Owner } from '../session/index.js';
import { refusal } from './model.js';
import type { Rights } from './store.js';

/** A view is read as a whole, and so is a definition; no grant on columns reaches that far. */
export const WHOLE = '*';
const NO_OWNER: Owner = { name: '', id: '' };

/** Throws when `rights` do not cover all of it. `ownerOf`: what the owner of a view may do. */
export function authorise(
  rights: Rights,
  accesses: readonly Access[],
  rightsOfOwner: (owner: Owner) => Rights,
): void {
  for (const access of accesses) {
    const { view, owner } = access;
    if (view === undefined) {
      if (!rights.all) {
        check(rights, access);
      }
    } else if (!isGranted(rightsOfOwner(owner ?? NO_OWNER), access)) {
      // A reader of a view does not learn what it reads.
      throw denied('SELECT', `${view}, whose owner lacks a right it needs`);
    }
  }
}

function check(rights: Rights, access: Access): void {
  const { permission, table } = access;
  const no = refusal(rights.sets, access);
  if (no === null) {
    return;
  }
  const column = no.column === null || no.column === WHOLE ? '' : `(${no.column})`;
  throw denied(permission, `${table}${column}`);
}

function isGranted(rights: Rights, access: Access): boolean {
  return rights.all || refusal(rights.sets, access) === null;
}

/** `Access denied [SELECT on t(c)]`, whether the object is there or not. */
export function denied(permission: string, object = ''): DatabaseError {
  const on = object === '' ? '' : ` on ${object}`;
  return new DatabaseError({ code: 'AccessDenied', message: `Access denied [${permission}${on}]` });
}

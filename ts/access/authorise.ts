/** Authorisation: checks a statement's accesses and throws `AccessDenied` if one is not allowed. */
import { type Access, DatabaseError, type Owner } from '../session/index.js';
import { refusal } from './model.js';
import type { Rights } from './store.js';

/** Denotes the object as a whole (a view or a definition), which column grants do not cover. */
export const ALL_COLUMNS = '*';
const NO_OWNER: Owner = { name: '', id: '' };

/** Throws unless `rights` cover all accesses. `rightsOfOwner` returns a view owner's rights. */
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
      // The message does not reveal which tables the view reads.
      throw denied('SELECT', `${view}, whose owner lacks a required permission`);
    }
  }
}

function check(rights: Rights, access: Access): void {
  const { permission, table } = access;
  const no = refusal(rights.sets, access);
  if (no === null) {
    return;
  }
  const column = no.column === null || no.column === ALL_COLUMNS ? '' : `(${no.column})`;
  throw denied(permission, `${table}${column}`);
}

function isGranted(rights: Rights, access: Access): boolean {
  return rights.all || refusal(rights.sets, access) === null;
}

/**
 * Creates the error `Access denied [SELECT on t(c)]`. The message is the same whether or not the
 * object exists.
 */
export function denied(permission: string, object = ''): DatabaseError {
  const on = object === '' ? '' : ` on ${object}`;
  return new DatabaseError({ code: 'AccessDenied', message: `Access denied [${permission}${on}]` });
}

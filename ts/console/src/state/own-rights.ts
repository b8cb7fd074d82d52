/**
 * The current user's permissions on tables and views. The console uses them only to hide or disable
 * controls; the server enforces them.
 */
import { recordsOf, textOf, type Answer } from '../api/cells.js';
import { query } from '../api/client.js';

export interface OwnGrant {
  readonly permission: string;
  /** Table to which the grant applies; `undefined` for a grant on the whole database. */
  readonly table: string | undefined;
  readonly isOfColumn: boolean;
}

/** Permissions that include all other permissions. */
const EVERYTHING: ReadonlySet<string> = new Set(['ALL', 'DATABASE ADMIN']);

/** Loads the user's grants, including grants through groups. */
export async function readOwnRights(): Promise<readonly OwnGrant[]> {
  return ownGrants(await query('SHOW PERMISSIONS'));
}

/** Parses the rows of `SHOW PERMISSIONS`. */
export function ownGrants(answer: Answer): OwnGrant[] {
  return recordsOf(answer).map((cell) => ({
    permission: String(cell('permission')),
    table: textOf(cell('table_name')),
    isOfColumn: cell('column_name') !== null,
  }));
}

export function mayDo(grants: readonly OwnGrant[], permission: string, table: string): boolean {
  const applies = (grant: OwnGrant): boolean =>
    !grant.isOfColumn &&
    (grant.table === undefined || grant.table.toLowerCase() === table.toLowerCase());
  return grants.some(
    (grant) =>
      applies(grant) && (grant.permission === permission || EVERYTHING.has(grant.permission)),
  );
}

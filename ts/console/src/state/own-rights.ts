/** What the user of the page may do with tables and views. The server has the last word. */
import { recordsOf, textOf, type Answer } from '../api/cells.js';
import { query } from '../api/client.js';

export interface OwnGrant {
  readonly permission: string;
  /** Nothing where it is given for the whole database. */
  readonly table: string | undefined;
  readonly isOfColumn: boolean;
}

/** Has everything, whatever is granted besides. */
const EVERYTHING: ReadonlySet<string> = new Set(['ALL', 'DATABASE ADMIN']);

/** What is granted to the user, through groups as well. */
export async function readOwnRights(): Promise<readonly OwnGrant[]> {
  return ownGrants(await query('SHOW PERMISSIONS'));
}

/** Rows of `SHOW PERMISSIONS`. */
export function ownGrants(answer: Answer): OwnGrant[] {
  return recordsOf(answer).map((cell) => ({
    permission: String(cell('permission')),
    table: textOf(cell('table_name')),
    isOfColumn: cell('column_name') !== null,
  }));
}

export function mayDo(grants: readonly OwnGrant[], permission: string, table: string): boolean {
  const isMeant = (grant: OwnGrant): boolean =>
    !grant.isOfColumn &&
    (grant.table === undefined || grant.table.toLowerCase() === table.toLowerCase());
  return grants.some(
    (grant) =>
      isMeant(grant) && (grant.permission === permission || EVERYTHING.has(grant.permission)),
  );
}

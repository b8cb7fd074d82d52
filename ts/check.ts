/**
 * `tidemark check`: verifies every checksum in a root that no server is using: manifests, log,
 * symbols and segments. It writes nothing.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { checkRoot as checkFiles, type Damage, DatabaseError } from './engine/index.js';
import { reasonOf, rootInUse, StartError } from './start-error.js';

/**
 * Returns the damaged items; `table` is empty for items that belong to no table. Throws a
 * `StartError` if the root cannot be checked: it is missing, in use or has a newer format.
 */
export async function checkRoot(root: string): Promise<readonly Damage[]> {
  if (!existsSync(join(root, 'db'))) {
    throw new StartError(`the root directory '${root}' does not contain a database`);
  }
  try {
    return await checkFiles(root);
  } catch (error) {
    if (error instanceof DatabaseError && error.code === 'RootLocked') {
      throw rootInUse(root, error);
    }
    if (error instanceof DatabaseError && error.code === 'Damaged') {
      return [{ table: '', what: reasonOf(error) }];
    }
    throw new StartError(`cannot check the root directory '${root}': ${reasonOf(error)}`, 1, {
      cause: error,
    });
  }
}

/** Prints the result; returns the exit code. */
export async function runCheck(root: string, json: boolean): Promise<number> {
  const damages = await checkRoot(root);
  if (json) {
    process.stdout.write(`${JSON.stringify({ root, damages })}\n`);
  } else {
    const lines = damages.map(({ table, what }) =>
      table === '' ? what : `table '${table}': ${what}`,
    );
    process.stdout.write([...lines, counted(damages.length), ''].join('\n'));
  }
  return damages.length === 0 ? 0 : 1;
}

function counted(count: number): string {
  return count === 0 ? 'no problems' : `${count} ${count === 1 ? 'problem' : 'problems'}`;
}

/**
 * `tidemark check`: reads every file of a root that no server uses and compares every checksum:
 * manifests, log, symbols, segments. Nothing is written.
 */
import { existsSync } from 'node:fs';

import { checkRoot as checkFiles, DatabaseError } from './engine/index.js';
import { reasonOf, StartError } from './start-error.js';

/** One line per damage; a root in use, or none at all, is a `StartError`. */
export async function checkRoot(root: string): Promise<readonly string[]> {
  if (!existsSync(root)) {
    throw new StartError(`there is no root directory '${root}'`);
  }
  try {
    const damages = await checkFiles(root);
    return damages.map(({ table, what }) => (table === '' ? what : `table '${table}': ${what}`));
  } catch (error) {
    if (error instanceof DatabaseError && error.code === 'RootLocked') {
      throw new StartError(`the root directory '${root}' is in use by another process`);
    }
    return [reasonOf(error)];
  }
}

/**
 * `tidemark check`: verifies every checksum in a root that no server is using: manifests, log,
 * symbols and segments. It writes nothing.
 */
import { existsSync } from 'node:fs';

import { checkRoot as checkFiles, DatabaseError } from './engine/index.js';
import { reasonOf, StartError } from './start-error.js';

/**
 * Returns one line for each damaged item. Throws a `StartError` if the root is in use or missing.
 */
export async function checkRoot(root: string): Promise<readonly string[]> {
  if (!existsSync(root)) {
    throw new StartError(`the root directory '${root}' does not exist`);
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

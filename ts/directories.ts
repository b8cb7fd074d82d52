/** Creates directories, and reports why that fails. */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';

/** Directory mode: only the server's OS user may read the data. */
const MODE = 0o700;

/** Creates a directory and its parents, unless they exist. */
export function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { recursive: true, mode: MODE });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      // The recursive form reports a read-only disk as a missing directory.
      const parent = nearestDirectory(path);
      const [next = ''] = relative(parent, path).split(sep);
      mkdirSync(join(parent, next), { mode: MODE });
    }
    throw error;
  }
}

/** Returns the path, or its nearest parent that exists. */
export function nearestDirectory(path: string): string {
  return existsSync(path) || dirname(path) === path ? path : nearestDirectory(dirname(path));
}

/** Directories of databases in memory. */
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const roots = new Set<string>();

/** Creates a directory. It is removed by `removeTemporaryRoot`, or when the thread exits. */
export async function createTemporaryRoot(): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-memory-'));
  if (roots.size === 0) {
    process.on('exit', removeAll);
  }
  roots.add(root);
  return root;
}

export async function removeTemporaryRoot(root: string): Promise<void> {
  await rm(root, { recursive: true, force: true });
  roots.delete(root);
  if (roots.size === 0) {
    process.off('exit', removeAll);
  }
}

/** Removes the directories of databases that were not closed. An exiting process cannot wait. */
function removeAll(): void {
  for (const root of roots) {
    try {
      rmSync(root, { recursive: true, force: true, maxRetries: 3 });
    } catch {
      // Windows does not remove open files.
    }
  }
}

/** A small file system for a harness, in its own mount namespace. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statfsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const DISK_VARIABLE = 'TIDEMARK_TORTURE_DISK';

/**
 * Restarts this program in a namespace where it is allowed to mount, and exits with the restarted
 * program's exit code. Inside the namespace, returns the mount point.
 */
export async function insideNamespace(): Promise<string> {
  const mounted = process.env[DISK_VARIABLE];
  if (mounted !== undefined) {
    return mounted;
  }
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-disk-'));
  const flags = process.getuid?.() === 0 ? '-m' : '-Urm';
  const child = spawn('unshare', [flags, process.execPath, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env: { ...process.env, [DISK_VARIABLE]: folder },
  });
  const code = await new Promise<number>((resolve) => {
    child.on('error', () => {
      process.stdout.write('SKIPPED: unshare is not here\n0 passed, 0 failed\n');
      resolve(0);
    });
    child.on('exit', (status) => resolve(status ?? 1));
  });
  await rm(folder, { recursive: true, force: true });
  process.exit(code);
}

/** Mounts a file system of `mib` MiB at `folder`; returns whether that succeeded. */
export async function mountDisk(folder: string, mib: number): Promise<boolean> {
  const mount = spawn('mount', ['-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', folder]);
  return (await once(mount, 'exit'))[0] === 0;
}

export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

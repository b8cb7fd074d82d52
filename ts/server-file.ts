/**
 * `ROOT/server.json`, which a running server writes for `tidemark status`: its process, addresses
 * and a token for GET /api/v1/status. Only the server's OS user can read it. It is removed when the
 * server stops, and stays if the process is killed.
 */
import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export interface ServerFile {
  readonly pid: number;
  readonly version: string;
  /** Start time in ISO format. */
  readonly started: string;
  readonly addresses: Readonly<Record<string, string>>;
  /** URLs of the status, in the order in which to try them; empty if HTTP is disabled. */
  readonly statusUrls: readonly string[];
  readonly token: string;
}

function pathOf(root: string): string {
  return join(root, 'server.json');
}

export function writeServerFile(root: string, content: ServerFile): void {
  const path = pathOf(root);
  // Written to a temporary file and then renamed, so that readers always find a complete file.
  writeFileSync(`${path}.tmp`, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${path}.tmp`, path);
}

export function removeServerFile(root: string): void {
  rmSync(pathOf(root), { force: true });
}

/** Returns `null` if there is no file. */
export function readServerFile(root: string): ServerFile | null {
  try {
    return JSON.parse(readFileSync(pathOf(root), 'utf8')) as ServerFile;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      return null;
    }
    throw error;
  }
}

/**
 * Returns the process that uses the root; `null` if no process uses it. The lock file still names
 * the last process after that process has ended, so the kernel's list of locks decides, where
 * available.
 */
export function processOf(root: string): number | null {
  const path = join(root, 'lock');
  const text = readText(path).trim();
  if (!/^\d+$/.test(text)) {
    return null;
  }
  const locks = readText('/proc/locks');
  if (locks === '') {
    return isAlive(Number(text)) ? Number(text) : null;
  }
  const inode = String(statSync(path).ino);
  const isLocked = locks
    .split('\n')
    .map((line) => /^\d+: FLOCK\s+ADVISORY\s+WRITE\s+\S+\s+\S+:(\d+) /.exec(line)?.[1])
    .includes(inode);
  return isLocked ? Number(text) : null;
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM means that the process exists but belongs to another user.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}

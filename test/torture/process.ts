/** Process statistics for a server, from the operating system. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { TestServer } from '../golden/server.js';

/** Returns the resident bytes, excluding mapped files. */
export function residentBytes(server: TestServer): number {
  const status = readFileSync(`/proc/${server.process.pid}/status`, 'utf8');
  const kib = (name: string): number =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
  return (kib('RssAnon') + kib('RssShmem')) * 1024;
}

/** Returns the CPU time in clock ticks (10 ms). */
export function cpuTicks(server: TestServer): number {
  const stat = readFileSync(`/proc/${server.process.pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}

/** Returns the number of spill files on disk. */
export function spilledFiles(server: TestServer): number {
  const entries = readdirSync(join(server.root, 'tmp'), { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).length;
}

/** Checks of the machine for `tidemark init`: the disk, its file system and the host's limits. */
import { closeSync, fsyncSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { join } from 'node:path';

import { nearestDirectory } from './directories.js';
import { hostWarnings } from './observability/index.js';
import { reasonOf } from './start-error.js';

export interface Finding {
  readonly level: 'ok' | 'warning' | 'error';
  readonly check: 'disk' | 'file system' | 'limits';
  readonly text: string;
}

interface FileSystem {
  readonly name: string;
  /** Why it is unsuitable. */
  readonly problem?: string;
}

const NETWORK = 'its locks and syncs depend on another machine, use a local disk';

/** File systems by the type that statfs(2) reports. */
const FILE_SYSTEMS: ReadonlyMap<number, FileSystem> = new Map([
  [0xef53, { name: 'ext4' }],
  [0x58465342, { name: 'xfs' }],
  [0x9123683e, { name: 'btrfs' }],
  [0x2fc12fc1, { name: 'zfs' }],
  [0xf2f52010, { name: 'f2fs' }],
  [0x01021994, { name: 'tmpfs', problem: 'its content is lost when the machine restarts' }],
  [0x794c7630, { name: 'overlayfs', problem: 'its content is lost with the container' }],
  [0x6969, { name: 'nfs', problem: NETWORK }],
  [0xff534d42, { name: 'cifs', problem: NETWORK }],
  [0xfe534d42, { name: 'smb2', problem: NETWORK }],
  [0x01021997, { name: '9p', problem: NETWORK }],
  [0x65735546, { name: 'fuse', problem: 'check that it supports fsync and mmap' }],
  [0x4d44, { name: 'vfat', problem: 'it limits files to 4 GiB and has no permissions' }],
]);

const GIB = 1024 ** 3;
/** The defaults of `disk.watermark`. */
const WATERMARK_SHARE = 0.05;
const MAX_WATERMARK_BYTES = GIB;
/** Each partition of a table has at least one file. */
const MIN_FREE_FILES = 100_000;

/** Returns all findings. The directory need not exist. */
export function checkHost(root: string): Finding[] {
  return [...checkDisk(root), ...limits()];
}

function checkDisk(root: string): Finding[] {
  const folder = nearestDirectory(root);
  const disk = statfsSync(folder);
  const [free, size] = [disk.bavail * disk.bsize, disk.blocks * disk.bsize];
  const watermark = Math.min(size * WATERMARK_SHARE, MAX_WATERMARK_BYTES);
  const space = `${gib(free)} of ${gib(size)} free`;
  const { name, problem } = FILE_SYSTEMS.get(disk.type) ?? {
    name: `type 0x${disk.type.toString(16)}`,
  };
  const spaceFinding = (): Finding => {
    if (free < watermark) {
      const text = `${space}: below ${gib(watermark)}, at which writes are rejected`;
      return { level: 'error', check: 'disk', text };
    }
    return free < 2 * watermark
      ? { level: 'warning', check: 'disk', text: `${space}: writes stop at ${gib(watermark)}` }
      : { level: 'ok', check: 'disk', text: space };
  };
  const fewFiles = disk.files > 0 && disk.ffree < MIN_FREE_FILES;
  return [
    ...syncProblems(folder),
    spaceFinding(),
    ...(fewFiles
      ? [{ level: 'warning', check: 'disk', text: `${disk.ffree} free inodes` } as const]
      : []),
    problem === undefined
      ? { level: 'ok', check: 'file system', text: name }
      : { level: 'warning', check: 'file system', text: `${name}: ${problem}` },
  ];
}

/** Writes and syncs a file, as the server does for each commit. */
function syncProblems(folder: string): Finding[] {
  const path = join(folder, `.tidemark-${process.pid}`);
  try {
    const file = openSync(path, 'wx', 0o600);
    try {
      writeSync(file, 'x');
      fsyncSync(file);
    } finally {
      closeSync(file);
      rmSync(path);
    }
    return [];
  } catch (error) {
    return [
      { level: 'error', check: 'disk', text: `cannot write to '${folder}': ${reasonOf(error)}` },
    ];
  }
}

function limits(): Finding[] {
  const warnings = hostWarnings();
  return warnings.length === 0
    ? [{ level: 'ok', check: 'limits', text: 'open files and memory maps' }]
    : warnings.map(({ warning }) => ({ level: 'warning', check: 'limits', text: warning }));
}

export function gib(bytes: number): string {
  return bytes < GIB ? `${Math.round(bytes / 1024 ** 2)} MiB` : `${(bytes / GIB).toFixed(1)} GiB`;
}

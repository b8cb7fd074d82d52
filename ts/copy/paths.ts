/**
 * File access for COPY, which is limited to one directory for reading and one for writing. Neither
 * `..` nor a link can reach files outside these directories, and only regular files are opened.
 */
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, realpath, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';

import { DatabaseError } from '../session/index.js';
import type { Name } from '../sql/index.js';

/** Prefix of a running job's files. */
export const STAGE_PREFIX = '.copy-';

/** A directory that statements may access. */
export interface Root {
  readonly directory: string;
  /** The configuration key that sets the directory. */
  readonly key: string;
  readonly purpose: 'import' | 'export';
}

/** Returns the path components below `root`; a leading slash refers to the root itself. */
export function segmentsBelow(root: Root, file: Name): readonly string[] {
  const { text } = file;
  const below = text.startsWith(root.directory + sep) ? text.slice(root.directory.length) : text;
  const segments = below.split(sep).filter((segment) => segment !== '' && segment !== '.');
  if (segments.length === 0) {
    throw refusal('file name expected', file);
  }

  if (
    /[\u0000-\u001f\u007f]/.test(text) ||
    segments.some((segment) => segment.startsWith(STAGE_PREFIX))
  ) {
    throw refusal(`invalid file name: '${printable(text)}'`, file);
  }
  if (segments.includes('..')) {
    throw outside(root, text, file);
  }
  return segments;
}

/** Opens a regular file below `root` for reading. */
export async function openBelow(root: Root, segments: readonly string[]): Promise<FileHandle> {
  const name = segments.join(sep);
  const missing = (): DatabaseError =>
    new DatabaseError({
      code: 'InvalidValue',
      message:
        `could not open, file does not exist: '${name}'; copy it to the directory of ` + root.key,
    });
  const [base, path] = await Promise.all([
    realpath(root.directory),
    realpath(join(root.directory, ...segments)),
  ]).catch(() => {
    throw missing();
  });
  if (!isBelow(base, path)) {
    throw outside(root, name);
  }
  // Opening a FIFO would block the thread, and a link could lead outside the directory.
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
  const handle = await open(path, flags).catch((error: unknown) => {
    throw new DatabaseError({ code: 'Io', message: `could not open '${name}': ${reason(error)}` });
  });
  try {
    const opened = await handle.stat();
    const named = await stat(path);
    const isSame = opened.dev === named.dev && opened.ino === named.ino;
    if (!opened.isFile() || !isSame || (await realpath(path)) !== path) {
      throw refusal(`not a regular file: '${name}'`);
    }
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}

/** Creates the directories `segments` below `root`, and returns the path of the last one. */
export async function makeBelow(root: Root, segments: readonly string[]): Promise<string> {
  await mkdir(root.directory, { recursive: true });
  const base = await realpath(root.directory);
  let path = base;
  for (const segment of segments) {
    const next = join(path, segment);
    await mkdir(next).catch((error: unknown) => {
      if (codeOf(error) !== 'EEXIST') {
        throw error;
      }
    });
    path = await realpath(next);
    if (!isBelow(base, path)) {
      throw outside(root, segments.join(sep));
    }
  }
  return path;
}

/** Returns the cause of a file error, without the path. */
export function reason(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  return /^[A-Z]+: ([^,]+)/.exec(message)?.[1] ?? message;
}

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

function isBelow(base: string, path: string): boolean {
  return path.startsWith(base + sep);
}

function outside(root: Root, path: string, file?: Name): DatabaseError {
  return refusal(
    `path is outside the ${root.purpose} directory: '${path}'; use a path below the directory ` +
      `of ${root.key}`,
    file,
  );
}

function refusal(message: string, file?: Name): DatabaseError {
  return new DatabaseError({ code: 'InvalidValue', message, ...file?.span });
}

function printable(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}

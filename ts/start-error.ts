/** Command-line functions that do not need the engine: the version, and why a start failed. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { processOf } from './server-file.js';

/** `EX_CONFIG` from sysexits: the configuration must be changed before the server can start. */
export const EXIT_CONFIG = 78;

/** `EX_USAGE` from sysexits: the arguments are wrong. */
export const EXIT_USAGE = 64;

/** Why the server did not start, as a one-line message for the operator. */
export class StartError extends Error {
  override readonly name = 'StartError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1, options?: ErrorOptions) {
    super(message, options);
    this.exitCode = exitCode;
  }
}

/**
 * Returns the error for a root that another process has locked. It includes the process id if the
 * engine's message or the lock file contains it.
 */
export function rootInUse(root: string, error: Error): StartError {
  const pid = /\[pid=(\d+)\]/.exec(error.message)?.[1] ?? processOf(root);
  const holder = pid === null ? '' : ` [pid=${pid}]`;
  const message = `the root directory '${root}' is in use by another process${holder}`;
  return new StartError(message, 1, { cause: error });
}

/** Returns the package's version. */
export function packageVersion(): string {
  const path = fileURLToPath(new URL('../../package.json', import.meta.url));
  const manifest = JSON.parse(readFileSync(path, 'utf8')) as { readonly version: string };
  return manifest.version;
}

/** Shortens an error to one line: `EACCES: permission denied, mkdir '…'` → `permission denied`. */
export function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const system = /^E[A-Z]+: ([^,]+)/.exec(message)?.[1];
  return (system ?? message).replaceAll(/\s*\n\s*/g, ' ');
}

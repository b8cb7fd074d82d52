/** Programs in other languages that tests run if they are installed. */
import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

import type { ExecutionContext } from 'ava';

export const run = promisify(execFile);

/** The folder in which `scripts/setup-tests.mjs` installs third-party tools. */
const CACHE = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
export const TOOLS = process.env['TIDEMARK_TOOLS_DIR'] ?? join(CACHE, 'tidemark', 'tools');
// Sets the same PATH as the whole suite, so individually run tests also find the tools.
process.env['PATH'] = [
  join(TOOLS, 'bin'),
  join(TOOLS, 'venv', 'bin'),
  process.env['PATH'] ?? '',
].join(delimiter);

// The folder in which Debian registers ODBC drivers; a bundled driver manager looks elsewhere.
process.env['ODBCSYSINI'] ??= '/etc';

/** Python code that fails if ODBC or its PostgreSQL driver is missing. */
export const ODBC_PROBE = 'import pyodbc; assert "PostgreSQL Unicode" in pyodbc.drivers()';

/** The source files of this folder, relative to the build output. */
export const SOURCES = new URL('../../../test/clients/', import.meta.url);

export function skip(t: ExecutionContext, why: string): void {
  process.stdout.write(`SKIPPED: ${t.title}: ${why}\n`);
  t.pass(`skipped: ${why}`);
}

/** Whether a command exists and runs successfully. */
export async function has(command: string, ...args: readonly string[]): Promise<boolean> {
  try {
    await run(command, [...args]);
    return true;
  } catch {
    return false;
  }
}

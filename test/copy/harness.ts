/** A server with its files, and helpers that wait for COPY jobs. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

import type { TestServer } from '../golden/server.js';
import { rows } from '../scenario/statements.js';

const WAIT_MS = 60_000;
const POLL_MS = 20;

/** Outcome of a job. */
interface End {
  readonly status: string;
  readonly message: string | null;
  /** Rows handled, rows imported and errors; for an export, the number of files. */
  readonly counts: readonly unknown[];
}

/** Runs a COPY and returns its job's id. */
export async function start(server: TestServer, statement: string): Promise<string> {
  const [[id] = []] = await rows(server, statement);
  return String(id);
}

/** Runs COPY … FROM and waits for it to finish. */
export async function load(server: TestServer, statement: string): Promise<End> {
  return await ended(server, await start(server, statement), 'import');
}

/** Runs a COPY … TO that must succeed. */
export async function write(server: TestServer, statement: string): Promise<End> {
  const end = await unload(server, statement);
  if (end.status !== 'finished') {
    throw new Error(`${statement}: ${end.status}: ${end.message ?? ''}`);
  }
  return end;
}

/** Runs COPY … TO and waits for it to finish. */
export async function unload(server: TestServer, statement: string): Promise<End> {
  return await ended(server, await start(server, statement), 'export');
}

const LAST = {
  import:
    'SELECT status, message, rows_handled, rows_imported, errors FROM sys.text_import_log ' +
    "WHERE phase IS NULL AND status != 'started'",
  export:
    'SELECT status, message, num_exported_files FROM sys.copy_export_log ' +
    "WHERE (phase = 'success' OR status IN ('failed', 'cancelled'))",
};

export async function ended(
  server: TestServer,
  id: string,
  kind: 'import' | 'export',
): Promise<End> {
  const end = Date.now() + WAIT_MS;
  while (Date.now() < end) {
    const [last] = await rows(server, `${LAST[kind]} AND id = '${id}'`);
    if (last !== undefined) {
      const [status, message, ...counts] = last;
      return { status: String(status), message: message as string | null, counts };
    }
    await sleep(POLL_MS);
  }
  throw new Error(`the job ${id} does not end: ${server.log()}`);
}

/** Waits until the job `id` has logged `phase`. */
export async function reached(
  server: TestServer,
  id: string,
  table: string,
  phase: string,
): Promise<void> {
  const end = Date.now() + WAIT_MS;
  const query = `SELECT count() FROM ${table} WHERE id = '${id}' AND phase = '${phase}'`;
  while (Number((await rows(server, query))[0]?.[0]) === 0) {
    if (Date.now() > end) {
      throw new Error(`the job ${id} does not reach ${phase}`);
    }
    await sleep(POLL_MS);
  }
}

/** Writes a file into the import directory. */
export async function put(
  server: TestServer,
  name: string,
  content: string | Buffer,
): Promise<void> {
  await mkdir(join(server.root, 'import'), { recursive: true });
  await writeFile(join(server.root, 'import', name), content);
}

/** Returns the files below the export directory, including hidden ones, sorted. */
export async function exported(server: TestServer): Promise<readonly string[]> {
  const folder = join(server.root, 'export');
  if (!existsSync(folder)) {
    return [];
  }
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    return entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
      .sort();
  } catch (error) {
    // A job removed the directory in the meantime.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      return await exported(server);
    }
    throw error;
  }
}

/** Returns the JSON output of a Python script; `null` if Python or a package is missing. */
export async function python(packages: string, script: string): Promise<unknown> {
  const run = promisify(execFile);
  const isHere = await run('python3', ['-c', `import ${packages}`]).then(
    () => true,
    () => false,
  );
  if (!isHere) {
    return null;
  }
  const { stdout } = await run('python3', ['-c', script], { maxBuffer: 1 << 26 });
  return JSON.parse(stdout) as unknown;
}

/**
 * Returns the lines of a CSV file with a header. Its columns are a timestamp in January 2024, a
 * symbol, a number, and half that number.
 */
export function manyRows(count: number): string {
  const lines = ['ts,s,x,d'];
  for (let row = 0; row < count; row += 1) {
    const day = String(1 + Math.floor((row * 28) / count)).padStart(2, '0');
    const micros = String(row % 1_000_000).padStart(6, '0');
    lines.push(`2024-01-${day}T00:00:00.${micros}Z,a${row % 7},${row},${row * 0.5}`);
  }
  return `${lines.join('\n')}\n`;
}

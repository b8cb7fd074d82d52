/** What the suites of real clients share: one server for each file, and programs that are run. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

export const run = promisify(execFile);
export const PASSWORD = 'quest';
const WAIT_MS = 120_000;

/** Where `scripts/setup-tests.mjs` puts what is no package of ours. */
const CACHE = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
export const TOOLS = process.env['TIDEMARK_TOOLS_DIR'] ?? join(CACHE, 'tidemark', 'tools');
/** The sources of this folder, seen from where they are built to. */
export const SOURCES = new URL('../../../test/clients/', import.meta.url);

const addon = new URL('../../../native/index.js', import.meta.url);
const started: Promise<TestServer> | null = existsSync(addon) ? startTestServer() : null;

test.after.always(async () => {
  const server = await started?.catch(() => null);
  await server?.stop();
});

/** The server's port, or null (and the test is skipped) when the addon is not built. */
export async function portFor(t: ExecutionContext): Promise<number | null> {
  t.timeout(WAIT_MS);
  if (started === null) {
    skip(t, 'the native addon is not built');
    return null;
  }
  return Number((await started).pg.split(':').at(-1));
}

export function skip(t: ExecutionContext, why: string): void {
  process.stdout.write(`SKIPPED: ${t.title}: ${why}\n`);
  t.pass(`skipped: ${why}`);
}

/** Whether a command runs and says so. */
export async function has(command: string, ...args: readonly string[]): Promise<boolean> {
  try {
    await run(command, [...args]);
    return true;
  } catch {
    return false;
  }
}

/** The JSON that a program prints. */
export async function answerOf(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string } = {},
): Promise<unknown> {
  const { stdout } = await run(command, [...args], { ...options, maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? 'null');
}

/** Shared by the suites that use real clients: one server per file, and external programs. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { has, run, skip, SOURCES } from './tools.js';

export { has, ODBC_PROBE, run, skip, SOURCES, TOOLS } from './tools.js';
export const PASSWORD = 'quest';
const WAIT_MS = 120_000;

const addon = new URL('../../../native/index.js', import.meta.url);
const started: Promise<TestServer> | null = existsSync(addon) ? startTestServer() : null;

test.after.always(async () => {
  const server = await started?.catch(() => null);
  await server?.stop();
});

/** Returns the server's port. If the addon is not built, skips the test and returns null. */
export async function portFor(t: ExecutionContext): Promise<number | null> {
  t.timeout(WAIT_MS);
  if (started === null) {
    skip(t, 'the native addon is not built');
    return null;
  }
  return Number((await started).pg.split(':').at(-1));
}

/** Returns the path of a program that runs a driver. */
export const program = (name: string): string =>
  fileURLToPath(new URL(`programs/${name}`, SOURCES));

/** Returns the results of a Python driver; null if it is not installed. */
export async function python(
  t: ExecutionContext,
  driver: string,
  ...modules: string[]
): Promise<unknown> {
  const port = await portFor(t);
  if (port === null) {
    return null;
  }
  if (!(await has('python3', '-c', `import ${[driver, ...modules].join(', ')}`))) {
    skip(t, `${driver} is not installed: node scripts/setup-tests.mjs`);
    return null;
  }
  return answerOf('python3', [program('drivers.py'), String(port), driver]);
}

/** Returns the JSON that a program prints. */
export async function answerOf(
  command: string,
  args: readonly string[],
  options: { readonly cwd?: string } = {},
): Promise<unknown> {
  const { stdout } = await run(command, [...args], { ...options, maxBuffer: 64 * 1024 * 1024 });
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? 'null');
}

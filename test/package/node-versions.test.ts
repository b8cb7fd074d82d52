/**
 * The packed packages on each supported version of Node.js: an unprivileged user installs them into
 * an empty folder without a network, and starts the server.
 */
import { execFile, spawn } from 'node:child_process';
import { chmod, chown, copyFile, mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { once } from 'node:events';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test from 'ava';

import { examplesIn, runExamples } from '../documentation/examples.js';
import { until } from '../until.js';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);
const MAX_START_MS = 10_000;
const MAX_INSTALLED_BYTES = 90_000_000;
const READY = /^tidemark ready http=(\S+) /m;
/** User ID for the programs if the tests run as root; other users run the programs themselves. */
const UNPRIVILEGED = 65_534;
/**
 * Packages that npm installs along with tidemark. They are taken from the clone instead of the
 * registry.
 */
const OTHERS = [
  'apache-arrow',
  '@types/node',
  'flatbuffers',
  'json-with-bigint',
  'tslib',
  'undici-types',
];
const tools =
  process.env['TIDEMARK_TOOLS_DIR'] ??
  join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'tidemark', 'tools');

let packed = '';
let tarballs: string[] = [];
let npm = '';

test.before(async () => {
  packed = await mkdtemp(join(tmpdir(), 'tidemark-packed-'));
  await chmod(packed, 0o755);
  await run(process.execPath, [join(repository, 'scripts', 'pack.mjs'), packed]);
  const modules = join(repository, 'node_modules');
  const folders = OTHERS.map((name) => {
    const own = join(modules, 'apache-arrow', 'node_modules', name);
    return existsSync(own) ? own : join(modules, name);
  });
  const options = ['pack', '--silent', '--ignore-scripts', '--pack-destination', packed];
  await run('npm', [...options, ...folders], { cwd: packed });
  tarballs = (await readdir(packed)).map((name) => join(packed, name));
  npm = join((await run('npm', ['root', '--global'])).stdout.trim(), 'npm', 'bin');
});
test.after.always(() => rm(packed, { recursive: true, force: true }));

for (const [name, major] of [
  ['node-20', 20],
  ['node-22', 22],
  ['node-24', 24],
] as const) {
  test.serial(`an unprivileged user can run the server on Node.js ${major}`, async (t) => {
    t.timeout(5 * 60_000);
    const binary = join(tools, 'nodes', 'node_modules', name, 'bin', 'node');
    if (!existsSync(binary)) {
      t.log('SKIPPED: not installed; scripts/setup-tests.mjs installs it');
      t.pass();
      return;
    }
    const user = await createUser(binary);
    t.teardown(() => rm(user.home, { recursive: true, force: true }));
    const version = await user.run(['--version']);
    t.true(version.startsWith(`v${major}.`), version);
    await user.run([join(npm, 'npm-cli.js'), 'init', '--yes']);
    const quiet = ['--offline', '--no-audit', '--no-fund'];
    await user.run([join(npm, 'npm-cli.js'), 'install', ...quiet, ...tarballs]);

    const bytes = await sizeOf(join(user.project, 'node_modules'));
    t.true(bytes <= MAX_INSTALLED_BYTES, `${bytes} bytes installed`);
    const listed = await user.run([join(npm, 'npm-cli.js'), 'sbom', '--sbom-format=spdx']);
    t.regex(listed, /"@fastify\/busboy"/, 'npm lists the bundled packages');

    const started = performance.now();
    const command = [join(npm, 'npx-cli.js'), '--no', 'tidemark', 'serve', '--demo'];
    const { url, stop } = await user.serve(command);
    const readyMs = performance.now() - started;
    t.teardown(stop);
    const response = await fetch(`http://${url}/exec?query=select%201%20one`);
    t.like(await response.json(), { dataset: [[1]] });
    t.true(readyMs <= MAX_START_MS, `ready after ${readyMs.toFixed(0)} ms`);
    const server = { url: `http://${url}`, pg: '' };
    const examples = await examplesIn('get-started/first-hour.md');
    await t.notThrowsAsync(runExamples(examples, server, user.home), 'the first hour works');
    t.log(`${(bytes / 1e6).toFixed(1)} MB, ready in ${readyMs.toFixed(0)} ms`);
    await stop();
  });
}

interface User {
  readonly home: string;
  readonly project: string;
  run(args: readonly string[]): Promise<string>;
  serve(args: readonly string[]): Promise<{ url: string; stop: () => Promise<void> }>;
}

/** Creates the home folder of a user who has no other program than this Node.js. */
async function createUser(binary: string): Promise<User> {
  const home = await mkdtemp(join(tmpdir(), 'tidemark-user-'));
  const project = join(home, 'project');
  const bin = join(home, 'bin');
  await Promise.all([mkdir(project), mkdir(bin)]);
  await copyFile(binary, join(bin, 'node'));
  await chmod(join(bin, 'node'), 0o755);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) {
    await Promise.all([home, project].map((folder) => chown(folder, UNPRIVILEGED, UNPRIVILEGED)));
  }
  const options = {
    cwd: project,
    env: { HOME: home, PATH: `${bin}:/usr/bin:/bin` },
    ...(isRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {}),
  };
  const node = join(bin, 'node');
  return {
    home,
    project,
    run: async (args) => (await run(node, args, options)).stdout,
    serve: async (args) => {
      const addresses = ['http.bind.to', 'http.min.bind.to', 'pg.net.bind.to'];
      const settings = [...addresses, 'line.tcp.net.bind.to'].flatMap((key) => [
        '--set',
        `${key}=127.0.0.1:0`,
      ]);
      const child = spawn(node, [...args, ...settings], { ...options, detached: true });
      const exited = once(child, 'exit');
      let output = '';
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          output += text;
        });
      }
      const stop = async (): Promise<void> => {
        const { pid } = child;
        if (child.exitCode === null && child.signalCode === null && pid !== undefined) {
          process.kill(-pid, 'SIGTERM');
          await exited;
          // The server is a child of npx, and may end after it.
          await until(() => !isRunning(pid), 'the server ends');
        }
      };
      while (!READY.test(output) && child.exitCode === null) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      const url = READY.exec(output)?.[1];
      if (url === undefined) {
        throw new Error(`the installed server does not start: ${output}`);
      }
      return { url, stop };
    },
  };
}

/** Whether any process of a process group is running. */
function isRunning(group: number): boolean {
  try {
    return process.kill(-group, 0);
  } catch {
    return false;
  }
}

async function sizeOf(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const sizes = entries
    .filter((entry) => entry.isFile())
    .map(async (entry) => (await stat(join(entry.parentPath, entry.name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

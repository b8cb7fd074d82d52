/**
 * The npm packages: packed, installed from the tarballs into an empty folder, and started from
 * there.
 */
import { execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test, { type ExecutionContext } from 'ava';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);
const READY = /^tidemark ready http=(\S+) /m;
const START_MS = 120_000;
const MEBIBYTE = 1024 * 1024;
/**
 * Maximum size of the addon in MiB. docs/decisions/0038-the-addon-below-52-mib.md explains the
 * limit.
 */
const MAX_ADDON_MIB = 54;

test('the native addon stays small', async (t) => {
  // Gold is the only linker that merges identical functions.
  const folds = await run('ld.gold', ['--version']).then(
    () => true,
    () => false,
  );
  const addon = join(repository, 'native', 'tidemark.linux-x64-gnu.node');
  const file = await stat(addon).catch(() => undefined);
  if (!folds || file === undefined) {
    t.log('this machine does not build a stripped and folded addon');
    t.pass();
    return;
  }
  t.true(file.size <= MAX_ADDON_MIB * MEBIBYTE, `${(file.size / MEBIBYTE).toFixed(1)} MiB`);
});

test('the packages can be installed into an empty folder and started', async (t) => {
  t.timeout(5 * 60_000);
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-package-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));

  const packed = join(folder, 'packed');
  await run(process.execPath, [join(repository, 'scripts', 'pack.mjs'), packed]);
  const tarballs = (await readdir(packed)).filter((name) => name.endsWith('.tgz'));
  t.is(tarballs.length, 2, tarballs.join(', '));

  const home = join(folder, 'home');
  await mkdir(home);
  await writeFile(join(home, 'package.json'), '{ "name": "home", "version": "1.0.0" }\n');
  const files = tarballs.map((name) => join(packed, name));
  const quiet = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];
  await run('npm', ['install', ...quiet, ...files], { cwd: home });

  const manifest = JSON.parse(
    await readFile(join(home, 'node_modules', 'tidemark', 'package.json'), 'utf8'),
  ) as Record<string, unknown>;
  t.false('devDependencies' in manifest || 'workspaces' in manifest);

  const answers = await serve(home, async (url) => {
    const exec = await fetch(`${url}/exec?query=${encodeURIComponent('SELECT 1 AS one')}`);
    const body = new URLSearchParams({ query: 'SELECT 2', nm: 'true' });
    const form = await fetch(`${url}/exec`, { method: 'POST', body });
    const page = await fetch(`${url}/`);
    const index = await fetch(`${url}/llms.txt`);
    return {
      exec: await exec.json(),
      form: await form.json(),
      page: await page.text(),
      index: await index.text(),
      tools: await queryAgent(home, url),
    };
  });
  t.like(answers.exec, { columns: [{ name: 'one', type: 'INT' }], dataset: [[1]] });
  t.deepEqual(answers.form, { dataset: [[2]], count: 1 }, 'the package can parse request bodies');
  t.regex(answers.page, /<title>Tidemark<\/title>/, 'the package contains the console');

  t.regex(answers.index, /docs\/time-series\.md/, 'the package contains the documents');
  t.regex(answers.tools, /"name":"query"/, 'the package contains the agent server');

  t.is(await embedded(home), 'true 7', 'the library returns tables of the caller’s Arrow package');
  const server = join(home, 'node_modules', 'tidemark', 'build', 'server');
  const readers = [];
  for (const name of (await readdir(server)).filter((file) => file.endsWith('.js'))) {
    if ((await readFile(join(server, name), 'utf8')).includes('apache-arrow')) {
      readers.push(name);
    }
  }
  t.deepEqual(readers, ['index.js'], 'the server does not load Arrow at startup');
  const installed = join(home, 'node_modules', 'tidemark');
  const licences = await readFile(join(installed, 'THIRD-PARTY-LICENSES.txt'), 'utf8');
  for (const name of ['koa', '@koa/router', 'koa-body', 'zod', '@codemirror/view', 'uplot']) {
    t.regex(licences, new RegExp(`^${name} \\d\\S+ \\(MIT\\)$`, 'm'));
  }
  await checkContents(t, home);
});

interface Bill {
  readonly components: readonly { name: string; version: string; purl: string }[];
}

/** Checks that npm, and the bill of materials in each package, list the bundled packages. */
async function checkContents(t: ExecutionContext, home: string): Promise<void> {
  const sbom = ['sbom', '--sbom-format', 'cyclonedx'];
  const listed = JSON.parse((await run('npm', sbom, { cwd: home })).stdout) as Bill;
  const purls = new Set(listed.components.map(({ purl }) => purl));
  const read = async (name: string): Promise<Bill> =>
    JSON.parse(await readFile(join(home, 'node_modules', name, 'sbom.cdx.json'), 'utf8')) as Bill;
  const { components } = await read('tidemark');
  t.true(components.length > 100, `${components.length} packages`);
  t.deepEqual(
    components.filter(({ purl }) => !purls.has(purl)),
    [],
    'npm lists every package in the bundles',
  );
  const engine = '@tidemark/native-linux-x64-gnu';
  const crates = (await read(engine)).components.map(({ name }) => name);
  t.true(crates.length > 150, `${crates.length} crates`);
  t.true(
    ['datafusion', 'arrow-array', 'tokio', 'libmimalloc-sys'].every((n) => crates.includes(n)),
  );
  t.false(crates.includes('syn'), 'crates of the compiler are not part of the engine');
  const notices = await readFile(
    join(home, 'node_modules', engine, 'THIRD-PARTY-LICENSES.txt'),
    'utf8',
  );
  for (const name of crates) {
    t.true(notices.includes(`\n${name} `) || notices.startsWith(`${name} `), name);
  }
}

/** Queries the embedded library from a program that installed it. */
async function embedded(home: string): Promise<string> {
  const program = `
    import { Table } from 'apache-arrow';
    import { open } from 'tidemark';
    const db = await open({ root: ${JSON.stringify(join(home, 'embedded'))} });
    const table = await db.table('SELECT 3 + 4 AS seven');
    console.log(table instanceof Table, table.get(0).seven);
    await db.close();
    process.exit();`;
  const { stdout } = await run(process.execPath, ['--input-type=module', '-e', program], {
    cwd: home,
  });
  return stdout.trim();
}

/** Returns the installed command's response to an agent client. */
async function queryAgent(home: string, url: string): Promise<string> {
  const child = spawn('npx', ['--no', 'tidemark', 'mcp', '--url', url], {
    cwd: home,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })}\n`);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    if (output.endsWith('\n')) {
      child.stdin.end();
    }
  });
  await once(child, 'close');
  return output;
}

/** Starts the installed command as a user would, and stops it in the same way. */
async function serve<T>(home: string, work: (url: string) => Promise<T>): Promise<T> {
  const args = ['tidemark', 'serve', '--root', join(home, 'data')];
  // Uses free ports, because another server may run on this machine.
  const addresses = ['http.bind.to', 'http.min.bind.to', 'pg.net.bind.to', 'line.tcp.net.bind.to'];
  const settings = addresses.map((key) => `${key}=127.0.0.1:0`);
  const child = spawn(
    'npx',
    ['--no', ...args, ...settings.flatMap((setting) => ['--set', setting])],
    { cwd: home, stdio: ['ignore', 'pipe', 'pipe'], detached: true },
  );
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  try {
    return await work(
      `http://${await address(
        () => output,
        () => child.exitCode,
      )}`,
    );
  } finally {
    if (child.exitCode === null && child.pid !== undefined) {
      // Stops npx and the server that it started.
      process.kill(-child.pid, 'SIGTERM');
      await once(child, 'exit');
    }
  }
}

async function address(output: () => string, exitCode: () => number | null): Promise<string> {
  const end = Date.now() + START_MS;
  while (Date.now() < end && exitCode() === null) {
    const match = READY.exec(output());
    if (match?.[1] !== undefined) {
      return match[1];
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`the installed server does not start: ${output()}`);
}

/**
 * The engine in a clone: the published binary is used if it was built from the clone's sources. npm
 * talks to a registry in this process, and no compiler is on the path.
 */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  appendFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test, { type ExecutionContext } from 'ava';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);
const NAME = '@tidemark/native-linux-x64-gnu';
const ADDON = join('native', 'tidemark.linux-x64-gnu.node');

let folder = '';
let tarball: Buffer;
let manifest: { readonly version: string };

test.before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tidemark-published-'));
  await run(process.execPath, [join(repository, 'scripts', 'pack.mjs'), folder]);
  const file = (await readdir(folder)).find((name) => name.includes('native')) ?? '';
  tarball = await readFile(join(folder, file));
  const text = await run('tar', ['-xzOf', join(folder, file), 'package/package.json']);
  manifest = JSON.parse(text.stdout) as typeof manifest;
});
test.after.always(() => rm(folder, { recursive: true, force: true }));

/** Starts a registry that has one package, or none. Returns its URL and the requested paths. */
async function registry(
  t: ExecutionContext,
  content: Buffer | null,
): Promise<{ url: string; paths: string[] }> {
  const paths: string[] = [];
  const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '');
    paths.push(path);
    if (content !== null && path === `/${NAME}`) {
      const dist = { tarball: `${url}addon.tgz`, integrity };
      const version = { ...manifest, dist };
      const versions = { [manifest.version]: version };
      response.end(
        JSON.stringify({ name: NAME, 'dist-tags': { latest: manifest.version }, versions }),
      );
    } else if (path === '/addon.tgz') {
      response.end(content);
    } else {
      response.writeHead(404).end('{}');
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return { url, paths };
}

/** Copies the files that a build of the engine reads, but no addon. */
async function clone(t: ExecutionContext): Promise<string> {
  const home = await mkdtemp(join(folder, 'clone-'));
  t.teardown(() => rm(home, { recursive: true, force: true }));
  const names = ['scripts', 'crates', 'native', '.cargo', 'Cargo.toml', 'Cargo.lock'];
  for (const name of [...names, 'rust-toolchain.toml', 'package.json']) {
    await cp(join(repository, name), join(home, name), {
      recursive: true,
      filter: (file) => !/node_modules|\.node$/.test(file),
    });
  }
  const file = join(home, 'package.json');
  const project = JSON.parse(await readFile(file, 'utf8')) as object;
  await writeFile(file, JSON.stringify({ ...project, repository: 'github:tidemark/tidemark' }));
  const programs = join(home, 'programs');
  await mkdir(programs);
  await symlink(process.execPath, join(programs, 'node'));
  await symlink('/bin/tar', join(programs, 'tar'));
  await symlink('/bin/gzip', join(programs, 'gzip'));
  const npm = (await run('npm', ['root', '--global'])).stdout.trim();
  await symlink(join(npm, 'npm', 'bin', 'npm-cli.js'), join(programs, 'npm'));
  return home;
}

/** Provides the engine in a clone as `npm start` does. Returns the exit code and the output. */
async function provide(
  home: string,
  url: string,
  ...args: string[]
): Promise<{ code: number; output: string }> {
  const env = {
    HOME: home,
    PATH: join(home, 'programs'),
    npm_config_registry: url,
    npm_config_cache: join(home, 'npm-cache'),
    TIDEMARK_TOOLS_DIR: join(home, 'tools'),
  };
  const script = join(home, 'scripts', 'build-addon.mjs');
  const result = await run(process.execPath, [script, ...args], { env, cwd: dirname(home) }).catch(
    (error: unknown) => error as { code: number; stdout: string; stderr: string },
  );
  const code = 'code' in result ? result.code : 0;
  return { code, output: `${result.stdout}${result.stderr}` };
}

test.serial('a binary published from the same sources is used', async (t) => {
  const home = await clone(t);
  const { url } = await registry(t, tarball);
  const { code, output } = await provide(home, url);
  t.is(code, 0, output);
  t.regex(output, /@tidemark\/native-linux-x64-gnu@\S+ is used; .*--from-source compiles/);
  const [installed, built] = await Promise.all(
    [home, repository].map((root) => readFile(join(root, ADDON))),
  );
  t.true(built !== undefined && installed?.equals(built));
});

const COMPILED: readonly [string, RegExp, boolean, Buffer | null | 'damaged'][] = [
  ['a clone with other sources', /was built from other sources/, true, Buffer.alloc(0)],
  ['a version that is not published', /is not available/, false, null],
  ['a damaged download', /could not be downloaded/, false, 'damaged'],
];
for (const [title, reason, isChanged, content] of COMPILED) {
  test.serial(`${title} compiles the engine`, async (t) => {
    const home = await clone(t);
    if (isChanged) {
      await appendFile(join(home, 'crates', 'types', 'src', 'lib.rs'), '\n// changed\n');
    }
    const bytes = content === 'damaged' ? tarball.subarray(0, 1000) : content;
    const { url } = await registry(t, bytes);
    const { code, output } = await provide(home, url);
    t.is(code, 1, output);
    t.regex(output, reason);
    t.regex(output, /: the engine is compiled\ncargo is required to compile the engine; install/);
  });
}

test.serial('a project without an address downloads nothing', async (t) => {
  const home = await clone(t);
  await cp(join(repository, 'package.json'), join(home, 'package.json'));
  const { url, paths } = await registry(t, tarball);
  const { output } = await provide(home, url);
  const project = await readFile(join(repository, 'package.json'), 'utf8');
  t.is(paths.length > 0, project.includes('"repository"'), output);
});

test.serial('--from-source does not ask the registry', async (t) => {
  const home = await clone(t);
  const { url, paths } = await registry(t, tarball);
  const { code, output } = await provide(home, url, '--from-source');
  t.is(code, 1, output);
  t.regex(output, /^cargo is required to compile the engine; install a Rust toolchain/);
  t.deepEqual(paths, []);
});

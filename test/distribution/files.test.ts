/**
 * The files in scripts/dist, checked with the tools for their formats, against the server's
 * configuration and against each other.
 */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { KEYS, loadConfig } from '../../ts/config/index.js';
import { refuseInsecureListeners } from '../../ts/insecure-listeners.js';
import { has, run, skip, TOOLS } from '../clients/tools.js';
import { commandsOf, repository } from './deploy-page.js';
import { imageOf, stagesOf } from './dockerfile.js';

const dist = join(repository, 'scripts', 'dist');
const read = (name: string): string => readFileSync(join(dist, name), 'utf8');
const dockerfile = read('Dockerfile');
const compose = read('compose.yml');
const manifests = read('kubernetes.yml');
const unit = read('deb/tidemark.service');

async function passes(t: ExecutionContext, tool: string, ...args: string[]): Promise<void> {
  const program = join(TOOLS, 'deploy', 'bin', tool);
  if (await has(program, '--version')) {
    await t.notThrowsAsync(run(program, args));
  } else {
    skip(t, `${tool} is not installed; scripts/setup-tests.mjs installs it`);
  }
}

test('hadolint reports no problems in the Dockerfile', (t) =>
  passes(t, 'hadolint', join(dist, 'Dockerfile')));

test('the compose file conforms to the Compose schema', (t) =>
  passes(
    t,
    'check-jsonschema',
    ...['--builtin-schema', 'vendor.compose-spec', join(dist, 'compose.yml')],
  ));

test('the manifests conform to the Kubernetes schema', (t) =>
  passes(t, 'kubernetes-validate', '--strict', join(dist, 'kubernetes.yml')));

test('every setting in the distribution files is a configuration key', (t) => {
  const page = readFileSync(join(repository, 'docs', 'configuration.md'), 'utf8');
  const variables = [dockerfile, compose, manifests].flatMap((text) =>
    [...text.matchAll(/\bQDB_[A-Z_]+/g)].map(([name]) => name.replace(/_FILE$/, '')),
  );
  const keys = [...read('deb/server.conf').matchAll(/^#?([a-z.]+)=/gm)].map(([, key = '']) =>
    key.replace(/\.file$/, ''),
  );
  t.true(variables.length > 10 && keys.length > 5);
  t.deepEqual(
    [...variables, ...keys].filter((name) => !page.includes(`\`${name}\``)),
    [],
  );
});

test('the server accepts the settings in the compose file and the manifests', (t) => {
  const image = imageOf(stagesOf(dockerfile).get('image') ?? []);
  const defaults = image.environment.map((setting) => setting.split('='));
  const settings = [
    [...compose.matchAll(/^ +(QDB_\w+): (.*)$/gm)],
    [...manifests.matchAll(/name: (QDB_\w+), value: (.*) \}/g)],
  ];
  for (const found of settings) {
    // A password file exists only in the container.
    const own = found.map(([, name = '', value = '']) =>
      name.endsWith('_FILE')
        ? [name.slice(0, -5), 'a good one']
        : [name, value.replaceAll("'", '')],
    );
    t.true(own.length > 0);
    const environment = Object.fromEntries([...defaults, ...own]) as Record<string, string>;
    t.notThrows(() => {
      refuseInsecureListeners(loadConfig({ environment }));
    });
  }
});

test('every supervisor waits longer than shutdown.timeout', (t) => {
  const limitMs = loadConfig({}).get(KEYS.shutdownTimeout);
  const patterns = [
    [unit, /^TimeoutStopSec=(\d+)s$/m],
    [compose, /stop_grace_period: (\d+)s/],
    [manifests, /terminationGracePeriodSeconds: (\d+)/],
  ] as const;
  for (const [text, pattern] of patterns) {
    t.true(Number(pattern.exec(text)?.[1]) * 1000 > limitMs, String(pattern));
  }
});

test('the image matches the manifests and the Rust toolchain', (t) => {
  const image = imageOf(stagesOf(dockerfile).get('image') ?? []);
  for (const key of ['runAsUser', 'runAsGroup', 'fsGroup']) {
    t.regex(manifests, new RegExp(`${key}: ${image.user.split(':')[0] ?? ''}\n`));
  }
  t.regex(manifests, new RegExp(`mountPath: ${image.workdir} `));
  t.regex(compose, new RegExp(`- tidemark:${image.workdir}\n`));
  const toolchain = readFileSync(join(repository, 'rust-toolchain.toml'), 'utf8');
  const channel = /^channel = "(\d+\.\d+)/m.exec(toolchain)?.[1] ?? 'none';
  t.regex(dockerfile, new RegExp(`^FROM rust:${channel}-`, 'm'));
});

test('the build context of the image excludes only the CI workflows', async (t) => {
  const ignored = join('scripts', 'dist', 'Dockerfile.dockerignore');
  const list = ['ls-files', '--cached', '--ignored', `--exclude-from=${ignored}`];
  const { stdout } = await run('git', list, { cwd: repository });
  const others = stdout.split('\n').filter((file) => !/^(\.ci\/|\.github\/|$)/.test(file));
  t.deepEqual(others, []);
});

test('passwords created for the compose file are not committed', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-compose-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const [command] = commandsOf('compose');
  await run('sh', ['-e', '-c', command?.code ?? ''], { cwd: folder });
  const files = [...compose.matchAll(/file: \.\/(.*)$/gm)].map(([, file = '']) => file);
  t.is(files.length, 2);
  for (const file of files) {
    const path = join('scripts', 'dist', file);
    t.regex(readFileSync(join(folder, path), 'utf8'), /^\S{32}\n$/);
    await t.notThrowsAsync(run('git', ['check-ignore', path], { cwd: repository }));
    t.regex(read('Dockerfile.dockerignore'), /^scripts\/dist\/secrets$/m);
  }
});

/** The checks of dependencies, secrets and workflows report the violations that they look for. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test from 'ava';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'tidemark-checks-'));
test.after.always(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Creates a clone that contains only the given files, and the scripts of this one. */
function clone(name: string, files: Readonly<Record<string, string>>): string {
  const home = join(folder, name);
  cpSync(join(repository, 'scripts'), join(home, 'scripts'), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(home, path)), { recursive: true });
    writeFileSync(join(home, path), text);
  }
  spawnSync('git', ['init', '--quiet', home]);
  return home;
}

function check(home: string, script: string): { status: number | null; output: string } {
  const file = join(home, 'scripts', `${script}.mjs`);
  const { status, stdout, stderr } = spawnSync(process.execPath, [file], { encoding: 'utf8' });
  return { status, output: stdout + stderr };
}

test('committed secrets are reported with file and line', (t) => {
  // Assembled here, so that the check does not find this file.
  const secrets = {
    'private key': `-----BEGIN PRIVATE KEY-----\n${'A'.repeat(64)}`,
    'AWS access key': `AKIA${'Q'.repeat(16)}`,
    'GitHub token': `ghp_${'a'.repeat(36)}`,
    'npm token': `npm_${'a'.repeat(36)}`,
    'Google API key': `AIza${'a'.repeat(35)}`,
    'JSON Web Token': `eyJ${'a'.repeat(20)}.eyJ${'b'.repeat(20)}.${'c'.repeat(43)}`,
    'registry password': `//registry.example/:_authToken=${'a'.repeat(12)}`,
  };
  for (const [name, text] of Object.entries(secrets)) {
    const home = clone(name.replaceAll(' ', '-'), { 'conf/file.txt': `first\n${text}\n` });
    const { status, output } = check(home, 'check-secrets');
    t.is(status, 1);
    t.true(output.includes(`conf/file.txt:2: ${name}: revoke it`), output);
  }
  const clean = clone('clean', { 'conf/file.txt': 'password = ${PASSWORD}\n' });
  t.is(check(clean, 'check-secrets').status, 0);
});

test('packages with disallowed licences or origins are reported', (t) => {
  const entry = { version: '1.0.0', license: 'MIT', integrity: `sha512-${'A'.repeat(86)}==` };
  const packages = {
    'node_modules/good': entry,
    'node_modules/either': { ...entry, license: '(GPL-3.0 OR MIT)' },
    'node_modules/copyleft': { ...entry, license: 'GPL-3.0' },
    'node_modules/silent': { ...entry, license: undefined },
    'node_modules/git': { ...entry, resolved: 'git+ssh://git@example.com/git.git' },
    'node_modules/weak': { ...entry, integrity: 'sha1-AAAA' },
  };
  const home = clone('licences', {
    'package-lock.json': JSON.stringify({ packages }),
    'build/packages-server.json': '[]',
    'build/packages-console.json': '[]',
  });
  const { status, output } = check(home, 'check-dependencies');
  t.is(status, 1);
  t.true(output.includes('node_modules/copyleft: the licence GPL-3.0 is not on the list'), output);
  t.true(output.includes('node_modules/silent: the licence (none) is not on the list'), output);
  for (const name of ['git', 'weak']) {
    t.true(output.includes(`node_modules/${name}: not from the registry`), output);
  }
  t.false(/node_modules\/(?:good|either)/.test(output), output);
});

test('crates with disallowed licences are refused', (t) => {
  const manifest = (license: string): string =>
    `[package]\nname = "a"\nversion = "0.1.0"\nedition = "2024"\nlicense = "${license}"\n`;
  const lock = 'version = 4\n\n[[package]]\nname = "a"\nversion = "0.1.0"\n';
  const deny = readFileSync(join(repository, 'deny.toml'), 'utf8');
  for (const [name, license, expected] of [
    ['allowed', 'MIT', 0],
    ['refused', 'GPL-3.0-only', 1],
  ] as const) {
    const home = clone(name, {
      'package-lock.json': '{ "packages": {} }',
      'build/packages-server.json': '[]',
      'build/packages-console.json': '[]',
      'Cargo.toml': manifest(license),
      'Cargo.lock': lock,
      'src/lib.rs': '',
      'deny.toml': deny,
    });
    const { status, output } = check(home, 'check-dependencies');
    if (output.includes('SKIPPED cargo-deny')) {
      t.log('SKIPPED: cargo-deny is not installed; scripts/setup-tests.mjs installs it');
      t.pass();
      return;
    }
    t.is(status, expected, output);
  }
});

test('a publishing job that pull requests can trigger is reported', (t) => {
  const job = (condition: string): string =>
    `on: [push, pull_request]\npermissions: {}\njobs:\n  build:\n    runs-on: ubuntu-24.04\n` +
    `    permissions:\n      contents: read\n    steps:\n      - run: echo\n` +
    `  publish:\n${condition}    runs-on: ubuntu-24.04\n    permissions:\n` +
    `      id-token: write\n    steps:\n      - run: echo\n`;
  const found = (name: string, text: string): string =>
    check(clone(name, { '.github/workflows/publish.yml': text }), 'check-workflows').output;
  const message = 'publish.yml: publish may publish, and can run for a pull request';
  t.true(found('open', job('')).includes(message));
  const closed = job("    if: github.event_name == 'push' && github.ref == 'refs/tags/v1'\n");
  t.false(found('closed', closed).includes('may publish'));
});

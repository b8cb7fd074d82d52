/**
 * Addons that are missing, damaged or built for another machine. The server reports the remedy in
 * one line.
 */
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test from 'ava';

import { addonProblem, PLATFORMS } from '../../ts/engine/addon-file.js';

const repository = fileURLToPath(new URL('../../..', import.meta.url));
const manifest = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8')) as {
  version: string;
};
const folder = mkdtempSync(join(tmpdir(), 'tidemark-addon-'));
test.after.always(() => {
  rmSync(folder, { recursive: true, force: true });
});

const PACKAGE = '@tidemark/native-linux-x64-gnu';
const INSTALL = `run npm install --force ${PACKAGE}@${manifest.version}`;
const BINARY = 'tidemark.linux-x64-gnu.node';
const addon = join(repository, 'native', BINARY);

/**
 * Installs the server without its engine. With `optional`, the engine is an optional dependency, as
 * in npm's package; without it, the folder looks like a clone.
 */
function install(name: string, { optional = true } = {}): string {
  const home = join(folder, name);
  cpSync(join(repository, 'build', 'server'), join(home, 'build', 'server'), { recursive: true });
  mkdirSync(join(home, 'native'));
  cpSync(join(repository, 'native', 'index.js'), join(home, 'native', 'index.js'));
  cpSync(join(repository, 'native', 'package.json'), join(home, 'native', 'package.json'));
  const entry = optional ? { optionalDependencies: { [PACKAGE]: manifest.version } } : {};
  writeFileSync(join(home, 'package.json'), JSON.stringify({ ...manifest, ...entry }));
  return home;
}

/** Returns the path of the platform package's binary; its folder is created. */
function packaged(home: string): string {
  const directory = join(home, 'node_modules', PACKAGE);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: PACKAGE, main: BINARY }));
  return join(directory, BINARY);
}

/** Returns the single line with which the server refuses to start. */
function refusal(home: string): { status: number | null; line: string } {
  const cli = join(home, 'build', 'server', 'cli.js');
  const args = [cli, 'serve', '--root', join(home, 'data')];
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
  return { status, line: stderr.trimEnd() };
}

const onThisPlatform = process.platform === 'linux' && process.arch === 'x64' ? test : test.skip;

onThisPlatform('a missing package is reported with the command that installs it', (t) => {
  const { status, line } = refusal(install('missing'));
  t.is(status, 1);
  t.is(line, `tidemark: the engine is not installed: ${INSTALL}`);
  const clone = refusal(install('clone', { optional: false }));
  t.is(clone.line, 'tidemark: the engine is not installed: run npm run build');
});

onThisPlatform('a truncated engine is refused and does not crash the process', (t) => {
  const home = install('truncated');
  const file = packaged(home);
  cpSync(addon, file);
  const size = readFileSync(addon).length;
  for (const bytes of [size - 1, size >> 1, 1 << 20, 4096, 64]) {
    truncateSync(file, bytes);
    const { status, line } = refusal(home);
    t.is(status, 1);
    const damage = `the engine is damaged: ${bytes} of ${size} bytes are present`;
    t.is(line, `tidemark: ${damage} [file=${file}]: ${INSTALL}`);
  }
  for (const bytes of [63, 0]) {
    truncateSync(file, bytes);
    const damage = 'the engine is damaged: it is not a shared library';
    t.is(refusal(home).line, `tidemark: ${damage} [file=${file}]: ${INSTALL}`);
  }
});

onThisPlatform('an engine for another processor is refused', (t) => {
  const home = install('other');
  const file = packaged(home);
  const header = readFileSync(addon).subarray(0, 4096);
  header.writeUInt16LE(183, 18);
  writeFileSync(file, header);
  const damage = 'the engine was built for a processor other than x64';
  t.is(refusal(home).line, `tidemark: ${damage} [file=${file}]: ${INSTALL}`);
});

onThisPlatform('an engine that cannot be loaded is refused, and the loader error is shown', (t) => {
  const home = install('unlinked');
  const file = packaged(home);
  const bytes = readFileSync(addon);
  // Replaces the name of the first library that the dynamic linker searches for with a missing
  // name.
  bytes.write('libx.so', bytes.indexOf('libc.so.6'), 'latin1');
  writeFileSync(file, bytes);
  const { status, line } = refusal(home);
  t.is(status, 1);
  t.regex(line, /^tidemark: the engine cannot be loaded: libx\.so\S*: .*No such file/);
  t.true(line.endsWith(`; ${INSTALL}`) && !line.includes('\n'), line);
});

test('an unsupported platform is refused with a list of supported ones', (t) => {
  const folders = readdirSync(join(repository, 'native', 'npm'));
  t.deepEqual([...PLATFORMS], folders.sort());
  const loader = join(install('platforms'), 'native', 'index.js');
  const problem = (platform: string, arch: string): string | null =>
    addonProblem(loader, { platform, arch });
  t.is(
    problem('freebsd', 'x64'),
    `there is no engine for freebsd x64; the supported platforms are ${PLATFORMS.join(', ')}`,
  );
  t.regex(problem('win32', 'arm64') ?? '', /^there is no engine for win32 arm64/);
  t.regex(problem('linux', 'riscv64') ?? '', /^there is no engine for linux riscv64/);
  const darwin = `@tidemark/native-darwin-arm64@${manifest.version}`;
  t.is(
    problem('darwin', 'arm64'),
    `the engine is not installed: run npm install --force ${darwin}`,
  );
});

test('the smoke test of the release workflow passes on this machine', (t) => {
  const script = join(repository, 'scripts', 'smoke.mjs');
  const { status, stdout, stderr } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
  t.is(`${stdout}${stderr}`, 'the database answers\n');
  t.is(status, 0);
});

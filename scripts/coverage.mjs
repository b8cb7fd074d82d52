// npm run coverage: lines of the commit, log, manifest and recovery code that its tests and
// harnesses run. Needs the component llvm-tools of the toolchain (rustup component add llvm-tools).
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { must, root, run, targetDirectory } from './steps.mjs';

const GOAL_PERCENT = 95;
const FILES = [
  'background',
  'bulk',
  'checkpoint',
  'file',
  'log',
  'log_reader',
  'manifest',
  'prepare',
  'record',
  'recovery',
  'replay',
  'state',
  'storage',
  'symbol_file',
];
const PACKAGES = ['-p', 'tidemark-storage', '-p', 'tidemark-testkit'];
const HARNESSES = [
  ['crash-sim', '--states', '5000', '--seed', '1'],
  ['faults', '--stride', '29', '--seed', '1'],
  ['bit-rot', '--flips', '2000', '--seed', '1'],
];

const folder = join(targetDirectory, 'coverage');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
// Instruments our own crates alone, so that no dependency is compiled again.
const wrapper = join(folder, 'rustc');
writeFileSync(wrapper, '#!/bin/sh\nexec "$@" -C instrument-coverage\n', { mode: 0o755 });
const env = {
  RUSTC_WORKSPACE_WRAPPER: wrapper,
  LLVM_PROFILE_FILE: join(folder, '%p-%8m.profraw'),
};

const { output: sysroot } = await run('rustc', ['--print', 'sysroot'], { quiet: true });
const { output: version } = await run('rustc', ['-vV'], { quiet: true });
const host = /^host: (\S+)$/m.exec(version)?.[1] ?? '';
const tool = (name) => join(sysroot.trim(), 'lib', 'rustlib', host, 'bin', name);
if (!existsSync(tool('llvm-cov'))) {
  console.log('SKIPPED: llvm-tools is not here; rustup component add llvm-tools');
  console.log('0 passed, 0 failed');
  process.exit(0);
}

/** Builds, and lists the programs that were built. */
async function build(args) {
  const all = [...args, '--release', '--message-format=json', ...PACKAGES];
  const { code, output } = await run('cargo', all, { quiet: true, env });
  if (code !== 0) {
    console.error(output.slice(-2_000));
    process.exit(1);
  }
  const messages = output.split('\n').filter((line) => line.startsWith('{"reason"'));
  const found = messages.map((line) => JSON.parse(line).executable ?? null);
  return [...new Set(found.filter((path) => path !== null))];
}

const tests = await build(['test', '--no-run']);
for (const test of tests) {
  await must(test, ['--quiet'], { env, quiet: true, cwd: join(root, 'crates', 'storage') });
}
const programs = await build(['build', '--bins']);
for (const [name, ...args] of HARNESSES) {
  const program = programs.find((path) => path.endsWith(`/${name}`));
  await must(program ?? name, args, { env });
}

const merged = join(folder, 'all.profdata');
const raw = readdirSync(folder).filter((name) => name.endsWith('.profraw'));
const inputs = raw.map((name) => join(folder, name));
await must(tool('llvm-profdata'), ['merge', '-sparse', '-o', merged, ...inputs], { quiet: true });
const [first, ...others] = [...tests, ...programs];
const objects = [first, ...others.flatMap((path) => ['--object', path])];
const sources = FILES.map((name) => join(root, 'crates', 'storage', 'src', `${name}.rs`));
const args = ['export', '--format=text', '--summary-only', `--instr-profile=${merged}`];
const { output } = await run(
  tool('llvm-cov'),
  [...args, ...objects, '--sources', ...sources.filter((path) => existsSync(path))],
  { quiet: true },
);
const { files, totals } = JSON.parse(output.slice(output.indexOf('{"data"'))).data[0];
for (const { filename, summary } of files) {
  const { covered, count, percent: share } = summary.lines;
  const name = filename.split('/').at(-1);
  console.log(`${name}: ${covered} of ${count} lines, ${share.toFixed(1)} %`);
}
const { percent, count } = totals.lines;
console.log(`all: ${percent.toFixed(1)} % of ${count} lines, ${GOAL_PERCENT} % wanted`);
const good = percent >= GOAL_PERCENT;
console.log(`${good ? 1 : 0} passed, ${good ? 0 : 1} failed`);
process.exitCode = good ? 0 : 1;

// npm run coverage [-- --lines]: measures how many lines of the commit, log, manifest and recovery
// code are covered by its tests and harnesses. With --lines it also lists the uncovered lines.
// Needs the toolchain component llvm-tools (`rustup component add llvm-tools`).
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { must, root, run, targetDirectory } from './steps.mjs';
import { buildPrograms, FILES, plan } from './storage-proof.mjs';

const GOAL_PERCENT = 95;
const HARNESSES = [
  ['crash-sim', '--states', '5000', '--seed', '1'],
  ['faults', '--stride', '29', '--seed', '1'],
  ['bit-rot', '--flips', '2000', '--seed', '1'],
  ['damage', '--quiet'],
];

const { output: sysroot } = await run('rustc', ['--print', 'sysroot'], { quiet: true });
const { output: version } = await run('rustc', ['-vV'], { quiet: true });
const host = /^host: (\S+)$/m.exec(version)?.[1] ?? '';
const tool = (name) => join(sysroot.trim(), 'lib', 'rustlib', host, 'bin', name);
if (!existsSync(tool('llvm-cov')) || !existsSync(tool('llvm-profdata'))) {
  console.log('SKIPPED: llvm-tools is not here; rustup component add llvm-tools');
  console.log('0 passed, 0 failed');
  process.exit(0);
}

const folder = join(targetDirectory, 'coverage');
rmSync(folder, { recursive: true, force: true });
mkdirSync(folder, { recursive: true });
// Instruments only the project's own crates, so dependencies are not recompiled.
const wrapper = join(folder, 'rustc');
writeFileSync(wrapper, '#!/bin/sh\nexec "$@" -C instrument-coverage\n', { mode: 0o755 });
const env = {
  RUSTC_WORKSPACE_WRAPPER: wrapper,
  LLVM_PROFILE_FILE: join(folder, '%p-%8m.profraw'),
};

const { programs, output: problems } = await buildPrograms(env);
if (programs === null) {
  console.error(problems.slice(-2_000));
  process.exit(1);
}
const programsToRun = plan(programs, HARNESSES);
for (const { path, name, args, cwd } of programsToRun) {
  console.log(`${name} ${args.join(' ')}`);
  await must(path, args, { env, quiet: true, cwd });
}

const merged = join(folder, 'all.profdata');
const raw = readdirSync(folder).filter((name) => name.endsWith('.profraw'));
const inputs = raw.map((name) => join(folder, name));
await must(tool('llvm-profdata'), ['merge', '-sparse', '-o', merged, ...inputs], { quiet: true });
const [first, ...others] = programsToRun.map(({ path }) => path);
const objects = [first, ...others.flatMap((path) => ['--object', path])];
const args = ['export', '--format=lcov', `--instr-profile=${merged}`];
const { code, output } = await run(
  tool('llvm-cov'),
  [...args, ...objects, '--sources', ...FILES.map((path) => join(root, path))],
  { quiet: true },
);
if (code !== 0) {
  console.error(output.slice(-2_000));
  process.exit(1);
}

let [covered, count] = [0, 0];
for (const record of output.split('end_of_record').slice(0, -1)) {
  const name = basename(/^SF:(.*)$/m.exec(record)?.[1] ?? '');
  const lines = [...record.matchAll(/^DA:(\d+),(\d+)/gm)].map(([, line, runs]) => [line, runs]);
  const missed = lines.filter(([, runs]) => runs === '0').map(([line]) => line);
  const ran = lines.length - missed.length;
  const share = ((100 * ran) / lines.length).toFixed(1);
  console.log(`${name}: ${ran} of ${lines.length} lines, ${share} %`);
  if (process.argv.includes('--lines') && missed.length > 0) {
    console.log(`  not run: ${missed.join(' ')}`);
  }
  covered += ran;
  count += lines.length;
}
const percent = (100 * covered) / count;
console.log(`all: ${percent.toFixed(1)} % of ${count} lines, ${GOAL_PERCENT} % wanted`);
const good = percent >= GOAL_PERCENT;
console.log(`${good ? 1 : 0} passed, ${good ? 0 : 1} failed`);
process.exitCode = good ? 0 : 1;

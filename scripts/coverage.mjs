// npm run coverage: lines of the commit, log, manifest and recovery code that its tests and
// harnesses run. Needs the component llvm-tools of the toolchain (rustup component add llvm-tools).
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
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

// Instrumented objects of their own, so that ordinary builds stay warm.
const target = join(targetDirectory, 'coverage');
const profiles = join(target, 'profiles');
const env = {
  CARGO_TARGET_DIR: target,
  RUSTFLAGS: '-C instrument-coverage',
  LLVM_PROFILE_FILE: join(profiles, '%p-%8m.profraw'),
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

rmSync(profiles, { recursive: true, force: true });
mkdirSync(profiles, { recursive: true });
await must('cargo', ['test', '--release', ...PACKAGES], { env });
await must('cargo', ['build', '--release', '--bins', '-p', 'tidemark-testkit'], { env });
const harness = (name) => join(target, 'release', name);
await must(harness('crash-sim'), ['--states', '5000', '--seed', '1'], { env });
await must(harness('faults'), ['--stride', '29', '--seed', '1'], { env });
await must(harness('bit-rot'), ['--flips', '2000', '--seed', '1'], { env });

const merged = join(profiles, 'all.profdata');
const raw = readdirSync(profiles).filter((name) => name.endsWith('.profraw'));
const inputs = raw.map((name) => join(profiles, name));
await must(tool('llvm-profdata'), ['merge', '-sparse', '-o', merged, ...inputs], { quiet: true });
const deps = readdirSync(join(target, 'release', 'deps'));
const tests = deps.filter((name) =>
  /^(storage|tidemark_storage|crash|changes)-[0-9a-f]+$/.test(name),
);
const objects = [
  ...tests.map((name) => join(target, 'release', 'deps', name)),
  ...['crash-sim', 'faults', 'bit-rot'].map(harness),
].flatMap((path) => ['--object', path]);
const sources = FILES.map((name) => join(root, 'crates', 'storage', 'src', `${name}.rs`));
const args = ['export', '--format=text', '--summary-only', `--instr-profile=${merged}`];
const { output } = await run(
  tool('llvm-cov'),
  [...args, ...objects.slice(1), ...sources.filter((path) => existsSync(path))],
  { quiet: true },
);
const { files, totals } = JSON.parse(output.slice(output.indexOf('{'))).data[0];
for (const { filename, summary } of files) {
  const { covered, count, percent } = summary.lines;
  console.log(
    `${filename.split('/').at(-1)}: ${covered} of ${count} lines, ${percent.toFixed(1)} %`,
  );
}
const { percent } = totals.lines;
console.log(
  `all: ${percent.toFixed(1)} % of ${totals.lines.count} lines, ${GOAL_PERCENT} % wanted`,
);
const good = percent >= GOAL_PERCENT;
console.log(`${good ? 1 : 0} passed, ${good ? 0 : 1} failed`);
process.exitCode = good ? 0 : 1;

// npm run mutants -- [--sample N] [--seed S] [--only log.rs:282,…]: changes one line of the commit,
// log, manifest or recovery code at a time, in a copy of the repository. Counts how many of N
// mutants the tests and harnesses detect. Mutants that do not compile are not counted.
//
// In the copy all storage tests and the harnesses become one program, because compiling and linking
// a dozen programs takes longer than running them.
import { spawn } from 'node:child_process';
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';

import { root, run, targetDirectory } from './steps.mjs';
import { FILES, source, testsOf } from './storage-proof.mjs';

const GOAL_PERCENT = 90;
/** The harnesses as tests, each running a fraction of its quick tier. */
const HARNESS_TESTS = `
mod harness {
    use tidemark_testkit::{bit_rot, crash, damage, faults};

    #[test]
    fn every_61st_call_fails() {
        assert_eq!(faults::run(1, 61, None).failures, [] as [String; 0]);
    }

    #[test]
    fn power_is_lost() {
        assert!(crash::run(1, 4_000, None, true).failures.is_empty());
    }

    #[test]
    fn bits_flip() {
        assert_eq!(bit_rot::run(1, 500).unwrap().failures, [] as [String; 0]);
    }

    #[test]
    fn files_are_damaged() {
        let report = damage::run(1, 300);
        assert!(report.failures.is_empty());
        assert!(report.repaired * 20 > report.passed && report.isolated * 20 > report.passed);
    }
}
`;
/** Build settings that speed up compilation and reuse dependencies that are already compiled. */
const QUICK_BUILD = ['storage', 'testkit'].flatMap((name) => [
  '--config',
  `profile.release.package.tidemark-${name}.opt-level=1`,
]);
/** Time limit, as a multiple of the run time without a mutation. */
const HANG_FACTOR = 8;

/** Replacements: inverted comparisons, shifted bounds, removed steps. */
const OPERATORS = [
  [/ == /g, ' != '],
  [/ != /g, ' == '],
  [/ < (?!\w+>)/g, ' <= '],
  [/ > /g, ' >= '],
  [/ <= /g, ' < '],
  [/ >= /g, ' > '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/ \+ 1\b/g, ''],
  [/ - 1\b/g, ''],
  [/\.min\(/g, '.max('],
  [/\.max\(/g, '.min('],
  [/\.is_some\(\)/g, '.is_none()'],
  [/\.is_none\(\)/g, '.is_some()'],
  [/\bif !/g, 'if '],
  [/= true;/g, '= false;'],
  [/= false;/g, '= true;'],
  // Removes a protocol step.
  [/^ +[a-z][\w.:&*]*\([^;=]*\)\??;$/g, ''],
];

const { values } = parseArgs({
  options: {
    sample: { type: 'string', default: '40' },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 1000)) },
    only: { type: 'string' },
  },
});
console.log(`mutants: seed ${values.seed}`);
let state = Number(values.seed) >>> 0;
/** The mulberry32 pseudorandom number generator. */
function random() {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), state | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}

const copy = join(targetDirectory, 'mutants', 'source');
rmSync(copy, { recursive: true, force: true });
mkdirSync(copy, { recursive: true });
for (const name of [
  'Cargo.toml',
  'Cargo.lock',
  'crates',
  'native',
  'clippy.toml',
  'rust-toolchain.toml',
]) {
  if (existsSync(join(root, name))) {
    cpSync(join(root, name), join(copy, name), { recursive: true });
  }
}
oneProgram();

/** Moves the storage tests and the harnesses into a single testkit test program. */
function oneProgram() {
  const names = testsOf('storage');
  const [from, to] = ['storage', 'testkit'].map((name) => join(copy, 'crates', name, 'tests'));
  rmSync(to, { recursive: true });
  mkdirSync(join(to, 'proof'), { recursive: true });
  for (const name of names) {
    renameSync(join(from, `${name}.rs`), join(to, 'proof', `${name}.rs`));
  }
  renameSync(join(from, 'roots'), join(to, 'roots'));
  const modules = names.map((name) => `mod ${name};`).join('\n');
  writeFileSync(join(to, 'proof', 'main.rs'), `${modules}\n${HARNESS_TESTS}`);
  const [known, wanted] = ['testkit', 'storage'].map((name) => {
    const text = readFileSync(join(copy, 'crates', name, 'Cargo.toml'), 'utf8');
    return [...text.matchAll(/^([\w-]+) = \{ workspace = true \}$/gm)].map(([, found]) => found);
  });
  const missing = wanted.filter((name) => !known.includes(name));
  const entries = missing.map((name) => `\n[dev-dependencies.${name}]\nworkspace = true\n`);
  appendFileSync(join(copy, 'crates', 'testkit', 'Cargo.toml'), entries.join(''));
}

const env = { SEED: '1', CARGO_INCREMENTAL: '1' };

/** Returns the program, or `null` and the compiler's output. */
async function build() {
  // Uses the same features as the whole workspace, whose dependencies are already compiled.
  const args = ['test', '--no-run', '--release', '--message-format=json', ...QUICK_BUILD];
  const what = ['--workspace', '--exclude', 'tidemark-native', '--test', 'proof'];
  const { code, output } = await run('cargo', [...args, ...what], { quiet: true, env, cwd: copy });
  const program = /"executable":"([^"]*proof-[^"]*)"/.exec(output)?.[1];
  return { program: code === 0 ? program : null, output };
}

/** Time limits for the tests and the harnesses, in seconds. */
const limits = [600, 600];

/**
 * Returns the first failing test, or another reason for the failure; undefined on success. The
 * program is killed after the first failing test.
 */
function firstFailure(program, filter, seconds) {
  const cwd = join(copy, 'crates', 'testkit');
  const options = { cwd, env: { ...process.env, ...env }, timeout: seconds * 1000 };
  return new Promise((resolve, reject) => {
    const stdio = ['ignore', 'pipe', 'ignore'];
    const child = spawn(program, filter, { ...options, stdio, killSignal: 'SIGKILL' });
    let failed;
    createInterface({ input: child.stdout }).on('line', (line) => {
      failed ??= /^test (\S+) .*FAILED$/.exec(line)?.[1];
      if (failed !== undefined) {
        child.kill('SIGKILL');
      }
    });
    child.on('error', reject);
    child.on('close', (code) => {
      resolve(failed ?? (code === 0 ? undefined : 'a hang or the end of the process'));
    });
  });
}

/** Returns `killed`, `alive`, or `unviable` if the mutant does not compile. */
async function trial() {
  const { program, output } = await build();
  if (program === null) {
    const unviable = /could not compile/.test(output);
    return { outcome: unviable ? 'unviable' : 'failed', by: output.slice(-500) };
  }
  const times = [];
  for (const [index, filter] of [['--skip', 'harness::'], ['harness::']].entries()) {
    const started = Date.now();
    const by = await firstFailure(program, filter, limits[index]);
    times.push((Date.now() - started) / 1000);
    if (by !== undefined) {
      return { outcome: 'killed', by, times };
    }
  }
  return { outcome: 'alive', by: 'nothing', times };
}

/** All mutants: each operator applied to each matching line. */
const mutants = FILES.flatMap((path) =>
  source(path)
    .split('\n')
    .flatMap((line, index) => {
      if (/^\s*\/\/|planted|debug_assert|^use |wake|trim\(/.test(line)) {
        return [];
      }
      return OPERATORS.flatMap(([pattern, replacement]) =>
        [...line.matchAll(pattern)].map(({ index: at, 0: found }) => ({
          path,
          line: index,
          text: line.slice(0, at) + replacement + line.slice(at + found.length),
        })),
      );
    }),
);
const selected = values.only?.split(',');
if (selected !== undefined) {
  const named = ({ path, line }) =>
    selected.some((mutant) => `/${path}:${line + 1}`.endsWith(`/${mutant}`));
  mutants.splice(0, mutants.length, ...mutants.filter(named));
}
console.log(`${mutants.length} mutants`);
const unchanged = await trial();
if (unchanged.outcome !== 'alive') {
  const { outcome, by } = unchanged;
  console.log(`without a change: ${outcome} by ${by}\n0 passed, 1 failed`);
  process.exit(1);
}
for (const [index, seconds] of unchanged.times.entries()) {
  limits[index] = Math.ceil(30 + HANG_FACTOR * seconds);
}
console.log(`tests ${unchanged.times[0]} s, harnesses ${unchanged.times[1]} s`);
const counts = { killed: 0, alive: 0, unviable: 0 };
while (counts.killed + counts.alive < Number(values.sample) && mutants.length > 0) {
  const [mutant] = mutants.splice(Math.floor(random() * mutants.length), 1);
  const file = join(copy, mutant.path);
  const before = readFileSync(file, 'utf8');
  const lines = before.split('\n');
  const was = lines[mutant.line];
  lines[mutant.line] = mutant.text;
  writeFileSync(file, lines.join('\n'));
  const { outcome, by } = await trial();
  writeFileSync(file, before);
  if (!(outcome in counts)) {
    console.log(`${by}\n${counts.killed} passed, 1 failed`);
    process.exit(1);
  }
  counts[outcome] += 1;
  const to = mutant.text.trim() === '' ? 'nothing' : mutant.text.trim();
  const change = `${mutant.path}:${mutant.line + 1}: ${was.trim()} -> ${to}`;
  console.log(`${outcome} ${change}${outcome === 'killed' ? `, by ${by}` : ''}`);
}
const percent = (100 * counts.killed) / (counts.killed + counts.alive);
console.log(
  `${percent.toFixed(1)} % killed, ${GOAL_PERCENT} % required, ${counts.unviable} did not compile`,
);
console.log(`${counts.killed} passed, ${counts.alive} failed`);
process.exitCode = percent >= GOAL_PERCENT ? 0 : 1;

// npm test: installs everything that the tests need and runs all CI checks.     node
// scripts/test.mjs [suite …]     suites: rust harness lint ts     node scripts/test.mjs --changed
// tests affected by changed files, within a time budget Ends with one plain line for all suites: N
// passed, N failed.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { buildAll } from './build.mjs';
import { changedTests } from './changed-tests.mjs';
import { setupTests } from './setup-tests.mjs';
import { must, root, run, script, step, targetDirectory, TEST_ALL } from './steps.mjs';
import { recordedSeconds, TestTimes } from './test-times.mjs';

/** Number of concurrent programs, assuming that one of them is usually waiting. */
const BESIDE = 3;
/** Number of lines repeated at the end for each failure. */
const REPEATED_LINES = 16;
/** File to which `test-clock.mjs` in each ava worker appends its duration. */
const CLOCK = join(root, 'build', '.test-clock.jsonl');

const total = { passed: 0, failed: 0, skipped: 0 };
/**
 * Failures with the first lines of their output. They are repeated at the end, where CI logs are
 * not truncated.
 */
const failures = [];
const times = new TestTimes();

function count(name, passed, failed, skipped = 0) {
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped;
  console.log(`   ${name}: ${passed} passed, ${failed} failed, ${skipped} skipped`);
}

function firstLines(text) {
  const lines = text.split('\n').slice(0, REPEATED_LINES);
  return lines.map((line) => `   ${line}`.trimEnd()).join('\n');
}

/** Sums all `N passed; N failed; N ignored` lines from cargo's test runner. */
async function rustTests({ packages } = {}) {
  const chosen = packages?.flatMap((name) => ['-p', name]);
  const args = [
    ...(chosen ? ['test', '--locked', '--release', ...chosen] : TEST_ALL),
    '--no-fail-fast',
  ];
  const { code, output } = await run('cargo', args, { capture: true });
  const lines = [...output.matchAll(/(\d+) passed; (\d+) failed; (\d+) ignored/g)];
  const sum = (index) => lines.reduce((all, line) => all + Number(line[index]), 0);
  const failed = sum(2);
  for (const [, name] of output.matchAll(/^test (\S+)(?: - .*)? +\.\.\. FAILED$/gm)) {
    // SQL cases have a different runner, whose output markers do not contain `stdout`.
    const marks = [`---- ${name} stdout ----\n`, `---- ${name} ----\n`];
    const why = marks.map((mark) => output.split(mark)[1]).find((text) => text !== undefined) ?? '';
    failures.push(`rust: ${name}\n${firstLines(why)}`);
  }
  for (const [name, seconds] of binarySeconds(output)) {
    times.file('rust', name, seconds);
  }
  if (code !== 0 && failed === 0) {
    failures.push(`rust: exit code ${code}\n${output.trimEnd().slice(-1500)}`);
  }
  count('rust', sum(1), code !== 0 && failed === 0 ? 1 : failed, sum(3));
}

/** Yields each test program with the duration that it reported, in seconds. */
function* binarySeconds(output) {
  let name = '';
  for (const line of output.split('\n')) {
    name = line.match(/^ +Running .*\/deps\/(\S+)-\w+\)$/)?.[1] ?? name;
    name = line.match(/^ +Doc-tests (\S+)$/)?.[1]?.concat(' examples') ?? name;
    const seconds = line.match(/^test result: .* finished in ([\d.]+)s$/)?.[1];
    if (seconds !== undefined) {
      yield [name, Number(seconds)];
    }
  }
}

/**
 * The quick tiers of docs/reliability.md and docs/sql-correctness.md. A Rust harness is identified
 * by its binary name. A harness that runs the server is identified by its program's path.
 */
const QUICK_TIERS = [
  ['crash-sim', '--states', '20000'],
  ['faults', '--stride', '29'],
  ['bit-rot', '--flips', '5000'],
  ['recovery', '--mib', '128', '--partitions', '1000'],
  ['build/test/torture/kill9.js', '--rounds', '15'],
  ['build/test/torture/import-cuts.js', '--offsets', '200'],
  ['build/test/torture/disk-full.js', '--rounds', '5'],
  ['build/test/torture/disk-space.js', '--cycles', '5'],
  ['build/test/torture/system-faults.js', '--runs', '8'],
  ['build/test/torture/map-faults.js', '--rounds', '8'],
  ['build/test/torture/clock.js', '--jumps', '2'],
  ['build/test/torture/memory.js', '--rows', '2000000', '--pool', '64', '--latency', '1000'],
  ['build/test/torture/frames.js', '--frames', '30000'],
  ['build/test/torture/column-messages.js', '--messages', '20000'],
  ['build/test/torture/cancels.js', '--count', '40', '--rows', '300000', '--within', '1000'],
  ['build/test/torture/connections.js', '--connections', '200', '--seconds', '3', '--within', '0'],
  ['build/test/torture/large-results.js', '--rows', '1000000', '--pause', '500'],
  ['build/test/correctness/differential.js', '--queries', '500'],
  ['build/test/correctness/selects.js', '--queries', '1000'],
  ['build/test/correctness/logic-pairs.js', '--pairs', '5000'],
  ['build/test/correctness/malformed-statements.js', '--statements', '10000'],
  ['build/test/correctness/plans.js', '--plans', '1'],
];
/** Arguments that make a harness measure times. Such a harness must run alone. */
const TIMED = ['--latency', '--within', '--jumps', '--partitions'];

/** Returns a suite's program: its name, whether it runs alone, and how to run it. */
function harness([name, ...args]) {
  const isScript = name.endsWith('.js');
  const program = isScript ? process.execPath : join(targetDirectory, 'release', name);
  const all = [...(isScript ? [join(root, name)] : []), ...args, '--seed', '1'];
  const isAlone = args.some((flag) => TIMED.includes(flag));
  return { suite: 'harness', name, isAlone, work: () => judged(name, program, all) };
}

/** Runs a harness. Its output must end with `N passed, N failed`; otherwise it counts as failed. */
async function judged(name, program, args) {
  const { code, output } = await run(program, args, { capture: true, quiet: true });
  console.log(output.trimEnd());
  const line = output.match(/^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$/m);
  const [passed, failed, skipped] = [1, 2, 3].map((index) => Number(line?.[index] ?? 0));
  const isBroken = code !== 0 || line === null;
  if (isBroken) {
    failures.push(`${name}: exit code ${code}\n${output.trimEnd().slice(-1500)}`);
  }
  count(name, passed, isBroken && failed === 0 ? 1 : failed, skipped);
}

/** Returns a check, which counts as one test. */
function check(name, command, args) {
  const work = async () => {
    const { code, output } = await run(command, args, { capture: true, quiet: true });
    if (code !== 0) {
      console.log(output.trimEnd());
      failures.push(`lint: ${name}\n${output.trimEnd().slice(-1500)}`);
    }
    count(name, code === 0 ? 1 : 0, code === 0 ? 0 : 1);
  };
  return { suite: 'lint', name, isAlone: false, work };
}

function harnesses() {
  const kernels = script('kernel-counts');
  const counted = () => judged('kernel-counts', ...kernels);
  return [
    { suite: 'harness', name: 'kernel-counts', isAlone: false, work: counted },
    ...QUICK_TIERS.map(harness),
  ];
}

const CLIPPY = [
  'clippy',
  '--locked',
  '--release',
  '--workspace',
  '--all-targets',
  '--',
  '-D',
  'warnings',
];

const SCRIPTS = [
  'tidy',
  'check-layers',
  'check-workflows',
  'check-dependencies',
  'check-secrets',
  'commit-messages',
];

function lint() {
  return [
    check('clippy', 'cargo', CLIPPY),
    check('eslint', 'npx', ['eslint', '.']),
    check('prettier', 'npx', ['prettier', '--check', '--log-level', 'warn', '.']),
    check('generated files', ...script('generate', '--check')),
    ...SCRIPTS.map((name) => check(name, ...script(name))),
    check('rustfmt', 'cargo', ['fmt', '--check']),
  ];
}

/** Returns a program's recorded duration, which is used to start the longest programs first. */
function recorded({ suite, name }) {
  return recordedSeconds(suite).get(name) ?? 0;
}

/** Runs programs concurrently, and then runs those that must run alone, one at a time. */
async function runAll(programs) {
  const timed = async ({ suite, name, work }) => {
    const began = Date.now();
    try {
      await work();
    } catch (error) {
      failures.push(`${name}: ${error.message}`);
      count(name, 0, 1);
    }
    const seconds = (Date.now() - began) / 1000;
    times.file(suite, name, seconds);
    console.log(`   ${name}: ${seconds.toFixed(1)} s`);
  };
  const bySeconds = (one, other) => recorded(other) - recorded(one);
  const left = programs.filter(({ isAlone }) => !isAlone).sort(bySeconds);
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) {
      await timed(next);
    }
  };
  await Promise.all(Array.from({ length: BESIDE }, worker));
  for (const program of programs.filter(({ isAlone }) => isAlone)) {
    await timed(program);
  }
}

/** Programs of suites that run concurrently. */
const PROGRAMS = { harness: harnesses, lint };

/** Runs both suites in one pool. All Rust binaries are built beforehand. */
async function programs(suites) {
  if (suites.includes('harness')) {
    await must('cargo', ['build', '--locked', '--release', '--workspace', '--bins']);
  }
  const began = Date.now();
  await runAll(suites.flatMap((name) => PROGRAMS[name]()));
  times.suite(suites.join(' and '), (Date.now() - began) / 1000);
}

/** Runs ava and counts its TAP output: one `ok` or `not ok` per test. */
async function typescriptTests({ files = [] } = {}) {
  rmSync(CLOCK, { force: true });
  const env = { TIDEMARK_TEST_CLOCK: CLOCK };
  const { code, output } = await run('npx', ['ava', '--tap', ...files], { capture: true, env });
  const passed = [...output.matchAll(/^ok \d+(?!.*# SKIP)/gm)].length;
  const failed = [...output.matchAll(/^not ok \d+/gm)].length;
  const skipped = [...output.matchAll(/^ok \d+.*# SKIP/gm)].length;
  for (const [, name, why] of output.matchAll(/^not ok \d+ - (.*)\n((?: {2}.*\n)*)/gm)) {
    failures.push(`ts: ${name}\n${firstLines(why)}`);
  }
  for (const [file, seconds] of clocked()) {
    times.file('ts', file, seconds);
  }
  count('ts', passed, code !== 0 && failed === 0 ? 1 : failed, skipped);
}

/** Returns test files with their durations in seconds. */
function clocked() {
  const lines = existsSync(CLOCK) ? readFileSync(CLOCK, 'utf8').trim().split('\n') : [];
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}

/** Runs one suite as a timed step. */
async function suite(name, work) {
  const began = Date.now();
  await step(`tests: ${name}`, work);
  times.suite(name, (Date.now() - began) / 1000);
}

async function everything(chosen) {
  await step('tools for the tests', setupTests);
  if (chosen.includes('rust')) {
    await suite('rust', rustTests);
  }
  const beside = chosen.filter((name) => name in PROGRAMS);
  if (beside.length > 0) {
    await step(`tests: ${beside.join(' and ')}`, () => programs(beside));
  }
  if (chosen.includes('ts')) {
    await suite('ts', typescriptTests);
  }
  times.save();
}

/** Runs the tests affected by changed files. */
async function changed() {
  const { packages, files, lints, left } = await changedTests();
  await step('lint', () => runAll(lints.map((args) => check(...args))));
  if (packages.length > 0) {
    await step(`rust: ${packages.join(', ')}`, () => rustTests({ packages }));
  }
  if (files.length > 0) {
    await step(`ts: ${files.length} files`, () => typescriptTests({ files }));
  }
  const others = ['harnesses', 'clippy', 'check-layers', 'crates that use the changed ones'];
  console.log(`   not run: ${[...others, ...left].join(', ')}`);
}

const SUITES = ['rust', 'harness', 'lint', 'ts'];
const words = process.argv.slice(2);
const isChanged = words.includes('--changed');
const chosen = words.filter((word) => word !== '--changed');
const unknown = chosen.filter((name) => !SUITES.includes(name));
if (unknown.length > 0) {
  console.error(`unknown suite ${unknown.join(', ')}, expected ${SUITES.join(', ')}`);
  process.exit(2);
}
await buildAll({ fromSource: true });
if (isChanged) {
  await changed();
} else {
  await everything(chosen.length === 0 ? SUITES : chosen);
}
for (const line of times.growth()) {
  console.log(`   longer than recorded: ${line}`);
}
if (failures.length > 0) {
  console.log(`\n== failed\n${failures.join('\n')}`);
}
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;

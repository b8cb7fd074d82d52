// npm test: sets up and runs everything that CI runs.
//   node scripts/test.mjs [suite …]     suites: rust harness lint ts
// Ends with one plain line over all suites: N passed, N failed.
import { join } from 'node:path';

import { buildAll } from './build.mjs';
import { setupTests } from './setup-tests.mjs';
import { root, run, step } from './steps.mjs';

const harness = join(root, 'scripts', 'harness.mjs');

const total = { passed: 0, failed: 0, skipped: 0 };
/** What failed, with the first lines of why: said once more at the end, which logs keep. */
const failures = [];
/** Lines of one failure that are said again. */
const SAID_AGAIN = 16;

function count(name, passed, failed, skipped = 0) {
  total.passed += passed;
  total.failed += failed;
  total.skipped += skipped;
  console.log(`   ${name}: ${passed} passed, ${failed} failed, ${skipped} skipped`);
}

/** A check is one test: it holds or it does not. */
async function check(name, command, args) {
  const { code } = await run(command, args);
  if (code !== 0) {
    failures.push(`lint: ${name}`);
  }
  count(name, code === 0 ? 1 : 0, code === 0 ? 0 : 1);
}

function firstLines(text) {
  const lines = text.split('\n').slice(0, SAID_AGAIN);
  return lines.map((line) => `   ${line}`.trimEnd()).join('\n');
}

/** Adds up every `N passed; N failed; N ignored` of cargo's test runner. */
async function rustTests() {
  const args = [
    'test',
    '--release',
    '--workspace',
    '--exclude',
    'tidemark-native',
    '--no-fail-fast',
  ];
  const { code, output } = await run('cargo', args, { capture: true });
  const lines = [...output.matchAll(/(\d+) passed; (\d+) failed; (\d+) ignored/g)];
  const sum = (index) => lines.reduce((all, line) => all + Number(line[index]), 0);
  const failed = sum(2);
  for (const [, name] of output.matchAll(/^test (\S+)(?: - .*)? \.\.\. FAILED$/gm)) {
    const why = output.split(`---- ${name} stdout ----\n`)[1] ?? '';
    failures.push(`rust: ${name}\n${firstLines(why)}`);
  }
  count('rust', sum(1), code !== 0 && failed === 0 ? 1 : failed, sum(3));
}

/**
 * The quick tiers of docs/reliability.md and docs/sql-correctness.md: harnesses in Rust by the name
 * of their binary, those that run the server by the path of their program.
 */
const QUICK_TIERS = [
  ['crash-sim', '--states', '20000'],
  ['faults', '--stride', '29'],
  ['bit-rot', '--flips', '5000'],
  ['recovery', '--mib', '128', '--partitions', '1000'],
  ['build/test/torture/kill9.js', '--rounds', '15'],
  ['build/test/torture/import-cuts.js', '--offsets', '200'],
  ['build/test/torture/disk-full.js', '--rounds', '5'],
  ['build/test/torture/room.js', '--cycles', '5'],
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
  ['build/test/correctness/spoiled-statements.js', '--statements', '10000'],
  ['build/test/correctness/plans.js', '--plans', '1'],
];

/** A harness ends with `N passed, N failed`; ending without that line is a failure. */
async function harnesses() {
  for (const [name, ...args] of QUICK_TIERS) {
    const program = name.endsWith('.js') ? [join(root, name)] : [harness, name];
    const all = [...program, ...args, '--seed', '1'];
    const began = Date.now();
    const { code, output } = await run(process.execPath, all, { capture: true });
    const line = output.match(/^(\d+) passed, (\d+) failed$/m);
    const failed = Number(line?.[2] ?? 0);
    if (code !== 0) {
      failures.push(`${name}: exit code ${code}\n${output.trimEnd().slice(-1500)}`);
    }
    count(name, Number(line?.[1] ?? 0), code !== 0 && failed === 0 ? 1 : failed);
    console.log(`   ${name}: ${Math.round((Date.now() - began) / 1000)} s`);
  }
  await kernelCounts();
}

/** Instructions of the kernels against those that were counted before. */
async function kernelCounts() {
  const script = join(root, 'scripts', 'kernel-counts.mjs');
  const { code, output } = await run(process.execPath, [script], { capture: true });
  const [, passed = 0, failed = 0, skipped = 0] =
    output.match(/^(\d+) passed, (\d+) failed, (\d+) skipped$/m)?.map(Number) ?? [];
  if (code !== 0) {
    failures.push(`kernel-counts\n${output.trimEnd().slice(-1500)}`);
  }
  count('kernel-counts', passed, code !== 0 && failed === 0 ? 1 : failed, skipped);
}

/** How long each file of tests takes, from when its first result comes to its last. */
class Durations {
  #files = new Map();

  /** Takes a piece of ava's TAP output; the name of a file is all but the last part of a title. */
  take(text) {
    for (const [, file] of text.matchAll(/^(?:not )?ok \d+ - (.+) › [^›]*$/gm)) {
      const now = Date.now();
      const { began = now } = this.#files.get(file) ?? {};
      this.#files.set(file, { began, took: now - began });
    }
  }

  longest(count) {
    const files = [...this.#files].sort(([, one], [, other]) => other.took - one.took);
    return files.slice(0, count).map(([file, { took }]) => `${file} ${Math.round(took / 1000)} s`);
  }
}

/** ava's TAP output: one `ok` or `not ok` per test. */
async function typescriptTests() {
  const durations = new Durations();
  const watch = (text) => durations.take(text);
  const { code, output } = await run('npx', ['ava', '--tap'], { capture: true, watch });
  const passed = [...output.matchAll(/^ok \d+(?!.*# SKIP)/gm)].length;
  const failed = [...output.matchAll(/^not ok \d+/gm)].length;
  const skipped = [...output.matchAll(/^ok \d+.*# SKIP/gm)].length;
  for (const [, name, why] of output.matchAll(/^not ok \d+ - (.*)\n((?: {2}.*\n)*)/gm)) {
    failures.push(`ts: ${name}\n${firstLines(why)}`);
  }
  console.log(`   longest: ${durations.longest(20).join(', ')}`);
  count('ts', passed, code !== 0 && failed === 0 ? 1 : failed, skipped);
}

async function lint() {
  await check('rustfmt', 'cargo', ['fmt', '--check']);
  const clippy = ['clippy', '--release', '--workspace', '--all-targets'];
  await check('clippy', 'cargo', [...clippy, '--', '-D', 'warnings']);
  await check('eslint', 'npx', ['eslint', '.']);
  await check('prettier', 'npx', ['prettier', '--check', '--log-level', 'warn', '.']);
  for (const script of ['tidy', 'check-layers', 'check-workflows']) {
    await check(script, process.execPath, [join(root, 'scripts', `${script}.mjs`)]);
  }
  await check('generated files', process.execPath, [
    join(root, 'scripts', 'generate.mjs'),
    '--check',
  ]);
}

const suites = { rust: rustTests, harness: harnesses, lint, ts: typescriptTests };
const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !(name in suites));
if (unknown.length > 0) {
  console.error(`unknown suite ${unknown.join(', ')}, expected ${Object.keys(suites).join(', ')}`);
  process.exit(2);
}

await buildAll();
await step('tools for the tests', setupTests);
for (const [name, suite] of Object.entries(suites)) {
  if (chosen.length === 0 || chosen.includes(name)) {
    await step(`tests: ${name}`, suite);
  }
}
if (failures.length > 0) {
  console.log(`\n== failed\n${failures.join('\n')}`);
}
console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;

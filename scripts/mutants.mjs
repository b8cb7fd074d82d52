// npm run mutants -- [--sample N] [--seed S]: changes one place of the commit, log, manifest or
// recovery code at a time, in a copy, and counts how many of N changes the tests and harnesses
// notice. A change that does not compile is not counted.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { root, run, targetDirectory } from './steps.mjs';

const GOAL_PERCENT = 90;
const FILES = [
  'bulk',
  'checkpoint',
  'log',
  'log_reader',
  'manifest',
  'recovery',
  'replay',
  'state',
  'storage',
];
/** What is replaced by what: comparisons turned, borders moved, steps left out. */
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
  // A step of the protocol that is not taken.
  [/^ +[a-z][\w.:&*]*\([^;=]*\)\??;$/g, ''],
];

const { values } = parseArgs({
  options: {
    sample: { type: 'string', default: '40' },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 1000)) },
  },
});
console.log(`mutants: seed ${values.seed}`);
let state = Number(values.seed) >>> 0;
/** Mulberry32. */
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
// The ordinary target folder: dependencies are the same, our own crates differ by their path.
const env = { SEED: '1' };
const steps = [
  ['test', '--release', '-p', 'tidemark-storage'],
  ['test', '--release', '-p', 'tidemark-testkit'],
  [
    'run',
    '--release',
    '-p',
    'tidemark-testkit',
    '--bin',
    'faults',
    '--',
    '--stride',
    '61',
    '--seed',
    '1',
  ],
];

/** `killed`, `alive`, or `unviable` when it does not compile. Ten minutes are a hang. */
async function trial() {
  for (const step of steps) {
    const { code, output } = await run('timeout', ['600', 'cargo', ...step], {
      quiet: true,
      env,
      cwd: copy,
    });
    if (code !== 0) {
      return /could not compile/.test(output) ? 'unviable' : 'killed';
    }
  }
  return 'alive';
}

const places = FILES.flatMap((name) => {
  const path = join('crates', 'storage', 'src', `${name}.rs`);
  if (!existsSync(join(root, path))) {
    return [];
  }
  const [text] = readFileSync(join(root, path), 'utf8').split('#[cfg(test)]');
  return text.split('\n').flatMap((line, index) => {
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
  });
});
console.log(`${places.length} places`);
if ((await trial()) !== 'alive') {
  console.log('the tests fail without a change\n0 passed, 1 failed');
  process.exit(1);
}
const counts = { killed: 0, alive: 0, unviable: 0 };
while (counts.killed + counts.alive < Number(values.sample) && places.length > 0) {
  const [place] = places.splice(Math.floor(random() * places.length), 1);
  const file = join(copy, place.path);
  const before = readFileSync(file, 'utf8');
  const lines = before.split('\n');
  const was = lines[place.line];
  lines[place.line] = place.text;
  writeFileSync(file, lines.join('\n'));
  const outcome = await trial();
  writeFileSync(file, before);
  counts[outcome] += 1;
  const to = place.text.trim() === '' ? 'nothing' : place.text.trim();
  console.log(`${outcome} ${place.path}:${place.line + 1}: ${was.trim()} -> ${to}`);
}
const share = (100 * counts.killed) / (counts.killed + counts.alive);
console.log(
  `${share.toFixed(1)} % killed, ${GOAL_PERCENT} % wanted, ${counts.unviable} did not compile`,
);
console.log(`${counts.killed} passed, ${counts.alive} failed`);
process.exitCode = share >= GOAL_PERCENT ? 0 : 1;

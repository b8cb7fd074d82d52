// Determines which lints, Rust packages and test files are affected by changes since the last
// upstream commit. A test file is affected if it imports a changed file, directly or indirectly. It
// also counts as affected if its path shares words with a changed file's path, because a test that
// starts the server depends on all of the server's files.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

import { root, script } from './steps.mjs';
import { nameOfTests, recordedSeconds } from './test-times.mjs';

/** Time budget for the selected test files, measured against their recorded durations. */
const BUDGET_SECONDS = 360;
/** Seconds assumed for a test file without a recorded time. */
const UNKNOWN_SECONDS = 3;
const TESTS = join(root, 'build', 'test');
/** Path words too general to indicate a subject. */
const PLAIN = new Set(
  'ts test tests src crates build console index main mod lib js rs tsx'.split(' '),
);
const IMPORTS = /\bfrom\s+'(\.[^']+)'|\bimport\s*\(?\s*'(\.[^']+)'/g;

function git(...args) {
  return execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

/** Returns the newest upstream commit, or the last commit if there is no upstream. */
function base() {
  try {
    return git('merge-base', 'HEAD', '@{upstream}').trim();
  } catch {
    return 'HEAD';
  }
}

function changedFiles() {
  const lines = [git('diff', '--name-only', base()), git('ls-files', '-o', '--exclude-standard')];
  return [
    ...new Set(
      lines
        .join('')
        .split('\n')
        .filter((name) => name !== ''),
    ),
  ];
}

function testFiles() {
  return readdirSync(TESTS, { recursive: true })
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => join(TESTS, name));
}

/** Returns a compiled file, followed by all its transitive imports. */
function closure(file, known) {
  const seen = new Set([file]);
  for (const one of seen) {
    if (!known.has(one)) {
      const text = existsSync(one) ? readFileSync(one, 'utf8') : '';
      const names = [...text.matchAll(IMPORTS)].map(([, from, lazily]) => from ?? lazily);
      known.set(
        one,
        names.map((name) => join(dirname(one), name)),
      );
    }
    known.get(one).forEach((next) => seen.add(next));
  }
  return seen;
}

function words(path) {
  const parts = path.replace(/\.\w+$/, '').split(/[\\/._-]+|(?<=[a-z])(?=[A-Z])/);
  return new Set(
    parts.map((part) => part.toLowerCase().replace(/s$/, '')).filter((part) => !PLAIN.has(part)),
  );
}

/** Returns a source file's compiled path. */
function compiled(path) {
  const console = path.replace(
    /^ts\/console\/(?:src|test)\//,
    (start) => `test/console/${start.slice(3)}`,
  );
  return join(root, 'build', console.replace(/\.tsx?$/, '.js'));
}

/** Returns the affected test files with their relevance, most relevant first. */
function touched(changes) {
  const built = new Set(changes.map(compiled));
  const topics = changes.filter((path) => /^(?:ts|test|crates|native)\//.test(path)).map(words);
  const known = new Map();
  const rated = testFiles().map((file) => {
    const own = words(relative(TESTS, file));
    const common = topics.map((topic) => [...topic].filter((word) => own.has(word)).length);
    const imports = closure(file, known);
    const isImported = [...built].some((one) => imports.has(one));
    const weight = built.has(file) ? 100 : (isImported ? 10 : 0) + Math.max(0, ...common);
    return { file: nameOfTests(file), weight };
  });
  return rated.filter(({ weight }) => weight > 0).sort((one, other) => other.weight - one.weight);
}

/** Selects test files until their total recorded duration reaches the budget. */
function withinBudget(rated) {
  const recorded = recordedSeconds('ts');
  const [taken, left] = [[], []];
  let seconds = 0;
  for (const { file } of rated) {
    const own = recorded.get(file) ?? UNKNOWN_SECONDS;
    const fits = seconds + own <= BUDGET_SECONDS;
    seconds += fits ? own : 0;
    (fits ? taken : left).push(file);
  }
  return { taken, left };
}

function has(changes, pattern) {
  return changes.some((path) => pattern.test(path));
}

function lintsOf(changes) {
  const present = changes.filter((path) => existsSync(join(root, path)));
  const scripts = present.filter(
    (path) => /\.(?:tsx?|m?js)$/.test(path) && !/generated/.test(path),
  );
  return [
    ...(scripts.length > 0 ? [['eslint', 'npx', ['eslint', '--no-warn-ignored', ...scripts]]] : []),
    ...(present.length > 0
      ? [
          [
            'prettier',
            'npx',
            ['prettier', '--check', '--ignore-unknown', '--log-level', 'warn', ...present],
          ],
        ]
      : []),
    ['tidy', ...script('tidy')],
    ...(has(changes, /^(?:crates|ts\/sql|test\/sql\/cases)\//)
      ? [['cases', ...script('cases')]]
      : []),
    ...(has(changes, /^(?:crates\/(?:ast|border|types)|ts|docs|test)\//)
      ? [['generated files', ...script('generate', '--check')]]
      : []),
    ['rustfmt', 'cargo', ['fmt', '--check']],
  ];
}

export async function changedTests() {
  const changes = changedFiles();
  const crates = new Set(changes.flatMap((path) => path.match(/^crates\/([^/]+)\//)?.[1] ?? []));
  const { taken, left } = withinBudget(touched(changes));
  return {
    packages: [...crates]
      .filter((name) => existsSync(join(root, 'crates', name)))
      .map((name) => `tidemark-${name}`),
    files: taken.map((file) => join('build', 'test', `${file}.test.js`)),
    lints: lintsOf(changes),
    left,
  };
}

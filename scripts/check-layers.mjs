// Verifies the table of allowed imports in docs/architecture.md. Rust crates are checked with
// `cargo metadata`, TypeScript folders with dependency-cruiser (.dependency-cruiser.mjs), and
// folders inside a crate with rust-folders.mjs.
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { cruise } from 'dependency-cruiser';

import rules from '../.dependency-cruiser.mjs';
import { rustFolderProblems } from './rust-folders.mjs';

const root = join(import.meta.dirname, '..');
const ARROW = ['arrow', 'arrow-array', 'arrow-buffer', 'arrow-data', 'arrow-schema'];
const DATAFUSION = ['datafusion', 'datafusion-expr'];

/** For each crate, the project's crates that it may use. */
const CRATES = {
  types: [],
  ast: [],
  border: [],
  vfs: ['types'],
  kernels: ['types'],
  storage: ['vfs', 'kernels', 'types'],
  catalog: ['storage', 'types'],
  ingest: ['border', 'types'],
  wire: ['kernels', 'types'],
  functions: ['ast', 'vfs', 'kernels', 'types'],
  operators: ['storage', 'catalog', 'kernels', 'types'],
  optimizer: ['operators', 'types'],
  planner: ['ast', 'border', 'catalog', 'functions', 'operators', 'optimizer', 'storage', 'types'],
  engine: [
    'types',
    'ast',
    'border',
    'vfs',
    'kernels',
    'storage',
    'catalog',
    'ingest',
    'wire',
    'functions',
    'operators',
    'optimizer',
    'planner',
  ],
  native: ['engine'],
};

/** For each large dependency, the crates that may use it. */
const RESERVED = {
  napi: ['native'],
  'napi-derive': ['native'],
  tokio: ['engine', 'native', 'operators', 'functions'],
  'libmimalloc-sys': ['vfs'],
  memmap2: ['vfs'],
  rustix: ['vfs'],
  ...Object.fromEntries(
    DATAFUSION.map((name) => [name, ['functions', 'operators', 'optimizer', 'planner', 'engine']]),
  ),
  ...Object.fromEntries(
    ARROW.map((name) => [
      name,
      [
        'types',
        'vfs',
        'storage',
        'catalog',
        'ingest',
        'wire',
        'functions',
        'operators',
        'optimizer',
        'planner',
        'engine',
      ],
    ]),
  ),
};

const problems = [...crateProblems(), ...rustFolderProblems(root), ...(await folderProblems())];
for (const problem of problems) {
  console.log(problem);
}
console.log(`layers: ${problems.length} problems`);
process.exitCode = problems.length === 0 ? 0 : 1;

function crateProblems() {
  const args = ['metadata', '--no-deps', '--format-version', '1', '--offline', '--locked'];
  const output = execFileSync('cargo', args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 });
  return JSON.parse(output).packages.flatMap(packageProblems);
}

function packageProblems({ name, dependencies }) {
  const crate = short(name);
  if (crate === 'testkit') {
    return [];
  }
  const allowed = CRATES[crate];
  if (allowed === undefined) {
    return [`crate ${crate} is not in the table of scripts/check-layers.mjs`];
  }
  return dependencies
    .filter(({ kind }) => kind === null)
    .flatMap((dependency) => dependencyProblems(crate, allowed, dependency.name));
}

function dependencyProblems(crate, allowed, name) {
  if (name.startsWith('tidemark-')) {
    return allowed.includes(short(name)) ? [] : [`crate ${crate} may not use ${short(name)}`];
  }
  const users = RESERVED[name];
  return users === undefined || users.includes(crate) ? [] : [`crate ${crate} may not use ${name}`];
}

function short(name) {
  return name.replace(/^tidemark-/, '');
}

async function folderProblems() {
  if (!existsSync(join(root, 'ts'))) {
    return [];
  }
  const { output } = await cruise(
    ['ts'],
    {
      ruleSet: rules,
      validate: true,
      baseDir: root,
      tsPreCompilationDeps: true,
      doNotFollow: { path: 'node_modules' },
      exclude: { path: '(^|/)(node_modules|build|native)/' },
      enhancedResolveOptions: {
        extensions: ['.ts', '.tsx', '.mts', '.js', '.mjs', '.json'],
        conditionNames: ['import', 'types', 'node', 'default'],
        exportsFields: ['exports'],
      },
    },
    { extensionAlias: { '.js': ['.ts', '.tsx', '.js'] } },
  );
  return output.summary.violations.map(
    ({ from, to, rule }) => `${from} may not import ${to} (${rule.name})`,
  );
}

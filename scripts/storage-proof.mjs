// Shared by `coverage` and `mutants`: the code where a defect could lose rows, and the tests and
// harnesses that check this code.
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { root, run } from './steps.mjs';

/** Commit, log, manifest and recovery, in `crates/storage/src`. */
export const FILES = [
  'compaction/background',
  'compaction/checkpoint',
  'disk/file',
  'log/mod',
  'log/queue',
  'log/reader',
  'log/record',
  'manifest',
  'mutation/bulk',
  'mutation/prepare',
  'recovery/mod',
  'recovery/replay',
  'segment/symbol_file',
  'state',
  'storage',
].map((name) => join('crates', 'storage', 'src', `${name}.rs`));

/** Returns a file without its unit tests. */
export function source(path) {
  return readFileSync(join(root, path), 'utf8').split('#[cfg(test)]')[0];
}

const PACKAGES = ['storage', 'testkit'];

/** Returns the names of a package's integration tests. */
export function testsOf(name) {
  const entries = readdirSync(join(root, 'crates', name, 'tests'));
  return entries.filter((file) => file.endsWith('.rs')).map((file) => basename(file, '.rs'));
}

/**
 * Builds the tests and the harnesses. Resolves to the programs, or to `null` and the compiler
 * output.
 *
 * Builds the whole workspace, which selects the usual features, so no dependency is recompiled.
 * tidemark-wire is excluded, because it has a test with the same name.
 */
export async function buildPrograms(env) {
  const names = PACKAGES.flatMap((name) => testsOf(name).map((test) => ['--test', test]));
  const args = [
    'test',
    '--locked',
    '--no-run',
    '--release',
    '--message-format=json',
    '--workspace',
  ];
  const without = ['--exclude', 'tidemark-native', '--exclude', 'tidemark-wire'];
  const all = [...args, ...without, ...names.flat()];
  const { code, output } = await run('cargo', all, { quiet: true, env });
  if (code !== 0) {
    return { programs: null, output };
  }
  const built = output
    .split('\n')
    .filter((line) => line.startsWith('{"reason":"compiler-artifact"'))
    .map((line) => JSON.parse(line))
    .filter(({ executable }) => executable !== null)
    .map(({ executable, target, package_id: id }) => ({
      path: executable,
      name: target.name,
      isTest: target.kind.includes('test'),
      cwd: join(root, 'crates', id.includes('testkit') ? 'testkit' : 'storage'),
    }));
  return { programs: built, output };
}

/** Returns the programs with their arguments, fastest to fail first. */
export function plan(programs, harnesses) {
  const tests = programs.filter(({ isTest, cwd }) => isTest && cwd.endsWith('storage'));
  const others = harnesses.flatMap(([name, ...args]) => {
    const found = programs.find((program) => program.name === name);
    return found === undefined ? [] : [{ ...found, args }];
  });
  return [...tests.map((test) => ({ ...test, args: ['--quiet'] })), ...others];
}

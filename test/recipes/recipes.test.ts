/**
 * The recipes in docs/contributing.md. The files that each recipe names must be exactly the source
 * files that mention the recipe's example. The route and configuration key recipes are also carried
 * out, by test/http/recipe.test.ts and test/config/recipe.test.ts.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test from 'ava';
import ts from 'typescript';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const SOURCES = ['crates', 'ts'].flatMap((folder) =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .map((file) => `${folder}/${file}`)
    .filter((file) => /^(ts\/(?!console\/).*|crates\/\w+\/src\/.*)(\.ts|\.rs)$/.test(file))
    .filter((file) => !file.includes('.generated.')),
);

interface Recipe {
  readonly promised: number;
  readonly example: string;
  readonly paths: readonly string[];
}

function recipe(name: string): Recipe {
  const text = readFileSync(join(ROOT, 'docs', 'contributing.md'), 'utf8');
  const [, body = ''] =
    new RegExp(`\\*\\*Add ${name}\\.\\*\\* ([^]*?)(?=\\n\\*\\*Add|$)`).exec(text) ?? [];
  const [, promised, example = ''] =
    /^Places to change: (\d+)\. Example: `([^`]+)`/.exec(body) ?? [];
  const paths = [...body.matchAll(/^\d+\. `([^`]+)`/gm)].map(([, path = '']) => path);
  return { promised: Number(promised), example, paths };
}

/** Returns the source files that mention the example, excluding tests. */
function namers(pattern: RegExp): string[] {
  return SOURCES.filter((file) => {
    const [code = ''] = readFileSync(join(ROOT, file), 'utf8').split('\n#[cfg(test)]\nmod test');
    return pattern.test(code.replaceAll(/^\s*(\/\/|\*).*$/gm, ''));
  });
}

/** Each recipe, with its maximum number of files and its search pattern. */
const RECIPES: readonly [name: string, most: number, named: (example: string) => RegExp][] = [
  ['a scalar function', 3, (name) => new RegExp(`"${name}"`)],
  ['an operator', 5, (name) => new RegExp(`\\b${name}(Node|Exec)\\b`)],
  ['a route', 2, (name) => new RegExp(`\\b${name}\\b`)],
  ['a configuration key', 1, (name) => new RegExp(`'${name.replaceAll('.', '\\.')}'`)],
  ['a statement', 5, (name) => new RegExp(`\\b${name}\\b`)],
];

for (const [name, maximum, named] of RECIPES) {
  test(`the recipe for ${name} lists at most ${maximum} files, and all of them exist`, (t) => {
    const { promised, example, paths } = recipe(name);
    t.is(paths.length, promised);
    t.true(promised <= maximum, `${promised} places`);
    t.deepEqual(
      paths.filter((path) => !existsSync(join(ROOT, path))),
      [],
      'paths that do not exist',
    );
    const found = namers(named(example));
    t.not(found.length, 0, `no source file mentions ${example}`);
    const isIn = (file: string, path: string): boolean =>
      file === path || file.startsWith(`${path}/`);
    t.deepEqual(
      found.filter((file) => !paths.some((path) => isIn(file, path))),
      [],
      `source files that mention ${example} but are not in the recipe`,
    );
  });
}

test('a new node kind does not compile until its executor is declared', (t) => {
  const config = ts.readConfigFile(join(ROOT, 'tsconfig.json'), (path) => ts.sys.readFile(path));
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, ROOT);
  const changed = new Map<string, string>();
  const location = join(ROOT, 'ts/session/dispatch.ts');
  const tree = join(ROOT, 'ts/sql/ast.generated.ts');
  const host = ts.createCompilerHost(options);
  const readFile = host.readFile.bind(host);
  host.readFile = (file) => changed.get(file) ?? readFile(file);
  host.getSourceFile = (file, version) => {
    const text = host.readFile(file);
    return text === undefined ? undefined : ts.createSourceFile(file, text, version);
  };
  const mistakes = (): string[] => {
    const program = ts.createProgram([location], { ...options, noEmit: true }, host);
    return program
      .getSemanticDiagnostics(program.getSourceFile(location))
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, ' '));
  };
  const node = 'export type Node =\n';
  const text = readFileSync(tree, 'utf8');
  t.true(text.includes(node));
  changed.set(tree, text.replace(node, `${node}  | { kind: 'Added' }\n`));
  t.regex(mistakes().join('\n'), /'Added' is missing/);
  const runners = readFileSync(location, 'utf8');
  changed.set(location, runners.replace("  Access: 'server',\n", "$&  Added: 'engine',\n"));
  t.deepEqual(mistakes(), []);
});

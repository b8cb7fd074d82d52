/**
 * Writes generated files: `ts/sql/ast.generated.ts` from the Rust types of `crates/ast`,
 * `ts/border/types.generated.ts` from those of `crates/border` and the codes of `crates/types`,
 * `docs/sql-coverage.md` from the table of the grammar in `test/sql/grammar` (built before), the
 * table of routes in `docs/http.md` from `ts/http/routes`, `docs/metrics.md` from what
 * `ts/observability` registers, `docs/clients.md` from what the tests of clients expect, `llms.txt`
 * from the titles and first sentences of the documents, the index of the decision records,
 * `docs/functions.md` from the functions of the built addon, the trees of the binder's test cases,
 * as the built parser makes them, and that parser as a script for the runner of the SQL cases.
 *
 * `npm run generate` rewrites; `npm run generate -- --check` fails when a committed file differs
 * from what its source says (continuous integration runs it).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';
import { rolldown } from 'rolldown';

import { decisionsDocument } from './decisions.mjs';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const isCheck = process.argv.includes('--check');

/** Runs the tests that render Rust types in TypeScript, and returns the texts by their names. */
function renderTypes() {
  const folder = mkdtempSync(path.join(tmpdir(), 'tidemark-generate-'));
  const crates = ['ast', 'border', 'types'].flatMap((name) => ['-p', `tidemark-${name}`]);
  try {
    const run = spawnSync(
      'cargo',
      ['test', '--release', '--quiet', '--lib', ...crates, 'typescript_twin'],
      { cwd: root, env: { ...process.env, TIDEMARK_TYPESCRIPT: folder }, encoding: 'utf8' },
    );
    if (run.error) throw run.error;
    if (run.status !== 0) {
      process.stderr.write(run.stdout + run.stderr);
      process.exit(run.status ?? 1);
    }
    const [tree, border, errors] = ['ast.ts', 'border.ts', 'errors.ts'].map((name) =>
      readFileSync(path.join(folder, name), 'utf8'),
    );
    return { tree, border: readOnly(`${border}\n${errors}`) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** What crosses the border is not changed on either side. */
function readOnly(types) {
  return types.replaceAll(/(?<=[{,] |\*\/\n)(?="?\w+"?\??: )/g, 'readonly ');
}

/** The compiled table of the grammar; what is built is what is documented. */
async function renderCoverage() {
  const built = path.join(root, 'build/test/sql/grammar/document.js');
  if (!existsSync(built)) {
    console.error('docs/sql-coverage.md needs the compiled tests: run `npx tsc -p .` first');
    process.exit(1);
  }
  const { coverageDocument } = await import(built);
  return coverageDocument();
}

/** The document with the table of the compiled routes. */
async function renderRoutes() {
  const built = path.join(root, 'build/test/http/document.js');
  if (!existsSync(built)) {
    console.error('docs/http.md needs the compiled tests: run `npx tsc -p .` first');
    process.exit(1);
  }
  const { httpDocument } = await import(built);
  return httpDocument(readFileSync(path.join(root, 'docs/http.md'), 'utf8'));
}

/** The table of clients, from what their tests expect. */
async function renderClients() {
  const built = path.join(root, 'build/test/clients/document.js');
  if (!existsSync(built)) {
    console.error('docs/clients.md needs the compiled tests: run `npx tsc -p .` first');
    process.exit(1);
  }
  const { clientsDocument } = await import(built);
  return clientsDocument();
}

/** The table of what the server registers. */
async function renderMetrics() {
  const built = path.join(root, 'build/test/observability/document.js');
  if (!existsSync(built)) {
    console.error('docs/metrics.md needs the compiled tests: run `npx tsc -p .` first');
    process.exit(1);
  }
  const { metricsDocument } = await import(built);
  return metricsDocument();
}

/** The documents, a line each. It comes last: the others are among them. */
async function renderLlms() {
  const built = path.join(root, 'build/ts/mcp/llms-text.js');
  if (!existsSync(built)) {
    console.error('llms.txt needs the compiled server: run `npx tsc -p .` first');
    process.exit(1);
  }
  const { llmsText } = await import(built);
  const { Documents } = await import(path.join(root, 'build/ts/mcp/documents.js'));
  return llmsText(new Documents(path.join(root, 'docs')).pages);
}

/** The list of functions as the built addon binds it, each example run. */
async function renderFunctions() {
  const built = path.join(root, 'build/test/sql/functions/document.js');
  if (!existsSync(built)) {
    console.error('docs/functions.md needs the compiled tests: run `npx tsc -p .` first');
    process.exit(1);
  }
  const { functionsDocument } = await import(built);
  return functionsDocument();
}

const CASES = 'crates/planner/tests/data/cases.json';

/** The statements of the binder's test cases with their trees, a line each. */
async function renderTrees() {
  const built = path.join(root, 'build/ts/sql/index.js');
  if (!existsSync(built)) {
    console.error(`the trees of ${CASES} need the compiled parser: run \`npx tsc -p .\` first`);
    process.exit(1);
  }
  const { parse } = await import(built);
  const { setup, cases } = JSON.parse(readFileSync(path.join(root, CASES), 'utf8'));
  const trees = cases.map((one) => ({ ...one, tree: parse(one.sql) }));
  const lines = [{ setup: setup.map((sql) => parse(sql)) }, ...trees];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

/** The parser as one script, which the runner of `test/sql/cases` interprets without Node.js. */
async function renderParser() {
  const input = path.join(root, 'build/ts/sql/index.js');
  const bundle = await rolldown({ cwd: root, input, platform: 'neutral' });
  const { output } = await bundle.generate({ format: 'iife', name: 'sql', minify: true });
  await bundle.close();
  return `${output[0].code.trim()}\n`;
}

/** Writes a file when it differs, or says so with `--check`; without a parser as it is. */
async function settle(name, parser, text, source) {
  const target = path.join(root, name);
  const options = (await resolveConfig(target)) ?? {};
  const formatted = parser === null ? text : await format(text, { ...options, parser });
  const present = existsSync(target) ? readFileSync(target, 'utf8') : '';
  if (formatted === present) {
    console.log(`${name} is current`);
  } else if (isCheck) {
    console.error(`${name} differs from ${source}: run \`npm run generate\``);
    process.exitCode = 1;
  } else {
    writeFileSync(target, formatted);
    console.log(`${name} written`);
  }
}

const { tree, border } = renderTypes();
await settle('ts/sql/ast.generated.ts', 'typescript', tree, 'crates/ast');
await settle('ts/border/types.generated.ts', 'typescript', border, 'crates/border');
await settle('docs/sql-coverage.md', 'markdown', await renderCoverage(), 'test/sql/grammar');
await settle('docs/http.md', null, await renderRoutes(), 'ts/http/routes');
await settle('docs/metrics.md', 'markdown', await renderMetrics(), 'ts/observability');
await settle('docs/clients.md', 'markdown', await renderClients(), 'test/clients');
await settle('llms.txt', null, await renderLlms(), 'the documents');
await settle('crates/planner/tests/data/trees.jsonl', null, await renderTrees(), CASES);
await settle('docs/decisions/README.md', null, decisionsDocument(), 'the decision records');
const PARSER = 'crates/engine/tests/cases/parser.generated.js';
await settle(PARSER, null, await renderParser(), 'ts/sql');
// Its test checks it, with the addon that it needs.
if (!isCheck) {
  await settle('docs/functions.md', 'markdown', await renderFunctions(), 'crates/functions');
}

/**
 * Writes the generated files: TypeScript types from the Rust types in `crates/ast`, `crates/border`
 * and `crates/types`; the generated documents; the index of the decision records; the syntax trees
 * of the binder's test cases; and the parser as a script for the SQL case runner.
 *
 * `npm run generate` rewrites them. `npm run generate -- --check`, which continuous integration
 * runs, fails if a committed file differs from its generated content.
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

/** Runs the tests that render Rust types as TypeScript, and returns the sources by name. */
function renderTypes() {
  const folder = mkdtempSync(path.join(tmpdir(), 'tidemark-generate-'));
  const crates = ['ast', 'border', 'types'].flatMap((name) => ['-p', `tidemark-${name}`]);
  try {
    const run = spawnSync(
      'cargo',
      ['test', '--locked', '--release', '--quiet', '--lib', ...crates, 'typescript_types'],
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

/**
 * Makes all properties read-only, because values that cross the native interface must not change.
 */
function readOnly(types) {
  return types.replaceAll(/(?<=[{,] |\*\/\n)(?="?\w+"?\??: )/g, 'readonly ');
}

/** Imports a module from the last build. `file` is the file that the module renders. */
async function built(module, file) {
  const found = path.join(root, module);
  if (!existsSync(found)) {
    console.error(`${file} needs the compiled project: run \`npx tsc -p .\` first`);
    process.exit(1);
  }
  return await import(found);
}

/**
 * Renders llms.txt, in which each line names a document. It is rendered last, because it lists the
 * other generated documents.
 */
async function renderLlms() {
  const { llmsText } = await built('build/ts/mcp/llms-text.js', 'llms.txt');
  const { Documents } = await built('build/ts/mcp/documents.js', 'llms.txt');
  return llmsText(new Documents(path.join(root, 'docs')).pages);
}

const CASES = 'crates/planner/tests/data/cases.json';

/** Returns the statements of the binder's test cases with their trees, one per line. */
async function renderTrees() {
  const { parse } = await built('build/ts/sql/index.js', CASES);
  const { setup, cases } = JSON.parse(readFileSync(path.join(root, CASES), 'utf8'));
  const trees = cases.map((one) => ({ ...one, tree: parse(one.sql) }));
  const lines = [{ setup: setup.map((sql) => parse(sql)) }, ...trees];
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}

/**
 * Returns the parser as a single script, which the `test/sql/cases` runner interprets without
 * Node.js.
 */
async function renderParser() {
  const input = path.join(root, 'build/ts/sql/index.js');
  const bundle = await rolldown({ cwd: root, input, platform: 'neutral' });
  const { output } = await bundle.generate({ format: 'iife', name: 'sql', minify: true });
  await bundle.close();
  return `${output[0].code.trim()}\n`;
}

/**
 * Writes a file if its content has changed; with `--check`, reports the difference instead. Without
 * a prettier parser, the content is not formatted.
 */
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
const { coverageDocument } = await built(
  'build/test/sql/grammar/document.js',
  'docs/sql-coverage.md',
);
await settle('docs/sql-coverage.md', 'markdown', coverageDocument(), 'test/sql/grammar');
const { metricsDocument } = await built('build/test/observability/document.js', 'docs/metrics.md');
await settle('docs/metrics.md', 'markdown', metricsDocument(), 'ts/observability');
const { alertRules } = await built('build/test/observability/alerts.js', 'the alert rules');
const ALERTS = 'monitoring/tidemark-alerts.yml';
await settle(ALERTS, 'yaml', alertRules(), 'test/observability/alerts.ts');
const { dashboard } = await built('build/test/observability/dashboard.js', 'the dashboard');
const DASHBOARD = 'monitoring/grafana-dashboard.json';
await settle(DASHBOARD, 'json', JSON.stringify(dashboard()), 'test/observability/dashboard.ts');
const { errorsDocument } = await built('build/test/documentation/errors.js', 'docs/errors.md');
await settle('docs/errors.md', 'markdown', errorsDocument(), 'test/documentation');
const { clientsDocument } = await built('build/test/clients/document.js', 'docs/clients.md');
await settle('docs/clients.md', 'markdown', clientsDocument(), 'test/clients');
const { httpDocument } = await built('build/test/http/document.js', 'docs/http.md');
const http = httpDocument(readFileSync(path.join(root, 'docs/http.md'), 'utf8'));
await settle('docs/http.md', null, http, 'ts/http/routes');
await settle('llms.txt', null, await renderLlms(), 'the documents');
await settle('crates/planner/tests/data/trees.jsonl', null, await renderTrees(), CASES);
await settle('docs/decisions/README.md', null, decisionsDocument(), 'the decision records');
const PARSER = 'crates/engine/tests/cases/parser.generated.js';
await settle(PARSER, null, await renderParser(), 'ts/sql');
// Skipped with `--check`, because rendering this document needs the addon. A separate test checks
// the document.
if (!isCheck) {
  const { functionsDocument } = await built(
    'build/test/sql/functions/document.js',
    'docs/functions.md',
  );
  await settle('docs/functions.md', 'markdown', await functionsDocument(), 'crates/functions');
}

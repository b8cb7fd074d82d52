/**
 * Writes generated sources: `ts/sql/ast.generated.ts` from the Rust types of `crates/ast`.
 *
 * `npm run generate` rewrites; `npm run generate -- --check` fails when the committed file differs
 * from what the Rust types say (continuous integration runs it).
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { format, resolveConfig } from 'prettier';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const target = path.join(root, 'ts/sql/ast.generated.ts');

/** Runs the test of crates/ast that renders its types, and returns the text. */
function renderTree() {
  const folder = mkdtempSync(path.join(tmpdir(), 'tidemark-generate-'));
  try {
    const file = path.join(folder, 'ast.ts');
    const run = spawnSync(
      'cargo',
      ['test', '--release', '--quiet', '-p', 'tidemark-ast', 'typescript_twin'],
      { cwd: root, env: { ...process.env, TIDEMARK_AST_FILE: file }, encoding: 'utf8' },
    );
    if (run.error) throw run.error;
    if (run.status !== 0) {
      process.stderr.write(run.stdout + run.stderr);
      process.exit(run.status ?? 1);
    }
    return readFileSync(file, 'utf8');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const options = (await resolveConfig(target)) ?? {};
const text = await format(renderTree(), { ...options, parser: 'typescript' });
let present = '';
try {
  present = readFileSync(target, 'utf8');
} catch (error) {
  if (error.code !== 'ENOENT') throw error;
}
if (text === present) {
  console.log('ts/sql/ast.generated.ts is current');
} else if (process.argv.includes('--check')) {
  console.error('ts/sql/ast.generated.ts differs from crates/ast: run `npm run generate`');
  process.exit(1);
} else {
  writeFileSync(target, text);
  console.log('ts/sql/ast.generated.ts written');
}

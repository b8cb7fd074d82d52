/**
 * Golden trees: `test/golden/ast/*.json`, each a list of statements with their syntax trees. A
 * change to the tree shows up in review as a change to these files. UPDATE_GOLDEN=1 rewrites them.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

import test from 'ava';

import { parse, type Tree } from '../../ts/sql/index.js';

const FOLDER = new URL('../../../test/golden/ast/', import.meta.url);
const update = process.env['UPDATE_GOLDEN'] === '1';

interface GoldenTree {
  readonly sql: string;
  readonly tree?: Tree;
}

/** Writes one node per line. */
function render(cases: readonly GoldenTree[]): string {
  const texts = cases.map(({ sql, tree }) => {
    const nodes = (tree?.nodes ?? []).map((node) => `    ${JSON.stringify(node)}`).join(',\n');
    const spans = JSON.stringify(tree?.spans.map(({ start, end }) => [start, end]));
    const head = `   "sql": ${JSON.stringify(sql)},\n   "spans": ${spans},`;
    return `  {\n${head}\n   "nodes": [\n${nodes}\n   ]\n  }`;
  });
  return `[\n${texts.join(',\n')}\n]\n`;
}

for (const name of readdirSync(FOLDER).filter((file) => file.endsWith('.json'))) {
  test(`syntax trees match ${name}`, (t) => {
    const path = new URL(name, FOLDER);
    const present = readFileSync(path, 'utf8');
    const cases = JSON.parse(present) as GoldenTree[];
    const current = render(cases.map(({ sql }) => ({ sql, tree: parse(sql) })));
    if (update) {
      writeFileSync(path, current);
    } else {
      t.is(current, present);
    }
    t.true(cases.length > 0);
  });
}

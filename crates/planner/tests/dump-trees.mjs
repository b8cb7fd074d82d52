// Writes the statement trees that `binding.rs` reads, from the parser's own build:
//   npx tsc -p . && node crates/planner/tests/dump-trees.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import { parse } from '../../../build/ts/sql/index.js';

const here = (name) => new URL(`data/${name}`, import.meta.url);
const cases = JSON.parse(readFileSync(here('cases.json'), 'utf8'));
const lines = [
  JSON.stringify({ setup: cases.setup.map((sql) => parse(sql)) }),
  ...cases.cases.map((one) => JSON.stringify({ ...one, tree: parse(one.sql) })),
];
writeFileSync(here('trees.jsonl'), `${lines.join('\n')}\n`);

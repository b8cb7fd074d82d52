/**
 * Statements of the grammar table and the golden cases with something spoiled: whatever comes,
 * it is a tree that prints back, or a syntax error at a place inside the text, and soon.
 * Prints its seed; SEED=n repeats a run, MUTATIONS=n sets their number.
 */
import test from 'ava';

import { parse, print, SyntaxError_ } from '../../ts/sql/index.js';
import { generator, spoiled } from './mutations.js';
import { shape } from './shape.js';
import { suiteSeed } from '../seed.js';

const seed = suiteSeed();
const count = Number(process.env['MUTATIONS'] ?? 10_000);

/** Longest time of one statement, generous for a machine that does other things as well. */
const LIMIT_MS = 2_000;

/** What is wrong with the parser's answer, `null` for a tree or an error at a place. */
function problemOf(text: string): string | null {
  let tree;
  try {
    tree = parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError_)) {
      return `threw ${String(error)}`;
    }
    const inside = error.start >= 0 && error.start <= error.end && error.start <= text.length;
    return inside && error.message !== '' ? null : `${error.start}..${error.end} ${error.message}`;
  }
  const printed = print(tree);
  try {
    const same = JSON.stringify(shape(parse(printed))) === JSON.stringify(shape(tree));
    return same ? null : `printed ${printed}`;
  } catch (error) {
    return `printed ${printed}: ${String(error)}`;
  }
}

test(`${count} spoiled statements give a tree or an error at a place`, (t) => {
  const below = generator(seed);
  let trees = 0;
  for (let run = 0; run < count; run += 1) {
    const text = spoiled(below);
    const started = performance.now();
    const problem = problemOf(text);
    if (problem !== null || performance.now() - started > LIMIT_MS) {
      t.fail(`SEED=${seed}, statement ${run}: ${JSON.stringify(text)}\n${problem ?? 'slow'}`);
    }
    trees += Number(problem === null);
  }
  t.is(trees, count);
});

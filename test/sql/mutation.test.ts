/**
 * Mutated statements from the grammar table and the golden cases. Each must promptly yield a tree
 * that can be printed back, or a syntax error with a position within the text. Prints its seed.
 * SEED=n repeats a run; MUTATIONS=n sets how many mutations are tried.
 */
import test from 'ava';

import { parse, print, SyntaxError_ } from '../../ts/sql/index.js';
import { generator, malformed } from './mutations.js';
import { shape } from './shape.js';
import { suiteSeed } from '../seed.js';

const seed = suiteSeed();
const count = Number(process.env['MUTATIONS'] ?? 10_000);

/** Time limit per statement in milliseconds, generous for a busy machine. */
const LIMIT_MS = 2_000;

/** Returns the problem with the parser's result; `null` for a tree or an error with a position. */
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

test(`${count} mutated statements return a tree or an error with a position`, (t) => {
  const below = generator(seed);
  let trees = 0;
  for (let run = 0; run < count; run += 1) {
    const text = malformed(below);
    const started = performance.now();
    const problem = problemOf(text);
    if (problem !== null || performance.now() - started > LIMIT_MS) {
      t.fail(`SEED=${seed}, statement ${run}: ${JSON.stringify(text)}\n${problem ?? 'slow'}`);
    }
    trees += Number(problem === null);
  }
  t.is(trees, count);
});

/** The parser against every golden statement. */
import test from 'ava';

import { parse, print, SyntaxError_ } from '../../ts/sql/index.js';
import { goldenStatements } from './golden-statements.js';
import { shape } from './shape.js';

/** The number of golden errors that the parser finds. The others require names and types. */
const REFUSED_BY_PARSER = 137;

const golden = goldenStatements();

test('every accepted golden statement is parsed', (t) => {
  t.true(golden.accepted.length > 1_200);
  for (const text of golden.accepted) {
    t.notThrows(() => parse(text), text);
  }
});

test('a syntax error has the same position as in QuestDB', (t) => {
  let found = 0;
  for (const { id, text, position, message } of golden.refused) {
    try {
      parse(text);
    } catch (error) {
      if (!(error instanceof SyntaxError_)) {
        throw error;
      }
      found += 1;
      t.is(error.start, position, `${id}: ${text} (expected ${message}, got ${error.message})`);
    }
  }
  t.true(found >= REFUSED_BY_PARSER, `only ${found} errors found`);
});

test('a printed statement is parsed to the same tree', (t) => {
  for (const text of golden.accepted) {
    const tree = parse(text);
    const printed = print(tree);
    t.deepEqual(shape(parse(printed)), shape(tree), `${text}\n${printed}`);
  }
});

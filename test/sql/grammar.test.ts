/** The grammar table: every item parses, prints back, and reports errors with a position. */
import test from 'ava';

import { parse, print, SyntaxError_ } from '../../ts/sql/index.js';
import { ITEMS, SECTIONS } from './grammar/index.js';
import { shape } from './shape.js';

/**
 * Number of items in each section of the language reference, plus ON CONFLICT in section 24 and all
 * of section 33.
 */
const SIZES = [
  22, 38, 30, 11, 16, 29, 18, 10, 6, 29, 11, 15, 6, 10, 7, 4, 7, 8, 23, 37, 6, 14, 18, 10, 11, 18,
  3, 8, 36, 17, 9, 15, 14,
];

test('every numbered grammar item exists', (t) => {
  t.deepEqual(
    SECTIONS.map(({ number, items }) => [number, items.length]),
    SIZES.map((size, index) => [index + 1, size]),
  );
  for (const { id, kind, statements, remark } of ITEMS) {
    t.true(statements.length > 0 || kind === 'rule', id);
    t.true(remark !== '' || (kind !== 'rule' && kind !== 'elsewhere'), id);
  }
});

test('statements of every grammar item parse and print to the same tree', (t) => {
  const problems: string[] = [];
  for (const { id, kind, statements } of ITEMS) {
    statements.forEach((text, index) => {
      let tree;
      try {
        tree = parse(text);
      } catch (error) {
        if (!(error instanceof SyntaxError_)) {
          throw error;
        }
        if (kind !== 'refused' || index < statements.length - 1) {
          problems.push(`${id} ${text}\n    ${error.start}: ${error.message}`);
        } else if (error.start < 0 || error.start > text.length) {
          problems.push(`${id} ${text}\n    position ${error.start}`);
        }
        return;
      }
      const printed = print(tree);
      try {
        t.deepEqual(shape(parse(printed)), shape(tree), `${id} ${text}\n${printed}`);
      } catch (error) {
        problems.push(`${id} ${text}\n    printed ${printed}\n    ${String(error)}`);
      }
    });
  }
  t.deepEqual(problems, []);
});

/**
 * Random texts: expressions survive printing, and nothing but a syntax error is ever thrown.
 * Prints its seed; SEED=n repeats a run.
 */
import test from 'ava';
import fc from 'fast-check';

import { expectedAt, parse, print, splitStatements, SyntaxError_ } from '../../ts/sql/index.js';
import { goldenStatements } from './golden-statements.js';
import { shape } from './shape.js';

const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
process.stdout.write(`SEED=${seed}\n`);

const RUNS = 2_000;

const BINARY = [
  '+',
  '-',
  '*',
  '/',
  '%',
  '&',
  '|',
  '^',
  '=',
  '!=',
  '<>',
  '<',
  '<=',
  '>',
  '>=',
  '~',
  '!~',
  '<<',
  '<<=',
  '>>',
  '>>=',
  '||',
  'AND',
  'OR',
  'LIKE',
  'NOT LIKE',
  'ILIKE',
  'IS DISTINCT FROM',
];

const { expression } = fc.letrec<{ expression: string; leaf: string }>((tie) => {
  const inner = tie('expression');
  return {
    leaf: fc.constantFrom(
      '1',
      '17L',
      '1.5',
      '3d',
      '12.5m',
      "'it''s'",
      'null',
      'true',
      'a',
      't.b',
      '"x y"',
      '$1',
      ':p',
      '@v',
      '#u33d',
      '0x1f',
      "timestamp '2024'",
      'now()',
      'count(*)',
      '[1, 2]',
      '1h',
    ),
    expression: fc.oneof(
      { maxDepth: 5, depthSize: 'medium' },
      tie('leaf'),
      fc.tuple(inner, fc.constantFrom(...BINARY), inner).map(([a, op, b]) => `(${a}) ${op} (${b})`),
      fc.tuple(inner, fc.constantFrom(...BINARY), inner).map(([a, op, b]) => `${a} ${op} ${b}`),
      fc.tuple(fc.constantFrom('-', '~', 'NOT ', '+'), inner).map(([op, a]) => `${op}(${a})`),
      inner.map((a) => `(${a})::double[]`),
      inner.map((a) => `cast(${a} AS geohash(5c))`),
      inner.map((a) => `(${a})[1, 2:]`),
      inner.map((a) => `(${a}) IS NOT NULL`),
      fc.tuple(inner, inner).map(([a, b]) => `f(${a}, ${b})`),
      fc.tuple(inner, inner).map(([a, b]) => `(${a}) NOT IN (${b}, 2)`),
      fc.tuple(inner, inner, inner).map(([a, b, c]) => `(${a}) BETWEEN (${b}) AND (${c})`),
      fc.tuple(inner, inner, inner).map(([a, b, c]) => `CASE WHEN ${a} THEN ${b} ELSE ${c} END`),
      inner.map((a) => `sum(${a}) OVER (PARTITION BY a ORDER BY b ROWS 2 PRECEDING)`),
      inner.map((a) => `(SELECT ${a} FROM t)`),
    ),
  };
});

test('expressions survive printing', (t) => {
  fc.assert(
    fc.property(expression, (text) => {
      let tree;
      try {
        tree = parse(`SELECT ${text} FROM t`);
      } catch (error) {
        // Without parentheses some mixtures are not expressions.
        if (error instanceof SyntaxError_) {
          return;
        }
        throw error;
      }
      const printed = print(tree);
      t.deepEqual(shape(parse(printed)), shape(tree), printed);
    }),
    { seed, numRuns: RUNS },
  );
});

/** Throws when anything but a tree or a syntax error comes out of a text. */
function survives(text: string): void {
  try {
    print(parse(text));
  } catch (error) {
    if (!(error instanceof SyntaxError_)) {
      throw error;
    }
    if (error.start < 0 || error.end < error.start || error.start > text.length) {
      throw new RangeError(`span ${error.start}..${error.end} of ${text.length}`);
    }
  }
  splitStatements(text);
  expectedAt(text, text.length);
}

test('random token soup gives a tree or a syntax error', (t) => {
  const words = [
    ...new Set(goldenStatements().accepted.flatMap((text) => text.match(/\w+|[^\s\w]+/g) ?? [])),
  ];
  const soup = fc.array(fc.constantFrom(...words, "'", '"', '\0', '😀'), { maxLength: 40 });
  fc.assert(
    fc.property(soup, (parts) => {
      survives(parts.join(' '));
    }),
    { seed, numRuns: RUNS * 2 },
  );
  t.pass();
});

test('statements cut anywhere or with a token lost give a tree or a syntax error', (t) => {
  const { accepted } = goldenStatements();
  const mutation = fc.tuple(fc.constantFrom(...accepted), fc.nat(), fc.nat(12));
  fc.assert(
    fc.property(mutation, ([text, at, length]) => {
      const start = at % (text.length + 1);
      survives(text.slice(0, start));
      survives(text.slice(0, start) + text.slice(start + length));
    }),
    { seed, numRuns: RUNS },
  );
  t.pass();
});

/**
 * Random text: expressions must survive printing, and the parser must throw only syntax errors.
 * Prints its seed; SEED=n repeats a run.
 */
import test from 'ava';
import fc from 'fast-check';

import { expectedAt, parse, print, SyntaxError_ } from '../../ts/sql/index.js';
import { splitStatements } from '../../ts/sql/lexer/split.js';
import { goldenStatements } from './golden-statements.js';
import { shape } from './shape.js';
import { suiteSeed } from '../seed.js';

const seed = suiteSeed();

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

test('printed expressions parse to the same tree', (t) => {
  fc.assert(
    fc.property(expression, (text) => {
      let tree;
      try {
        tree = parse(`SELECT ${text} FROM t`);
      } catch (error) {
        // Some combinations need parentheses to parse.
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

const small = fc.constantFrom('a', 'b + 1', "'x'", 'sum(d)', 't.c', '1h', '$1', 'NULL', '@v');
const list = fc.array(small, { minLength: 1, maxLength: 3 }).map((members) => members.join(', '));
const clause = (...texts: string[]): fc.Arbitrary<string> => fc.constantFrom('', ...texts);

const frame = clause(
  ' ROWS 2 PRECEDING',
  ' ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW',
  " RANGE BETWEEN '5' MINUTE PRECEDING AND CURRENT ROW",
  ' CUMULATIVE',
);
const window = fc
  .tuple(list, clause(' ORDER BY ts', ' ORDER BY ts DESC NULLS LAST'), frame)
  .map(([keys, order, range]) => `(PARTITION BY ${keys}${order}${range})`);

/** Nested queries with every clause. */
const { query } = fc.letrec<{ query: string; source: string }>((tie) => {
  const source = tie('source');
  const inner = tie('query');
  const join = fc.constantFrom(
    'JOIN r ON a = b',
    'LEFT JOIN r ON (a, b)',
    'CROSS JOIN r',
    'ASOF JOIN r ON (k) TOLERANCE 2s',
    'LT JOIN r AS q',
    'SPLICE JOIN r ON k',
    'NATURAL JOIN r',
    'WINDOW JOIN r ON (k) RANGE BETWEEN 1 hour PRECEDING AND CURRENT ROW EXCLUDE PREVAILING',
    'HORIZON JOIN r ON (k) RANGE FROM -1m TO 1m STEP 1s AS h',
    'HORIZON JOIN r ON (k) LIST (0, 1s) AS h',
    'CROSS JOIN UNNEST(r.a) WITH ORDINALITY u (e, n)',
    'CROSS JOIN LATERAL (SELECT 1 FROM r) AS x',
  );
  const sample = clause(
    ' SAMPLE BY 1h',
    " SAMPLE BY 5m FROM '2026' TO '2027' FILL(NULL, PREV, LINEAR, 0)",
    " SAMPLE BY 1d FILL(PREV(a)) ALIGN TO CALENDAR TIME ZONE 'UTC' WITH OFFSET '01:00'",
    ' SAMPLE BY 1d ALIGN TO FIRST OBSERVATION',
    ' SAMPLE BY 1d ROLLUP(a, b)',
    ' GROUP BY a, GROUPING SETS ((a), (b), ())',
    ' GROUP BY CUBE(a, b) HAVING sum(d) > 1',
    ' LATEST ON ts PARTITION BY a, b',
    ' LATEST BY a',
  );
  const limit = clause(' LIMIT 5', ' LIMIT -5, -1', ' LIMIT ,3', ' LIMIT 2 OFFSET 1', ' OFFSET 4');
  const head = clause('DISTINCT ', 'DISTINCT ON (a, b) ', '/*+ no_index */ ');
  const select = fc
    .tuple(head, list, window, source, clause(' WHERE a IN (1, 2)', ' WHERE b'), sample)
    .map(
      ([kind, items, over, from, where, grouping]) =>
        `SELECT ${kind}${items}, sum(d) OVER ${over} AS w FROM ${from}${where}${grouping}`,
    );
  const named = fc
    .tuple(list, window, source)
    .map(
      ([items, over, from]) => `SELECT ${items}, avg(d) OVER w FROM ${from} WINDOW w AS ${over}`,
    );
  const pivot = source.map(
    (from) => `SELECT * FROM ${from} PIVOT (sum(d) AS s FOR k IN ('a' AS x, 'b') GROUP BY c)`,
  );
  const operator = fc.constantFrom('UNION', 'UNION ALL', 'EXCEPT', 'INTERSECT ALL');
  return {
    source: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.constantFrom('t', 't AS x', '"two words"', 'long_sequence(5) y', 't TIMESTAMP(ts)', '@q'),
      inner.map((text) => `(${text}) AS z`),
      fc.tuple(source, join).map(([left, right]) => `${left} ${right}`),
      fc.tuple(source, source).map(([left, right]) => `${left}, ${right}`),
    ),
    query: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      fc.tuple(select, clause(' ORDER BY 1 DESC, a'), limit).map((parts) => parts.join('')),
      named,
      pivot,
      fc.tuple(inner, operator, inner).map(([a, op, b]) => `(${a}) ${op} (${b})`),
      fc.tuple(inner, inner).map(([a, b]) => `WITH c AS (${a}), e (f) AS (${b}) SELECT * FROM c`),
      inner.map(
        (text) => `DECLARE @v := 1h, OVERRIDABLE @q := (SELECT * FROM (${text})) SELECT @v FROM @q`,
      ),
      inner.map((text) => `(${text}) WHERE a > 1 LIMIT 3`),
      fc.tuple(source, sample).map(([from, grouping]) => from + grouping),
    ),
  };
});

test('printed queries parse to the same tree', (t) => {
  fc.assert(
    fc.property(query, (text) => {
      const tree = parse(text);
      const printed = print(tree);
      t.deepEqual(shape(parse(printed)), shape(tree), `${text}\n${printed}`);
    }),
    { seed, numRuns: RUNS },
  );
});

/** Throws unless parsing yields a tree or a syntax error. */
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

test('random tokens return a tree or a syntax error', (t) => {
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

test('truncated statements return a tree or a syntax error', (t) => {
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

/**
 * Statements with excessive depth, terms, text, rows or time. Each is a shape with a size, so a run
 * tries many instances of each kind.
 */
import type { Random } from './harness.js';

interface AdversarialShape {
  readonly name: string;
  /** Builds a statement of the given size; a thousand is large for every shape. */
  readonly statement: (size: number) => string;
}

const many = (size: number, one: (index: number) => string, between: string): string =>
  Array.from({ length: size }, (_, index) => one(index)).join(between);

/**
 * Statements that require the tables `big` (long k, long v, varchar s, timestamp ts) and `one`
 * (long k).
 */
export const ADVERSARIAL_SHAPES: readonly AdversarialShape[] = [
  {
    name: 'conjunction',
    statement: (n) => `SELECT count() FROM big WHERE ${many(n * 5, (i) => `v != ${i}`, ' AND ')}`,
  },
  { name: 'union', statement: (n) => many(n, (i) => `SELECT ${i} x`, ' UNION ') },
  { name: 'except', statement: (n) => many(n, (i) => `SELECT ${i} x`, ' EXCEPT ') },
  {
    name: 'nested sub-queries',
    statement: (n) => `SELECT * FROM ${'(SELECT * FROM '.repeat(n)}one${')'.repeat(n)}`,
  },
  {
    name: 'correlated sub-queries',
    statement: (n) => {
      const one = (i: number): string =>
        `(SELECT max(v) FROM big b${i} WHERE b${i}.k = one.k) c${i}`;
      return `SELECT ${many(Math.ceil(n / 50), one, ', ')} FROM one`;
    },
  },
  {
    name: 'many sort keys',
    statement: (n) => `SELECT k FROM one ORDER BY ${many(n, (i) => `k + ${i}`, ', ')}`,
  },
  {
    name: 'many windows',
    statement: (n) => `SELECT ${many(n, (i) => `sum(k + ${i}) OVER (ORDER BY k)`, ', ')} FROM one`,
  },
  {
    name: 'pivot',
    statement: (n) =>
      `SELECT * FROM big PIVOT (sum(v) FOR k IN (SELECT k FROM big LIMIT ${n * 5}))`,
  },
  {
    name: 'replacement that grows a string',
    statement: (n) =>
      `SELECT length(replace(rpad('a', ${n * 300}, 'a'), 'a', rpad('b', ${n * 300}, 'b')))`,
  },
  {
    name: 'concatenated strings',
    statement: (n) => `SELECT length(string_agg(rpad('x', ${n * 1000}, 'y'), ',')) FROM big`,
  },
  {
    name: 'sorted long strings',
    statement: (n) =>
      `SELECT count() FROM (SELECT rpad(s, ${n * 10}, 'z') t FROM big ORDER BY t LIMIT 100000)`,
  },
  {
    name: 'cross join',
    statement: () => 'SELECT count() FROM big a CROSS JOIN big b WHERE a.v + b.v = -1',
  },
  {
    name: 'join with fan-out',
    statement: () => 'SELECT count() FROM big a JOIN big b ON a.k % 10 = b.k % 10',
  },
  {
    name: 'one group per row',
    statement: () => 'SELECT count() FROM (SELECT s, v, k, count() FROM big GROUP BY s, v, k)',
  },
  {
    name: 'endless rows',
    statement: () => 'SELECT sum(x * x) FROM long_sequence(1000000000000)',
  },
  {
    name: 'one long gap',
    statement: (n) =>
      `SELECT ts, count() FROM big SAMPLE BY ${Math.max(1, 1000 - n)}u ` +
      "FROM '1970-01-01' TO '2200-01-01' FILL(NULL)",
  },
  {
    name: 'a slow pattern',
    statement: () => `SELECT count() FROM big WHERE s ~ '(t|e|x|)+(o|f)* (.|..|...)+ 9.*x'`,
  },
  {
    name: 'a file pattern',
    statement: (n) => `SELECT * FROM read_parquet('${'**/'.repeat(n * 10)}x')`,
  },
  { name: 'brackets', statement: (n) => `SELECT ${'('.repeat(n * 20)}1${')'.repeat(n * 20)}` },
  {
    name: 'update of every row',
    statement: (n) => `UPDATE big SET s = rpad('x', ${n * 100}, 'y') WHERE k > 0`,
  },
];

/**
 * Returns a random instance of a shape. Sizes are evenly distributed across orders of magnitude.
 */
export function adversarialStatement(shape: AdversarialShape, random: Random): string {
  return shape.statement(Math.ceil(10 ** (random.next() * 3.3)));
}

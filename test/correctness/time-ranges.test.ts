/**
 * Time types with different units and ranges: DATE, TIMESTAMP and TIMESTAMP_NS. Comparisons must
 * match an integer model. Storing or casting a time that is out of range must fail with an error
 * that names the value and the range.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec } from '../torture/client.js';

/** Nanoseconds per unit. */
const UNITS = { DATE: 1_000_000n, TIMESTAMP: 1_000n, TIMESTAMP_NS: 1n } as const;
type TimeType = keyof typeof UNITS;
const TYPES = Object.keys(UNITS) as TimeType[];

const LIMIT = 2n ** 63n - 1n;
const YEAR = 31_556_952n * 1_000_000_000n;

/**
 * Timestamps in nanoseconds: around 1970, at the ends of the nanosecond range, in 2500, and far
 * beyond.
 */
const TIMESTAMPS = [
  0n,
  -1_000_000n,
  1_700_000_000_123_000_000n,
  LIMIT,
  -LIMIT,
  530n * YEAR,
  -530n * YEAR,
  9_000n * YEAR,
  200_000n * YEAR,
  -200_000n * YEAR,
];

const OPERATORS: Readonly<Record<string, (a: bigint, b: bigint) => boolean>> = {
  '=': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
};

/** Returns the timestamps within the range of a type, in its unit. */
function valuesOf(type: TimeType): readonly bigint[] {
  const unit = UNITS[type];
  const values = TIMESTAMPS.map((timestamp) => timestamp / unit);
  return values.filter((value) => value <= LIMIT && value >= -LIMIT);
}

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  for (const type of TYPES) {
    const rows = valuesOf(type).map((value, at) => `SELECT ${at} id, (${value}L)::${type} t`);
    await exec(server, `CREATE TABLE ${type}_t AS (${rows.join(' UNION ALL ')})`);
  }
});

test.after.always(async () => {
  await server.stop();
});

/** Returns the pairs of values that satisfy an operator. */
function model(left: TimeType, right: TimeType, operator: string): readonly (readonly number[])[] {
  const holds = OPERATORS[operator];
  const pairs: number[][] = [];
  for (const [i, a] of valuesOf(left).entries()) {
    for (const [j, b] of valuesOf(right).entries()) {
      if (holds?.(a * UNITS[left], b * UNITS[right]) === true) {
        pairs.push([i, j]);
      }
    }
  }
  return pairs;
}

async function pairs(sql: string): Promise<unknown> {
  return (await exec(server, sql)).dataset;
}

for (const left of TYPES) {
  for (const right of TYPES) {
    test(`${left} and ${right} are compared exactly, as integers`, async (t) => {
      for (const operator of Object.keys(OPERATORS)) {
        const expected = model(left, right, operator);
        const from = `SELECT a.id, b.id FROM ${left}_t a`;
        const order = 'ORDER BY 1, 2';
        t.deepEqual(
          await pairs(`${from} CROSS JOIN ${right}_t b WHERE a.t ${operator} b.t ${order}`),
          expected,
          operator,
        );
        // A DATE cannot be joined with another time type.
        const isRefused = operator === '=' && left !== right && [left, right].includes('DATE');
        if (!isRefused) {
          const sql = `${from} JOIN ${right}_t b ON a.t ${operator} b.t ${order}`;
          t.deepEqual(await pairs(sql), expected, sql);
        }
        for (const [j, value] of valuesOf(right).entries()) {
          const of = (i: number): boolean => expected.some(([x, y]) => x === i && y === j);
          const ids = valuesOf(left).flatMap((_, i) => (of(i) ? [[i]] : []));
          const constant = `(${value}L)::${right}`;
          const sql = `SELECT id FROM ${left}_t WHERE t ${operator} ${constant} ORDER BY 1`;
          t.deepEqual(await pairs(sql), ids, sql);
        }
      }
      const equal = model(left, right, '=');
      const ids = [...new Set(equal.map(([i]) => i))].map((i) => [i]);
      const within = `SELECT id FROM ${left}_t WHERE t IN (SELECT t FROM ${right}_t) ORDER BY 1`;
      t.deepEqual(await pairs(within), ids, within);
    });
  }
}

test('time strings outside the nanosecond range compare correctly with any column', async (t) => {
  await exec(
    server,
    'CREATE TABLE ns AS (SELECT (x * 86400000000000)::timestamp_ns ts, x id ' +
      'FROM long_sequence(3)) TIMESTAMP(ts) PARTITION BY DAY',
  );
  for (const column of ['ts', "dateadd('d', 0, ts)"]) {
    for (const [condition, count] of [
      ["< '2500-01-01'", 3],
      ["> '2500-01-01'", 0],
      ["= '2500-01-01'", 0],
      ["!= '2500-01-01'", 3],
      ["< '2500-01-01'::timestamp", 3],
      ["> '2500-01-01'::timestamp", 0],
      ["> '1600-01-01'::timestamp", 3],
      ["< '1600-01-01'::date", 0],
      ["BETWEEN '1600-01-01' AND '2500-01-01'", 3],
      ["NOT BETWEEN '1600-01-01' AND '2500-01-01'", 0],
      ["IN ('2500-01-01', '2600-01-01')", 0],
    ] as const) {
      const sql = `SELECT count() FROM ns WHERE ${column} ${condition}`;
      t.deepEqual(await pairs(sql), [[count]], sql);
    }
  }
});

test('a time outside the range of the target type is an error, never null', async (t) => {
  await exec(server, 'CREATE TABLE stored (t TIMESTAMP_NS, m TIMESTAMP, d DATE)');
  await exec(server, "INSERT INTO stored VALUES ('2020-01-01', '2500-01-01', '2500-01-01')");
  const outOfRange =
    /inconvertible value: \d+ \[\w+ -> TIMESTAMP_NS\]: 2500-.* is out of range 1677-.* to 2262-/;
  for (const statement of [
    'SELECT m::timestamp_ns FROM stored',
    "SELECT '2500-01-01'::timestamp::timestamp_ns",
    'SELECT t FROM stored UNION ALL SELECT m FROM stored',
    'SELECT CASE WHEN t > 0 THEN m ELSE t END FROM stored',
    'SELECT coalesce(t, d) FROM stored',
    'UPDATE stored SET t = m',
    'INSERT INTO stored(t) SELECT m FROM stored',
    "INSERT INTO stored(t) VALUES ('2500-01-01'::timestamp)",
  ]) {
    const failure: unknown = await exec(server, statement).catch((error: unknown) => error);
    t.regex(String(failure), outOfRange, statement);
  }
  t.deepEqual(await pairs('SELECT t FROM stored'), [['2020-01-01T00:00:00.000000000Z']]);
});

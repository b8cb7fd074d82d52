/**
 * Equal values form a single key wherever values are used as keys; for example, the two zeros of
 * DOUBLE, FLOAT and DOUBLE[]. Each statement gives the same answer on columns with both zeros as on
 * columns with only one of them.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec } from '../torture/client.js';

/** A column's values by row, once with both zeros and once with only one of them. */
const COLUMNS: Readonly<Record<string, readonly [type: string, mixed: string, plain: string]>> = {
  DOUBLE: ['d', 'CASE x % 4 WHEN 0 THEN 0.0 WHEN 2 THEN -0.0 ELSE x % 4 END', ''],
  FLOAT: ['f', 'CASE x % 4 WHEN 0 THEN 0.0 WHEN 2 THEN -0.0 ELSE x % 4 END::float', ''],
};

/** Statements over a table `t` with a key `k` and a second table `u` with the same columns. */
const STATEMENTS = [
  'SELECT DISTINCT k FROM t ORDER BY k',
  'SELECT DISTINCT k, s FROM t ORDER BY k, s',
  'SELECT count(DISTINCT k) FROM t',
  'SELECT s, count(DISTINCT k) FROM t ORDER BY s',
  'SELECT count_distinct(k) FROM t',
  'SELECT s, count_distinct(k) FROM t ORDER BY s',
  'SELECT approx_count_distinct(k) FROM t',
  'SELECT sum(DISTINCT k) FROM t',
  'SELECT avg(DISTINCT k) FROM t',
  'SELECT mode(k) FROM t',
  'SELECT k, count() FROM t ORDER BY k',
  'SELECT k, s, count(), sum(id) FROM t ORDER BY k, s',
  'SELECT k, last(id) FROM t ORDER BY k',
  'SELECT k, count() FROM t GROUP BY ROLLUP(k) ORDER BY k, 2',
  'SELECT k, count() FROM t GROUP BY k HAVING count() > 3 ORDER BY k',
  'SELECT id, row_number() OVER (PARTITION BY k ORDER BY id) FROM t ORDER BY id',
  'SELECT id, count() OVER (PARTITION BY k) FROM t ORDER BY id',
  'SELECT id, sum(id) OVER (PARTITION BY k ORDER BY ts) FROM t ORDER BY id',
  'SELECT id, lag(id) OVER (PARTITION BY k, s ORDER BY ts) FROM t ORDER BY id',
  'SELECT id, rank() OVER (ORDER BY k) FROM t ORDER BY id',
  'SELECT id, rank() OVER (ORDER BY k DESC) FROM t ORDER BY id',
  'SELECT id, dense_rank() OVER (ORDER BY k) FROM t ORDER BY id',
  'SELECT id, rank() OVER (PARTITION BY s ORDER BY k) FROM t ORDER BY id',
  'SELECT DISTINCT ON (k) k, id FROM t ORDER BY k, id',
  'SELECT id FROM t ORDER BY k, id',
  'SELECT id FROM t ORDER BY k DESC, id DESC',
  'SELECT id FROM t ORDER BY k, id LIMIT 5',
  'SELECT id FROM t ORDER BY k DESC, id LIMIT 25',
  'SELECT id FROM t ORDER BY s, k, id LIMIT 9',
  'SELECT k FROM t UNION SELECT k FROM u ORDER BY k',
  'SELECT k FROM t WHERE id % 4 = 0 INTERSECT SELECT k FROM u WHERE id % 4 = 2 ORDER BY k',
  'SELECT k FROM t WHERE id % 4 = 0 EXCEPT SELECT k FROM u WHERE id % 4 = 2 ORDER BY k',
  'SELECT count() FROM t WHERE k IN (0.0)',
  'SELECT count() FROM t WHERE k IN (-0.0, 7)',
  'SELECT count() FROM t WHERE k = -0.0',
  'SELECT count() FROM t WHERE k < 0.0',
  'SELECT count() FROM t WHERE k BETWEEN 0.0 AND 0.0',
  'SELECT count() FROM t JOIN u ON t.k = u.k',
  'SELECT count() FROM t LEFT JOIN u ON t.k = u.k AND t.s = u.s',
  'SELECT count() FROM t FULL JOIN u ON t.k = u.k',
  'SELECT count() FROM t WHERE k IN (SELECT k FROM u WHERE id % 4 = 0)',
  'SELECT count() FROM t WHERE k NOT IN (SELECT k FROM u WHERE id % 4 = 0)',
  'SELECT count() FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.id % 4 = 2)',
  'SELECT id, (SELECT count() FROM u WHERE u.k = t.k) FROM t ORDER BY id',
  'SELECT t.id, u.id FROM t ASOF JOIN u ON (k) ORDER BY 1',
  'SELECT t.id, u.id FROM t LT JOIN u ON (k) ORDER BY 1',
  'SELECT t.id, u.id FROM t SPLICE JOIN u ON (k) ORDER BY 1, 2',
  'SELECT t.id, u.id FROM t ASOF JOIN u ON (k, s) ORDER BY 1',
  'SELECT t.id, sum(u.id) x FROM t WINDOW JOIN u ON t.k = u.k RANGE BETWEEN 3 seconds ' +
    'PRECEDING AND 3 seconds FOLLOWING ORDER BY 1',
  'SELECT k, id FROM t LATEST ON ts PARTITION BY k ORDER BY k',
  'SELECT k, s, id FROM t LATEST ON ts PARTITION BY k, s ORDER BY k, s',
  'SELECT ts, k, count() FROM t SAMPLE BY 10s ORDER BY ts, k',
  'SELECT ts, k, count() FROM t SAMPLE BY 5s FILL(NULL) ORDER BY ts, k',
  "SELECT * FROM t PIVOT (sum(id) FOR s IN ('a', 'b') GROUP BY k) ORDER BY k",
  'SELECT min(k), max(k) FROM t WHERE id % 2 = 0',
  'WITH RECURSIVE r(k) AS (SELECT k FROM t UNION SELECT k FROM u) SELECT count() FROM r',
];

let server: TestServer;

/** Builds a table for a column, with both zeros or with only one. */
function table(name: string, type: string, isMixed: boolean): string {
  return `${name}_${type.toLowerCase()}_${isMixed ? 'mixed' : 'plain'}`;
}

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  for (const [type, [, mixed]] of Object.entries(COLUMNS)) {
    for (const isMixed of [true, false]) {
      for (const [name, shift] of [
        ['t', 0],
        ['u', 1],
      ] as const) {
        const value = isMixed ? mixed : mixed.replaceAll('-0.0', '0.0');
        await exec(
          server,
          `CREATE TABLE ${table(name, type, isMixed)} AS ` +
            '(SELECT (x * 1000000)::timestamp ts, x id, ' +
            `CASE WHEN x % 3 = 0 THEN 'a' ELSE 'b' END::symbol s, ${value} k ` +
            `FROM (SELECT x + ${shift} x FROM long_sequence(40))) TIMESTAMP(ts) PARTITION BY DAY`,
        );
      }
    }
  }
});

test.after.always(async () => {
  await server.stop();
});

/** Returns the rows of a statement, or its error. */
async function answer(sql: string): Promise<unknown> {
  const rows = await exec(server, sql).then(
    ({ dataset }) => dataset,
    (error: unknown) => String(error),
  );
  return JSON.parse(JSON.stringify(rows).replaceAll('-0.0', '0.0'));
}

for (const type of Object.keys(COLUMNS)) {
  test(`0.0 and -0.0 of type ${type} form one key in every clause`, async (t) => {
    const wrong: string[] = [];
    for (const statement of STATEMENTS) {
      const of = (isMixed: boolean): string =>
        statement
          .replaceAll(/\bt\b(?!\()/g, table('t', type, isMixed))
          .replaceAll(/\bu\b/g, table('u', type, isMixed));
      const [mixed, plain] = [await answer(of(true)), await answer(of(false))];
      if (typeof plain === 'string') {
        wrong.push(`${statement}: ${plain}`);
      } else if (JSON.stringify(mixed) !== JSON.stringify(plain)) {
        wrong.push(`${statement}: ${JSON.stringify(mixed)} for ${JSON.stringify(plain)}`);
      }
    }
    t.deepEqual(wrong, []);
  });
}

test('0.0 and -0.0 form one key for DEDUP and ON CONFLICT', async (t) => {
  for (const type of Object.keys(COLUMNS)) {
    const name = `dedup_${type.toLowerCase()}`;
    await exec(
      server,
      `CREATE TABLE ${name} (ts TIMESTAMP, k ${type}, v INT) TIMESTAMP(ts) PARTITION BY DAY WAL ` +
        'DEDUP UPSERT KEYS(ts, k)',
    );
    await exec(server, `INSERT INTO ${name} VALUES (1, 0.0, 1), (1, -0.0, 2)`);
    await exec(server, `INSERT INTO ${name} VALUES (1, 0.0, 3), (2, -0.0, 4)`);
    await exec(server, `INSERT INTO ${name} VALUES (2, 0.0, 5), (2, 1.0, 6)`);
    const { dataset } = await exec(server, `SELECT v FROM ${name} ORDER BY ts, k`);
    t.deepEqual(dataset, [[3], [5], [6]], type);
    const rows = '(3, 0.0, 7), (3, -0.0, 8)';
    await exec(server, `INSERT INTO ${name} VALUES ${rows} ON CONFLICT (ts, k) DO NOTHING`);
    t.deepEqual((await exec(server, `SELECT v FROM ${name} WHERE ts = 3`)).dataset, [[7]], type);
  }
});

test('arrays with 0.0 and -0.0 are equal and form one key', async (t) => {
  const rows = '(SELECT ARRAY[0.0, 1.0] a UNION ALL SELECT ARRAY[-0.0, 1.0])';
  t.deepEqual(await answer(`SELECT count() FROM (SELECT DISTINCT a FROM ${rows})`), [[1]]);
});

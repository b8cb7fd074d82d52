/**
 * Sorting and ranking give the same answers for more rows than fit into the query memory as with
 * enough memory.
 */
import test from 'ava';

import { Tidemark } from '../correctness/databases.js';

const ROWS = 1_000_000;
const FILL =
  `INSERT INTO a SELECT timestamp_sequence('2024-01-01', 1000000) ts, ` +
  `CASE WHEN x % 10 = 0 THEN null ELSE 's' || (x % 7) END k, ` +
  `CASE WHEN x % 1000 = 0 THEN null ELSE (x * 7919 % ${ROWS}) / 4.0 END v, ` +
  `x * 7919 % 100 n FROM long_sequence(${ROWS})`;

const STATEMENTS: readonly string[] = [
  'SELECT v, n FROM a ORDER BY v LIMIT 700000, 700020',
  'SELECT v, n FROM a ORDER BY v DESC LIMIT 900000, 900020',
  'SELECT k, v, n FROM a ORDER BY k, v DESC LIMIT 500000, 500020',
  'SELECT k, n, v FROM a ORDER BY n DESC, k, v LIMIT 300000, 300020',
  'SELECT sum(r), max(r), sum(r * n) FROM ' +
    '(SELECT n, rank() OVER (PARTITION BY k ORDER BY n) r FROM a)',
  'SELECT sum(r), max(r), sum(r * n) FROM ' +
    '(SELECT n, dense_rank() OVER (ORDER BY n DESC) r FROM a)',
  'SELECT sum(r), sum(r * n) FROM ' +
    '(SELECT n, row_number() OVER (PARTITION BY k ORDER BY v, ts) r FROM a)',
  // The result rows are in time order.
  'SELECT ts, k, n, rank() OVER (PARTITION BY k ORDER BY v) r FROM a LIMIT 400000, 400020',
  'SELECT ts, n, rank() OVER (ORDER BY n) r FROM a LIMIT -20',
];

test('sorts and groups that exceed the query memory spill to files', async (t) => {
  const little = await Tidemark.start(['query.memory.limit=96M']);
  t.teardown(() => little.close());
  const enough = await Tidemark.start();
  t.teardown(() => enough.close());
  for (const server of [little, enough]) {
    await server.query(
      'CREATE TABLE a (ts TIMESTAMP, k SYMBOL, v DOUBLE, n LONG) TIMESTAMP(ts) PARTITION BY DAY',
    );
    await server.query(FILL);
  }
  for (const statement of STATEMENTS) {
    const { rows } = await little.query(statement);
    t.true(rows.length > 0, statement);
    t.deepEqual(rows, (await enough.query(statement)).rows, statement);
  }
});

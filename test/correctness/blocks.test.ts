/**
 * Numeric filters and LIMIT queries, which can skip blocks of a table. Each is compared with the
 * same query over computed columns, which cannot skip blocks. Covers files, updated cells, deleted
 * rows and late rows.
 */
import test from 'ava';

import { Tidemark } from './databases.js';

const COLUMNS = ['d', 'f', 'l', 'i', 's'] as const;
/** Enough rows for a segment file. */
const ROWS = 100_000;

const FILL =
  `INSERT INTO a SELECT timestamp_sequence('2024-01-01', 3000000) ts, ` +
  `CASE WHEN x % 97 = 0 THEN null ELSE x / 7.0 END d, (x / 7)::float f, ` +
  `CASE WHEN x % 89 = 0 THEN null ELSE x END l, (x % 20000)::int i, (x % 1000)::short s ` +
  `FROM long_sequence(${ROWS})`;

const CHANGES: readonly string[] = [
  FILL,
  'UPDATE a SET d = 1e9, l = -5 WHERE l = 31000',
  'UPDATE a SET i = null WHERE i < 10',
  'DELETE FROM a WHERE l > 49000 AND l < 49500',
  "INSERT INTO a VALUES ('2024-01-01T05:00:00', 123456.5, 3, 77777, 30000, 5)",
];

/** Conditions that are false for null, and a few that are true for null. */
const conditions = (column: string, value: string): readonly string[] => [
  ...['>', '>=', '<', '<=', '=', '<>'].map((operator) => `${column} ${operator} ${value}`),
  `${value} < ${column}`,
  `${column} BETWEEN ${value} AND ${value} + 3`,
  `${column} > ${value} AND d < 7000`,
  `NOT ${column} > ${value}`,
];

test('skipped storage blocks contain no matching rows', async (t) => {
  const server = await Tidemark.start();
  t.teardown(() => server.close());
  await server.query(
    'CREATE TABLE a (ts TIMESTAMP, d DOUBLE, f FLOAT, l LONG, i INT, s SHORT) ' +
      'TIMESTAMP(ts) PARTITION BY DAY',
  );
  let compared = 0;
  for (const change of CHANGES) {
    await server.query(change);
    for (const column of COLUMNS) {
      for (const value of ['-5', '0', '990', '19995', '49990', '1000000000']) {
        for (const condition of conditions(column, value)) {
          // Runs twice, because the block statistics are collected by the first run.
          const counted = `SELECT count(), sum(l), sum(i) FROM a WHERE ${condition}`;
          const first = await server.query(counted);
          const again = await server.query(counted);
          const plain = condition.replaceAll(column, `coalesce(${column}, ${column})`);
          const expected = await server.query(
            `SELECT count(), sum(l), sum(i) FROM a WHERE ${plain}`,
          );
          t.deepEqual(first.rows, expected.rows, condition);
          t.deepEqual(again.rows, expected.rows, condition);
          compared += 1;
        }
      }
      for (const order of [column, `${column} DESC`, `${column}, ts DESC`, `${column} DESC, l`]) {
        for (const limit of ['0', '1', '7', '3000', '20, 25', '60000, 60010']) {
          const computed = order.replace(column, `coalesce(${column}, ${column})`);
          const of = (by: string): string =>
            `SELECT ${column} FROM (SELECT * FROM a WHERE 1 = 1) ORDER BY ${by} LIMIT ${limit}`;
          const found = await server.query(of(order));
          t.deepEqual(found.rows, (await server.query(of(computed))).rows, `${order} ${limit}`);
          compared += 1;
        }
      }
    }
  }
  t.true(compared > 1_000);
});

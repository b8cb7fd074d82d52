/**
 * Parquet partitions give the same answers as native partitions, both on the first read and once
 * decoded.
 */
import test from 'ava';

import { run, withDatabase } from '../border/database.js';

const QUERIES = [
  'SELECT ts, d FROM t ORDER BY d DESC LIMIT 7',
  'SELECT ts, d FROM t ORDER BY d LIMIT 7',
  'SELECT count(), sum(x) FROM t WHERE d > 96990',
  'SELECT count(), sum(x) FROM t WHERE d < 3 OR d = 500',
  'SELECT s, count(), max(d) FROM t GROUP BY s ORDER BY s',
  'SELECT ts, s, sum(x) FROM t SAMPLE BY 6h',
];

const CHANGES = [
  "UPDATE t SET d = d + 1000000 WHERE ts > '2024-01-02' AND x % 20000 = 0",
  'DELETE FROM t WHERE d > 96000 AND x % 3 = 0',
  "INSERT INTO t VALUES ('2024-01-01T12:00:00.000001', -1, 99999999, 'new'), " +
    "('2024-01-02', 0, -5, null)",
  "UPDATE t SET s = 'other' WHERE x % 10000 = 1",
];

test('Parquet and native partitions return the same rows after any write', async (t) => {
  await withDatabase(async (database) => {
    for (const name of ['t', 'p']) {
      await run(
        database,
        `CREATE TABLE ${name} AS (SELECT dateadd('s', (x * 4)::int, '2024-01-01') ts, x, ` +
          "(x * 7919 % 96997)::double d, (CASE WHEN x % 11 = 0 THEN null ELSE 's' || x % 7 END)" +
          '::symbol s FROM long_sequence(90000)) TIMESTAMP(ts) PARTITION BY DAY',
      );
    }
    const convert = "ALTER TABLE p CONVERT PARTITION TO PARQUET WHERE ts > '2000-01-01'";
    await run(database, convert);
    const ofParquet = (text: string): string => text.replace(/\bt\b(?=( |$))/, 'p');
    const compare = async (step: string): Promise<void> => {
      for (const query of QUERIES) {
        const expected = await run(database, query);
        for (let again = 0; again < 3; again += 1) {
          t.is(await run(database, ofParquet(query)), expected, `${step}: ${query}`);
        }
      }
    };
    await compare('converted');
    for (const change of CHANGES) {
      await run(database, change);
      await run(database, ofParquet(change));
      await compare(change);
    }
    await run(database, convert);
    await compare('converted again');
  });
});

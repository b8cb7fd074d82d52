/** Statements that once gave wrong answers, found by the programs in this folder. */
import test from 'ava';

import type { Answer } from './databases.js';
import { Tidemark } from './databases.js';

interface Case {
  readonly title: string;
  readonly setup: readonly string[];
  readonly sql: string;
  readonly rows: Answer['rows'];
}

const CASES: readonly Case[] = [
  {
    title: 'count(DISTINCT x) grouped by a symbol over no rows returns no rows',
    setup: ['CREATE TABLE a (s SYMBOL, v VARCHAR)', "INSERT INTO a VALUES ('x', 'y')"],
    sql: 'SELECT s, count(DISTINCT v) FROM a WHERE s <> s GROUP BY s',
    rows: [],
  },
  {
    title: 'partitioned and unpartitioned windows can be combined over filtered rows',
    setup: ['CREATE TABLE a (id LONG, d DOUBLE)', 'INSERT INTO a VALUES (2, 2), (1, 1), (3, 9)'],
    sql:
      'SELECT id, lag(id) OVER (ORDER BY id) l, sum(d) OVER () s, ' +
      'percent_rank() OVER (PARTITION BY id ORDER BY id) p FROM a WHERE d < 5 ORDER BY id',
    rows: [
      [1, null, 3, 0],
      [2, 1, 3, 0],
    ],
  },
  {
    title: 'a condition on ROLLUP also filters the totals',
    setup: ['CREATE TABLE a (i INT)', 'INSERT INTO a VALUES (1), (2), (2), (3)'],
    sql: 'SELECT * FROM (SELECT i, count() n FROM a GROUP BY ROLLUP(i)) WHERE i = 2',
    rows: [[2, 2]],
  },
  {
    title: 'HAVING on ROLLUP also filters the totals',
    setup: ['CREATE TABLE a (i INT)', 'INSERT INTO a VALUES (1), (2), (2), (3)'],
    sql: 'SELECT i, count() n FROM a GROUP BY ROLLUP(i) HAVING i > 2',
    rows: [[3, 1]],
  },
  {
    title: 'a condition on a constant also filters a total',
    setup: ['CREATE TABLE a (i INT)', 'INSERT INTO a VALUES (1), (2)'],
    sql: 'SELECT * FROM (SELECT 5 x, count() n FROM a) WHERE x = 6',
    rows: [],
  },
  {
    title: 'ORDER BY sorts a count over a moving window frame',
    setup: [
      'CREATE TABLE a (k SYMBOL, i INT)',
      "INSERT INTO a VALUES ('a', 1), ('b', 2), ('a', 3), ('b', 4)",
    ],
    sql:
      'SELECT c FROM (SELECT count() OVER ' +
      '(PARTITION BY k ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) c FROM a) ORDER BY c',
    rows: [[1], [1], [2], [2]],
  },
  {
    title: 'ORDER BY sorts the maximum of a moving frame over descending values',
    setup: ['CREATE TABLE a (i LONG)', 'INSERT INTO a VALUES (1), (2), (3), (4)'],
    sql:
      'SELECT m FROM (SELECT max(i) OVER ' +
      '(ORDER BY i DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) m FROM a) ORDER BY m',
    rows: [[2], [3], [4], [4]],
  },
  {
    title: 'ORDER BY sorts a union by time above an unordered window',
    setup: [
      'CREATE TABLE a (ts TIMESTAMP, i INT) TIMESTAMP(ts) PARTITION BY DAY',
      "INSERT INTO a VALUES ('2024-01-01', 1), ('2024-01-03', 3)",
      'CREATE TABLE b (ts TIMESTAMP, i INT) TIMESTAMP(ts) PARTITION BY DAY',
      "INSERT INTO b VALUES ('2024-01-02', 2), ('2024-01-04', 4)",
    ],
    sql:
      'SELECT i FROM (SELECT ts, i, row_number() OVER () n FROM ' +
      '(SELECT * FROM a UNION ALL SELECT * FROM b)) ORDER BY ts',
    rows: [[1], [2], [3], [4]],
  },
  ...['ASOF', 'LT'].map((join) => ({
    title: `${join} JOIN works when the table's parts and segments end at the same row`,
    setup: [
      'CREATE TABLE a (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
      "INSERT INTO a VALUES ('2024-01-01T06:00:00')",
      "CREATE TABLE b AS (SELECT timestamp_sequence('2024-01-01', 250000) ts, x " +
        'FROM long_sequence(1382400)) TIMESTAMP(ts) PARTITION BY DAY',
    ],
    sql: `SELECT b.x FROM a ${join} JOIN b`,
    rows: [[join === 'LT' ? 86400 : 86401]],
  })),
];

let tidemark: Tidemark;
test.before(async () => {
  tidemark = await Tidemark.start();
});
test.after.always(() => tidemark.close());

for (const { title, setup, sql, rows } of CASES) {
  test.serial(title, async (t) => {
    for (const text of ['DROP ALL TABLES', ...setup]) {
      await tidemark.query(text);
    }
    t.deepEqual((await tidemark.query(sql)).rows, rows);
  });
}

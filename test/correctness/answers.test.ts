/** Statements that once were answered wrongly, found by the programs beside this file. */
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
    title: 'count(DISTINCT x) by a symbol over no rows',
    setup: ['CREATE TABLE a (s SYMBOL, v VARCHAR)', "INSERT INTO a VALUES ('x', 'y')"],
    sql: 'SELECT s, count(DISTINCT v) FROM a WHERE s <> s GROUP BY s',
    rows: [],
  },
  {
    title: 'a window by its own key above one over all filtered rows',
    setup: ['CREATE TABLE a (id LONG, d DOUBLE)', 'INSERT INTO a VALUES (2, 2), (1, 1), (3, 9)'],
    sql:
      'SELECT id, lag(id) OVER (ORDER BY id) l, sum(d) OVER () s, ' +
      'percent_rank() OVER (PARTITION BY id ORDER BY id) p FROM a WHERE d < 5 ORDER BY id',
    rows: [
      [1, null, 3, 0],
      [2, 1, 3, 0],
    ],
  },
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

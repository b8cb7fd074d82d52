/** Intentional differences from QuestDB: docs/dialect-differences.md. */
import test from 'ava';

import { startTestServer } from '../golden/server.js';

type Rows = readonly (readonly unknown[])[];

const SETUP = [
  'CREATE TABLE l (ts TIMESTAMP, k SYMBOL, i INT) TIMESTAMP(ts) PARTITION BY DAY',
  'CREATE TABLE r (ts TIMESTAMP, k SYMBOL, j INT) TIMESTAMP(ts) PARTITION BY DAY',
  "INSERT INTO l VALUES ('2026-02-01T06:00:00Z', 'a', 1), ('2026-02-02T07:00:00Z', 'b', 2)",
  "INSERT INTO r VALUES ('2026-02-01T06:00:00Z', 'b', 10), ('2026-02-02T09:00:00Z', 'a', 20)",
];

const CASES: readonly (readonly [sql: string, rows: Rows])[] = [
  ["SELECT '2024-01-02T03:04:05.678901Z'::timestamp::varchar", [['2024-01-02T03:04:05.678901Z']]],
  [
    "SELECT '2024-01-02T03:04:05.678901234Z'::timestamp_ns::symbol",
    [['2024-01-02T03:04:05.678901234Z']],
  ],
  ['SELECT (-9223372036854775807L)::timestamp', [['-290308-12-21T19:59:05.224193Z']]],
  ["SELECT coalesce(null, 'x')", [['x']]],
  ["SELECT ltrim('  a'), rtrim('a  ')", [['a', 'a']]],
  ['SELECT 1 WHERE 1 = 1', [[1]]],
  ['SELECT 1 WHERE 1 = 2', []],
  [
    'SELECT l.i, r.j FROM l SPLICE JOIN r ON (k) ORDER BY 1, 2',
    [
      [1, null],
      [2, 10],
      [null, 10],
      [1, 20],
    ],
  ],
  ["SELECT i FROM l WHERE ts IN '[2026-02]T06:00;2h'", [[1], [2]]],
  [
    'SELECT l.i, q.j FROM l, r q WHERE l.k = q.k ORDER BY 1',
    [
      [1, 20],
      [2, 10],
    ],
  ],
  ['SELECT DISTINCT count() c FROM l SAMPLE BY 1d', [[1]]],
];

test('each recorded decision is implemented', async (t) => {
  const server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  const query = async (
    sql: string,
  ): Promise<{ dataset?: Rows; error?: string; position?: number }> =>
    (await (await fetch(`${server.url}/exec?query=${encodeURIComponent(sql)}`)).json()) as {
      dataset?: Rows;
      error?: string;
      position?: number;
    };
  try {
    for (const sql of SETUP) {
      t.is((await query(sql)).error, undefined, sql);
    }
    for (const [sql, rows] of CASES) {
      const sorted = (list: Rows): string[] => list.map((row) => JSON.stringify(row)).sort();
      t.deepEqual(sorted((await query(sql)).dataset ?? []), sorted(rows), sql);
    }
    const few = 'SELECT ts, sum(i), max(i), min(i) FROM l SAMPLE BY 1h FILL(0, 1)';
    t.is((await query(few)).position, few.indexOf('1)'), 'the position is within the text');
  } finally {
    await server.stop();
  }
});

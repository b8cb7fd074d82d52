/** Statements about time and numbers that once differed from QuestDB or gave wrong results. */
import test from 'ava';

import { type Answer, Tidemark } from './databases.js';

const SETUP: readonly string[] = [
  'CREATE TABLE x (ts TIMESTAMP, k SYMBOL, v VARCHAR, i INT, d DOUBLE) ' +
    'TIMESTAMP(ts) PARTITION BY DAY',
  "INSERT INTO x VALUES ('2024-03-30T10:00:00','a','p',1,1.5), " +
    "('2024-03-30T23:30:00','b','q',2,2.5)," +
    " ('2024-03-31T10:00:00','a','q',2,3.5), ('2024-04-01T22:30:00','b','p',3,4.5)",
  'CREATE TABLE big (i INT, l LONG)',
  'INSERT INTO big VALUES (2147483647, 5)',
  'CREATE TABLE us (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY',
  "INSERT INTO us VALUES ('2024-01-01T00:00:05.000000')",
  'CREATE TABLE ns (ts TIMESTAMP_NS, p DOUBLE) TIMESTAMP(ts) PARTITION BY DAY',
  "INSERT INTO ns VALUES ('2024-01-01T00:00:04.000000000',1.0)," +
    " ('2024-01-01T00:00:05.000000999',2.0)",
];

const day = (text: string): string => `${text}:00:00.000000Z`;

/** Statements and their expected rows. */
const CASES: readonly (readonly [sql: string, rows: Answer['rows']])[] = [
  // Constant expressions are promoted beyond INT, and so are the constants in a chain of
  // operations. An expression that combines a column with a single constant is not promoted.
  [
    'SELECT 24 * 3600 * 1000000, 65536 * 65536, 5 - -2147483647',
    [[86400000000, 4294967296, 2147483652]],
  ],
  ['SELECT typeOf(24 * 3600 * 1000000), typeOf(1 + 1), 2147483647 + 1', [['LONG', 'INT', null]]],
  [
    'SELECT i * 3600 * 1000000, 3600 * (1000000 * i), i + 2147483647 + 5 FROM big',
    [[7730941129200000000, 7730941129200000000, 4294967299]],
  ],
  [
    'SELECT typeOf(i * 2), typeOf(i + i), typeOf(i * 65536 * 65536) FROM big',
    [['INT', 'INT', 'LONG']],
  ],
  ['SELECT sum(i + i), avg(i * 2), max(i * 2) FROM big', [[4294967294, 4294967294, -2]]],
  ['SELECT (i + i) + l, (i * i) + l FROM big', [[4294967299, 4611686014132420614]]],
  ['SELECT count() FROM big WHERE i + i = 4294967294 AND i + 1 > 0 AND l < i * 2', [[1]]],
  ['SELECT count() FROM big WHERE i + i IN (4294967294, 3) AND NOT i + i BETWEEN 0 AND 4', [[1]]],
  [
    "SELECT count() FROM x WHERE ts > '2024-04-01T23:00:00'::timestamp - 3 * 24 * 3600 * 1000000",
    [[4]],
  ],
  // One string in parentheses is an interval; several strings are timestamps.
  ["SELECT count() FROM x WHERE ts IN ('2024-03-30')", [[2]]],
  ["SELECT count() FROM x WHERE ts NOT IN ('2024-03-30')", [[2]]],
  ["SELECT count() FROM x WHERE ts IN ('2024-03-30', '2024-03-31')", [[0]]],
  ["SELECT count() FROM x WHERE ts != '2024-03-30T10:00:00' AND ts != '2024-03-30'", [[3]]],
  // FROM and TO without rows, in a zone, and with an offset.
  [
    "SELECT ts, count() FROM x WHERE k = 'none' SAMPLE BY 1d FROM '2024-03-28' TO " +
      "'2024-03-30' FILL(0)",
    [
      [day('2024-03-28T00'), 0],
      [day('2024-03-29T00'), 0],
    ],
  ],
  [
    'SELECT sum(d), min(v), max(k) FROM x WHERE 1 = 0 SAMPLE BY 1d FROM ' +
      "'2024-03-28' TO '2024-03-29' FILL(PREV)",
    [[null, null, null]],
  ],
  [
    "SELECT ts, k, count() FROM x WHERE k = 'none' SAMPLE BY 1d FROM '2024-03-28' " +
      "TO '2024-03-30' FILL(0)",
    [],
  ],
  [
    "SELECT ts, count() FROM x SAMPLE BY 1d FROM '2024-03-30' ALIGN TO CALENDAR " +
      "TIME ZONE 'Europe/Berlin'",
    [
      [day('2024-03-29T23'), 1],
      [day('2024-03-30T23'), 2],
      [day('2024-04-01T22'), 1],
    ],
  ],
  [
    "SELECT ts, count() FROM x SAMPLE BY 1d FROM '2024-03-30' TO '2024-04-03' " +
      "FILL(0) ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin'",
    [
      [day('2024-03-29T23'), 1],
      [day('2024-03-30T23'), 2],
      [day('2024-03-31T22'), 0],
      [day('2024-04-01T22'), 1],
    ],
  ],
  [
    "SELECT ts, count() FROM x SAMPLE BY 6h FROM '2024-03-30' ALIGN TO CALENDAR " +
      "WITH OFFSET '01:00'",
    [
      [day('2024-03-30T07'), 1],
      [day('2024-03-30T19'), 1],
      [day('2024-03-31T07'), 1],
      [day('2024-04-01T19'), 1],
    ],
  ],
  // Nanoseconds are not truncated to microseconds before comparing.
  ['SELECT b.p FROM us a ASOF JOIN ns b', [[1]]],
  ['SELECT b.p FROM us a LT JOIN ns b', [[1]]],
  ['SELECT max(b.p) FROM us a HORIZON JOIN ns b LIST (0) AS h', [[1]]],
  [
    'SELECT count(b.p) FROM us a WINDOW JOIN ns b RANGE BETWEEN 1 milliseconds ' +
      'PRECEDING AND CURRENT ROW EXCLUDE PREVAILING',
    [[0]],
  ],
  // A zone abbreviation stands for the whole zone, including its daylight saving time.
  ["SELECT to_timezone('2021-06-08T13:45:45Z','PST') = '2021-06-08T06:45:45'::timestamp", [[true]]],
  ["SELECT count() FROM x WHERE ts IN '2024-03-31T05:00@EST;2h'", [[1]]],
  [
    'SELECT ts FROM (SELECT ts, count() FROM x WHERE i = 3 SAMPLE BY 1d ALIGN TO ' +
      "CALENDAR TIME ZONE 'EST')",
    [[day('2024-04-01T04')]],
  ],
  // Timestamp series whose bounds are given as strings.
  [
    "SELECT count(), min(generate_series) FROM generate_series('2025-01-01', '2025-02-01', '5d')",
    [[7, day('2025-01-01T00')]],
  ],
  ["SELECT count() FROM generate_series('2024-01-02', '2024-01-01', '-12h')", [[3]]],
  [
    "SELECT count() FROM generate_series('2024-01-01'::timestamp_ns, " +
      "'2024-01-01T00:00:00.000002'::timestamp_ns, '500n')",
    [[5]],
  ],
  [
    "SELECT timestamp_ceil('n', '2024-01-01T00:00:00.333333333Z'::timestamp_ns)::varchar",
    [['2024-01-01T00:00:00.333333333Z']],
  ],
  [
    "SELECT timestamp_floor('1d', '2024-01-15T12:00:00'::timestamp, null, '00:00', 'Europe/Paris')",
    [[day('2024-01-15T00')]],
  ],
  ['SELECT typeOf(now() - now()), typeOf(abs(null)), abs((-128)::byte)', [['LONG', 'INT', 128]]],
  ["SELECT to_str('2024-03-05'::timestamp, 'yyyy''T''MM')", [["2024'T'03"]]],
  ['SELECT cast(2334444.323 AS short), cast(300.7 AS byte), cast(-7.9 AS byte)', [[0, 0, -7]]],
  [
    'SELECT lead(i, 2) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 4 PRECEDING) ' +
      'l, row_number() OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND 4 PRECEDING) n ' +
      'FROM x',
    [
      [2, 1],
      [3, 2],
      [null, 3],
      [null, 4],
    ],
  ],
];

let tidemark: Tidemark;
test.before(async () => {
  tidemark = await Tidemark.start();
  for (const sql of SETUP) {
    await tidemark.query(sql);
  }
});
test.after.always(() => tidemark.close());

for (const [sql, rows] of CASES) {
  test.serial(sql, async (t) => {
    t.deepEqual((await tidemark.query(sql)).rows, rows);
  });
}

test.serial('a time of day applies to every day between two date variables', async (t) => {
  await tidemark.query(
    "CREATE TABLE tk AS (SELECT dateadd('m', -(x * 30)::int, dateadd('d', 1, " +
      "date_trunc('day', now()))) ts FROM long_sequence(480)) TIMESTAMP(ts) PARTITION BY DAY",
  );
  const hours = await tidemark.query(
    "SELECT hour(ts), minute(ts), count() FROM tk WHERE ts IN '[$today-2d..$today]T09:00;1h'",
  );
  t.deepEqual(hours.rows, [
    [9, 0, 3],
    [9, 30, 3],
  ]);
});

test.serial('a long sum of INTs in a filter does not overflow', async (t) => {
  const chain = Array.from({ length: 900 }, () => 'i').join(' + ');
  const { rows } = await tidemark.query(
    `SELECT count() FROM big WHERE ${chain} = ${900 * 2147483647} AND ${chain} + 1 > 0`,
  );
  t.deepEqual(rows, [[1]]);
});

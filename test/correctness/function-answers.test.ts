/** Functions that once gave wrong results: nulls, calendars, rounding, series, arrays, strings. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { send, rowsOf } from '../limits/client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  await rowsOf(
    server,
    'CREATE TABLE w (ts TIMESTAMP, id INT, k SYMBOL, v LONG, d DECIMAL(10,2)) TIMESTAMP(ts)',
  );
  const values = [10, 20, 30, 40, null, null, 70, 80, null];
  const cells = values.map((value, at) => {
    const shown = value === null ? 'null' : String(value);
    const price = value === null ? 'null' : `${String(value)}.25m`;
    return `(${String(at + 1)}::timestamp, ${String(at + 1)}, 'a', ${shown}, ${price})`;
  });
  await rowsOf(server, `INSERT INTO w VALUES ${cells.join(', ')}`);
});

test.after.always(async () => {
  await server.stop();
});

/** One row per statement. */
const ROWS: readonly (readonly [list: string, row: readonly unknown[]])[] = [
  ['nullif(1, 1.2), nullif(1, 1.0), nullif(9, 9L), nullif(0.0, -0.0)', [1, null, null, null]],
  ["nullif(INTERVAL '1 day', INTERVAL '24 hours') IS NULL", [true]],
  [
    'round_down(9.2, 1), round_up(9.2, 1), round_down(9.27, 1), trunc(9.2, 1)',
    [9.2, 9.2, 9.2, 9.2],
  ],
  ['round(2.675, 2), round(-2.5), round(0.49999999999999994)', [2.68, -2, 0]],
  ['array_cum_sum(ARRAY[null, 1.5])', [[null, 1.5]]],
  ['array_cum_sum(ARRAY[1.0, null, 1.5])', [[1, 1, 2.5]]],
  ['array_sum(ARRAY[null::double]), array_sum(ARRAY[1.0, null])', [null, 1]],
  ["to_str('2024-03-31'::timestamp, 'w ww')", ['14 13']],
  ["length('😉'), length('a😉b'::varchar), length('a😉b'::symbol)", [1, 3, 3]],
  [
    "left('😉b', 1), right('a😉', 1), reverse('a😉'), position('b' in '😉b')",
    ['😉', '😉', '😉a', 2],
  ],
  [
    "lpad('😉', 3, 'x'), substring('a😉b', 2, 1), overlay('a😉b' placing 'x' from 2 for 1)",
    ['xx😉', '😉', 'axb'],
  ],
  [
    "dateadd('y', 1, '2024-02-29'), dateadd('M', 12, '2024-02-29')",
    ['2025-02-28T00:00:00.000000Z', '2025-02-28T00:00:00.000000Z'],
  ],
  ["'2024-02-29'::timestamp + INTERVAL '1 year'", ['2025-02-28T00:00:00.000000Z']],
  ["age('2001-04-10'::timestamp, '1957-06-13'::timestamp)", ['43 years 9 mons 27 days']],
  ["justify_hours(INTERVAL '-9 days 10:00')", ['-8 days -14:00:00']],
  ["justify_interval(INTERVAL '1 mon -1 hour')", ['29 days 23:00:00']],
  ["INTERVAL '4 years 7 mons' / 3", ['1 year 6 mons 10 days']],
  [
    "to_char('2024-03-05T14:05:06.123456'::timestamp, 'Month|FMMonth|Day|RM|FF1|FF3|BC|WW')",
    ['March    |March|Tuesday  |III |1|123|AD|10'],
  ],
  [
    "('2024-01-01'::timestamp, '2024-02-01'::timestamp) OVERLAPS ('2024-01-31', INTERVAL '1 day')",
    [true],
  ],
  [
    "('2024-01-01'::timestamp, '2024-02-01'::timestamp) OVERLAPS ('2024-02-01', '2024-03-01')",
    [false],
  ],
  ['ARRAY[1, 2] || 3', [[1, 2, 3]]],
  ['0 || ARRAY[1, 2] || ARRAY[3]', [[0, 1, 2, 3]]],
  [
    'ARRAY[[1, 2]] || ARRAY[3, 4]',
    [
      [
        [1, 2],
        [3, 4],
      ],
    ],
  ],
  ["'a' || 1", ['a1']],
];

for (const [list, row] of ROWS) {
  test(list, async (t) => {
    t.deepEqual(await rowsOf(server, `SELECT ${list}`), [row]);
  });
}

/** Rows of a single column. */
const COLUMNS: readonly (readonly [query: string, values: readonly unknown[]])[] = [
  ['SELECT * FROM generate_series(1, 5, -2)', [5, 3, 1]],
  ['SELECT * FROM generate_series(5, 1, 1)', [1, 2, 3, 4, 5]],
  ['SELECT * FROM generate_series(5, 1)', []],
  ['SELECT * FROM generate_series(1.0, 2.0, -0.5)', [2, 1.5, 1]],
  ['SELECT * FROM generate_series(1.5m, 2.5m, 0.5m)', ['1.5', '2.0', '2.5']],
  ['SELECT * FROM generate_series(1.5m, 2.5m, -0.5m)', ['2.5', '2.0', '1.5']],
  ['SELECT generate_series(1.5m, 2.5m, 0.25m)', ['1.50', '1.75', '2.00', '2.25', '2.50']],
  [
    "SELECT generate_series::date::varchar FROM generate_series('2025-01-01', '2025-02-01', '-5d')",
    ['02-01', '01-27', '01-22', '01-17', '01-12', '01-07', '01-02'].map(
      (day) => `2025-${day}T00:00:00.000Z`,
    ),
  ],
  [
    "SELECT * FROM generate_series('2025-01-31', '2025-04-01', '1M')",
    ['01-31', '02-28', '03-28'].map((day) => `2025-${day}T00:00:00.000000Z`),
  ],
  [
    'SELECT lead(v, 2) IGNORE NULLS OVER (ORDER BY ts) FROM w',
    [30, 40, 70, 80, 80, 80, null, null, null],
  ],
  [
    'SELECT lead(v, 2, -1) IGNORE NULLS OVER (PARTITION BY k ORDER BY id) FROM w ORDER BY id',
    [30, 40, 70, 80, 80, 80, -1, -1, -1],
  ],
  [
    'SELECT lag(v, 2) IGNORE NULLS OVER (ORDER BY id DESC) FROM w ORDER BY id',
    [30, 40, 70, 80, 80, 80, null, null, null],
  ],
  [
    'SELECT lag(v, 0) IGNORE NULLS OVER (ORDER BY id) FROM w ORDER BY id',
    [10, 20, 30, 40, null, null, 70, 80, null],
  ],
  ['SELECT array_agg(v) IGNORE NULLS FROM w', [[10, 20, 30, 40, 70, 80]]],
  ['SELECT first(v) IGNORE NULLS FROM w WHERE id > 4', [70]],
  ['SELECT mode() WITHIN GROUP (ORDER BY x % 3 DESC) FROM long_sequence(6)', [2]],
  ['SELECT mode() WITHIN GROUP (ORDER BY x % 3) FROM long_sequence(6)', [0]],
  ['SELECT sum(d) OVER (ORDER BY ts) FROM w WHERE id < 4', ['10.25', '30.50', '60.75']],
  ['SELECT avg(d) OVER (PARTITION BY k) FROM w WHERE id < 3', ['15.25', '15.25']],
  ['SELECT typeOf(s) FROM (SELECT sum(d) OVER () s FROM w LIMIT 1)', ['DECIMAL(38,2)']],
];

for (const [query, values] of COLUMNS) {
  test(query, async (t) => {
    const rows = await rowsOf(server, query);
    t.deepEqual(
      rows.map((row) => row[0]),
      values,
    );
  });
}

/** Queries that must be refused, and never cause an internal error. */
const REFUSED: readonly (readonly [query: string, message: RegExp])[] = [
  ["SELECT * FROM generate_series('2025-01-01', '2025-02-01', '0M')", /step cannot be zero/],
  ['SELECT * FROM generate_series(1.5m, 2.5m, 0m)', /step cannot be zero/],
  [
    "SELECT date_bin('200000000 days'::interval, '2024-01-01'::timestamp, '2000-01-01'::timestamp)",
    /interval out of range/,
  ],
  ["SELECT E'\\udb99'", /half of a surrogate pair/],
  ["SELECT E'a\\udc00b'", /half of a surrogate pair/],
  ['SELECT (1, 2) OVERLAPS (3, 4, 5)', /OVERLAPS expects two rows/],
];

for (const [query, message] of REFUSED) {
  test(`refused: ${query}`, async (t) => {
    const { status, error } = await send(server, query);
    t.is(status, 400, error);
    t.regex(error ?? '', message);
  });
}

test('extreme times and intervals never cause internal errors', async (t) => {
  const lengths = ['200000000 days', '178000000 years', '-178000000 years', '2147483647 days'];
  const times = [
    '0001-01-01',
    '9999-12-31T23:59:59.999999',
    '294246-12-31',
    '-9223372036854775807::timestamp',
    '9223372036854775807::timestamp',
  ].map((text) => (text.includes('::') ? text : `'${text}'::timestamp`));
  const forms = [
    (time: string, length: string) => `date_bin(${length}, ${time}, '2000-01-01'::timestamp)`,
    (time: string, length: string) => `time_bucket(${length}, ${time})`,
    (time: string, length: string) => `${time} + ${length}`,
    (time: string, length: string) => `${time} - ${length}`,
    (_: string, length: string) => `${length} * 1e9`,
    (_: string, length: string) => `justify_interval(${length})`,
    (time: string) => `age(${time}, '2000-01-01'::timestamp)`,
    (time: string) => `dateadd('y', 2147483647, ${time})`,
    (time: string) => `dateadd('M', -2147483647, ${time})`,
    (time: string) => `datediff('d', ${time}, '2000-01-01'::timestamp)`,
    (time: string) => `timestamp_floor('3M', ${time})`,
    (time: string) => `timestamp_ceil('y', ${time})`,
    (time: string) => `date_trunc('millennium', ${time})`,
    (time: string) => `to_char(${time}, 'Y,YYY IDDD J Q CC')`,
    (time: string) => `to_str(${time}, 'yyyy w ww D G')`,
    (time: string) => `extract(epoch FROM ${time})`,
    (time: string) => `days_in_month(${time})`,
    (time: string) => `to_timezone(${time}, 'Europe/Berlin')`,
    (time: string) => `${time}::timestamp_ns`,
  ];
  for (const form of forms) {
    for (const time of times) {
      for (const length of form.length > 1 ? lengths : ['']) {
        const expression = form(time, `'${length}'::interval`);
        const { status, error } = await send(server, `SELECT ${expression}`);
        t.true(status < 500, `${expression}: ${error ?? ''}`);
      }
    }
  }
});

/**
 * UNNEST and FILL produce many rows from few: from one long array, many arrays, a long gap, or many
 * groups. They stream these rows on demand, so LIMIT, timeouts and cancellation take effect
 * immediately, and memory does not grow with the output.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { send, rowsOf } from './client.js';
import { cpuSeconds, peakMegabytes, timed } from './measure.js';

/** Maximum growth of the process's memory, in MiB. */
const MORE_MEGABYTES = 256;
/** Maximum time on a busy machine for work that takes a few milliseconds. */
const SOON_MS = 3000;

let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: ['memory.limit=1500M', 'query.memory.pool=512M', 'shared.query.worker.count=2'],
  });
  for (const statement of [
    `create table arr (ts timestamp, a double[], v varchar)
      timestamp(ts) partition by year`,
    ...Array.from(
      { length: 10 },
      (_, at) => `insert into arr select timestamp_sequence(${at * 100_000_000}::timestamp
        + 1577836800000000, 1000000), array_build(1,20000,(x+${at * 100})::double),
        'row '||(x+${at * 100}) from long_sequence(100)`,
    ),
    'create table huge (ts timestamp, a double[]) timestamp(ts) partition by year',
    `insert into huge select '2020-01-01', array_build(1,5000000,2.0) from long_sequence(1)`,
    `create table grid (ts timestamp, a double[][]) timestamp(ts) partition by year`,
    `insert into grid select '2020-01-01', array_build(3,100000,2.0,2.0,2.0) from long_sequence(1)`,
    `create table bare (ts timestamp, a double[], n int) timestamp(ts) partition by year`,
    `insert into bare select timestamp_sequence('2020-01-01',1000000),
      case when x % 1000 = 0 then array_build(1,2,x::double) else null end, x::int
      from long_sequence(200000)`,
    'create table two (ts timestamp, x int) timestamp(ts) partition by year',
    "insert into two values ('2005-01-01T00:00:00Z', 1), ('2025-01-01T00:00:00Z', 2)",
    `create table many (ts timestamp, k symbol, d double, a double[])
      timestamp(ts) partition by year`,
    `insert into many select timestamp_sequence('2005-01-01',1), 'k'||x, x*1.0,
      array_build(1,3,x::double) from long_sequence(1000)`,
    "insert into many values ('2025-01-01T00:00:00Z', 'k1', 3.0, null)",
  ]) {
    await rowsOf(server, statement);
  }
});

test.after.always(async () => {
  await server.stop();
});

/** Statements with their expected rows. The memory they need must not depend on the output size. */
const ANSWERS: readonly (readonly [string, unknown])[] = [
  ['select sum(e) from arr, unnest(a) as u(e)', [[10_010_000_000]]],
  ['select count(), max(v) from arr, unnest(a) as u(e)', [[20_000_000, 'row 999']]],
  [
    `select sum(array_count(a)), count() from arr, unnest(a) as u(e)
      where ts < '2020-01-01T00:00:10'`,
    [[4_000_000_000, 200_000]],
  ],
  [
    'select e, n from arr, unnest(a) with ordinality as u(e, n) limit 2',
    [
      [1, 1],
      [1, 2],
    ],
  ],
  ['select a, e from arr, unnest(a) as u(e) limit 0', []],
  ['select array_count(a) from arr order by ts desc limit 1', [[20_000]]],
  ["select array_count(a) from arr where v <> 'x' order by ts desc limit 1", [[20_000]]],
  ['select v, array_count(a), e from arr, unnest(a) as u(e) limit 1', [['row 1', 20_000, 1]]],
  ['select sum(e), count() from huge, unnest(a) as u(e)', [[10_000_000, 5_000_000]]],
  ['select array_count(a), e from huge, unnest(a) as u(e) limit 1', [[5_000_000, 2]]],
  ['select sum(array_count(e)), count() from grid, unnest(a) as u(e)', [[300_000, 3]]],
  ['select count(), sum(e) from bare, unnest(a) as u(e)', [[400, 40_200_000]]],
  ['select count(), count(e) from bare left join unnest(a) as u(e)', [[200_200, 400]]],
  [
    `select count(), min(length(b)), max(n), sum(n) from (select u.b b, u.n n from
      (select '['||x||x||'{"n":9}]' j from
        (select rpad('',1048560,'{"b":"xy","n":7},') x from long_sequence(1))) s,
      unnest(j columns(b varchar, n int)) u)`,
    [[123_361, -1, 9, 863_529]],
  ],
  [
    'select ts, count() from two sample by 1s fill(null) limit 3',
    [
      ['2005-01-01T00:00:00.000000Z', 1],
      ['2005-01-01T00:00:01.000000Z', null],
      ['2005-01-01T00:00:02.000000Z', null],
    ],
  ],
  ['select ts, max(x) from two sample by 1s fill(prev) limit 0', []],
  [
    `select ts, max(x) from two sample by 1s fill(linear) limit 1`,
    [['2005-01-01T00:00:00.000000Z', 1]],
  ],
  [
    `select count(), count(c), sum(c) from
      (select ts, max(x::double) c from two sample by 1h fill(linear))`,
    [[175_321, 175_321, 262_981.5]],
  ],
  [
    `select count(), count(c), sum(c) from (select ts, max(x) c from two sample by 1m fill(prev))`,
    [[10_519_201, 10_519_201, 10_519_202]],
  ],
  [
    `select count(), count(c), sum(c) from (select ts, max(x) c from two sample by 1h fill(5))`,
    [[175_321, 175_321, 876_598]],
  ],
  ['select count() from (select ts, max(x) c from two sample by 1h fill(none))', [[2]]],
  [
    `select count(), min(ts), max(ts) from (select ts, max(x) c from two
      sample by 1d from '2000-01-01' to '2030-01-01' fill(null) align to calendar
      time zone 'Europe/Berlin')`,
    [[10_958, '1999-12-31T23:00:00.000000Z', '2029-12-30T23:00:00.000000Z']],
  ],
  [
    'select ts, k, max(d) d from many sample by 1s fill(prev) limit 1000, 1002',
    [
      ['2005-01-01T00:00:01.000000Z', 'k1', 1],
      ['2005-01-01T00:00:01.000000Z', 'k2', 2],
    ],
  ],
  [
    `select count(), count(d), sum(d) from
      (select ts, k, max(d) d from many sample by 1w fill(linear))`,
    [[1_045_000, 2_044, 502_589]],
  ],
  [
    `select count(), sum(s) from (select array_sum(a) s from
      (select ts, k, last(a) a from many sample by 30d fill(prev)))`,
    [[244_000, 366_365_997]],
  ],
];

test.serial('streaming operators do not need memory for the whole result', async (t) => {
  const before = await peakMegabytes(server);
  for (const [statement, expected] of ANSWERS) {
    const began = performance.now();
    const { rows, error } = await send(server, statement);
    const peak = await peakMegabytes(server);
    t.is(error, undefined, statement);
    t.deepEqual(rows, expected, statement);
    t.true(peak - before < MORE_MEGABYTES, `${peak - before} MiB more: ${statement}`);
    t.log(`${Math.round(performance.now() - began)} ms, ${peak - before} MiB more: ${statement}`);
  }
});

const LIMITED: readonly string[] = [
  'select ts, count() from two sample by 1s fill(null) limit 3',
  'select ts, k, max(d) from many sample by 1T fill(linear) limit 3',
  "select ts, count() from two sample by 1U from '1970-01-01' to '2262-01-01' fill(0) limit 3",
  'select e, f from arr, unnest(a) as u(e), unnest(a) as w(f) limit 3',
];

test.serial('LIMIT stops streaming operators early', async (t) => {
  for (const statement of LIMITED) {
    const { answer, ms } = await timed(server, statement, 20_000);
    t.regex(answer, /^200 .*"count":3/, statement);
    t.true(ms < SOON_MS, `${Math.round(ms)} ms: ${statement}`);
  }
});

const ENDLESS: readonly string[] = [
  'select count() from (select ts, count() from two sample by 1T fill(null))',
  'select sum(d) from (select ts, k, max(d) d from many sample by 1s fill(linear))',
  'select ts, count() from two sample by 10s fill(null) order by 2 desc, 1 desc limit 3',
  'select sum(e * f) from arr, unnest(a) as u(e), unnest(a) as w(f)',
];

test.serial('a time limit stops streaming operators promptly', async (t) => {
  for (const statement of ENDLESS) {
    const [before, began] = [await cpuSeconds(server), performance.now()];
    const { answer } = await timed(server, statement, 200);
    const [took, cpu] = [performance.now() - began, (await cpuSeconds(server)) - before];
    t.regex(answer, /^(?!200).*timeout, query aborted/, statement);
    t.true(cpu < 1, `${cpu} s of CPU time, ${Math.round(took)} ms: ${statement}`);
    t.log(`${cpu.toFixed(2)} s of CPU time, ${Math.round(took)} ms: ${statement}`);
  }
});

test.serial('other queries are answered while streaming operators run', async (t) => {
  const statement = "select sum(e) from arr, unnest(a) as u(e) where ts < '2020-01-01T00:00:50'";
  await rowsOf(server, statement);
  await rowsOf(server, statement);
  const state = { isDone: false };
  let longest = 0;
  const request = Promise.all([1, 2, 3].map(() => rowsOf(server, statement))).then(() => {
    state.isDone = true;
  });
  while (!state.isDone) {
    const began = performance.now();
    await fetch(`${server.url}/ping`);
    longest = Math.max(longest, performance.now() - began);
  }
  await request;
  t.true(longest < 500, `${longest} ms`);
  t.log(`longest response time of /ping: ${Math.round(longest)} ms`);
});

test.serial('EXPLAIN ANALYZE reports rows and time for streaming operators', async (t) => {
  for (const [statement, operator] of [
    ["select e from arr, unnest(a) as u(e) where ts < '2020-01-01T00:00:02'", 'UnnestElementsExec'],
    ['select ts, max(x) from two sample by 1d fill(prev)', 'FillExec'],
    ['select * from two splice join many', 'SpliceJoinExec'],
    ['select ts, avg(x) over (order by ts) from two', 'WindowsExec'],
    ['select * from two', 'TableScanExec'],
    ['select ts, max(x) from two sample by 1d', 'SampleByExec'],
    ["select d from many where k = 'k7'", 'FilteredScanExec'],
    ['select * from many latest on ts partition by k', 'LatestOnExec'],
    ['select * from two asof join many', 'AsofJoinExec'],
    ['select * from two join many on two.x = many.d', 'LookupJoinExec'],
    [
      `select a.ts, sum(b.d) s from two a window join many b
        range between 1 minute preceding and 1 minute following`,
      'WindowJoinExec',
    ],
    [
      `select h.offset, avg(b.d) from two a horizon join many b
        range from 0s to 2s step 1s as h`,
      'HorizonJoinExec',
    ],
    ['select first(d) from (select * from many order by d)', 'SortedInputExec'],
  ] as const) {
    const lines = (await rowsOf(server, `explain analyze ${statement}`)).map((row) =>
      String(row[0]),
    );
    const line = lines.find((text) => text.includes(operator));
    t.regex(line ?? lines.join('\n'), /metrics=\[output_rows=[\d.]+.*elapsed_compute=/);
  }
});

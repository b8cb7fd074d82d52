/**
 * GROUP BY over timestamp floors and over many distinct keys, compared with DataFusion's operators.
 * Two servers have the same tables, but only one of them splits scans into small chunks.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rowsOf } from '../limits/client.js';

const ROWS = 4_000;
const PARTS = ['query.scan.part.rows=90', 'shared.query.worker.count=4'];
let ours: TestServer;
let plain: TestServer;

/** Rows over several years, some of them with equal times; every sixth value is null. */
const table = (name: string, type: string): readonly string[] => [
  `create table ${name} (ts ${type}, k symbol, v double, n long, i int, t varchar, b boolean,
    s short) timestamp(ts) partition by year wal`,
  `insert into ${name} select dateadd('m', (x / 3 * 517)::int, '1970-01-01T00:00:59.5'::timestamp),
    ('k' || (x % 7))::symbol, case when x % 6 = 0 then null else (x * 7919 % 1013) / 4.0 end,
    case when x % 6 = 1 then null else x * 31 % 997 end, (x % 50)::int, 't' || (x * 17 % 601),
    x % 3 = 0, (x % 211)::short from long_sequence(${ROWS})`,
];

test.before(async () => {
  ours = await startTestServer({ set: PARTS });
  plain = await startTestServer();
  for (const server of [ours, plain]) {
    for (const statement of [...table('m', 'timestamp'), ...table('o', 'timestamp_ns')]) {
      await rowsOf(server, statement);
    }
  }
});

test.after.always(async () => {
  await ours.stop();
  await plain.stop();
});

/** Returns the rows of both servers in the same order, and the plan of the first server. */
async function both(query: string): Promise<readonly [string[], string[], string]> {
  const sorted = async (server: TestServer): Promise<string[]> =>
    (await rowsOf(server, query)).map((row) => JSON.stringify(row)).sort();
  const plan = (await rowsOf(ours, `explain ${query}`)).flat().join('\n');
  return [await sorted(ours), await sorted(plain), plan];
}

const STEPS = ['s', '5m', 'm', '7h', 'h', 'd', '3d', 'w', 'M', 'y', '2M', '100T'];
const WORDS = ['second', 'minute', 'hour', 'day', 'week', 'month', 'quarter', 'year', 'decade'];

test('grouping by a timestamp floor returns the same buckets as SAMPLE BY', async (t) => {
  const floors = [
    ...STEPS.map((step) => `timestamp_floor('${step}', ts)`),
    ...WORDS.map((word) => `date_trunc('${word}', ts)`),
  ];
  let buckets = 0;
  for (const name of ['m', 'o']) {
    for (const floor of floors) {
      for (const query of [
        `select ${floor} f, count(), avg(v), min(n), max(i) from ${name} group by f`,
        `select k, ${floor} f, sum(n), count(v) from ${name} where i > 7 group by k, f`,
        `select count() from (select ${floor} f, stddev(n) d from ${name} group by f)`,
      ]) {
        const [rows, expected, plan] = await both(query);
        t.deepEqual(rows, expected, `${query}\n${plan}`);
        buckets += /SampleByExec: ts@\d+ by/.test(plan) ? 1 : 0;
      }
    }
  }
  t.true(buckets > 60, `only ${buckets} plans have buckets`);
});

test('millions of small buckets fit into memory', async (t) => {
  for (const server of [ours, plain]) {
    await rowsOf(
      server,
      `create table far as (select x, ('k' || x % 2)::symbol k,
        timestamp_sequence('2024-01-01', 86400000000L) ts from long_sequence(26))
        timestamp(ts) partition by month`,
    );
  }
  for (const [query, isBuckets] of [
    [`select timestamp_floor('s', ts) f, avg(x) from far group by f`, true],
    [`select date_trunc('second', ts) f, count() from far group by f`, true],
    [`select timestamp_floor('s', ts) f, avg(x), min(x), max(x) from far group by f`, false],
    [`select timestamp_floor('T', ts) f, avg(x) from far group by f`, false],
    [`select k, timestamp_floor('s', ts) f, avg(x) from far group by k, f`, false],
  ] as const) {
    const [rows, expected, plan] = await both(query);
    t.is(rows.length, 26);
    t.deepEqual(rows, expected, `${query}\n${plan}`);
    t.is(/SampleByExec: ts@\d+ by/.test(plan), isBuckets, `${query}\n${plan}`);
  }
});

test('grouping by computed-time floors or by extra keys does not use buckets', async (t) => {
  for (const query of [
    "select timestamp_floor('d', dateadd('d', i, ts)) f, count() from m group by f",
    "select timestamp_floor('d', ts) f, n, count() from m group by f, n",
    "select timestamp_floor('d', ts) f, ts, count() from m group by f, ts",
  ]) {
    const [rows, expected, plan] = await both(query);
    t.deepEqual(rows, expected, `${query}\n${plan}`);
    t.notRegex(plan, /SampleByExec: \S+ by/);
  }
});

test('grouping a time-ordered join by a timestamp floor uses SAMPLE BY buckets', async (t) => {
  const [rows, expected, plan] = await both(
    "select timestamp_floor('d', a.ts) f, count() from m a join m b on n where b.i = 3 group by f",
  );
  t.deepEqual(rows, expected, plan);
  t.regex(plan, /SampleByExec: \S+ by/);
});

test('numbers in a narrow range are grouped by array index', async (t) => {
  for (const server of [ours, plain]) {
    for (const statement of [
      `create table near (ts timestamp, l long, i int, s short, y byte, c char, b boolean,
        far long, k symbol, v double) timestamp(ts) partition by month wal`,
      `insert into near select dateadd('m', (x * 60)::int, '2024-01-01'::timestamp),
        case when x % 9 = 0 then null else x * 13 % 50 - 9223372036854775807 end,
        case when x % 8 = 0 then null else (x * 7 % 300)::int - 2147483647 end,
        (x * 31 % 200 - 32768)::short, (x % 256 - 128)::byte,
        case when x % 5 = 0 then null else substring('abcXYZ', (x % 6 + 1)::int, 1)::char end,
        x % 3 = 0, x * 1000003, ('k' || x % 4)::symbol, x / 4.0 from long_sequence(3000)`,
    ]) {
      await rowsOf(server, statement);
    }
  }
  const check = async (keys: readonly string[], isSlots: boolean): Promise<void> => {
    for (const key of keys) {
      for (const query of [
        `select ${key}, count(), count(v), sum(l), avg(i), min(s) from near group by ${key}`,
        `select distinct ${key} from near where v > 100`,
        `select ${key}, avg(v), sum(v) filter (where b) f from near group by ${key}`,
        `select ts, ${key}, count(), first(v), last(i) from near sample by 10d`,
      ]) {
        const [rows, expected, plan] = await both(query);
        t.deepEqual(rows, expected, `${query}\n${plan}`);
        t.is(plan.includes('(slots)'), isSlots, `${query}\n${plan}`);
      }
    }
  };
  await check(['l', 'i', 's', 'y', 'c', 'b', 'l, b', 'k, y', 's, b, k', 'c, y, k'], true);
  await check(['far', 'l, i, s', 'far, b', 'v, b'], false);
  const change = async (statement: string): Promise<void> => {
    await Promise.all([ours, plain].map((server) => rowsOf(server, statement)));
  };
  await change(`update near set l = 7 - 9223372036854775807 where i % 3 = 0`);
  await change(`insert into near (ts, l, y) values ('2024-01-02', 90 - 9223372036854775807, 5)`);
  await check(['l', 'l, k', 'y'], true);
  await change(`insert into near (ts, l, y) values ('2024-01-02', 0, 5)`);
  await check(['l', 'l, k'], false);
  await check(['y'], true);
});

test('grouping by many keys matches DataFusion', async (t) => {
  const keys = ['v', 'n', 'i', 's', 'b', 't', 'ts', 'v, k', 'n, i', 't, n', 'b, k, v'];
  const values = ['-v', 'v * 0', 'n + 1', 'n % 10', 'v::float', 'n::int', 'i::long', 'length(t)'];
  for (const key of [...keys, ...values]) {
    const items = key.split(', ');
    const list = items.map((item, at) => `${item} key${at}`).join(', ');
    const names = items.map((_, at) => `key${at}`).join(', ');
    for (const query of [
      `select ${list}, count(), sum(n), avg(v), min(i), max(n) from m group by ${names}`,
      `select distinct ${list} from m where s > 20`,
      `select count(), sum(c) from (select ${list}, count() c from m group by ${names})`,
      `select ${list}, sum(i) q from m group by ${names} order by q, ${names} limit 7`,
    ]) {
      const [rows, expected, plan] = await both(query);
      t.deepEqual(rows, expected, `${query}\n${plan}`);
      // Rows are already in timestamp order.
      t.true(key === 'ts' || /GroupRowsExec|\(slots\)/.test(plan), plan);
    }
  }
});

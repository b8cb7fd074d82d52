/**
 * The designated timestamp stays with its rows, both through joins, which reorder rows, and through
 * sub-queries that do not select the timestamp.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, rows, run } from '../scenario/statements.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
  await run(
    server,
    'CREATE TABLE a (ts TIMESTAMP, k SYMBOL, v DOUBLE) TIMESTAMP(ts) PARTITION BY DAY',
    'CREATE TABLE b (ts TIMESTAMP, k SYMBOL, u DOUBLE) TIMESTAMP(ts) PARTITION BY DAY',
    'CREATE TABLE r (k SYMBOL, sector VARCHAR)',
    "INSERT INTO r VALUES ('a', 'x'), ('b', 'y')",
    `INSERT INTO a VALUES ('2026-01-01T00:00:00', 'a', 1), ('2026-01-01T00:30:00', 'b', 2),
      ('2026-01-01T02:00:00', 'a', 3)`,
    `INSERT INTO b VALUES ('2026-01-01T00:00:00', 'a', 10), ('2026-01-01T01:00:00', 'b', 20),
      ('2026-01-01T02:00:00', 'a', 30)`,
    `CREATE TABLE many AS (SELECT timestamp_sequence(0, 1000000) ts, x,
      ('k' || (x * 7919 % 100))::symbol k FROM long_sequence(200000))
      TIMESTAMP(ts) PARTITION BY DAY`,
    `CREATE TABLE few AS (SELECT ('k' || (x * 3))::symbol k, x y, ('2026-01-0' || x)::timestamp ts
      FROM long_sequence(9))`,
  );
});

test.after.always(async () => {
  await server.stop();
});

async function timestampOf(query: string): Promise<number | undefined> {
  const answer = (await exec(server, query)) as { timestamp?: number; error?: string };
  return answer.error === undefined ? answer.timestamp : Number.NaN;
}

for (const [query, index] of [
  ['SELECT a.ts, v, sector FROM a JOIN r ON a.k = r.k', 0],
  ['SELECT v, sector, a.ts FROM a LEFT JOIN r ON a.k = r.k', 2],
  ['SELECT v, sector, a.ts FROM a CROSS JOIN r', 2],
  ['SELECT a.ts, b.ts, v, u FROM a JOIN b ON a.k = b.k', 0],
  ["SELECT * FROM (SELECT a.ts, sector FROM a JOIN r ON a.k = r.k) WHERE sector > 'a'", 0],
  ['SELECT v, sector FROM a LEFT JOIN r ON a.k = r.k', -1],
  ['SELECT b.ts, v, u FROM a JOIN b ON a.k = b.k', -1],
  ['SELECT a.ts, v, u FROM a FULL JOIN b ON a.k = b.k', -1],
  ['SELECT a.ts, v, u FROM a RIGHT JOIN b ON a.k = b.k', -1],
  ['SELECT a.ts, sector FROM r JOIN a ON a.k = r.k', -1],
  ['SELECT a.ts, v, sector FROM a JOIN r ON a.k = r.k ORDER BY v', -1],
  ['SELECT x.v, b.u FROM (SELECT v, k FROM a) x ASOF JOIN b ON (k)', -1],
] as const) {
  test(`column ${index} is the timestamp of: ${query}`, async (t) => {
    t.is(await timestampOf(query), index);
  });
}

for (const [join, of] of [
  ['JOIN few ON many.k = few.k', 'few.y'],
  ['LEFT JOIN few ON many.k = few.k', 'few.y'],
  ['CROSS JOIN few', 'few.y'],
  ['JOIN few ON many.k < few.k', 'few.y'],
] as const) {
  test(`rows are in time order for first and last: ${join}`, async (t) => {
    const query = `SELECT many.ts, x, ${of} FROM many ${join}`;
    const sorted = `${query} ORDER BY ts, x, y`;
    const all = `SELECT ts, x, y FROM (${query}) ORDER BY ts, x, y`;
    const times = (list: readonly (readonly unknown[])[]): unknown[] => list.map(([ts]) => ts);
    for (const limit of ['0, 50000', '100', '1000, 1100', '-100']) {
      const found = times(await rows(server, `${query} LIMIT ${limit}`));
      t.deepEqual(found, times(await rows(server, `${all} LIMIT ${limit}`)), limit);
      t.deepEqual(found, times(await rows(server, `${sorted} LIMIT ${limit}`)), limit);
    }
  });
}

const OUTER = [
  [1, 10],
  [2, null],
  [3, 30],
];

for (const [query, expected] of [
  ['SELECT x.v, b.u FROM (SELECT v, k FROM a) x ASOF JOIN b ON (k)', OUTER],
  ['SELECT x.v, y.u FROM (SELECT v, k FROM a) x ASOF JOIN (SELECT u, k FROM b) y ON (k)', OUTER],
  ['SELECT a.v, y.u FROM a ASOF JOIN (SELECT u, k FROM b) y ON (k)', OUTER],
  ['WITH x AS (SELECT v, k FROM a) SELECT x.v, b.u FROM x ASOF JOIN b ON (k)', OUTER],
  ['WITH x (v, k) AS (SELECT v, k FROM a) SELECT x.v, b.u FROM x ASOF JOIN b ON (k)', OUTER],
  ['SELECT x.v, u FROM (SELECT v, k FROM (SELECT * FROM a)) x ASOF JOIN b ON (k)', OUTER],
  ['SELECT x.v, u FROM (SELECT v, k FROM (SELECT v, k FROM a)) x ASOF JOIN b ON (k)', OUTER],
  ['SELECT x.v, u FROM (SELECT sum(v) v, k FROM a SAMPLE BY 1m) x ASOF JOIN b ON (k)', OUTER],
  ['SELECT x.v, u FROM (SELECT v, k FROM a ORDER BY ts) x ASOF JOIN b ON (k)', OUTER],
  ['SELECT x.v, u FROM (SELECT v, k FROM a ORDER BY ts DESC) x ASOF JOIN b ON (k)', OUTER],
  ['SELECT x.v, u FROM (SELECT v, k FROM a LIMIT 2) x ASOF JOIN b ON (k)', OUTER.slice(0, 2)],
  ['SELECT x.v, u FROM (SELECT v, k FROM a LIMIT -1) x ASOF JOIN b ON (k)', OUTER.slice(2)],
  [
    'SELECT x.v, u FROM (SELECT v time, v, k FROM a) x LT JOIN b ON (k)',
    [
      [1, null],
      [2, null],
      [3, 10],
    ],
  ],
  [
    'SELECT * FROM (SELECT v, k FROM a) x ASOF JOIN (SELECT u FROM b) y',
    [
      [1, 'a', 10],
      [2, 'b', 10],
      [3, 'a', 30],
    ],
  ],
  ['SELECT sum(v) FROM (SELECT v FROM a) SAMPLE BY 1h', [[3], [3]]],
  ['SELECT sum(v) FROM (SELECT v, sector FROM a JOIN r ON a.k = r.k) SAMPLE BY 1h', [[3], [3]]],
  [
    'SELECT sum(v) FROM (SELECT v, u FROM (SELECT v, k FROM a) ASOF JOIN b ON (k)) SAMPLE BY 1h',
    [[3], [3]],
  ],
] as const) {
  test(`an unselected timestamp is used: ${query}`, async (t) => {
    t.deepEqual(await rows(server, query), expected);
  });
}

for (const query of [
  'SELECT x.v, u FROM (SELECT DISTINCT v, k FROM a) x ASOF JOIN b ON (k)',
  'SELECT x.v, u FROM (SELECT max(v) v, k FROM a GROUP BY k) x ASOF JOIN b ON (k)',
  'SELECT x.v, u FROM (SELECT v, k FROM a UNION ALL SELECT u, k FROM b) x ASOF JOIN b ON (k)',
  'SELECT x.v, u FROM (SELECT v, k FROM a ORDER BY v) x ASOF JOIN b ON (k)',
]) {
  test(`ASOF JOIN requires a designated timestamp: ${query}`, async (t) => {
    const { error } = await exec(server, query);
    t.is(error, 'left side of time series join has no timestamp');
  });
}

test('a timestamp that is not selected cannot be referenced by name', async (t) => {
  for (const name of ['ts', 'time', '"time"']) {
    const query = `SELECT ${name} FROM (SELECT v, k FROM a) x ASOF JOIN (SELECT u FROM b) y`;
    t.regex((await exec(server, query)).error ?? '', /^Invalid column/, query);
  }
  const nested = 'SELECT v FROM a WHERE k IN (SELECT k FROM (SELECT k FROM b) SAMPLE BY 1h)';
  t.regex((await exec(server, nested)).error ?? '', /aggregation function/);
});

test('a computed time column does not become the designated timestamp', async (t) => {
  const refusal = 'base query does not provide designated TIMESTAMP column';
  for (const list of [
    "dateadd('h', 1, ts) ts, v",
    "date_trunc('hour', ts) ts, v",
    'cast(v * 1000000 as timestamp) ts, v',
    "dateadd('h', 1, ts) later, v",
  ]) {
    const query = `SELECT count() FROM (SELECT ${list} FROM a) SAMPLE BY 1d`;
    t.is((await exec(server, query)).error, refusal, list);
    const name = list.includes('later') ? 'later' : 'ts';
    const named = `SELECT count() FROM ((SELECT ${list} FROM a) TIMESTAMP(${name})) SAMPLE BY 1d`;
    t.deepEqual((await rows(server, named)).flat(), [3], list);
  }
  t.deepEqual(await rows(server, 'SELECT count() FROM (SELECT v FROM a) SAMPLE BY 1d'), [[3]]);
});

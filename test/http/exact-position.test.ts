/** Error positions for row values that cannot be converted. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
  for (const statement of [
    'create table t (ts timestamp, s symbol, v varchar, d double, n long) timestamp(ts)',
    "insert into t values ('2026-01-01', 'BTC', 'abc', 1.5, 2)",
  ]) {
    await send(statement);
  }
});

test.after.always(() => server.stop());

async function send(
  query: string,
  more: Record<string, string> = {},
): Promise<{ error?: string; position?: number }> {
  const parameters = new URLSearchParams({ query, ...more }).toString();
  const response = await fetch(`${server.url}/exec?${parameters}`);
  return (await response.json()) as { error?: string; position?: number };
}

test('conversion errors have position 0, or the exact position on request', async (t) => {
  for (const [query, mark] of [
    ['select d + s from t', 's from'],
    ['select sum(s) from t', 's)'],
    ['select avg(v) from t group by n', 'v)'],
    ['select abs(v) from t', 'v)'],
    ['select d from t where d > v', 'v'],
    ['select d * v, count() from t group by d * v', 'v'],
    ["select * from t where n = 2 and n + v > 3 and s = 'BTC'", 'v >'],
    ["select dateadd('d', v, ts) from t", 'v, ts'],
    ['select sum(v) over (order by ts) from t', 'sum'],
    ['select * from t order by d + s', 's'],
  ] as const) {
    const refused = await send(query);
    t.regex(refused.error ?? '', /^inconvertible value: `(?:BTC|abc)` \[STRING -> \w+\]$/, query);
    t.is(refused.position, 0, query);
    const { position, error } = await send(query, { exactPosition: 'true' });
    t.is(error, refused.error);
    t.is(position, query.lastIndexOf(mark), query);
  }
});

test('a literal that cannot be converted is always reported at its position', async (t) => {
  for (const more of [{}, { exactPosition: 'true' }]) {
    t.is((await send("select d from t where d = 'abc'", more)).position, 26);
  }
});

test('equal conversions in SELECT and GROUP BY form one group', async (t) => {
  await send("insert into t values ('2026-01-02', '7', '7', 1, 1)");
  const query =
    "select d + v, count() from t where ts = '2026-01-02' group by d + v order by d + v";
  t.like(await send(query), { dataset: [[8, 1]] });
});

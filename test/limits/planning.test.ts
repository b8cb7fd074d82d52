/** Planning time is roughly linear in statement size, and always bounded. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { send, rowsOf } from './client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['shared.query.worker.count=2'] });
  await rowsOf(server, 'create table sb (i int, d double)');
  await rowsOf(server, 'insert into sb select x::int, x * 1.0 from long_sequence(100)');
});

test.after.always(async () => {
  await server.stop();
});

const list = (count: number, text: (at: number) => string, between = ', '): string =>
  Array.from({ length: count }, (_, at) => text(at)).join(between);

/** Each value is a separate correlated sub-query. */
const correlated = (count: number): string =>
  `select i, ${list(count, (at) => `(select max(d) + ${at} from sb b where b.i = sb.i) c${at}`)}
   from sb order by i limit 2`;

test('sibling sub-queries do not multiply the planning work', async (t) => {
  const rows = await rowsOf(server, correlated(20));
  t.deepEqual(rows, [
    [1, ...Array.from({ length: 20 }, (_, at) => 1 + at)],
    [2, ...Array.from({ length: 20 }, (_, at) => 2 + at)],
  ]);
});

test('conditions with sub-queries do not multiply the planning work', async (t) => {
  const tests = list(15, (at) => `exists (select 1 from sb b where b.i = sb.i + ${at})`, ' and ');
  t.deepEqual(await rowsOf(server, `select count() from sb where ${tests}`), [[86]]);
});

test('deeply nested sub-queries are refused before they exhaust the memory', async (t) => {
  let value = '1';
  for (let at = 0; at < 40; at += 1) {
    value = `(select max(d) + ${value} from sb b${at} where b${at}.i = sb.i)`;
  }
  const { status, error } = await send(server, `select ${value} from sb`);
  t.is(status, 400);
  t.regex(error ?? '', /too large|too deep|too many/);
});

test('long chains of set operations return the same rows as short ones', async (t) => {
  const words = ['union', 'union all', 'except', 'intersect', 'except all', 'intersect all'];
  for (const word of words) {
    const one = `select 1 x ${word} select 2`;
    const chain = `${one} ${list(600, () => `${word} select 2`, ' ')}`;
    const nested = `select * from (select * from (${one}) ${word} select 2) ${word} select 2`;
    const order = (rows: readonly (readonly unknown[])[]): string[] =>
      [...new Set(rows.map((row) => JSON.stringify(row)))].sort();
    t.deepEqual(order(await rowsOf(server, chain)), order(await rowsOf(server, nested)), word);
  }
  const mixed = 'select 1 x union all select 1 union select 2 union all select 2 except select 3';
  t.deepEqual((await rowsOf(server, mixed)).map(([x]) => x).sort(), [1, 2]);
  const widened = 'select 1::long x union select 1 union all select 1.5 union all select 1.5';
  t.deepEqual((await rowsOf(server, widened)).map(([x]) => x).sort(), [1, 1.5, 1.5]);
});

test('a view over views is bound once', async (t) => {
  await rowsOf(server, 'create view twice0 as (select * from sb)');
  for (let at = 0; at < 8; at += 1) {
    const both = `select * from twice${at} union all select * from twice${at}`;
    await rowsOf(server, `create view twice${at + 1} as (${both})`);
  }
  t.deepEqual(await rowsOf(server, 'select count() from twice6'), [[6_400]]);
  const { status, error } = await send(
    server,
    'create view twice9 as (select * from twice8 union all select * from twice8)',
  );
  t.is(status, 400);
  t.regex(error ?? '', /too many tables and sub-queries in a statement \[limit=1000\]/);
  t.is((await rowsOf(server, 'views()')).length, 9);
});

test('only the named columns of a wide file are read', async (t) => {
  const columns = list(9_000, (at) => `${at}.5 c${at}`);
  const body = new URLSearchParams({ query: `select ${columns}`, fmt: 'parquet' });
  const exported = await fetch(`${server.url}/exp`, { method: 'POST', body });
  t.is(exported.status, 200);
  await mkdir(join(server.root, 'import'), { recursive: true });
  await writeFile(
    join(server.root, 'import', 'wide.parquet'),
    Buffer.from(await exported.arrayBuffer()),
  );
  const rows = await rowsOf(server, "select c1, c8999 from read_parquet('wide.parquet')");
  t.deepEqual(rows, [[1.5, 8_999.5]]);
  const { status, error } = await send(server, "select * from read_parquet('wide.parquet')");
  t.is(status, 400);
  t.regex(error ?? '', /too many columns \[9000 of 9000 selected\]/);
});

/** A statement that is slow to bind, because its variables double at each level. */
const doubling = (levels: number): string =>
  `declare @v0 := i, ${list(levels, (at) => `@v${at + 1} := @v${at} + 1 - @v${at}`)}
   select @v${levels} from sb`;

test('the time limit also applies to planning', async (t) => {
  const started = performance.now();
  const body = new URLSearchParams({ query: doubling(60) });
  const headers = { 'Statement-Timeout': '50' };
  const response = await fetch(`${server.url}/exec`, { method: 'POST', body, headers });
  const { error } = (await response.json()) as { error: string };
  t.regex(error, /timeout, query aborted \[timeout=50ms\]|too large|too many/);
  t.true(performance.now() - started < 5_000);
});

test('planning is cancelled if the client disconnects', async (t) => {
  const body = new URLSearchParams({
    query: `select * from sb pivot (sum(d) for i in (
      select a.x from long_sequence(1000000) a cross join long_sequence(1000000) b
      where a.x + b.x < 0))`,
  });
  const abort = new AbortController();
  const request = fetch(`${server.url}/exec`, { method: 'POST', body, signal: abort.signal });
  const running = async (): Promise<number> => {
    const rows = await rowsOf(
      server,
      "select count() from query_activity() where query like '%pivot%'",
    );
    // Excludes this query itself from the count.
    return Number(rows[0]?.[0]) - 1;
  };
  await until(async () => (await running()) > 0, 'the statement is bound');
  abort.abort();
  await t.throwsAsync(request, { any: true });
  await until(async () => (await running()) === 0, 'binding has ended');
  t.pass();
});

test('a large array is not folded into the plan', async (t) => {
  const large = 'array_build(1, 5000000, 1.0)';
  await rowsOf(server, 'create table la (ts timestamp, a double[]) timestamp(ts) partition by day');
  const began = performance.now();
  await rowsOf(server, `insert into la select 0::timestamp, ${large} from long_sequence(1)`);
  t.deepEqual(await rowsOf(server, `select array_count(${large})`), [[5_000_000]]);
  t.deepEqual(await rowsOf(server, 'select array_count(a) from la'), [[5_000_000]]);
  const took = performance.now() - began;
  t.true(took < 10_000, `${Math.round(took)} ms`);
});

/**
 * PostgreSQL syntax that tools and people use. These tests compare not only rows but also plans,
 * column names and skipped text. Rows are tested in `test/sql/cases`.
 */
import test from 'ava';

import { parse, SyntaxError_ } from '../../ts/sql/index.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { send, rowsOf } from '../limits/client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});

test.after.always(async () => {
  await server.stop();
});

test('row values are compared as in PostgreSQL', async (t) => {
  await rowsOf(
    server,
    `create table pairs as (select x::int a, (x % 3)::int b, timestamp_sequence('2024', 86400000000)
      ts from long_sequence(6)) timestamp(ts) partition by day`,
  );
  for (const [condition, found] of [
    ['(a, b) in ((1, 1), (2, 2), (3, 1))', [1, 2]],
    ['(a, b) not in ((1, 1), (2, 2))', [3, 4, 5, 6]],
    ['(a + 1, b) in ((2, 1))', [1]],
    ['(a, b) = (3, 0)', [3]],
    ['row(a, b) <> row(3, 0)', [1, 2, 4, 5, 6]],
    ['(b, a) < (1, 4)', [1, 3, 6]],
    ['(b, a) <= (1, 4)', [1, 3, 4, 6]],
    ['(b, a) > (1, 4)', [2, 5]],
    ['(b, a) >= (1, 4)', [2, 4, 5]],
    [`(ts, a) > ('2024-01-04', 4)`, [5, 6]],
    [`(ts, b, a) > ('2024-01-04', 1, 3)`, [4, 5, 6]],
  ] as const) {
    const rows = await rowsOf(server, `select a from pairs where ${condition} order by a`);
    t.deepEqual(rows.flat(), [...found], condition);
  }
  // The first value alone determines which partitions are read.
  const plan = await rowsOf(
    server,
    `explain select a from pairs where (ts, a) > ('2024-01-04', 4)`,
  );
  t.regex(JSON.stringify(plan), /TableScanExec: pairs .*rows=3/);
});

test('row values that cannot be compared are refused with their position', (t) => {
  const many = Array.from({ length: 40_000 }, (_, at) => at).join();
  for (const [query, position, error] of [
    ['select (1, 2)', 7, /^row values support only =/],
    ['select 1 where (1, 2) = (1, 2, 3)', 22, /^cannot compare rows of length 2 and 3/],
    ['select 1 where 1 = (1, 2)', 17, /^cannot compare rows of length 1 and 2/],
    ['select 1 where (1, 2) in ((1, 2), 3)', 22, /^cannot compare rows of length 2 and 1/],
    [
      'select 1 where (1, 2) in (select 1, 2)',
      15,
      /^a row value cannot be compared with a sub-query/,
    ],
    ['select 1 where ((1, 2), 3) = ((1, 2), 3)', 15, /^nested row values are not supported/],
    ['select 1 where (1 + 1, 2) in ((1, 2), (2, 2))', 15, /columns, constants and their casts/],
    [`select 1 where (${many}) = (${many})`, undefined, /too many|more than|most/],
  ] as const) {
    const refusal = t.throws(() => parse(query), { instanceOf: SyntaxError_ }, query.slice(0, 80));
    t.regex(refusal.message, error, query.slice(0, 80));
    t.true(position === undefined || refusal.start === position, query.slice(0, 80));
  }
});

test('interval arithmetic shifts timestamps, and prunes partitions', async (t) => {
  await rowsOf(
    server,
    `create table moved as (select timestamp_sequence('2026-01-01', 3600000000) ts, x
      from long_sequence(100)) timestamp(ts) partition by day`,
  );
  const rows = await rowsOf(
    server,
    `select count() from moved where ts >= timestamp '2026-01-04' - interval '1 day'
      and ts < '2026-01-02'::timestamp + 2 * interval '1 day'`,
  );
  t.deepEqual(rows, [[24]]);
  const text = `select max(ts + (x || ' minutes')::interval) from moved`;
  t.deepEqual(await rowsOf(server, text), [['2026-01-05T04:40:00.000000Z']]);
});

test('a keyword after AS is an alias unless a clause of that keyword follows it', async (t) => {
  // drizzle-kit queries policies this way.
  const body = new URLSearchParams({ query: 'select 1 as using, 2 as for, 3 as where' });
  const response = await fetch(`${server.url}/exec`, { method: 'POST', body });
  const { columns } = (await response.json()) as { columns: { name: string }[] };
  t.deepEqual(
    columns.map(({ name }) => name),
    ['using', 'for', 'where'],
  );
  t.notThrows(() => parse('select (select 1 as order) as with, 2 as select, 3'));
  for (const text of ['select 1 as from t', 'select 1 as select from t', 'select 1 as where x']) {
    t.throws(() => parse(text), { message: /have to be enclosed in double quotes/ }, text);
  }
});

test('maintenance statements and options from pgbench and vacuumdb are accepted', async (t) => {
  const statement =
    'create table mt (a int not null, f char(84)) with (fillfactor=100, toast.x = 1, y)';
  t.is((await send(server, statement)).error, undefined);
  for (const options of ['', 'table', 'analyze', 'full verbose', '(analyze, verbose false)']) {
    t.is((await send(server, `vacuum ${options} mt`)).error, undefined, options);
  }
  for (const text of ['vacuum', 'vacuum (', 'vacuum ()', 'vacuum (full', 'vacuum analyze']) {
    t.throws(() => parse(text), { instanceOf: SyntaxError_ }, text);
  }
  t.throws(() => parse('create table x (a int) with (fillfactor='), { instanceOf: SyntaxError_ });
});

test('CREATE SCHEMA IF NOT EXISTS accepts only public', async (t) => {
  for (const text of ['public', '"public" authorization admin']) {
    const created = await send(server, `create schema if not exists ${text}`);
    t.is(created.error, undefined, text);
  }
  const other = { message: "schema 'x' cannot be created, all tables are in public" };
  t.throws(() => parse('create schema if not exists x'), other);
  t.throws(() => parse('create schema public'), { message: /already exists/ });
  t.throws(() => parse('create schema if not exists'), { message: 'schema name expected' });
});

test('DDL from migration tools is accepted', async (t) => {
  const ddl = async (text: string): Promise<unknown> => {
    const body = new URLSearchParams({ query: text });
    const response = await fetch(`${server.url}/exec`, { method: 'POST', body });
    return await response.json();
  };
  t.like(await ddl('create table k (id int primary key, n varchar(20) unique)'), { ddl: 'OK' });
  t.regex(
    JSON.stringify(await ddl('create table k2 (a int, b int, unique (a), check (a > 0))')),
    /not enforced/,
  );
  t.deepEqual(
    await ddl(
      `create table d (ts timestamp(6), s symbol references p (id) on delete cascade, v double,
        constraint d_pk primary key (ts, s)) timestamp(ts) partition by day wal`,
    ),
    { ddl: 'OK', notice: 'UNIQUE, CHECK and FOREIGN KEY are not enforced' },
  );
  const [[create] = []] = await rowsOf(server, 'show create table d');
  t.regex(String(create), /DEDUP UPSERT KEYS\(ts,s\)/);
  await rowsOf(server, `insert into d values ('2026-01-01', 'a', 1), ('2026-01-01', 'a', 2)`);
  t.deepEqual(await rowsOf(server, 'select s, v from d'), [['a', 2]]);
  t.like(await ddl('create unique index concurrently if not exists i on d using btree (s desc)'), {
    ddl: 'OK',
  });
  t.is((await send(server, 'drop index concurrently if exists public.i cascade')).error, undefined);
  t.is((await send(server, `comment on column d.v is 'the value'`)).error, undefined);
  t.is((await send(server, 'comment on table d is 1')).status, 400);
  t.like(await ddl('alter table d add constraint c unique (v)'), { ddl: 'OK' });
  t.regex(JSON.stringify(await ddl('alter table d add column q int unique')), /not enforced/);
  t.like(await ddl('alter table d drop column q'), { ddl: 'OK' });
  t.like(await ddl('alter table d rename v to w'), { ddl: 'OK' });
  t.like(await ddl('alter table d rename to e'), { ddl: 'OK' });
  t.deepEqual(await rowsOf(server, 'select w from e'), [[2]]);
  t.like(await ddl('create table f as select * from e'), { ddl: 'OK' });
  t.like(await ddl('drop table f cascade'), { ddl: 'OK' });
  t.is((await send(server, 'create table g (id int, primary key (nope))')).status, 400);
});

test('some functions need no parentheses, but a column of the same name wins', async (t) => {
  const one = async (query: string): Promise<unknown> => (await rowsOf(server, query))[0];
  t.deepEqual(await one('select count from long_sequence(3)'), [3]);
  t.deepEqual(await one('select x, count from long_sequence(3) order by x'), [1, 1]);
  t.deepEqual(await one('select pi = pi()'), [true]);
  t.deepEqual(await one('select count from (select 5 as count)'), [5]);
  t.deepEqual(await one('select build = build(), user, current_role'), [true, 'admin', 'admin']);
  for (const [query, name] of [
    ['select "count" from long_sequence(3)', 'count'],
    ['select x from long_sequence(3) where now > 0', 'now'],
    ['select rank from long_sequence(3)', 'rank'],
    ['select max from long_sequence(3)', 'max'],
  ] as const) {
    t.is((await send(server, query)).error, `Invalid column: ${name}`, query);
  }
});

test('rate and delta functions use the timestamps of their input rows by default', async (t) => {
  await rowsOf(server, 'create table counters (ts timestamp, v double) timestamp(ts)');
  await rowsOf(
    server,
    `insert into counters values ('2026-01-01T00:00:00', 5), ('2026-01-01T00:00:10', 8),
      ('2026-01-01T00:00:20', 2), ('2026-01-01T00:00:40', null), ('2026-01-01T00:01:00', 6)`,
  );
  const both = 'select rate(v), rate(v, ts), increase(v), delta(v), derivative(v) from counters';
  t.deepEqual(await rowsOf(server, both), [[9 / 60, 9 / 60, 9, 1, 1 / 60]]);
  const steps = `select time_weight(v, ts, 'locf') = twap(v, ts), time_weight(v, ts, 'linear') =
    time_weight(v), integral(v) from counters`;
  t.deepEqual(await rowsOf(server, steps), [[true, true, 6.5 * 10 + 5 * 10 + 4 * 40]]);
  const windows = `select locf(v) over (order by ts), interpolate(v) over (order by ts),
    increase(v) over (order by ts rows between 1 preceding and current row) from counters`;
  t.deepEqual(await rowsOf(server, windows), [
    [5, 5, 0],
    [8, 8, 3],
    [2, 2, 2],
    [2, 4, 0],
    [6, 6, 0],
  ]);
  const shape = 'select v from counters qualify lttb(v, 3) over (order by ts)';
  t.deepEqual(await rowsOf(server, shape), [[5], [2], [6]]);
  for (const [query, error] of [
    ['select rate(x) from long_sequence(3)', /no matching function `rate`/],
    [`select time_weight(v, ts, 'cubic') from counters`, /'linear' or 'locf' expected/],
    [
      'select lttb(v, -1) over (order by ts) from counters',
      /number of rows must be a non-negative constant/,
    ],
    ['select lttb(v, 3) over () from counters', /requires ORDER BY on the time/],
  ] as const) {
    t.regex((await send(server, query)).error ?? '', error, query);
  }
});

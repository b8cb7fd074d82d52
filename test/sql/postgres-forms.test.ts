/**
 * Forms and functions of PostgreSQL that tools and people write. The values are those that
 * PostgreSQL 15 answered for the same texts.
 */
import test from 'ava';

import { parse, SyntaxError_ } from '../../ts/sql/index.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { ask, rowsOf } from '../limits/client.js';

const VALUES: readonly (readonly [expression: string, value: string])[] = [
  ["timestamp '2024-01-31 10:00:00' + interval '1 month'", '2024-02-29 10:00:00.000000'],
  ["timestamp '2024-03-31 10:00:00' - interval '1 month 1 day'", '2024-02-28 10:00:00.000000'],
  ["timestamp '2024-02-29' + interval '1 year'", '2025-02-28 00:00:00.000000'],
  ["timestamp '2024-01-01' + interval '1.5 months'", '2024-02-16 00:00:00.000000'],
  ["timestamp '2024-01-01' + interval '1.5 days'", '2024-01-02 12:00:00.000000'],
  ["timestamp '2024-01-01' + interval '-04:05:06.5'", '2023-12-31 19:54:53.500000'],
  ["timestamp '2024-01-01' + interval '2 days 04:05:06'", '2024-01-03 04:05:06.000000'],
  ["timestamp '2024-01-01' - interval '3 hours ago'", '2024-01-01 03:00:00.000000'],
  ["timestamp '2024-01-01' + interval '5' minute", '2024-01-01 00:05:00.000000'],
  ["timestamp '2024-01-01' + 3 * interval '20 minutes'", '2024-01-01 01:00:00.000000'],
  ["timestamp '2024-01-01' + interval '1 day' * 2.5", '2024-01-03 12:00:00.000000'],
  ["interval '90 seconds' + timestamp '2024-01-01'", '2024-01-01 00:01:30.000000'],
  ["timestamp '2024-01-01' + '1 week 2 days'::interval", '2024-01-10 00:00:00.000000'],
  ["timestamp '2024-01-01' + interval '1 decade'", '2034-01-01 00:00:00.000000'],
  ["timestamp '2024-01-01' + interval '250 milliseconds'", '2024-01-01 00:00:00.250000'],
  ["timestamp '2024-01-01' - interval '1 day' - interval '1 hour'", '2023-12-30 23:00:00.000000'],
  [
    "date_bin('15 minutes', timestamp '2024-02-11 15:44:17', timestamp '2001-01-01')",
    '2024-02-11 15:30:00.000000',
  ],
  [
    "date_bin('15 minutes', timestamp '2024-02-11 15:44:17', timestamp '2001-01-01 00:02:30')",
    '2024-02-11 15:32:30.000000',
  ],
  [
    "date_bin(interval '7 days', timestamp '2024-02-11 15:44:17', timestamp '2024-01-01')",
    '2024-02-05 00:00:00.000000',
  ],
  [
    "date_bin('1 day 1 hour', timestamp '1999-02-11 15:44:17', timestamp '2001-01-01')",
    '1999-02-11 10:00:00.000000',
  ],
  ['make_timestamp(2024, 2, 29, 23, 59, 59.999999)', '2024-02-29 23:59:59.999999'],
  [
    "to_char(timestamp '2024-02-09 15:04:05.006007', 'YYYY-MM-DD HH24:MI:SS.US')",
    '2024-02-09 15:04:05.006007',
  ],
  [
    "to_char(timestamp '2024-02-09 15:04:05.006007', 'YY/FMMM/DD HH12:MI:SS.MS AM')",
    '24/2/09 03:04:05.006 PM',
  ],
  [
    "to_char(timestamp '2024-02-09 00:04:05', 'HH:MI am, DDD D ID IW IYYY Q CC')",
    '12:04 am, 040 6 5 06 2024 1 21',
  ],
  ["to_char(timestamp '2024-02-09', 'Dy DY dy Mon MON mon')", 'Fri FRI fri Feb FEB feb'],
  ['to_char(timestamp \'2024-02-09\', \'"Week" IW, YYYY"Y"\')', 'Week 06, 2024Y'],
  ["to_char(timestamp '2024-02-09 15:04:05', 'yyyy-mm-dd hh24:mi:ss')", '2024-02-09 15:04:05'],
  ["to_char(timestamp '2024-02-09 15:04:05', 'SSSS')", '54245'],
  ['to_timestamp(1700000000.25)::timestamp', '2023-11-14 22:13:20.250000'],
  ["date_part('dow', timestamp '2024-02-09 15:04:05.5')", '5.0'],
  ["date_part('second', timestamp '2024-02-09 15:04:05.5')", '5.5'],
  ["date_part('epoch', timestamp '2024-02-09 15:04:05.5')", '1.7074910455E9'],
  ["date_part('quarter', timestamp '2024-02-09')", '1.0'],
  ["date_part('doy', timestamp '2024-12-31')", '366.0'],
  ["date_part('week', timestamp '2024-12-31')", '1.0'],
  ["extract('dow' from timestamp '2024-02-09')", '5'],
  ["extract('isodow' from timestamp '2024-02-11')", '7'],
  ["position('an' in 'banana')", '2'],
  ["position('' in 'banana')", '1'],
  ["position('z' in 'banana')", '0'],
  ["substring('banana', 3)", 'nana'],
  ["substring('banana', 0)", 'banana'],
  ["substring('banana', -2)", 'banana'],
  ["substring('banana', 9)", ''],
  ["substring('b\u00e4nana', 2)", '\u00e4nana'],
  ['trunc(-1.79::float8)', '-1.0'],
  ['trunc(12.5::float8)', '12.0'],
  ["initcap('hello wORLD of-things o''neil')", "Hello World Of-Things O'Neil"],
  ['chr(8364)', '\u20ac'],
  ["ascii('\u20acuro')", '8364'],
  ["ascii('')", '0'],
  ["repeat('ab', 3)", 'ababab'],
  ["repeat('ab', 0)", ''],
  ["repeat('ab', -1)", ''],
  ["concat_ws('-', 'a', null, 'b', '')", 'a-b-'],
  ["concat_ws(',', 'a')", 'a'],
  ["format('%I.%I = %L', 'Table', 'my_col', 'it''s')", "\"Table\".my_col = 'it''s'"],
  ["format('%s and %% and %2$s', 'a', 'b')", 'a and % and b'],
  ["format('%L', null::text)", 'NULL'],
  ["timestamp '2024-07-01 12:00:00' + interval '0 days'", '2024-07-01 12:00:00.000000'],
  ["(select count(*) from (values (1, 'a'), (2, 'b')) as t(x, y) where x > 1 and y = 'b')", '1'],
  ['(select max(x) from (values (1), (2)) t(x))', '2'],
];

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});

test.after.always(async () => {
  await server.stop();
});

/** A value as psql shows it. */
function shown(value: unknown): string {
  const text = typeof value === 'string' ? value : value === null ? '' : JSON.stringify(value);
  const time = /^(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)\.(\d{6})Z$/.exec(text);
  return time === null ? text : `${time[1]} ${time[2]}.${time[3]}`.replace(/\.?0+$/, '');
}

test('expressions have the values that PostgreSQL gives them', async (t) => {
  for (const [expression, value] of VALUES) {
    const { error, rows } = await ask(server, `select ${expression}`);
    const isTime = /^\d{4}-\d\d-\d\d \d\d:/.test(value) && !expression.startsWith('to_char');
    const expected = isTime ? value.replace(/\.?0+$/, '') : value;
    const answer = error ?? shown(rows[0]?.[0]);
    const isNumber = value !== '' && Number.isFinite(Number(value));
    t.is(isNumber ? Number(answer) : answer, isNumber ? Number(value) : expected, expression);
  }
});

test('intervals that are none are refused by their text', async (t) => {
  const time = `timestamp '2024-01-01'`;
  for (const text of ['', '1 parsec', 'day', '1 hour x', '::', '9'.repeat(300), `1e300 days`]) {
    const { status, error = '' } = await ask(server, `select ${time} + interval '${text}'`);
    t.is(status, 400, text);
    t.regex(error, /invalid interval|interval out of range/, text);
  }
  t.regex(
    (await ask(server, `select date_bin('0 days', ${time}, ${time})`)).error ?? '',
    /a step of time must be more than nothing/,
  );
  t.regex(
    (await ask(server, `select date_bin('1 month 1 day', ${time}, ${time})`)).error ?? '',
    /months or a fixed length/,
  );
});

test('rows of values are compared as PostgreSQL compares them', async (t) => {
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
  // The first value alone says which parts of the table are read.
  const plan = await rowsOf(
    server,
    `explain select a from pairs where (ts, a) > ('2024-01-04', 4)`,
  );
  t.regex(JSON.stringify(plan), /TableScanExec: pairs .*rows=3/);
});

test('rows of values that nothing can compare are refused where they are written', (t) => {
  const many = Array.from({ length: 40_000 }, (_, at) => at).join();
  for (const [query, position, error] of [
    ['select (1, 2)', 7, /^a row of values is compared by =/],
    ['select 1 where (1, 2) = (1, 2, 3)', 22, /^a row of 2 is compared with one of 3/],
    ['select 1 where 1 = (1, 2)', 17, /^a row of 1 is compared with one of 2/],
    ['select 1 where (1, 2) in ((1, 2), 3)', 22, /^a row of 2 is compared with one of 1/],
    ['select 1 where (1, 2) in (select 1, 2)', 15, /^a row is looked up in a list/],
    ['select 1 where ((1, 2), 3) = ((1, 2), 3)', 15, /^a row within a row/],
    ['select 1 where (1 + 1, 2) in ((1, 2), (2, 2))', 15, /columns, constants and their casts/],
    [`select 1 where (${many}) = (${many})`, undefined, /too many|more than|most/],
  ] as const) {
    const refusal = t.throws(() => parse(query), { instanceOf: SyntaxError_ }, query.slice(0, 80));
    t.regex(refusal.message, error, query.slice(0, 80));
    t.true(position === undefined || refusal.start === position, query.slice(0, 80));
  }
});

test('an interval moves times of rows, and prunes as a literal does', async (t) => {
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

test('long products and sums are no intervals, and are read as before', async (t) => {
  const product = Array.from({ length: 900 }, () => '1').join(' * ');
  t.deepEqual(await rowsOf(server, `select ${product} + 1`), [[2]]);
  const sum = Array.from({ length: 800 }, () => '1 * 1').join(' + ');
  t.deepEqual(await rowsOf(server, `select ${sum} - 1`), [[799]]);
  const moved = Array.from({ length: 500 }, () => `+ interval '1 day' * 2`).join(' ');
  t.deepEqual(await rowsOf(server, `select (timestamp '2024-01-01' ${moved})::string`), [
    ['2026-09-27T00:00:00.000000Z'],
  ]);
});

test('tables in parenthesised joins keep their names', async (t) => {
  await rowsOf(server, 'create table p (id int, a int)');
  await rowsOf(server, 'insert into p values (1, 10), (2, 20)');
  const count = async (from: string): Promise<unknown> =>
    (await rowsOf(server, `select count(*) from ${from}`))[0]?.[0];
  t.is(await count('(p x join p y on x.id = y.id) join p z on z.id = x.id and y.a = z.a'), 2);
  t.is(await count('p z join (p x join p y on x.id = y.id) on z.id = y.id'), 2);
  t.is(await count('((p x join p y on x.id = y.id) cross join p z) where z.id = x.id'), 2);
  t.is(await count('(p x join p y on x.id = y.id) q where q.a = 10'), 1);
  t.is(await count('(p x where x.id = 1) q'), 1);
});

test('DDL that migrations write', async (t) => {
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
  t.is((await ask(server, 'drop index concurrently if exists public.i cascade')).error, undefined);
  t.is((await ask(server, `comment on column d.v is 'the value'`)).error, undefined);
  t.is((await ask(server, 'comment on table d is 1')).status, 400);
  t.like(await ddl('alter table d add constraint c unique (v)'), { ddl: 'OK' });
  t.regex(JSON.stringify(await ddl('alter table d add column q int unique')), /not enforced/);
  t.like(await ddl('alter table d drop column q'), { ddl: 'OK' });
  t.like(await ddl('alter table d rename v to w'), { ddl: 'OK' });
  t.like(await ddl('alter table d rename to e'), { ddl: 'OK' });
  t.deepEqual(await rowsOf(server, 'select w from e'), [[2]]);
  t.like(await ddl('create table f as select * from e'), { ddl: 'OK' });
  t.like(await ddl('drop table f cascade'), { ddl: 'OK' });
  t.is((await ask(server, 'create table g (id int, primary key (nope))')).status, 400);
});

test('numbered rows have numbers that grow, DEFAULT among the values', async (t) => {
  await rowsOf(server, 'create table n (id bigserial primary key, v int default 7, w int)');
  await rowsOf(server, 'insert into n (v, w) values (1, 1), (default, default)');
  await rowsOf(server, 'insert into n values (default, default, 3)');
  const rows = await rowsOf(server, 'select v, w from n order by id');
  t.deepEqual(rows, [
    [1, 1],
    [7, null],
    [7, 3],
  ]);
  t.deepEqual(await rowsOf(server, 'select count_distinct(id), count() from n'), [[3, 3]]);
  await rowsOf(server, 'create table m (id int generated by default as identity, x int)');
  await rowsOf(server, 'insert into m (x) select x::int from long_sequence(100000)');
  t.deepEqual(await rowsOf(server, 'select count_distinct(id) from m'), [[100_000]]);
  t.regex((await ask(server, 'select * from (values (default)) t(x)')).error ?? '', /INSERT only/);
});

test('switch is a CASE', async (t) => {
  const rows = await rowsOf(
    server,
    `select switch(x, 1, 'one', 2, 'two', 'many'), switch(x, 1, 'one') from long_sequence(3)`,
  );
  t.deepEqual(rows, [
    ['one', 'one'],
    ['two', null],
    ['many', null],
  ]);
});

test('functions of types are joined by their numbers, as Npgsql and Ruby do', async (t) => {
  const arrays = `select count(*) from pg_type t join pg_proc p on p.oid = t.typreceive
    where p.proname = 'array_recv' and t.typelem = 0`;
  t.deepEqual(await rowsOf(server, arrays), [[0]]);
  const [all, joined] = await Promise.all(
    ['', 'join pg_proc p on p.oid = t.typinput'].map(
      async (join) => (await rowsOf(server, `select count(*) from pg_type t ${join}`))[0]?.[0],
    ),
  );
  t.true(Number(joined) > 40);
  t.is(joined, all);
  await rowsOf(server, 'create table own (typinput varchar, n int)');
  const other = await ask(server, 'select count(*) from own a join own b on a.typinput = b.n');
  t.is(other.error, 'join column type mismatch');
  t.deepEqual(await rowsOf(server, 'select count(*) from pg_available_extensions'), [[0]]);
  t.deepEqual(await rowsOf(server, 'select count(*) from pg_sequences'), [[0]]);
});

/**
 * Size limits. Each has a configuration key, and the error for exceeding it names the object and
 * the limit.
 */
import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { send, rowsOf } from './client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: [
      'cairo.max.tables=3',
      'cairo.max.partitions=4',
      'cairo.max.columns=5',
      'cairo.max.cell.size=1K',
      'cairo.max.array.element.count=6',
      'http.text.line.limit=2K',
    ],
  });
  await rowsOf(
    server,
    'create table t (v varchar, s symbol, a double[], ts timestamp) timestamp(ts) partition by day',
  );
  await rowsOf(server, `insert into t values ('a', 'b', array[1.0], '2026-01-01')`);
});

test.after.always(async () => {
  await server.stop();
});

const BEFORE = 'select count(), max(ts) from t';

/**
 * Checks that the statement is refused with this message, and that the table is unchanged and
 * accepts rows.
 */
async function refused(t: ExecutionContext, query: string, error: string): Promise<void> {
  const before = await rowsOf(server, BEFORE);
  const answer = await send(server, query);
  t.is(answer.error, error);
  t.is(answer.status, 400);
  t.deepEqual(await rowsOf(server, BEFORE), before);
  await rowsOf(server, `insert into t (v, s, a, ts) values ('a', 'b', null, '2026-01-01')`);
  const [row] = await rowsOf(server, 'select count() from t');
  t.is(row?.[0], Number(before[0]?.[0]) + 1);
}

test.serial('the number of tables is limited', async (t) => {
  await rowsOf(server, 'create table t2 (x int)');
  await rowsOf(server, 'create table t3 (x int)');
  const words = 'too many tables: 4, at most 3 tables are allowed';
  await refused(t, 'create table t4 (x int)', words);
  await refused(t, 'create table t4 as (select 1 x)', words);
  await rowsOf(server, 'drop table t3');
  await rowsOf(server, 'create table t4 (x int)');
});

test.serial('the number of partitions is limited', async (t) => {
  const days = ['02', '03', '04'];
  await rowsOf(server, `insert into t values ${days.map(rowOf).join()}`);
  const words = "table 't' has 5 partitions: at most 4 partitions are allowed";
  await refused(t, `insert into t values ${rowOf('05')}`, words);
  await rowsOf(server, "alter table t drop partition list '2026-01-02'");
  await rowsOf(server, `insert into t values ${rowOf('05')}`);
});

function rowOf(day: string): string {
  return `('a', 'b', array[1.0], '2026-01-${day}')`;
}

test.serial('the number of columns is limited', async (t) => {
  await rowsOf(server, 'alter table t add column x int');
  const words = (table: string, count: number): string =>
    `table '${table}' has ${count} columns: at most 5 columns are allowed`;
  await refused(t, 'alter table t add column y int', words('t', 6));
  await rowsOf(server, 'alter table t drop column x');
  const many = Array.from({ length: 6 }, (_, index) => `c${index} int`).join();
  await rowsOf(server, 'drop table t2');
  await refused(t, `create table wide (${many})`, words('wide', 6));
});

test.serial('the size of a cell is limited', async (t) => {
  const words = (column: string): string =>
    `column '${column}': value is 1025 bytes long: at most 1024 bytes are allowed`;
  const long = 'x'.repeat(1025);
  await refused(t, `insert into t values ('${long}', 'b', null, '2026-01-01')`, words('v'));
  await refused(t, `insert into t values ('a', '${long}', null, '2026-01-01')`, words('s'));
  await refused(t, `update t set v = '${long}'`, words('v'));
  const select = `insert into t select rpad('x', 1025, 'x'), 'b', null, '2026-01-01'`;
  await refused(t, select, words('v'));
});

test.serial('the number of array elements is limited', async (t) => {
  const words = "column 'a': array has 7 elements: at most 6 elements are allowed";
  const row = (array: string): string => `('a', 'b', ${array}, '2026-01-01')`;
  await refused(t, `insert into t values ${row('array[1.0,2,3,4,5,6,7]')}`, words);
  await refused(t, 'update t set a = array[1.0,2,3,4,5,6,7]', words);
  await rowsOf(server, `insert into t values ${row('array[1.0,2,3,4,5,6]')}`);
});

test.serial('the length of an import line is limited', async (t) => {
  const body = new FormData();
  const lines = ['v,s,ts', 'a,b,2026-01-01T00:00:00.000000Z', `${'x'.repeat(3_000)},b,`];
  body.append('data', new Blob([lines.join('\n')]));
  const response = await fetch(`${server.url}/imp?name=lines&fmt=json`, { method: 'POST', body });
  const { status } = (await response.json()) as { status: string };
  t.is(status, 'line is longer than 2048 bytes [http.text.line.limit=2048]');
});

test('arrays over the hard limit are refused', async (t) => {
  const { error } = await send(server, 'select array_build(1, 10000001, 0.0)');
  t.regex(error ?? '', /at most 10000000 elements are allowed|array_build/);
});

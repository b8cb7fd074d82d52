/**
 * Parquet partitions give the same answers as native partitions, before and after late rows,
 * updates, a restart, and conversion back to native.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

type Rows = readonly (readonly unknown[])[];

async function exec(server: TestServer, query: string): Promise<Rows> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  const answer = (await response.json()) as { dataset?: Rows; error?: string };
  if (answer.error !== undefined) {
    throw new Error(`${query}: ${answer.error}`);
  }
  return answer.dataset ?? [];
}

/** 3,000 rows over ten days; every tenth price is null. */
const ROWS = `select dateadd('m', (x * 4)::int, '2024-01-01'::timestamp) ts,
  case when x % 3 = 0 then 'a' when x % 3 = 1 then 'b' else null end::symbol s,
  x::int id, case when x % 10 = 0 then null else x * 0.5 end price, ARRAY[x * 1.0, x * 2.0] book
  from long_sequence(3000)`;

/** `T` stands for the table. */
const QUERIES = [
  'select * from T',
  'select ts, id from T order by ts desc limit 20',
  "select count(), sum(id), avg(price), first(price), last(s) from T where ts in '2024-01-02'",
  "select id, s, book[2] from T where ts between '2024-01-02T23:00' and '2024-01-03T01:00'",
  "select id from T where s = 'a' and price > 700",
  'select s, count(), max(price) from T order by s',
  'select ts, s, sum(price), count() from T sample by 6h',
  "select ts, avg(price) from T where s = 'b' sample by 1d fill(prev)",
  'select * from T latest on ts partition by s order by s',
  'select p.t, r.id, r.price from probes p asof join T r',
  'select p.t, r.id from probes p asof join T r on s',
  'select a.id, b.id from T a join T b on a.id = b.id where a.id < 50 order by a.id',
];

async function sameAnswers(server: TestServer): Promise<string | null> {
  for (const query of QUERIES) {
    const of = (table: string): Promise<Rows> => exec(server, query.replace(/\bT\b/g, table));
    const [native, mixed] = [await of('native'), await of('mixed')];
    if (native.length === 0 || JSON.stringify(native) !== JSON.stringify(mixed)) {
      const shown = (rows: Rows): string => JSON.stringify(rows).slice(0, 300);
      return `${query}: ${shown(native)} ≠ ${shown(mixed)}`;
    }
  }
  return null;
}

async function both(server: TestServer, statement: string): Promise<void> {
  for (const table of ['native', 'mixed']) {
    await exec(server, statement.replace(/\bT\b/g, table));
  }
}

async function parquetPartitions(server: TestServer): Promise<readonly unknown[]> {
  const rows = await exec(
    server,
    "select name, parquetFileSize from table_partitions('mixed') where isParquet",
  );
  return rows.map(([name, size]) => (Number(size) > 0 ? name : `${String(name)} without size`));
}

test('queries over Parquet and native partitions return the same results', async (t) => {
  t.timeout(180_000);
  const root = await mkdtemp(join(tmpdir(), 'tidemark-parquet-'));
  let server = await startTestServer({ root });
  const restart = async (): Promise<void> => {
    await server.stop();
    server = await startTestServer({ root });
  };
  try {
    await both(server, `create table T as (${ROWS}) timestamp(ts) partition by day`);
    await exec(
      server,
      `create table probes as (select dateadd('h', x::int, '2024-01-01'::timestamp) t,
        case when x % 2 = 0 then 'a' else 'b' end::symbol s from long_sequence(220))
        timestamp(t)`,
    );
    t.is(await sameAnswers(server), null, 'native');

    await exec(server, "alter table mixed convert partition to parquet list '2024-01-02'");
    await exec(server, "alter table mixed convert partition to parquet where ts < '2024-01-05'");
    const days = ['2024-01-01', '2024-01-02', '2024-01-03', '2024-01-04'];
    t.deepEqual(await parquetPartitions(server), days);
    t.is(await sameAnswers(server), null, 'converted');
    await restart();
    t.deepEqual(await parquetPartitions(server), days);
    t.is(await sameAnswers(server), null, 'restarted');

    await both(
      server,
      `insert into T values ('2024-01-02T00:02', 'late', -1, 0.25, ARRAY[1.0]),
        ('2024-01-02T00:02', 'a', -2, null, null)`,
    );
    t.is(await sameAnswers(server), null, 'with late rows');
    await restart();
    t.deepEqual(await parquetPartitions(server), days);
    t.is(await sameAnswers(server), null, 'with late rows in segments');

    await both(
      server,
      "update T set price = id, s = 'new' where id % 7 = 0 and ts in '2024-01-03'",
    );
    t.is(await sameAnswers(server), null, 'updated');
    await restart();
    t.is(await sameAnswers(server), null, 'updated, restarted');

    await both(server, 'alter table T add column extra double');
    await both(server, 'alter table T drop column book');
    await exec(server, "alter table mixed convert partition to native list '2024-01-02'");
    t.false((await parquetPartitions(server)).includes('2024-01-02'));
    t.deepEqual(
      await exec(server, 'select * from mixed'),
      await exec(server, 'select * from native'),
    );
    await exec(server, "alter table mixed convert partition to native where ts > '2020'");
    t.deepEqual(await parquetPartitions(server), []);
    await restart();
    t.deepEqual(
      await exec(server, 'select * from mixed'),
      await exec(server, 'select * from native'),
    );
  } finally {
    await server.stop();
    await rm(root, { recursive: true, force: true });
  }
});

test('an impossible conversion is reported with a clear error', async (t) => {
  t.timeout(60_000);
  const server = await startTestServer();
  try {
    await exec(server, 'create table c (ts timestamp, x int) timestamp(ts) partition by day');
    await exec(server, "insert into c values ('2024-01-01', 1), ('2024-01-02', 2)");
    await exec(server, 'create table flat (x int)');
    const convert = async (what: string): Promise<string> => {
      const failed = await t.throwsAsync(exec(server, `alter table ${what}`));
      return failed.message;
    };
    t.regex(await convert("c convert partition to parquet list '2023-01-01'"), /2023-01-01/);
    t.regex(await convert("c convert partition to parquet list 'x'"), /yyyy-MM-dd/);
    t.regex(await convert("flat convert partition to parquet list '2023'"), /not partitioned/);
    // The active partition stays native, as in QuestDB.
    await exec(server, "alter table c convert partition to parquet list '2024-01-02'");
    t.deepEqual(await exec(server, "select isParquet from table_partitions('c')"), [
      [false],
      [false],
    ]);
    t.deepEqual(await exec(server, 'select x from c'), [[1], [2]]);
  } finally {
    await server.stop();
  }
});

/**
 * COPY … TO on a real server: files, partitions, options and paths; other programs read the files
 * back.
 */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, rows, run } from '../scenario/statements.js';
import { exported, python, start, unload, write } from './harness.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
  await run(
    server,
    'CREATE TABLE t (ts TIMESTAMP, s SYMBOL, x INT, d DOUBLE) TIMESTAMP(ts) PARTITION BY DAY',
    `INSERT INTO t VALUES ('2024-01-01T10:00', 'a', 1, 0.5), ('2024-01-01T11:00', 'b', 2, null),
     ('2024-01-03', null, 3, -1.5), ('2024-02-29T23:59:59.999999', 'a', 4, 1e300)`,
    'CREATE TABLE plain (x INT)',
    'INSERT INTO plain VALUES (1)',
  );
});

test.after.always(async () => {
  await server.stop();
});

async function names(prefix: string): Promise<readonly string[]> {
  return (await exported(server)).filter((name) => name.startsWith(prefix));
}

test('a table is exported to Parquet with one file per partition', async (t) => {
  const end = await unload(server, "COPY t TO 'days' WITH FORMAT PARQUET");
  t.deepEqual(end, { status: 'finished', message: null, counts: [3] });
  const files = ['2024-01-01', '2024-01-03', '2024-02-29'].map((day) => `days/${day}.parquet`);
  t.deepEqual(await names('days'), files);
  const [path] = await rows(
    server,
    "SELECT export_path FROM sys.copy_export_log WHERE export_path LIKE '%days/'",
  );
  t.is(path?.[0], `${join(server.root, 'export', 'days')}/`);
});

test('an export accepts any partition unit; NONE writes one file', async (t) => {
  for (const [unit, files] of [
    ['HOUR', ['2024-01-01T10', '2024-01-01T11', '2024-01-03T00', '2024-02-29T23']],
    ['WEEK', ['2024-W01', '2024-W09']],
    ['MONTH', ['2024-01', '2024-02']],
    ['YEAR', ['2024']],
  ] as const) {
    await write(server, `COPY t TO 'by/${unit}' WITH FORMAT PARQUET PARTITION_BY ${unit}`);
    t.deepEqual(
      await names(`by/${unit}`),
      files.map((file) => `by/${unit}/${file}.parquet`),
    );
  }
  await write(server, "COPY t TO 'one' WITH FORMAT PARQUET PARTITION_BY NONE");
  await write(server, "COPY plain TO 'plain.parquet' WITH FORMAT PARQUET");
  t.deepEqual(await names('one'), ['one.parquet']);
  t.deepEqual(await names('plain'), ['plain.parquet']);
});

test('exporting a query by partition runs it once and leaves no table behind', async (t) => {
  const query = 'SELECT ts, x, rnd_int() r FROM t -- all of it\n';
  const end = await unload(server, `COPY (${query}) TO 'query' WITH FORMAT CSV PARTITION_BY MONTH`);
  t.deepEqual(end.counts, [2], end.message ?? '');
  const text = await readFile(join(server.root, 'export', 'query', '2024-01.csv'), 'utf8');
  t.is(text.trim().split('\r\n').length, 4);
  t.deepEqual(await rows(server, "SELECT * FROM tables() WHERE table_name LIKE 'copy.%'"), []);
});

test('CSV exports have a header and delimiter; an empty result has only a header', async (t) => {
  await write(server, "COPY (SELECT s, x FROM t LIMIT 2) TO 'a/b.csv' WITH FORMAT CSV");
  const read = (name: string): Promise<string> =>
    readFile(join(server.root, 'export', name), 'utf8');
  t.is(await read('a/b.csv'), '"s","x"\r\n"a",1\r\n"b",2\r\n');
  await write(
    server,
    "COPY (SELECT s, x FROM t LIMIT 2) TO 'a/b' WITH FORMAT CSV HEADER false DELIMITER '|'",
  );
  t.is(await read('a/b.csv'), '"a"|1\r\n"b"|2\r\n');
  await write(server, "COPY (SELECT s, x FROM t WHERE x > 9) TO 'none' WITH FORMAT CSV");
  t.is(await read('none.csv'), '"s","x"\r\n');
});

test('an export replaces files of the same name and keeps other files', async (t) => {
  const folder = join(server.root, 'export', 'old');
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, '2024-01-01.csv'), 'old');
  await writeFile(join(folder, 'note.txt'), 'mine');
  await write(server, "COPY t TO 'old' WITH FORMAT CSV PARTITION_BY DAY");
  t.is(await readFile(join(folder, 'note.txt'), 'utf8'), 'mine');
  t.not(await readFile(join(folder, '2024-01-01.csv'), 'utf8'), 'old');
});

test.serial('paths cannot leave the export directory', async (t) => {
  const folder = join(server.root, 'export');
  await mkdir(folder, { recursive: true });
  await mkdir(join(server.root, 'outside'));
  await symlink('../outside', join(folder, 'link'));
  for (const path of ['../x', 'a/../../x', 'a/..']) {
    const { error } = await exec(server, `COPY t TO '${path}' WITH FORMAT CSV`);
    t.regex(error ?? '', /^path is outside the export directory/, path);
  }
  const inside = await unload(server, "COPY t TO 'link/x' WITH FORMAT CSV");
  t.regex(inside.message ?? '', /^path is outside the export directory: 'link'/);
  const target = await unload(server, "COPY t TO 'link' WITH FORMAT CSV PARTITION_BY DAY");
  t.is(target.status, 'failed');
  t.regex(target.message ?? '', /^cannot write the file: /);
  const { error } = await exec(server, "COPY t TO '.copy-0000000000000000' WITH FORMAT CSV");
  t.regex(error ?? '', /^invalid file name/);
  t.deepEqual(await names('.copy'), []);
});

test('statement errors are reported immediately, with their position', async (t) => {
  for (const [statement, message, position] of [
    ["COPY t TO 'x'", /^export format must be specified/, 10],
    ["COPY t TO 'x' WITH FORMAT json", /^unsupported format/, 26],
    ["COPY nope TO 'x' WITH FORMAT CSV", /^table does not exist \[table=nope\]$/, 5],
    ["COPY (SELECT y FROM t) TO 'x' WITH FORMAT CSV", /^Invalid column: y$/, 13],
    ["COPY t TO 'x' WITH FORMAT PARQUET PARTITION_BY a", /^invalid partition by option: a$/, 47],
    ["COPY plain TO 'x' WITH FORMAT CSV PARTITION_BY DAY", /^partitioning is possible only/, 34],
    [
      "COPY t TO 'x' WITH FORMAT PARQUET COMPRESSION_CODEC a",
      /^invalid compression codec\[a\]/,
      52,
    ],
    [
      "COPY t TO 'x' WITH FORMAT CSV ROW_GROUP_SIZE 1",
      /^ROW_GROUP_SIZE is not supported for CSV/,
      30,
    ],
    ["COPY t TO 'x' WITH FORMAT PARQUET HEADER true", /^HEADER is not supported for PARQUET/, 34],
    ["COPY 'zz' CANCEL", /^copy cancel ID format is invalid: 'zz'/, 5],
  ] as const) {
    const answer = await exec(server, statement);
    t.regex(answer.error ?? '', message, statement);
    t.is(answer.position, position, statement);
  }
});

test('pyarrow and DuckDB read the exported files correctly', async (t) => {
  await write(
    server,
    "COPY t TO 'read' WITH FORMAT PARQUET PARTITION_BY MONTH COMPRESSION_CODEC SNAPPY " +
      'ROW_GROUP_SIZE 2 STATISTICS_ENABLED false PARQUET_VERSION 1',
  );
  await write(server, "COPY t TO 'read' WITH FORMAT CSV");
  const folder = JSON.stringify(join(server.root, 'export', 'read'));
  const read = await python(
    'pyarrow, duckdb',
    `
import duckdb, json
import pyarrow.parquet as parquet
folder = ${folder}
first = parquet.ParquetFile(folder + "/2024-01.parquet")
codec = first.metadata.row_group(0).column(0).compression
groups = [first.metadata.row_group(at).num_rows for at in range(first.num_row_groups)]
rows = [[row["ts"].isoformat(), row["s"], row["x"], row["d"]] for row in first.read().to_pylist()]
all = duckdb.sql("select count(*), sum(x) from '" + folder + "/*.parquet'").fetchall()[0]
csv = duckdb.sql("select count(*), sum(x) from '" + folder + ".csv'").fetchall()[0]
print(json.dumps([codec, groups, rows, [int(n) for n in all], [int(n) for n in csv]]))`,
  );
  if (read === null) {
    process.stdout.write(`SKIPPED: ${t.title}: python3 with pyarrow and duckdb is not here\n`);
    t.pass();
    return;
  }
  t.deepEqual(read, [
    'SNAPPY',
    [2, 1],
    [
      ['2024-01-01T10:00:00+00:00', 'a', 1, 0.5],
      ['2024-01-01T11:00:00+00:00', 'b', 2, null],
      ['2024-01-03T00:00:00+00:00', null, 3, -1.5],
    ],
    [4, 10],
    [4, 10],
  ]);
});

test('COPY requires a writable session, and /exp refuses COPY', async (t) => {
  const reader = await startTestServer({ set: ['http.security.readonly=true'] });
  try {
    for (const statement of ["COPY t FROM 'x'", "COPY (SELECT 1) TO 'x' WITH FORMAT CSV"]) {
      const { error } = await exec(reader, statement);
      t.is(error, 'Write permission denied: the session is read-only');
    }
  } finally {
    await reader.stop();
  }
  const query = encodeURIComponent("COPY t TO 'refused' WITH FORMAT CSV");
  const response = await fetch(`${server.url}/exp?query=${query}`);
  t.is(response.status, 400);
  t.deepEqual(await names('refused'), []);
});

test('a finished or unknown job cannot be cancelled', async (t) => {
  const id = await start(server, "COPY t TO 'over' WITH FORMAT CSV");
  await write(server, "COPY t TO 'over' WITH FORMAT CSV");
  t.deepEqual(await rows(server, `COPY '${id}' CANCEL`), [[id, 'finished']]);
  t.deepEqual(await rows(server, "COPY '2f8a' CANCEL"), [['2f8a', 'unknown']]);
});

/** COPY … FROM on a real server: options, invalid rows, paths outside the import directory. */
import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, rows, run } from '../scenario/statements.js';
import { load, manyRows, put, start, unload } from './harness.js';

const HEAD = 'ts,s,x\n';
const GOOD = '2024-01-01T00:00:00.000000Z,a,1\n2024-01-02T00:00:00.000000Z,b,2\n';
const TABLE = 'ts TIMESTAMP, s SYMBOL, x INT) TIMESTAMP(ts) PARTITION BY DAY';
const MANY = 2_000_000;

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
  await put(server, 'good.csv', HEAD + GOOD);
  const bad = `${GOOD}2024-01-03T00:00:00.000000Z,c,none\n2024-01-04T00:00:00.000000Z,d,4\n`;
  await put(server, 'bad.csv', HEAD + bad);
});

test.after.always(async () => {
  await server.stop();
});

test('a file creates its table, and the log table records each step', async (t) => {
  const id = await start(
    server,
    "COPY made FROM 'good.csv' WITH HEADER true TIMESTAMP ts PARTITION BY MONTH",
  );
  t.regex(id, /^[\da-f]{16}$/);
  const end = await load(server, "COPY again FROM '/good.csv'");
  t.deepEqual(end, { status: 'finished', message: null, counts: [2, 2, 0] });
  t.deepEqual(await rows(server, 'SELECT * FROM made'), [
    ['2024-01-01T00:00:00.000000Z', 'a', 1],
    ['2024-01-02T00:00:00.000000Z', 'b', 2],
  ]);
  t.deepEqual(await rows(server, "SELECT partitionBy FROM tables() WHERE table_name = 'made'"), [
    ['MONTH'],
  ]);
  const steps = await rows(
    server,
    `SELECT table_name, file, phase, status, rows_imported FROM sys.text_import_log
     WHERE id = '${id}'`,
  );
  t.deepEqual(steps, [
    ['made', 'good.csv', null, 'started', null],
    ['made', 'good.csv', 'analyze_file_structure', 'started', null],
    ['made', 'good.csv', 'analyze_file_structure', 'finished', null],
    ['made', 'good.csv', 'partition_import', 'started', null],
    ['made', 'good.csv', 'partition_import', 'finished', null],
    ['made', 'good.csv', null, 'finished', 2],
  ]);
});

test('header, delimiter and timestamp pattern are applied', async (t) => {
  await put(server, 'plain.txt', '02/01/2024 10:30;u\n01/01/2024 09:15;v\n');
  const end = await load(
    server,
    "COPY plain FROM 'plain.txt' WITH HEADER false DELIMITER ';' TIMESTAMP f0 " +
      "FORMAT 'dd/MM/yyyy HH:mm' PARTITION BY DAY",
  );
  t.is(end.message, null);
  t.deepEqual(await rows(server, 'SELECT * FROM plain'), [
    ['2024-01-01T09:15:00.000000Z', 'v'],
    ['2024-01-02T10:30:00.000000Z', 'u'],
  ]);
  await load(server, "COPY headless FROM 'good.csv' WITH HEADER false");
  t.deepEqual(await rows(server, 'SELECT f0 FROM headless LIMIT 1'), [['ts']]);
});

test('text files in other encodings are imported', async (t) => {
  await put(server, 'latin.csv', Buffer.from('name,n\nCaf\u00e9,1\n', 'latin1'));
  const end = await load(
    server,
    "COPY latin FROM 'latin.csv' WITH HEADER true ENCODING 'windows-1252'",
  );
  t.is(end.message, null);
  t.deepEqual(await rows(server, 'SELECT * FROM latin'), [['Café', 1]]);
});

test('FORMAT applies to the designated timestamp even if TIMESTAMP is omitted', async (t) => {
  await run(server, `CREATE TABLE known (${TABLE}`);
  await put(server, 'known.csv', '2024/05/06,a,1\n');
  await load(server, "COPY known FROM 'known.csv' WITH HEADER false FORMAT 'yyyy/MM/dd'");
  t.deepEqual(await rows(server, 'SELECT * FROM known'), [['2024-05-06T00:00:00.000000Z', 'a', 1]]);
});

for (const [mode, status, counts, values] of [
  ['ABORT', 'failed', [0, 0, 0], []],
  ['SKIP_ROW', 'finished', [4, 3, 1], [1, 2, 4]],
  ['SKIP_COLUMN', 'finished', [4, 4, 1], [1, 2, null, 4]],
] as const) {
  test(`an invalid value is handled as ON ERROR ${mode} specifies`, async (t) => {
    await run(server, `CREATE TABLE bad_${mode} (${TABLE}`);
    const end = await load(
      server,
      `COPY bad_${mode} FROM 'bad.csv' WITH HEADER true ON ERROR ${mode}`,
    );
    t.is(end.status, status);
    t.deepEqual(end.counts, counts);
    const found = await rows(server, `SELECT x FROM bad_${mode}`);
    t.deepEqual(found.flat(), values);
    if (mode === 'ABORT') {
      t.is(
        end.message,
        "file 'bad.csv', line 4, field 3: bad syntax, correct the file or use ON ERROR SKIP_ROW",
      );
    }
  });
}

test('any malformed line aborts the import or is reported with its position', async (t) => {
  const lines = [
    ['2024-01-02,b,no', 'line 5, field 3: bad syntax'],
    [',b,2', 'line 5, field 1: no designated timestamp'],
    ['soon,b,2', 'line 5, field 1: invalid designated timestamp'],
    ['2024-01-02,b,2,more', 'line 5: 4 fields, expected 3'],
  ] as const;
  await run(server, `CREATE TABLE kinds (${TABLE}`);
  for (const [line, problem] of lines) {
    const text = `ts,s,x\n\n2024-01-01,"two\nlines",1\n${line}\n2024-01-03,c,3\n`;
    await put(server, 'kinds.csv', text);
    const copy = "COPY kinds FROM 'kinds.csv' WITH HEADER true ON ERROR";
    const ended = await load(server, `${copy} ABORT`);
    t.is(ended.status, 'failed', line);
    const hint = 'correct the file or use ON ERROR SKIP_ROW';
    t.is(ended.message, `file 'kinds.csv', ${problem}, ${hint}`);
    t.deepEqual(await rows(server, 'SELECT count() FROM kinds'), [[0]], line);
    const skipped = await load(server, `${copy} SKIP_ROW`);
    t.deepEqual([skipped.message, skipped.counts], [problem, [3, 2, 1]], line);
    await run(server, 'TRUNCATE TABLE kinds');
  }
  const many = Array.from({ length: 12 }, (_, row) => `2024-01-01,a,${row === 0 ? '1' : 'x'}`);
  await put(server, 'kinds.csv', `ts,s,x\n${many.join('\n')}\n`);
  const end = await load(server, "COPY kinds FROM 'kinds.csv' WITH HEADER true ON ERROR SKIP_ROW");
  t.regex(end.message ?? '', /^line 3, field 3: bad syntax; .*; line 12, field 3: bad syntax; …$/);
});

test('the log table is not listed as a user table', async (t) => {
  await load(server, "COPY listed FROM 'good.csv' WITH HEADER true");
  for (const [query, names] of [
    ["SELECT table_name FROM tables() WHERE table_name LIKE 'sys.%'", []],
    ["SELECT * FROM (SHOW TABLES) WHERE table_name LIKE 'sys.%'", []],
    ["SELECT table_name FROM tables() WHERE table_name = 'listed'", ['listed']],
  ] as const) {
    t.deepEqual((await rows(server, query)).flat(), [...names], query);
  }
  t.true((await rows(server, 'SELECT id FROM sys.text_import_log')).length > 0);
});

test('a Parquet file creates a table or is appended to one, matched by column name', async (t) => {
  await run(
    server,
    `CREATE TABLE source (${TABLE}`,
    "INSERT INTO source VALUES ('2024-03-01', 'a', 1), ('2024-03-02', null, null)",
  );
  // Copies the file from the export directory into the import directory.
  await unload(server, "COPY source TO 'whole' WITH FORMAT PARQUET PARTITION_BY NONE");
  execFileSync('cp', [
    join(server.root, 'export', 'whole.parquet'),
    join(server.root, 'import', 'whole.bin'),
  ]);
  const created = await load(
    server,
    "COPY target FROM 'whole.bin' WITH TIMESTAMP ts PARTITION BY DAY",
  );
  t.deepEqual(created.counts, [2, 2, 0]);
  await run(server, 'CREATE TABLE other (x LONG, S VARCHAR, ts TIMESTAMP, extra INT)');
  await load(server, "COPY other FROM 'whole.bin' WITH FORMAT PARQUET");
  for (const table of ['target', 'other']) {
    t.deepEqual(await rows(server, `SELECT ts, s, x FROM ${table}`), [
      ['2024-03-01T00:00:00.000000Z', 'a', 1],
      ['2024-03-02T00:00:00.000000Z', null, null],
    ]);
  }
  await run(server, 'CREATE TABLE narrow (ts TIMESTAMP)');
  const end = await load(server, "COPY narrow FROM 'whole.bin'");
  t.regex(end.message ?? '', /file 'whole.bin': column 's' does not exist \[table=narrow\]/);
});

test('Parquet values are cast to IPv4 and VARCHAR the same way as CSV cells', async (t) => {
  const values: Readonly<Record<string, string>> = {
    BYTE: '7',
    SHORT: '700',
    INT: '16843009',
    LONG: '9000000000',
    FLOAT: '1.5',
    DOUBLE: '2.25',
    DATE: "'2024-03-01'",
    TIMESTAMP: "'2024-03-01'",
  };
  const types = Object.keys(values);
  const columns = types.map((type, at) => `c${at} ${type}`).join(', ');
  await run(
    server,
    `CREATE TABLE typed (${columns}, a INT)`,
    `INSERT INTO typed VALUES (${Object.values(values).join(', ')}, 16843009)`,
  );
  await unload(server, "COPY typed TO 'typed' WITH FORMAT PARQUET PARTITION_BY NONE");
  const copy = (name: string): string[] => [
    join(server.root, 'export', 'typed.parquet'),
    join(server.root, 'import', name),
  ];
  execFileSync('cp', copy('typed.parquet'));
  const [shown = []] = await rows(
    server,
    `SELECT ${types.map((_, at) => `c${at}::varchar`).join(', ')} FROM typed`,
  );
  await put(
    server,
    'typed.csv',
    `${types.map((_, at) => `c${at}`).join(',')},a\n${shown.join(',')},1.1.1.1\n`,
  );
  for (const to of ['VARCHAR', 'STRING', 'SYMBOL']) {
    const targets = types.map((_, at) => `c${at} ${to}`).join(', ');
    for (const format of ['csv', 'parquet']) {
      const table = `typed_${to}_${format}`.toLowerCase();
      await run(server, `CREATE TABLE ${table} (${targets}, a IPV4)`);
      const header = format === 'csv' ? ' WITH HEADER true' : '';
      const end = await load(server, `COPY ${table} FROM 'typed.${format}'${header}`);
      t.deepEqual(end, { status: 'finished', message: null, counts: [1, 1, 0] }, table);
      t.deepEqual(await rows(server, `SELECT * FROM ${table}`), [[...shown, '1.1.1.1']], table);
    }
  }
});

test('missing files, non-files and links out of the directory are refused', async (t) => {
  const folder = join(server.root, 'import');
  await mkdir(join(folder, 'folder'), { recursive: true });
  await writeFile(join(server.root, 'secret.csv'), HEAD + GOOD);
  await symlink(join(server.root, 'secret.csv'), join(folder, 'link.csv'));
  await symlink('..', join(folder, 'up'));
  execFileSync('mkfifo', [join(folder, 'pipe.csv')]);
  for (const [file, message] of [
    [
      'missing.csv',
      /^could not open, file does not exist: 'missing.csv'; copy it to the directory of/,
    ],
    ['/etc/passwd', /^could not open, file does not exist: 'etc\/passwd'/],
    ['folder', /^not a regular file: 'folder'$/],
    ['pipe.csv', /^not a regular file: 'pipe.csv'$/],
    ['link.csv', /^path is outside the import directory: 'link.csv'/],
    ['up/secret.csv', /^path is outside the import directory: 'up\/secret.csv'/],
  ] as const) {
    const { status, message: reported } = await load(server, `COPY nothing FROM '${file}'`);
    t.is(status, 'failed', file);
    t.regex(reported ?? '', message);
  }
  t.regex((await exec(server, 'SELECT * FROM nothing')).error ?? '', /does not exist/);
});

test('statement errors are reported immediately, with their position', async (t) => {
  for (const [rest, message, position] of [
    ["'../secret.csv'", /^path is outside the import directory/, 12],
    ["'a/../../b'", /^path is outside the import directory/, 12],
    ["''", /^file name expected$/, 12],
    ["'a' WITH HEADER maybe", /^'true' or 'false' expected$/, 28],
    ["'a' WITH DELIMITER ';;'", /^delimiter is empty or contains more than 1 character$/, 31],
    ["'a' WITH ENCODING 'klingon'", /^unknown encoding; try utf-8/, 30],
    ["'a' WITH ON ERROR foo", /^'ABORT', 'SKIP_ROW' or 'SKIP_COLUMN' expected$/, 30],
    ["'a' WITH PARTITION BY DAY", /^invalid option used for import without a designated/, 21],
    ["'a' WITH PARTITION BY foo", /^'NONE', 'HOUR', .* expected$/, 34],
  ] as const) {
    const answer = await exec(server, `COPY t FROM ${rest}`);
    t.regex(answer.error ?? '', message, rest);
    t.is(answer.position, position, rest);
  }
});

test('a database directory is refused as a COPY directory', async (t) => {
  for (const key of ['cairo.sql.copy.root', 'cairo.sql.copy.export.root']) {
    for (const directory of ['.', 'db', './conf/files', join(server.root, 'db')]) {
      const start = startTestServer({ root: server.root, set: [`${key}=${directory}`] });
      const message = `${key}=${directory} overlaps the directory`;
      const { message: reported } = await t.throwsAsync(start);
      t.true(reported.includes(message), reported);
    }
  }
});

test('jobs on one table run in sequence; names are case-insensitive', async (t) => {
  const statement = 'WITH HEADER true TIMESTAMP ts PARTITION BY DAY';
  await start(server, `COPY both FROM 'good.csv' ${statement}`);
  const second = await load(server, `COPY BOTH FROM 'good.csv' ${statement}`);
  t.is(second.message, null);
  t.deepEqual(await rows(server, 'SELECT count() FROM both'), [[4]]);
});

test('two million rows are imported and exported unchanged', async (t) => {
  t.timeout(120_000);
  await put(server, 'many.csv', manyRows(MANY));
  const end = await load(
    server,
    "COPY many FROM 'many.csv' WITH HEADER true TIMESTAMP ts PARTITION BY DAY",
  );
  t.deepEqual(end.counts, [MANY, MANY, 0]);
  const sums = 'SELECT count(), sum(x), sum(d), min(ts), max(ts), count_distinct(s) FROM many';
  const [found] = await rows(server, sums);
  const total = (MANY * (MANY - 1)) / 2;
  t.deepEqual(found?.slice(0, 3), [MANY, total, total / 2]);
  t.deepEqual((await unload(server, "COPY many TO 'many' WITH FORMAT PARQUET")).counts, [28]);
});

test('JSON and gzip are imported; a type is widened if later rows do not fit it', async (t) => {
  const values = Array.from({ length: 3000 }, (_, at) => (at === 2500 ? '1.5' : String(at)));
  await put(server, 'wide.csv', `v,w\n${values.map((value) => `${value},x\n`).join('')}`);
  const wide = await load(server, "COPY wide FROM 'wide.csv'");
  t.deepEqual(wide.counts, [3000, 3000, 0]);
  t.is(wide.message, "column 'v': DOUBLE instead of INT, because of '1.5' in line 2502");
  const kept = await load(server, "COPY kept FROM 'wide.csv' WITH ON ERROR SKIP_ROW");
  t.deepEqual(kept.counts, [3000, 2999, 1]);
  const json = values.map((value) => `{"v":${value},"w":"x"}\n`).join('');
  await writeFile(join(server.root, 'import', 'wide.ndjson.gz'), gzipSync(json));
  const read = await load(server, "COPY wide_json FROM 'wide.ndjson.gz'");
  t.deepEqual(read.counts, [3000, 3000, 0]);
  t.deepEqual(
    await rows(server, 'SELECT sum(v), count(w) FROM wide_json'),
    await rows(server, 'SELECT sum(v), count(w) FROM wide'),
  );
});

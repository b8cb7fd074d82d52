/**
 * read_parquet: files written by other programs with every type, several files as one table,
 * directory columns, pruning by predicates, and damaged files.
 */
import { execFile } from 'node:child_process';
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, rows } from '../scenario/statements.js';
import { suiteSeed } from '../seed.js';
import { randomFrom } from '../sql/time-series/random-table.js';

const WRITER = fileURLToPath(new URL('../../../test/parquet/write_files.py', import.meta.url));

let server: TestServer;
let imports: string;
/** Without pyarrow there are no files to read. */
let isHere = true;

test.before(async () => {
  server = await startTestServer();
  imports = join(server.root, 'import');
  await mkdir(imports, { recursive: true });
  const python = promisify(execFile);
  isHere = await python('python3', ['-c', 'import pyarrow']).then(
    () => true,
    () => false,
  );
  if (isHere) {
    await python('python3', [WRITER, imports]);
  } else {
    process.stdout.write('SKIPPED: read_parquet of files of pyarrow, which is not here\n');
  }
});
test.after.always(() => server.stop());

/** Column, type, value; the second row is null unless a fourth value is given. */
const EVERY: readonly (readonly [string, string, unknown, unknown?])[] = [
  ['flag', 'BOOLEAN', true, false],
  ['i8', 'INT', -8],
  ['i16', 'INT', -16],
  ['i32', 'INT', -32],
  ['i64', 'LONG', -(2 ** 62)],
  ['u8', 'INT', 255],
  ['u16', 'INT', 65_535],
  ['u32', 'LONG', 4_294_967_295],
  ['u64', 'DECIMAL(20,0)', '18446744073709551615'],
  ['f16', 'FLOAT', 1.5],
  ['f32', 'FLOAT', 0.5],
  ['f64', 'DOUBLE', 0.1],
  ['dec9', 'DECIMAL(9,2)', '-1234567.89'],
  ['dec18', 'DECIMAL(18,4)', '12345678901234.5678'],
  ['dec38', 'DECIMAL(38,10)', '1234567890123456789012345678.0123456789'],
  ['dec76', 'DECIMAL(76,0)', '9'.repeat(76)],
  ['day', 'DATE', '2024-01-02T00:00:00.000Z'],
  ['time_ms', 'VARCHAR', '10:11:12.345'],
  ['time_us', 'VARCHAR', '10:11:12.345678'],
  ['ts_ms', 'DATE', '2024-01-02T03:04:05.678Z'],
  ['ts_us', 'TIMESTAMP', '2024-01-02T03:04:05.678901Z'],
  ['ts_ns', 'TIMESTAMP_NS', '2024-01-02T03:04:05.678901000Z'],
  ['ts_utc', 'TIMESTAMP', '2024-01-02T03:04:05.678901Z'],
  ['ts_zone', 'TIMESTAMP', '2024-01-02T03:04:05.678901Z'],
  ['text', 'VARCHAR', 'é\n'],
  ['large_text', 'VARCHAR', 'large'],
  ['text_view', 'VARCHAR', 'view'],
  ['symbol', 'SYMBOL', 'a'],
  ['number_dict', 'LONG', 7],
  ['bytes', 'BINARY', [], []],
  ['large_bytes', 'BINARY', [], []],
  ['three_bytes', 'BINARY', [], []],
  ['uuid', 'UUID', '00000000-0000-0000-0000-000000000001'],
  ['json', 'VARCHAR', '{"a":1}'],
  ['nothing', 'VARCHAR', null],
  ['list_f64', 'ARRAY', [1, null, 3.5]],
  ['list_f32', 'ARRAY', [0.5]],
  ['list_i64', 'ARRAY', [1, 2]],
  ['list_fixed', 'ARRAY', [3, 4]],
  [
    'nested',
    'ARRAY',
    [
      [1, 2],
      [3, 4],
    ],
  ],
  ['duration', 'LONG', 1_000_000],
];

interface Result {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly dataset: readonly (readonly unknown[])[];
  readonly error?: string;
  readonly position?: number;
}

async function read(query: string): Promise<Result> {
  return (await exec(server, query)) as unknown as Result;
}

test('every type that other programs write is mapped to a column type', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  const all = await read("SELECT * FROM read_parquet('types/every.parquet')");
  t.deepEqual(
    all.columns.map(({ name, type }) => [name, type]),
    EVERY.map(([name, type]) => [name, type]),
  );
  for (const [at, [name, , value, missing = null]] of EVERY.entries()) {
    t.deepEqual([all.dataset[0]?.[at], all.dataset[1]?.[at]], [value, missing], name);
  }
  const old = await read("SELECT int96, dec38, text, flag FROM parquet_scan('types/old.parquet')");
  t.deepEqual(old.columns.map(({ type }) => type).slice(0, 2), ['TIMESTAMP_NS', 'DECIMAL(38,10)']);
  t.deepEqual(old.dataset, [
    ['2024-01-02T03:04:05.678901000Z', '1234567890123456789012345678.0123456789', 'é\n', true],
    [null, null, null, false],
  ]);
  const decimals = "SELECT d FROM read_parquet('types/bytes_decimal.parquet')";
  t.deepEqual(await rows(server, decimals), [['-1234567.89'], [null]]);
  const integers = "SELECT d FROM read_parquet('types/int_decimal.parquet')";
  t.deepEqual(await rows(server, integers), [['12345678901234.5678'], [null]]);
});

test('enumerations, BSON, byte-encoded decimals and nanosecond times are read', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  for (const [file, column, type, value] of [
    ['enum', 'enum', 'VARCHAR', 'red'],
    ['bson', 'length(bson)', 'LONG', 5],
    ['decimal', 'decimal', 'DECIMAL(9,2)', '-12345.67'],
    ['time_ns', 't', 'VARCHAR', '10:11:12.345678'],
  ] as const) {
    const found = await read(`SELECT ${column} c FROM read_parquet('types/${file}.parquet')`);
    const missing = file === 'bson' ? -1 : null;
    t.deepEqual([found.columns[0]?.type, found.dataset], [type, [[value], [missing]]], file);
  }
  const found = await read("SELECT bson FROM read_parquet('types/bson.parquet')");
  t.is(found.columns[0]?.type, 'BINARY');
});

test('values without exact equivalents are refused, and the error names the column', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  for (const [file, error] of [
    [
      'inexact',
      /, column 'big': list element 9007199254740993 is not exactly representable as DOUBLE$/,
    ],
  ] as const) {
    const answer = await read(`SELECT * FROM read_parquet('refused/${file}.parquet')`);
    t.regex(answer.error ?? '', error);
  }
});

test('columns without an equivalent type become strings', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  const all = await read("SELECT * FROM read_parquet('nested/every.parquet')");
  t.deepEqual(
    all.columns.map(({ name, type }) => [name, type]),
    [
      ['x', 'LONG'],
      ...['point', 'part', 'tags', 'counts', 'names', 'points', 'amounts', 'bytes'].map((name) => [
        name,
        'VARCHAR',
      ]),
      ['y', 'DOUBLE'],
    ],
  );
  t.deepEqual(all.dataset, [
    [
      1,
      String.raw`{"a":1,"b\"c":"\u0001é","at":"2024-01-02T03:04:05.678901"}`,
      '{"a":null,"b":0.5}',
      '{"k":"v","l":null}',
      '{"7":[1.5,null]}',
      String.raw`["a",null,"q\""]`,
      '[{"a":true},null]',
      '[1.20]',
      '{"b":"01ff"}',
      0.5,
    ],
    [2, null, null, null, null, null, null, null, null, 1.5],
  ]);
  const parts = `SELECT json_extract(point, '$.a')::long a, x
    FROM read_parquet('nested/every.parquet')
    WHERE names = '["a",null,"q\\""]' OR point < 'a'`;
  t.deepEqual(await rows(server, parts), [[1, 1]]);
  t.deepEqual(await rows(server, "SELECT x FROM read_parquet('nested/deep.parquet')"), [[1]]);
  const { error } = await read("SELECT deep FROM read_parquet('nested/deep.parquet')");
  t.is(
    error,
    "cannot read 'nested/deep.parquet', column 'deep': it is nested more than 64 levels deep",
  );
  const interval = "read_parquet('types/interval.parquet')";
  t.deepEqual(await rows(server, `SELECT count() FROM ${interval}`), [[2]]);
  const found = await read(`SELECT * FROM ${interval}`);
  t.is(found.columns.at(-1)?.type, 'VARCHAR');
  t.deepEqual(found.dataset, [['1 mon 1 day 00:00:00.001'], [null]]);
});

test('lists of different lengths become arrays padded with nulls', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  const found = await read("SELECT * FROM read_parquet('refused/ragged.parquet')");
  t.deepEqual(
    found.columns.map(({ name, type }) => [name, type]),
    [['cells', 'ARRAY']],
  );
  t.deepEqual(found.dataset, [
    [
      [
        [1, null],
        [1, 2],
      ],
    ],
  ]);
});

test('SAMPLE BY accepts sorted files and files with a single time column', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  const hours = (from: string): string =>
    `SELECT at, count(), sum(v) FROM read_parquet(${from}) SAMPLE BY 1h LIMIT 2`;
  const first = [
    ['2024-01-02T03:00:00.000000Z', 56, 1_540],
    ['2024-01-02T04:00:00.000000Z', 60, 5_130],
  ];
  for (const [file, index] of [
    ['sorted', 1],
    ['unsaid', -1],
    ['backwards', -1],
  ] as const) {
    t.deepEqual(await rows(server, hours(`'series/${file}.parquet'`)), first, file);
    const all = await exec(server, `SELECT * FROM read_parquet('series/${file}.parquet') LIMIT 3`);
    t.is((all as { timestamp?: number }).timestamp, index, file);
  }
  const both = "'series/sorted.parquet', 'series/sorted_later.parquet'";
  t.deepEqual(await rows(server, hours(both)), first);
  const plan = JSON.stringify(await rows(server, `EXPLAIN ${hours("'series/sorted.parquet'")}`));
  t.notRegex(plan, /SortExec/);
  // In this order, the second file begins before the first ends.
  const turned = "'series/sorted_later.parquet', 'series/sorted.parquet'";
  t.deepEqual(await rows(server, hours(turned)), first);
  const { error } = await read(hours("'series/two.parquet'"));
  t.is(error, 'base query does not provide designated TIMESTAMP column');
  const named = `SELECT at, count() FROM read_parquet('series/two.parquet') TIMESTAMP(at)
    SAMPLE BY 1d`;
  t.is((await rows(server, named)).length, 1);
});

test('columns that differ only in letter case can all be read', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  t.deepEqual(await rows(server, "SELECT * FROM read_parquet('cases/one.parquet')"), [[1, 2, 3]]);
  const both = "SELECT * FROM read_parquet('cases/one.parquet', 'cases/two.parquet') ORDER BY 1";
  t.deepEqual(await rows(server, both), [
    [1, 2, 3],
    [4, 5, 6],
  ]);
  const { error } = await read("SELECT a FROM read_parquet('cases/one.parquet')");
  t.regex(error ?? '', /Ambiguous column/);
});

test('files that match a pattern or list are combined by column name', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  const all = await read("SELECT * FROM read_parquet('several/**/*.parquet')");
  t.deepEqual(
    all.columns.map(({ name, type }) => [name, type]),
    [
      ['a', 'LONG'],
      ['more', 'DOUBLE'],
      ['t', 'VARCHAR'],
    ],
  );
  t.deepEqual(all.dataset, [
    [1, 0.5, null],
    [2, null, 'two'],
    [3, null, null],
  ]);
  for (const [source, expected] of [
    ["'several/*.parquet'", [1, 2]],
    ["'several/{b,a}.parquet'", [1, 2]],
    ["'several/b.parquet', 'several/a.parquet'", [2, 1]],
    ["ARRAY['several/b.parquet', 'several/deep/**']", [2, 3]],
    ["'several/[a-b].parquet'", [1, 2]],
    ["'several/?.parquet', 'several/.hidden.parquet'", [1, 2, 4]],
  ] as const) {
    const found = await rows(server, `SELECT a FROM read_parquet(${source})`);
    t.deepEqual(found.flat(), [...expected], source);
  }
  for (const [source, error] of [
    ["'none/*.parquet'", /^no file matches 'none\/\*\.parquet'$/],
    ["'../*.parquet'", /^path is outside the import directory/],
    ["'/etc/*'", /^path is outside the import directory/],
    [
      "'clash/*.parquet'",
      /^column 'a' is VARCHAR in 'clash\/b\.parquet' but LONG in earlier files$/,
    ],
    ['', /^file name expected$/],
  ] as const) {
    t.regex((await read(`SELECT * FROM read_parquet(${source})`)).error ?? '', error, source);
  }
});

test('links that point outside the directory are not followed', async (t) => {
  await mkdir(join(imports, 'links'), { recursive: true });
  await symlink('/etc', join(imports, 'links', 'directory')).catch(() => undefined);
  await symlink('/etc/passwd', join(imports, 'links', 'file.parquet')).catch(() => undefined);
  const through = await read("SELECT * FROM read_parquet('links/**/passwd')");
  t.is(through.error, "no file matches 'links/**/passwd'");
  const file = await read("SELECT * FROM read_parquet('links/*.parquet')");
  t.is(file.error, 'could not open, file: links/file.parquet');
});

const HIVE = "read_parquet('hive/**/*.parquet')";

test('Hive-style directory names become columns', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  const all = await read(`SELECT DISTINCT year, month, city FROM ${HIVE} ORDER BY year, month`);
  t.deepEqual(
    all.columns.map(({ type }) => type),
    ['INT', 'INT', 'VARCHAR'],
  );
  t.deepEqual(all.dataset, [
    [2023, 12, 'New York'],
    [2024, 1, 'New York'],
    [2024, 2, 'New York'],
  ]);
  const names =
    "SELECT count() FROM read_parquet('hive/year=2024/month=01/city=New%20York/rows.parquet')";
  t.deepEqual(await rows(server, names), [[200]]);
});

/** Returns the files, row groups and columns that a query's scan reads. */
async function scanned(query: string): Promise<string> {
  const plan = (await rows(server, `EXPLAIN ${query}`)).flat().join('\n');
  return /ParquetScanExec: (.*)/.exec(plan)?.[1] ?? plan;
}

test('unneeded files, row groups and columns are not read', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  for (const [where, read, count] of [
    ['true', 'files=3/3 row_groups=12/12', 600],
    ['year = 2024', 'files=2/3 row_groups=8/12', 400],
    ['year = 2024 AND month < 2', 'files=1/3 row_groups=4/12', 200],
    ["city = 'Oslo'", 'files=0/3 row_groups=0/12', 0],
    ['n >= 202401150', 'files=2/3 row_groups=5/12', 250],
    ['n = 202312060', 'files=1/3 row_groups=1/12', 1],
    ['n IN (202312060, 202402199)', 'files=2/3 row_groups=2/12', 2],
    ['d > 2.1 AND d < 3', 'files=1/3 row_groups=2/12', 99],
    ["s = '02-170'", 'files=1/3 row_groups=1/12', 1],
    ["ts >= '2024-02-09'", 'files=1/3 row_groups=1/12', 8],
    ['n < 202312050 OR n > 202402190', 'files=2/3 row_groups=2/12', 59],
    ['n <> 202312060', 'files=3/3 row_groups=12/12', 599],
  ] as const) {
    const query = `SELECT count(s) FROM ${HIVE} WHERE ${where}`;
    t.true((await scanned(query)).startsWith(`${read} `), `${where}: ${await scanned(query)}`);
    t.deepEqual(await rows(server, query), [[count]], where);
  }
  t.regex(await scanned(`SELECT sum(n) FROM ${HIVE}`), / columns=\[n\]$/);
  t.regex(await scanned(`SELECT n, s FROM ${HIVE} LIMIT 3`), / columns=\[n, s\] limit=3$/);
  t.deepEqual(await rows(server, `SELECT n FROM ${HIVE} LIMIT 3`), [
    [202_312_000],
    [202_312_001],
    [202_312_002],
  ]);
});

test('damaged files are reported, and the server survives', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  const complete = await readFile(join(imports, 'types', 'every.parquet'));
  const random = randomFrom(suiteSeed());
  const damaged = join(imports, 'damaged.parquet');
  const query = "SELECT * FROM read_parquet('damaged.parquet')";
  let refused = 0;
  for (let round = 0; round < 150; round += 1) {
    const bytes = Buffer.from(complete);
    const inFooter = round % 2 === 0;
    const start = inFooter ? bytes.length - bytes.readUInt32LE(bytes.length - 8) - 8 : 4;
    for (let flips = 0; flips < 3; flips += 1) {
      const at = start + random(bytes.length - start);
      bytes[at] = random(256);
    }
    const cut = random(5) === 0 ? random(bytes.length) : bytes.length;
    await writeFile(damaged, bytes.subarray(0, cut));
    const answer = await read(query);
    if (answer.error !== undefined) {
      refused += 1;
      t.regex(answer.error, /^cannot read 'damaged\.parquet'|^internal error/, `round ${round}`);
    }
  }
  t.true(refused > 50, `${refused} of 150`);
  for (const text of ['', 'PAR1', 'PAR1PAR1', 'not a file of Parquet at all']) {
    await writeFile(damaged, text);
    t.regex((await read(query)).error ?? '', /^cannot read 'damaged\.parquet': /, text);
  }
  t.deepEqual(await rows(server, 'SELECT 1'), [[1]]);
});

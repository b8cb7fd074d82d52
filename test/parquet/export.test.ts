/**
 * Parquet files from /exp, read by pyarrow, DuckDB and Polars: every type, every codec, both array
 * encodings, partitions in an archive. All are also read back through read_parquet.
 */
import { execFile } from 'node:child_process';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rows, run } from '../scenario/statements.js';

const READER = fileURLToPath(new URL('../../../test/parquet/read_exports.py', import.meta.url));
const python = promisify(execFile);

/** Codecs, with their names in pyarrow. */
const CODECS = {
  UNCOMPRESSED: 'UNCOMPRESSED',
  SNAPPY: 'SNAPPY',
  GZIP: 'GZIP',
  BROTLI: 'BROTLI',
  ZSTD: 'ZSTD',
  LZ4: 'UNKNOWN',
  LZ4_RAW: 'LZ4',
} as const;

/** Column type, SQL value, and the value that readers of the file see. */
const TYPES: readonly (readonly [type: string, value: string, seen: unknown, missing?: unknown])[] =
  [
    ['BOOLEAN', 'true', true, false],
    ['BYTE', '-8', -8, 0],
    ['SHORT', '-16', -16, 0],
    ['CHAR', "'é'", 'é'],
    ['INT', '-32', -32],
    ['LONG', '-9007199254740991', -9_007_199_254_740_991],
    ['FLOAT', '0.5', '0.5'],
    ['DOUBLE', '0.1', '0.1'],
    ['DATE', "'2024-01-02T03:04:05.678Z'", '2024-01-02T03:04:05.678000+00:00'],
    ['TIMESTAMP', "'2024-01-02T03:04:05.678901Z'", '2024-01-02T03:04:05.678901+00:00'],
    ['SYMBOL', "'sy\"m'", 'sy"m'],
    ['STRING', "'a\nb'", 'a\nb'],
    ['VARCHAR', "''", ''],
    ['UUID', "'11111111-2222-3333-4444-555555555555'", '11111111222233334444555555555555'],
    ['IPV4', "'10.0.0.1'", '10.0.0.1'],
    ['GEOHASH(3c)', "'u33'", 'u33'],
    ['DECIMAL(9,2)', "'-1234567.89'::DECIMAL(9,2)", '-1234567.89'],
    ['DECIMAL(30,4)', "'12345678901234567890.1234'::DECIMAL(30,4)", '12345678901234567890.1234'],
    ['DOUBLE[]', 'ARRAY[1.5, null, -2.0]', ['1.5', null, '-2.0']],
    [
      'DOUBLE[][]',
      'ARRAY[[1.0, 2.0], [3.0, 4.0]]',
      [
        ['1.0', '2.0'],
        ['3.0', '4.0'],
      ],
    ],
  ];

let server: TestServer;
let folder: string;
let isHere = true;

test.before(async () => {
  server = await startTestServer();
  folder = join(server.root, 'import');
  await mkdir(folder, { recursive: true });
  const columns = TYPES.map(([type], at) => `c${at} ${type}`).join(', ');
  const values = TYPES.map(([, value]) => value).join(', ');
  await run(
    server,
    `CREATE TABLE every (${columns}, ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY`,
    `INSERT INTO every VALUES (${values}, '2024-01-01')`,
    "INSERT INTO every (ts) VALUES ('2024-01-02')",
    'CREATE TABLE hours AS (SELECT timestamp_sequence(1704067200000000, 3600000000) ts, x ' +
      'FROM long_sequence(100)) TIMESTAMP(ts) PARTITION BY DAY',
  );
  isHere = await python('python3', ['-c', 'import duckdb, polars, pyarrow']).then(
    () => true,
    () => false,
  );
  if (!isHere) {
    process.stdout.write(
      'SKIPPED: readers of exported Parquet: pyarrow, duckdb or polars is missing\n',
    );
  }
});
test.after.always(() => server.stop());

/** Exports to a file below the import directory and returns the file's path. */
async function exported(
  name: string,
  query: string,
  parameters: Readonly<Record<string, string>>,
): Promise<string> {
  const request = new URLSearchParams({ query, fmt: 'parquet', ...parameters });
  const response = await fetch(`${server.url}/exp?${request.toString()}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  if (response.status !== 200) {
    throw new Error(`${name}: ${bytes.toString()}`);
  }
  const path = join(folder, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, bytes);
  return path;
}

async function readBack(...paths: readonly string[]): Promise<Record<string, unknown>> {
  const { stdout } = await python('python3', [READER, ...paths], { maxBuffer: 1 << 26 });
  return JSON.parse(stdout) as Record<string, unknown>;
}

const EVERY = `SELECT ${TYPES.map((_, at) => `c${at}`).join(', ')} FROM every`;

test('files with every type and codec are read correctly by three other programs', async (t) => {
  if (!isHere) {
    t.pass();
    return;
  }
  const seen = TYPES.map(([, , value]) => value);
  const missing = TYPES.map(([, , , value]) => value ?? null);
  const files = new Map<string, string>();
  for (const [codec, expected] of Object.entries(CODECS)) {
    for (const version of ['1', '2']) {
      const options = { compression_codec: codec, parquet_version: version };
      files.set(await exported(`${codec}${version}.parquet`, EVERY, options), expected);
    }
  }
  const read = await readBack(...files.keys());
  for (const [path, codec] of files) {
    const expected = [seen, missing];
    const programs = { pyarrow: expected, duckdb: expected, polars: expected };
    t.deepEqual(read[path], { ...programs, codecs: [codec] }, path);
  }
  const here = await rows(server, EVERY);
  for (const path of files.keys()) {
    const name = path.slice(folder.length + 1);
    t.deepEqual(await rows(server, `SELECT * FROM read_parquet('${name}')`), here, name);
  }
});

test('other programs read raw arrays as bytes; read_parquet reads them as arrays', async (t) => {
  const query = 'SELECT c18, c19 FROM every';
  const path = await exported('raw.parquet', query, { raw_array_encoding: 'true' });
  t.deepEqual(
    await rows(server, "SELECT * FROM read_parquet('raw.parquet')"),
    await rows(server, query),
  );
  if (isHere) {
    const number = (value: number): string => {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleLE(value);
      return bytes.toString('hex');
    };
    const [file] = Object.values(await readBack(path)) as { pyarrow: unknown[][] }[];
    const nan = (file?.pyarrow[0]?.[0] as string).slice(8 + 16, 8 + 32);
    t.true(Number.isNaN(Buffer.from(nan, 'hex').readDoubleLE()));
    t.deepEqual(file?.pyarrow, [
      [
        `03000000${number(1.5)}${nan}${number(-2)}`,
        `0200000002000000${[1, 2, 3, 4].map(number).join('')}`,
      ],
      [null, null],
    ]);
  }
});

test('partitions become files in an archive and can be read back as one table', async (t) => {
  const query = 'SELECT * FROM hours';
  const names: Record<string, readonly string[]> = {
    YEAR: ['year=2024/rows.parquet'],
    MONTH: ['year=2024/month=01/rows.parquet'],
    WEEK: ['week=2024-W01/rows.parquet'],
    DAY: [1, 2, 3, 4, 5].map((day) => `year=2024/month=01/day=0${day}/rows.parquet`),
  };
  for (const [unit, expected] of Object.entries(names)) {
    const path = await exported(`${unit}.zip`, query, { partition_by: unit.toLowerCase() });
    if (!isHere) {
      continue;
    }
    const [files] = Object.values(await readBack(path)) as Record<string, unknown[][]>[];
    t.deepEqual(Object.keys(files ?? {}), [...expected], unit);
    const numbers = Object.values(files ?? {}).flatMap((file) => file.map(([, x]) => x));
    t.deepEqual(
      numbers,
      Array.from({ length: 100 }, (_, row) => row + 1),
      unit,
    );
  }
  if (!isHere) {
    t.pass();
    return;
  }
  const hours = await exported('HOUR.zip', `${query} LIMIT 30`, { partition_by: 'HOUR' });
  await python('python3', ['-m', 'zipfile', '-e', hours, join(folder, 'hours')]);
  const all =
    "SELECT count(), sum(x), count_distinct(hour), max(day) FROM read_parquet('hours/**')";
  t.deepEqual(await rows(server, all), [[30, 465, 24, 2]]);
  // Even in descending time order, a partition is one file.
  const back = await exported('back.zip', `${query} ORDER BY ts DESC`, { partition_by: 'DAY' });
  const [files] = Object.values(await readBack(back)) as Record<string, unknown>[];
  t.is(Object.keys(files ?? {}).length, 5);
  const none = await exported('none.zip', `${query} WHERE x < 0`, { partition_by: 'DAY' });
  t.deepEqual(Object.values(await readBack(none)), [{}]);
});

test('repeated numbers are dictionary-encoded only with slower codecs', async (t) => {
  const query = 'SELECT rnd_int(0, 20000, 0) / 8.0 again FROM long_sequence(90000)';
  const size = async (codec: string): Promise<number> => {
    const path = await exported(`${codec}.parquet`, query, { compression_codec: codec });
    return (await stat(path)).size;
  };
  // The dictionary takes 15 bits per row, plus 20,000 values. Without it, ZSTD needs 250,000 bytes.
  t.true((await size('ZSTD')) < 235_000);
  t.true((await size('LZ4_RAW')) > 300_000);
  t.deepEqual(
    await rows(server, "SELECT count(), max(again) <= 2500 FROM read_parquet('ZSTD.parquet')"),
    [[90_000, true]],
  );
});

test('PARTITION BY requires a designated timestamp', async (t) => {
  const query = new URLSearchParams({ query: 'SELECT x FROM hours', fmt: 'parquet' });
  const response = await fetch(`${server.url}/exp?${query.toString()}&partition_by=DAY`);
  t.is(response.status, 400);
  const { error } = (await response.json()) as { error: string };
  t.regex(error, /^partition_by requires a query ordered by its designated timestamp/);
});

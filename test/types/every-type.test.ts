/**
 * Every type of the dialect end to end: CREATE TABLE, INSERT, SELECT, WHERE, a restart (which
 * writes segments), CSV, Parquet export and import, `/imp`, and the PostgreSQL protocol.
 */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { pgClient } from '../pg-client.js';

interface TypeCase {
  readonly type: string;
  /** Two SQL values. */
  readonly values: readonly [string, string];
  /** The values as shown in the JSON from `/exec`. */
  readonly json: readonly [unknown, unknown];
  /** Null as it appears in the JSON of `/exec`. */
  readonly missing: unknown;
  /** The first value in the text format of the PostgreSQL protocol. */
  readonly pg: string;
  /** Whether the type lacks equality. */
  readonly noEquality?: boolean;
  /** Whether `/imp` rejects the column. */
  readonly noImport?: boolean;
}

const UUID = '11111111-2222-3333-4444-555555555555';
const OTHER_UUID = 'aaaaaaaa-2222-3333-4444-555555555555';

function type(
  name: string,
  values: readonly [string, string],
  json: readonly [unknown, unknown],
  more: Partial<TypeCase> = {},
): TypeCase {
  return { type: name, values, json, missing: null, pg: String(json[0]), ...more };
}

const TYPES: readonly TypeCase[] = [
  type('BOOLEAN', ['true', 'false'], [true, false], { missing: false, pg: 't' }),
  type('BYTE', ['1', '-128'], [1, -128], { missing: 0 }),
  type('SHORT', ['2', '-32768'], [2, -32768], { missing: 0 }),
  type('CHAR', ["'c'", "'é'"], ['c', 'é'], { missing: '' }),
  type('INT', ['3', '-2147483647'], [3, -2147483647]),
  type('LONG', ['4', '-42'], [4, -42]),
  type('FLOAT', ['5.5', '-0.25'], [5.5, -0.25]),
  type('DOUBLE', ['6.25', '-1e300'], [6.25, -1e300]),
  type(
    'DATE',
    ["'2024-01-01'", "'1969-12-31T23:59:59.999Z'"],
    ['2024-01-01T00:00:00.000Z', '1969-12-31T23:59:59.999Z'],
    { pg: '2024-01-01 00:00:00.000' },
  ),
  type(
    'TIMESTAMP',
    ["'2024-01-01T00:00:00.123456Z'", "'1969-12-31T00:00:00Z'"],
    ['2024-01-01T00:00:00.123456Z', '1969-12-31T00:00:00.000000Z'],
    { pg: '2024-01-01 00:00:00.123456' },
  ),
  type(
    'TIMESTAMP_NS',
    ["'2024-01-01T00:00:00.123456789Z'", "'1970-01-02T00:00:00Z'"],
    ['2024-01-01T00:00:00.123456789Z', '1970-01-02T00:00:00.000000000Z'],
    { pg: '2024-01-01 00:00:00.123456789' },
  ),
  type('SYMBOL', ["'one'", "'two'"], ['one', 'two']),
  type('STRING', ["'text'", "'other'"], ['text', 'other']),
  type('VARCHAR', ["'naïve text of some length'", "'b'"], ['naïve text of some length', 'b']),
  // An empty string is not null, but /imp reads it as null.
  type('VARCHAR', ["''", "'b'"], ['', 'b'], { noImport: true }),
  type('UUID', [`'${UUID}'`, `'${OTHER_UUID}'`], [UUID, OTHER_UUID]),
  type(
    'LONG256',
    ["'0x1234'", "'0xff00000000000000000000000000000000'"],
    ['0x1234', '0xff00000000000000000000000000000000'],
    { missing: '' },
  ),
  type('IPV4', ["'10.0.0.1'", "'255.255.255.255'"], ['10.0.0.1', '255.255.255.255']),
  type('GEOHASH(1c)', ['#u', '#0'], ['u', '0']),
  type('GEOHASH(12b)', ['##010101010101', '##111111111111'], ['010101010101', '111111111111']),
  type('GEOHASH(4c)', ['#u33d', '#zzzz'], ['u33d', 'zzzz']),
  type('GEOHASH(60b)', ['#u33d8b12jjjj', '#000000000000'], ['u33d8b12jjjj', '000000000000']),
  type('BINARY', ['rnd_bin(4, 4, 0)', 'rnd_bin(4, 4, 0)'], [[], []], {
    missing: [],
    pg: '',
    noEquality: true,
    noImport: true,
  }),
  type('DECIMAL(5,2)', ['1.25m', "'-999.99'"], ['1.25', '-999.99']),
  type('DECIMAL(18,3)', ['2.125m', "'-0.001'"], ['2.125', '-0.001']),
  type('DECIMAL(38,4)', ['3.0625m', "'-1'"], ['3.0625', '-1.0000']),
  type('DECIMAL(60,5)', ['4.03125m', "'-1'"], ['4.03125', '-1.00000']),
  type('DOUBLE[]', ['ARRAY[1.5, null, -2]', 'ARRAY[]'], [[1.5, null, -2], []], {
    pg: '{1.5,NULL,-2.0}',
    noImport: true,
  }),
  type(
    'DOUBLE[][]',
    ['ARRAY[[1.0, 2], [3, 4]]', 'ARRAY[[7.0]]'],
    [
      [
        [1, 2],
        [3, 4],
      ],
      [[7]],
    ],
    { pg: '{{1.0,2.0},{3.0,4.0}}', noImport: true },
  ),
  type('DOUBLE[][][]', ['ARRAY[[[1.0], [2.0]]]', 'ARRAY[[[]]]'], [[[[1], [2]]], [[[]]]], {
    pg: '{{{1.0},{2.0}}}',
    noImport: true,
  }),
];

const COLUMNS = TYPES.map((_, index) => `c${index}`);
const TIMES = ['2024-01-01T00:00:00.000000Z', '2024-01-02T00:00:00.000000Z'];
const MISSING_AT = '2024-01-01T12:00:00.000000Z';

interface Answer {
  readonly columns?: readonly { readonly name: string; readonly type: string }[];
  readonly dataset?: readonly (readonly unknown[])[];
  readonly error?: string;
}

async function exec(server: TestServer, query: string): Promise<Answer> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  const answer = (await response.json()) as Answer;
  if (answer.error !== undefined) {
    throw new Error(`${query}: ${answer.error}`);
  }
  return answer;
}

/** Three rows: the first values, null, the second values. The last row is out of order. */
async function fill(server: TestServer): Promise<void> {
  const columns = TYPES.map(({ type: name }, index) => `c${index} ${name}`).join(', ');
  await exec(
    server,
    `CREATE TABLE every (ts TIMESTAMP, ${columns}) TIMESTAMP(ts) PARTITION BY DAY`,
  );
  for (const [row, at] of TIMES.entries()) {
    const values = TYPES.map(({ values: both }) => both[row]).join(', ');
    await exec(server, `INSERT INTO every VALUES ('${at}', ${values})`);
  }
  await exec(server, `INSERT INTO every (ts) VALUES ('${MISSING_AT}')`);
}

const ROWS = [
  [TIMES[0], ...TYPES.map(({ json }) => json[0])],
  [MISSING_AT, ...TYPES.map(({ missing }) => missing)],
  [TIMES[1], ...TYPES.map(({ json }) => json[1])],
];

test('values of every type round-trip unchanged over every protocol', async (t) => {
  t.timeout(120_000);
  const root = await mkdtemp(join(tmpdir(), 'tidemark-types-'));
  const imports = join(root, 'import');
  const set = [`cairo.sql.copy.root=${imports}`];
  await mkdir(imports, { recursive: true });
  let server = await startTestServer({ root, set });
  try {
    await fill(server);
    t.deepEqual((await exec(server, 'SELECT * FROM every')).dataset, ROWS, 'from memory');
    await server.stop();
    server = await startTestServer({ root, set });
    const stored = await exec(server, 'SELECT * FROM every');
    t.deepEqual(stored.dataset, ROWS, 'from segments');

    for (const [index, { type: name, values, noEquality }] of TYPES.entries()) {
      const column = `c${index}`;
      const count = async (where: string): Promise<unknown> =>
        (await exec(server, `SELECT count() FROM every WHERE ${where}`)).dataset?.[0]?.[0];
      if (noEquality !== true) {
        t.is(await count(`${column} = ${values[0]}`), 1, `${name} =`);
        t.is(await count(`${column} != ${values[0]}`), 2, `${name} !=`);
      }
      const nullable = !['BOOLEAN', 'BYTE', 'SHORT'].includes(name);
      t.is(await count(`${column} IS NULL`), nullable ? 1 : 0, `${name} IS NULL`);
    }

    const exported = async (format: string, columns: readonly string[]): Promise<Uint8Array> => {
      const query = encodeURIComponent(`SELECT ts, ${columns.join(', ')} FROM every`);
      const response = await fetch(`${server.url}/exp?fmt=${format}&query=${query}`);
      t.is(response.status, 200, format);
      return new Uint8Array(await response.arrayBuffer());
    };
    await writeFile(join(imports, 'every.parquet'), await exported('parquet', COLUMNS));
    const read = await exec(server, "SELECT * FROM read_parquet('every.parquet')");
    t.deepEqual(read.dataset, ROWS, 'from Parquet');
    t.deepEqual(read.columns, stored.columns, 'types from Parquet');

    const importable = COLUMNS.filter((_, index) => TYPES[index]?.noImport !== true);
    const declared = importable.map(
      (name) => `${name} ${TYPES[Number(name.slice(1))]?.type ?? ''}`,
    );
    await exec(
      server,
      `CREATE TABLE imported (ts TIMESTAMP, ${declared.join(', ')}) TIMESTAMP(ts) PARTITION BY DAY`,
    );
    const form = new FormData();
    form.append('data', new Blob([await exported('csv', importable)]), 'every.csv');
    const answer = await fetch(`${server.url}/imp?name=imported&fmt=json&forceHeader=true`, {
      method: 'POST',
      body: form,
    });
    t.regex(await answer.text(), /"rowsImported":3/);
    const imported = await exec(server, 'SELECT * FROM imported');
    const kept = ROWS.map((row) =>
      row.filter((_, index) => index === 0 || TYPES[index - 1]?.noImport !== true),
    );
    t.deepEqual(imported.dataset, kept, 'through /imp');

    const client = pgClient(server.pg, {
      types: { getTypeParser: () => (text: unknown) => String(text) },
    });
    await client.connect();
    try {
      t.deepEqual((await client.query('show timestamp_precision')).rows, [
        { timestamp_precision: 'us' },
      ]);
      await client.query("SET timestamp_precision = 'ns'");
      const { rows: now } = await client.query('SHOW Timestamp_Precision;');
      t.deepEqual(now, [{ timestamp_precision: 'ns' }]);
      const rows = await client.query({ text: 'SELECT * FROM every', rowMode: 'array' });
      const first = rows.rows[0] as readonly unknown[];
      const missing = rows.rows[1] as readonly unknown[];
      for (const [index, { type: name, pg: text, missing: none }] of TYPES.entries()) {
        if (name !== 'BINARY') {
          t.is(first[index + 1], text, `${name} through pgwire`);
          const nothing = none === false ? 'f' : none === 0 ? '0' : null;
          t.is(missing[index + 1], nothing, `${name} null through pgwire`);
        }
      }
    } finally {
      await client.end();
    }
  } finally {
    await server.stop();
    await rm(root, { recursive: true, force: true });
  }
});

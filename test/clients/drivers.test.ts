/**
 * Drivers of other languages against a real server, each a program of `programs` that prints what
 * it saw: values of all types, parameters, batches, cursors, errors, savepoints, COPY, cancelling.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test, { type ExecutionContext } from 'ava';

import { answerOf, has, portFor, skip, SOURCES, TOOLS } from './harness.js';

const program = (name: string): string => fileURLToPath(new URL(`programs/${name}`, SOURCES));

/** What a driver of Python saw, null when it is not installed. */
async function python(t: ExecutionContext, driver: string, ...modules: string[]): Promise<unknown> {
  const port = await portFor(t);
  if (port === null) {
    return null;
  }
  if (!(await has('python3', '-c', `import ${[driver, ...modules].join(', ')}`))) {
    skip(t, `${driver} is not installed: node scripts/setup-tests.mjs`);
    return null;
  }
  return answerOf('python3', [program('drivers.py'), String(port), driver]);
}

const TYPES = [
  '2024-01-01 00:00:00.000007',
  'True',
  '-7',
  '123456',
  '9007199254740993',
  '1.5',
  '-2.25',
  'sym',
  "it's é",
  '11111111-2222-3333-4444-555555555555',
  '10.0.0.1',
  'u33d',
  '12.500',
];

test.serial('psycopg: both formats, named cursors, nested transactions, COPY', async (t) => {
  const seen = await python(t, 'psycopg');
  if (seen === null) {
    return;
  }
  const row = ['19998', 'a\tb\n', '2024-01-01 00:00:00.000007'];
  t.deepEqual(seen, {
    types: TYPES,
    same: true,
    kinds: [
      ...['datetime', 'bool', 'int', 'int', 'int', 'float', 'float', 'str', 'str', 'UUID'],
      ...['str', 'str', 'Decimal'],
    ],
    where: 123_456,
    many: 501,
    pipeline: [1, 2],
    stream: 5_000,
    cursor: 500_500,
    error: ['42P01', '15'],
    own: [2, 1, 0],
    nested: 1,
    undone: 0,
    cancelled: '57014',
    copy: [20_000, row],
    'copy(FORMAT binary)': [40_000, row],
    copyError: ['22P02', 'COPY p3c, line 1'],
    copied: 40_000,
  });
});

test.serial('psycopg2: named cursors, COPY, errors', async (t) => {
  const seen = await python(t, 'psycopg2');
  if (seen === null) {
    return;
  }
  t.deepEqual(seen, {
    cursor: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    error: ['42703', '8'],
    types: [
      ...['True', '-7', '123456', '9007199254740993', '1.5', '-2.25', 'sym', 'None', '12.500'],
      '2024-01-01 00:00:00.000007',
    ],
    described: ['b', 'h', 'i', 'l', 'f', 'd', 's', 'v', 'n', 't'],
    cancelled: '57014',
    kept: 1,
    copy: '10\ta,b\n11\tnil\n',
  });
});

test.serial('asyncpg: binary values, cursors, savepoints, COPY, a timeout', async (t) => {
  const seen = await python(t, 'asyncpg');
  if (seen === null) {
    return;
  }
  t.deepEqual(seen, {
    types: TYPES,
    described: [
      ['int4'],
      [
        ...['timestamp', 'bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'varchar', 'varchar'],
        ...['uuid', 'varchar', 'varchar', 'numeric'],
      ],
    ],
    many: 501,
    own: 1,
    cursor: 5_050,
    error: ['42P01', '15'],
    nested: 1,
    cancelled: 1,
    copy: ['COPY 20000', 'COPY 2', '0,x\n1,x\n'],
  });
});

test.serial('SQLAlchemy and pandas: read_sql, to_sql, streams, nested transactions', async (t) => {
  const seen = await python(t, 'sqlalchemy', 'pandas', 'psycopg', 'psycopg2');
  if (seen === null) {
    return;
  }
  const rows = [
    [2, null],
    [3, 'z'],
  ];
  const expected = [rows, 500_500, '42P01', 4, true];
  t.deepEqual(seen, { psycopg: expected, psycopg2: expected });
});

test.serial('ConnectorX and Polars: results as binary COPY, and through cursors', async (t) => {
  const seen = await python(t, 'connectorx', 'polars', 'pyarrow');
  if (seen === null) {
    return;
  }
  t.deepEqual(seen, {
    last: ['100000', '50000.0', '100000', '1970-01-02 03:46:40', 'True'],
    polars: [[100_000, 5], 2_500_025_000],
    redshift: [[100_000, 5], 2_500_025_000],
    empty: 0,
  });
});

test.serial('tokio-postgres: binary values, pipelines, portals, savepoints, COPY', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = join(TOOLS, 'bin', 'tokio-postgres-client');
  if (!existsSync(client)) {
    skip(t, 'the client of tokio-postgres is not built: node scripts/setup-tests.mjs');
    return;
  }
  t.deepEqual(await answerOf(client, [String(port)]), {
    written: 1,
    kinds: [
      ...['timestamp', 'bool', 'int2', 'int4', 'int8', 'float4', 'float8', 'varchar', 'varchar'],
      ...['uuid', '_float8'],
    ],
    types: [
      ...['1704067200000007', 'true', '-7', '123456', '9007199254740993', '1.5', '-2.25', 'sym'],
      ...['null', '11111111-2222-3333-4444-555555555555', '[1.5, 2.5]'],
    ],
    texts: ['123456', '-2.25', 'sym', 'null', '1'],
    many: [500, 501],
    cursor: [30, 30, 30, 10],
    sum: 5_050,
    error: '42P01 15',
    nested: [2, 1, 1],
    copied: [10_000, 10_000],
    text: '1\ta,b\n2\tnull\n',
    binary: 50_014_999,
    copyError: '22P02 COPY tpc, line 2',
    cancelled: '57014',
    tables: 2,
  });
});

test.serial('JDBC: binary values, batches, fetch size, savepoints, cancelling, COPY', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const jar = join(TOOLS, 'jars', 'postgresql.jar');
  if (!existsSync(jar) || !(await has('java', '-version'))) {
    skip(t, 'java or its PostgreSQL driver is not installed: node scripts/setup-tests.mjs');
    return;
  }
  t.deepEqual(await answerOf('java', ['-cp', jar, program('Jdbc.java'), String(port)]), [
    '1',
    ...['2024-01-01 00:00:00.000007', 'true', '-7', '123456', '9007199254740993', '1.5', '-2.25'],
    ...['sym', "it's", '11111111-2222-3333-4444-555555555555', '12.500'],
    ...['500', '501', '5050', '42P01 15', '1', '57014'],
    ...['20000', '2', '1\ta,b\n2\t\\N\n', '22P02 COPY jdc, line 2', '20000', '14.0', 'true'],
  ]);
});

test.serial('pgx: binary values, batches, nested transactions, CopyFrom, cancelling', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = join(TOOLS, 'bin', 'pgx-client');
  if (!existsSync(client)) {
    skip(t, 'the client of pgx is not built: node scripts/setup-tests.mjs (it needs Go)');
    return;
  }
  t.deepEqual(await answerOf(client, [String(port)]), {
    types: [
      ...['2024-01-01 00:00:00.000007 +0000 UTC', 'true', '-7', '123456', '9007199254740993'],
      ...['1.5', '-2.25', 'sym', '<nil>'],
    ],
    many: 501,
    error: '42P01 15',
    nested: 1,
    copied: [20_000, 20_000],
    copyError: '42703 8',
    cancelled: '57014 0',
  });
});

test.serial(
  'postgres.js: pipelines, cursors, savepoints, COPY both ways, cancelling',
  async (t) => {
    const port = await portFor(t);
    if (port === null) {
      return;
    }
    const module = join(TOOLS, 'node', 'node_modules', 'postgres', 'src', 'index.js');
    if (!existsSync(module)) {
      skip(t, 'postgres.js is not installed: node scripts/setup-tests.mjs');
      return;
    }
    const args = [program('postgresjs.mjs'), String(port), module];
    t.deepEqual(await answerOf(process.execPath, args), {
      row: { i: 7, d: 1.5, s: 'sym', v: null },
      pipelined: [1, 2, 3],
      cursor: 5_050,
      error: ['42P01', '15'],
      nested: '1',
      copied: '1\ta,b\n2\t\\N\n',
      rows: '20001',
      cancelled: '57014',
    });
  },
);

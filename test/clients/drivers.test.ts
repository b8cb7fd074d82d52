/**
 * Drivers of other languages against a real server, each a program of `programs` that prints what
 * it saw: values of all types, parameters, batches, cursors, errors, savepoints, COPY, cancelling.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { answerOf, has, portFor, program, python, skip, TOOLS } from './harness.js';

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

/** Of the questions with parameters. */
const ANSWERS = [
  ...['3600', '86399', '86399', '1', '2.5', '1', '2', '86398', '10', '86398', '86400'],
  ...[
    '46799',
    '3600',
    '2026-01-03 00:00:00',
    '1:00:00',
    '-3 days, 2:00:00',
    '1 day, 2:03:04.500000',
    '1:00:00',
    '2026-01-01 00:00:00',
    '2026-01-01 18:00:00',
  ],
  ...['23.0', '2026-01', '1', 'a|a|b', 'True'],
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
    parameters: { text: ANSWERS, binary: ANSWERS },
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

test.serial('asyncpg: binary values, cursors, savepoints, COPY, a timeout, pools', async (t) => {
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
    arrays: [
      [
        [
          [1.5, null],
          [
            [1, 2],
            [3, 4],
          ],
        ],
        [[], null],
      ],
      [[2], [1], [2], [1], [1, 2], [], [1, 2], [2]],
    ],
    pool: [5_050, 502],
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
  t.deepEqual(seen, {
    psycopg: expected,
    psycopg2: expected,
    'psycopg reflects': REFLECTED,
    'psycopg2 reflects': REFLECTED,
  });
});

/** What SQLAlchemy reads of a table, and what pandas makes of it. */
const REFLECTED = {
  tables: [true, false],
  views: [false, true],
  schemas: ['information_schema', 'public'],
  columns: [
    'ts TIMESTAMP False None',
    's VARCHAR True None',
    'v DOUBLE PRECISION True 1.5',
    'l BIGINT True None',
    'u UUID True None',
    'n NUMERIC(18, 3) True None',
    'i INTEGER True None',
    'b BOOLEAN True None',
    'a ARRAY True None',
  ],
  view: ['l BIGINT', 's VARCHAR'],
  pk: [],
  comment: { text: null },
  none: [[], [], [], [], [], []],
  autoload: ['ts', 's', 'v', 'l', 'u', 'n', 'i', 'b', 'a'],
  reflect: true,
  rows: [
    [0, 1.5],
    [1, 1.5],
    [2, 1.5],
  ],
  made: ['int64', 'str', 'float64', 'bool', 'datetime64[us]'],
  back: [4, 6, '2024-01-02 00:00:00.000007'],
  read: [1, 1],
};

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

test.serial('ADBC: results as binary COPY, parameters, transactions', async (t) => {
  const seen = await python(t, 'adbc_driver_postgresql', 'pyarrow');
  if (seen === null) {
    return;
  }
  t.deepEqual(seen, {
    rows: 10_000,
    kinds: ['int64', 'double', 'string', 'timestamp[us]', 'bool'],
    last: ['10000', '5000.0', '10000', '1970-01-01 02:46:40', 'True'],
    error: '42P01',
    many: 500,
    undone: 0,
    kept: 'kept',
  });
});

test.serial('sqlx: migrations, values, what its macros ask, transactions, COPY', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = join(TOOLS, 'bin', 'sqlx-client');
  if (!existsSync(client)) {
    skip(t, 'the client of sqlx is not built: node scripts/setup-tests.mjs');
    return;
  }
  t.deepEqual(await answerOf(client, [String(port), 'test/clients/sqlx/migrations']), {
    migrations: [
      [1, 'places', true],
      [2, 'notes', true],
    ],
    types: [
      1,
      [
        ...['TIMESTAMP', 'BOOL', 'INT2', 'INT4', 'INT8', 'FLOAT4', 'FLOAT8', 'VARCHAR', 'VARCHAR'],
        ...['UUID', 'BYTEA'],
      ],
      ...[true, true, -7, 123_456, '9007199254740993', 1.5, -2.25, 'sym', null, true, [0, 255]],
    ],
    // A column that must have a value differs from one that need not.
    described: [
      ['INT8', 'VARCHAR', 'FLOAT8'],
      [false, false, true],
    ],
    places: [
      [1, 2],
      ['a', 'b'],
    ],
    transactions: [1, 0, 2],
    failures: ['42P01', true],
    copied: [
      2,
      [
        [11, 'eleven'],
        [12, null],
      ],
    ],
    listened: true,
    pinged: 'qdb',
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

const JDBC_JAR = join(TOOLS, 'jars', 'postgresql.jar');

/** Where Java's driver connects to; null, and said, where it is not installed. */
async function jdbcPort(t: ExecutionContext): Promise<number | null> {
  const port = await portFor(t);
  if (port !== null && (!existsSync(JDBC_JAR) || !(await has('java', '-version')))) {
    skip(t, 'java or its PostgreSQL driver is not installed: node scripts/setup-tests.mjs');
    return null;
  }
  return port;
}

test.serial('JDBC: binary values, batches, fetch size, savepoints, cancelling, COPY', async (t) => {
  const port = await jdbcPort(t);
  if (port === null) {
    return;
  }
  t.deepEqual(await answerOf('java', ['-cp', JDBC_JAR, program('Jdbc.java'), String(port)]), [
    '1',
    ...['2024-01-01 00:00:00.000007', 'true', '-7', '123456', '9007199254740993', '1.5', '-2.25'],
    ...['sym', "it's", '11111111-2222-3333-4444-555555555555', '12.500'],
    ...['500', '501', '5050', '42P01 15', '1', '57014'],
    ...['20000', '2', '1\ta,b\n2\t\\N\n', '22P02 COPY jdc, line 2', '20000'],
    ...['1', '1', '2', '2', '14.0', 'true'],
  ]);
});

/** Rows of the driver's questions about a table, and about what there is. */
const JDBC_METADATA = {
  catalogs: ['qdb'],
  schemas: ['information_schema', 'pg_catalog', 'public'],
  tables: ['public|jm|TABLE', 'public|jmv|VIEW'],
  allTables: ['jm|TABLE'],
  systemTables: ['pg_class|SYSTEM VIEW'],
  columns: [
    ...['ts|93|timestamp|29|6|NO|1|null', 'b|-7|bool|1|0|YES|2|null', 'h|5|int2|5|0|YES|3|null'],
    ...['i|4|int4|10|0|YES|4|null', 'l|-5|int8|19|0|YES|5|null', 'f|7|float4|8|8|YES|6|null'],
    ...['d|8|float8|17|17|YES|7|1.5', 'v|12|varchar|2147483647|0|YES|8|null'],
    ...['u|1111|uuid|2147483647|0|YES|9|null', 'n|2|numeric|18|3|YES|10|null'],
  ],
  viewColumns: ['i|int4', 'd|float8'],
  primaryKeys: [],
  importedKeys: [],
  exportedKeys: [],
  indexes: [],
  uniqueIndexes: [],
  bestRow: [],
  versions: ['ctid'],
  functions: ['abs'],
  functionColumns: [],
  procedures: [],
  userTypes: [],
  clientInfo: ['ApplicationName'],
};

test.serial('JDBC: what DatabaseMetaData says', async (t) => {
  const port = await jdbcPort(t);
  if (port === null) {
    return;
  }
  const args = ['-cp', JDBC_JAR, program('JdbcMetadata.java'), String(port)];
  const seen = (await answerOf('java', args)) as Readonly<Record<string, readonly string[]>>;
  t.like(seen, JDBC_METADATA);
  t.true(seen['types']?.includes('float8|8'), String(seen['types']));
  t.true(seen['types']?.includes('_float8|2003'));
  t.true(seen['tableTypes']?.includes('VIEW'));
  t.true(seen['tablePrivileges']?.includes('SELECT'));
  t.deepEqual(seen['result']?.slice(0, 2), [
    'ts|timestamp|java.sql.Timestamp|0|false',
    'b|bool|java.lang.Boolean|1|false',
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
    simple: '-2.25 sym',
    any: [
      'i = ANY($1) 1',
      'i = ANY($1::int8[]) 0',
      's = ANY($1) 1',
      's = ANY($1::varchar[]) 0',
      'u = ANY($1) 1',
    ],
    array: '[1.5 2] 12.500',
    loaded: ['1022', '1022', '2951'],
    described: '[23 2950] 23 1022',
    cursor: [30, 30, 30, 10],
    many: 501,
    error: '42P01 15',
    nested: 1,
    copied: [20_000, 20_000],
    copiedOut: '0\tx\n1\tx\n',
    copyError: '42703 8',
    // One error asks to prepare the statement again, as in PostgreSQL.
    growing: [1, 1, '0A000 0', 2],
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

test.serial('node-postgres: arrays, cursors and streams in steps, COPY, cancelling', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const modules = join(TOOLS, 'node', 'node_modules');
  if (!existsSync(join(modules, 'pg-query-stream'))) {
    skip(t, 'pg-query-stream is not installed: node scripts/setup-tests.mjs');
    return;
  }
  const args = [program('nodepg.mjs'), String(port), modules];
  t.deepEqual(await answerOf(process.execPath, args), {
    any: [
      [[0], [2]],
      [[1], [2]],
    ],
    arrays: [[[2, 0.5]]],
    cursor: [30, 30, 30, 10],
    early: 5,
    stream: 12_502_500,
    copied: '1\ta,b\n2\t\\N\n',
    rows: [['20001']],
    error: ['42703', '8'],
    own: [['1']],
    undone: [['0']],
    cancelled: '57014',
  });
});

/**
 * Drivers in other languages against a real server. Each is a program that prints its results:
 * values of all types, parameters, batches, cursors, errors, savepoints, COPY, cancellation. The
 * expected results of each check are in `drivers.json`; `docs/clients.md` counts the checks.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { answerOf, has, portFor, program, python, skip, SOURCES, TOOLS } from './harness.js';

const expected = JSON.parse(readFileSync(new URL('drivers.json', SOURCES), 'utf8')) as Readonly<
  Record<string, unknown>
>;

/** Python drivers with their modules. The first module is the argument of `drivers.py`. */
const PYTHON: readonly (readonly [driver: string, title: string, ...modules: string[]])[] = [
  ['psycopg', 'both formats, named cursors, nested transactions and COPY work', 'psycopg'],
  ['psycopg2', 'named cursors, COPY and errors work', 'psycopg2'],
  ['asyncpg', 'binary values, cursors, savepoints, COPY, timeouts and pools work', 'asyncpg'],
  [
    'pandas',
    'read_sql, to_sql, streams and nested transactions work with SQLAlchemy',
    ...['sqlalchemy', 'pandas', 'psycopg', 'psycopg2'],
  ],
  [
    'connectorx',
    'Polars reads results through binary COPY and cursors',
    ...['connectorx', 'polars', 'pyarrow'],
  ],
  [
    'adbc',
    'results as binary COPY, parameters and transactions work',
    ...['adbc_driver_postgresql', 'pyarrow'],
  ],
];

for (const [driver, title, module = '', ...modules] of PYTHON) {
  test.serial(`${driver}: ${title}`, async (t) => {
    const seen = await python(t, module, ...modules);
    if (seen !== null) {
      t.deepEqual(seen, expected[driver]);
    }
  });
}

const NODE_MODULES = join(TOOLS, 'node', 'node_modules');
const JDBC_JAR = join(TOOLS, 'jars', 'postgresql.jar');
const built = (name: string): string => join(TOOLS, 'bin', `${name}-client`);

interface Driver {
  readonly driver: string;
  readonly title: string;
  /** A file that exists when the driver is installed. */
  readonly file: string;
  readonly command: readonly string[];
  /** Arguments after the port. */
  readonly more?: readonly string[];
}

const POSTGRES_JS = join(NODE_MODULES, 'postgres', 'src', 'index.js');

const DRIVERS: readonly Driver[] = [
  {
    driver: 'sqlx',
    title: 'migrations, values, macro queries, transactions and COPY work',
    file: built('sqlx'),
    command: [built('sqlx')],
    more: ['test/clients/sqlx/migrations'],
  },
  {
    driver: 'tokio-postgres',
    title: 'binary values, pipelines, portals, savepoints and COPY work',
    file: built('tokio-postgres'),
    command: [built('tokio-postgres')],
  },
  {
    driver: 'pgx',
    title: 'binary values, batches, nested transactions, CopyFrom and cancelling work',
    file: built('pgx'),
    command: [built('pgx')],
  },
  {
    driver: 'jdbc',
    title: 'binary values, batches, fetch size, savepoints, cancelling and COPY work',
    file: JDBC_JAR,
    command: ['java', '-cp', JDBC_JAR, program('Jdbc.java')],
  },
  {
    driver: 'postgres.js',
    title: 'pipelines, cursors, savepoints, COPY in both directions and cancelling work',
    file: POSTGRES_JS,
    command: [process.execPath, program('postgresjs.mjs')],
    more: [POSTGRES_JS],
  },
  {
    driver: 'node-postgres',
    title: 'arrays, stepwise cursors and streams, COPY and cancelling work',
    file: join(NODE_MODULES, 'pg-query-stream'),
    command: [process.execPath, program('nodepg.mjs')],
    more: [NODE_MODULES],
  },
];

for (const { driver, title, file, command, more = [] } of DRIVERS) {
  test.serial(`${driver}: ${title}`, async (t) => {
    const port = await portFor(t);
    if (port === null) {
      return;
    }
    const [name = '', ...args] = command;
    if (!existsSync(file) || (name === 'java' && !(await has('java', '-version')))) {
      skip(t, `${driver} is not installed: node scripts/setup-tests.mjs`);
      return;
    }
    t.deepEqual(await answerOf(name, [...args, String(port), ...more]), expected[driver]);
  });
}

/** Metadata queries; only some rows of long results are compared. */
test.serial('JDBC: DatabaseMetaData returns the expected results', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  if (!existsSync(JDBC_JAR) || !(await has('java', '-version'))) {
    skip(t, 'java or its PostgreSQL driver is not installed: node scripts/setup-tests.mjs');
    return;
  }
  const args = ['-cp', JDBC_JAR, program('JdbcMetadata.java'), String(port)];
  const seen = (await answerOf('java', args)) as Readonly<Record<string, readonly string[]>>;
  t.like(seen, expected['jdbc-metadata'] as Readonly<Record<string, unknown>>);
  t.true(seen['types']?.includes('float8|8'), String(seen['types']));
  t.true(seen['types']?.includes('_float8|2003'));
  t.true(seen['tableTypes']?.includes('VIEW'));
  t.true(seen['tablePrivileges']?.includes('SELECT'));
  t.deepEqual(seen['result']?.slice(0, 2), [
    'ts|timestamp|java.sql.Timestamp|0|false',
    'b|bool|java.lang.Boolean|1|false',
  ]);
});

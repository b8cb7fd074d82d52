/**
 * Read-only transactions: every way to begin one, the statements that it refuses, and the end of
 * its modes. The expected values are those of PostgreSQL 15.
 */
import test from 'ava';
import type pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';
import { withPgClient } from '../pg-client.js';
import { clientMessage, errorFields, RawClient } from './raw-client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['acl.enabled=true', 'pg.auth.method=cleartext'] });
  await connected(async (client) => {
    await client.query('CREATE TABLE t (a INT)');
    await client.query('CREATE VIEW v AS (SELECT a FROM t)');
    await client.query("CREATE USER joe WITH PASSWORD 'secret'");
    await client.query('GRANT PGWIRE TO joe');
    await client.query('GRANT SELECT ON t TO joe');
  });
});

test.after.always(() => server.stop());

function connected<T>(
  work: (client: pg.Client) => Promise<T>,
  config: pg.ClientConfig = {},
): Promise<T> {
  return withPgClient(server.pg, work, config);
}

/** Returns the SQLSTATE and message of a statement's error, or an empty string. */
async function failure(client: pg.Client, sql: string, values?: unknown[]): Promise<string> {
  try {
    await client.query(sql, values);
    return '';
  } catch (error) {
    return `${(error as pg.DatabaseError).code ?? ''}: ${(error as Error).message}`;
  }
}

async function shown(client: pg.Client, setting: string): Promise<unknown> {
  const { rows } = await client.query<Record<string, unknown>>(`SHOW ${setting}`);
  return Object.values(rows[0] ?? {})[0];
}

async function count(client: pg.Client): Promise<number> {
  const { rows } = await client.query<{ n: string }>('SELECT count() n FROM t');
  return Number(rows[0]?.n);
}

const REFUSED = (command: string): string =>
  `25006: cannot execute ${command} in a read-only transaction`;

const WRITES: readonly (readonly [sql: string, command: string])[] = [
  ['INSERT INTO t VALUES (1)', 'INSERT'],
  ['INSERT INTO t SELECT 1', 'INSERT'],
  ['INSERT INTO t VALUES (1) RETURNING a', 'INSERT'],
  ['UPDATE t SET a = 2', 'UPDATE'],
  ['DELETE FROM t', 'DELETE'],
  ['TRUNCATE TABLE t', 'TRUNCATE TABLE'],
  ['CREATE TABLE u (a INT)', 'CREATE TABLE'],
  ['CREATE TABLE u AS (SELECT 1 a)', 'CREATE TABLE'],
  ['ALTER TABLE t ADD COLUMN b INT', 'ALTER TABLE'],
  ['DROP TABLE t', 'DROP TABLE'],
  ['CREATE VIEW w AS (SELECT 1 a)', 'CREATE VIEW'],
  ['DROP VIEW v', 'DROP VIEW'],
  ["COMMENT ON TABLE t IS 'x'", 'COMMENT'],
  ["CREATE USER eve WITH PASSWORD 'secret'", 'CREATE USER'],
  ['DROP USER joe', 'DROP USER'],
  ['GRANT UPDATE ON t TO joe', 'GRANT'],
  ['REVOKE SELECT ON t FROM joe', 'REVOKE'],
  ['COPY t FROM STDIN', 'COPY FROM'],
];

test('a read-only transaction refuses every kind of write', async (t) => {
  await connected(async (client) => {
    for (const [sql, command] of WRITES) {
      await client.query('BEGIN READ ONLY');
      t.is(await failure(client, sql), REFUSED(command), sql);
      t.regex(await failure(client, 'SELECT 1'), /^25P02/, sql);
      await client.query('ROLLBACK');
    }
    await client.query('BEGIN READ ONLY');
    t.is(await count(client), 0);
    t.is(await failure(client, 'INSERT INTO t VALUES ($1)', [1]), REFUSED('INSERT'));
    await client.query('ROLLBACK');
    const { rows } = await client.query<{ table_name: string }>('SHOW TABLES');
    t.deepEqual(
      rows.map((row) => row.table_name),
      ['t'],
    );
    t.is(await count(client), 0);
  });
});

const BEGINNINGS: readonly (readonly string[])[] = [
  ['BEGIN READ ONLY'],
  ['START TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY, DEFERRABLE'],
  ['BEGIN', 'SET TRANSACTION READ ONLY'],
  ['BEGIN', 'SET LOCAL transaction_read_only = on'],
  ['BEGIN', 'BEGIN READ ONLY'],
  ['SET default_transaction_read_only = on', 'BEGIN'],
  ['SET default_transaction_read_only = on'],
  ['SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY'],
];

test('each form of read-only transaction is kept and shown', async (t) => {
  for (const beginning of BEGINNINGS) {
    await connected(async (client) => {
      for (const sql of beginning) {
        await client.query(sql);
      }
      t.is(await shown(client, 'transaction_read_only'), 'on', beginning.join('; '));
      t.is(await failure(client, 'INSERT INTO t VALUES (1)'), REFUSED('INSERT'));
    });
  }
  for (const options of [
    '-c default_transaction_read_only=on',
    '--default-transaction-read-only=1',
  ]) {
    await connected(
      async (client) => {
        t.is(await failure(client, 'INSERT INTO t VALUES (1)'), REFUSED('INSERT'));
        await client.query('RESET ALL');
        t.is(await shown(client, 'default_transaction_read_only'), 'on');
        await client.query('BEGIN READ WRITE');
        t.is(await failure(client, 'INSERT INTO t VALUES (1)'), '');
        await client.query('ROLLBACK');
      },
      { options },
    );
  }
});

test('a read-only transaction becomes read-write only before its first query', async (t) => {
  await connected(async (client) => {
    await client.query('BEGIN READ ONLY');
    t.is(await shown(client, 'transaction_read_only'), 'on');
    await client.query('SET TRANSACTION READ WRITE');
    t.is(await failure(client, 'INSERT INTO t VALUES (1)'), '');
    await client.query('ROLLBACK');
    await client.query('BEGIN READ ONLY');
    await client.query('SELECT 1');
    const late = '25001: transaction read-write mode must be set before any query';
    t.is(await failure(client, 'SET TRANSACTION READ WRITE'), late);
    await client.query('ROLLBACK');
    await client.query('BEGIN READ ONLY');
    await client.query('SAVEPOINT a');
    const inner = '25001: cannot set transaction read-write mode inside a read-only transaction';
    t.is(await failure(client, 'SET transaction_read_only = off'), inner);
    await client.query('ROLLBACK');
    t.is(await failure(client, 'INSERT INTO t SELECT a FROM t'), '');
  });
});

test('modes end with their savepoint or block, and SET is undone by ROLLBACK', async (t) => {
  await connected(async (client) => {
    for (const end of ['ROLLBACK TO a', 'RELEASE a']) {
      await client.query('BEGIN; SAVEPOINT a; SET TRANSACTION READ ONLY');
      t.is(await shown(client, 'transaction_read_only'), 'on');
      await client.query(end);
      t.is(await shown(client, 'transaction_read_only'), 'off', end);
      await client.query('COMMIT');
    }
    await client.query("BEGIN; SET application_name = 'x'; SET default_transaction_read_only = on");
    t.is(await failure(client, 'INSERT INTO t SELECT a FROM t'), '');
    t.regex(await failure(client, 'SELECT no'), /^42703/);
    await client.query('ROLLBACK');
    t.is(await shown(client, 'application_name'), '');
    t.is(await shown(client, 'default_transaction_read_only'), 'off');
    await client.query("BEGIN; SET LOCAL statement_timeout = '90s'");
    t.is(await shown(client, 'statement_timeout'), '90s');
    await client.query('COMMIT');
    t.is(await shown(client, 'statement_timeout'), '0');
    await client.query('SET TRANSACTION READ ONLY');
    t.is(await shown(client, 'transaction_read_only'), 'off');
  });
});

test('SET LOCAL … TO DEFAULT hides the value of the session until the block ends', async (t) => {
  await connected(async (client) => {
    await client.query("SET application_name = 'x'; BEGIN; SET LOCAL application_name TO DEFAULT");
    t.is(await shown(client, 'application_name'), '');
    await client.query('COMMIT');
    t.is(await shown(client, 'application_name'), 'x');
    await client.query("SET application_name TO 'default'");
    t.is(await shown(client, 'application_name'), 'default');
    await client.query('SET application_name TO DEFAULT');
    t.is(await shown(client, 'application_name'), '');
  });
});

test('invalid modes are refused; every level behaves like READ COMMITTED', async (t) => {
  await connected(async (client) => {
    t.regex(await failure(client, 'BEGIN ISOLATION LEVEL chaos'), /^42601: isolation level/);
    t.regex(await failure(client, 'SET TRANSACTION'), /^42601: transaction mode expected/);
    t.regex(await failure(client, "SET default_transaction_isolation = 'x'"), /^22023/);
    const notBoolean = '22023: parameter "default_transaction_read_only" requires a Boolean value';
    t.is(await failure(client, 'SET default_transaction_read_only = maybe'), notBoolean);
    await client.query('BEGIN ISOLATION LEVEL SERIALIZABLE');
    t.is(await shown(client, 'transaction_isolation'), 'read committed');
    t.is(await shown(client, 'TRANSACTION ISOLATION LEVEL'), 'read committed');
    await client.query('ROLLBACK');
  });
});

test('pipelined inserts of a prepared statement are refused one by one', async (t) => {
  const client = await RawClient.login(Number(server.pg.split(':')[1]));
  client.send(clientMessage('Q', 'SET default_transaction_read_only = on'));
  await client.until('Z');
  const execution = [
    clientMessage('B', '', 's', [0], [1], 1, Buffer.from('7'), [0]),
    clientMessage('E', '', 0),
  ];
  client.send(
    clientMessage('P', 's', 'INSERT INTO t VALUES ($1)', [0]),
    ...execution,
    ...execution,
    clientMessage('S'),
  );
  const messages = await client.until('Z');
  t.is(messages.map(({ type }) => type).join(''), '12EZ');
  t.is(errorFields(messages[2])['C'], '25006');
  client.close();
  await connected(async (other) => {
    t.is(await count(other), 0);
  });
});

test('DISCARD ALL ends a read-only session; permissions are checked as usual', async (t) => {
  await connected(async (client) => {
    await client.query('SET default_transaction_read_only = on');
    await client.query('DISCARD ALL');
    t.is(await shown(client, 'transaction_read_only'), 'off');
  });
  await connected(
    async (client) => {
      t.regex(await failure(client, 'INSERT INTO t VALUES (1)'), /^42501/);
      await client.query('BEGIN READ ONLY');
      t.is(await count(client), 0);
      t.regex(await failure(client, 'INSERT INTO t VALUES (1)'), /^(?:42501|25006)/);
    },
    { user: 'joe', password: 'secret' },
  );
});

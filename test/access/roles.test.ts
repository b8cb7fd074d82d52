/** SET ROLE and related statements: how PostgreSQL clients assume a service account. */
import test from 'ava';
import type pg from 'pg';

import type { TestServer } from '../golden/server.js';
import { startTestServer } from '../golden/server.js';
import { run, startAccessServer } from './harness.js';
import { pgClient } from '../pg-client.js';

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(
    server,
    "CREATE USER ann WITH PASSWORD 'a'",
    'GRANT PGWIRE TO ann',
    'CREATE SERVICE ACCOUNT "feed er" OWNED BY ann',
    'CREATE SERVICE ACCOUNT other',
  );
});

test.after.always(async () => {
  await server.stop();
});

async function connect(target: TestServer, user: string, password: string): Promise<pg.Client> {
  const client = pgClient(target.pg, { user, password });
  await client.connect();
  return client;
}

async function nameOf(client: pg.Client): Promise<string | undefined> {
  return (await client.query<{ me: string }>('SELECT current_user() me')).rows[0]?.me;
}

test('SET ROLE assumes a service account, and every form of RESET leaves it', async (t) => {
  const client = await connect(server, 'ann', 'a');
  const enters = ['SET ROLE "feed er"', "SET SESSION ROLE 'feed er'", "set role to 'feed er'"];
  const exits = [
    'SET ROLE NONE',
    'RESET ROLE',
    'SET SESSION AUTHORIZATION DEFAULT',
    'RESET SESSION AUTHORIZATION',
    'DISCARD ALL',
    'EXIT SERVICE ACCOUNT',
  ];
  for (const [index, exit] of exits.entries()) {
    await client.query(enters[index % enters.length] ?? '');
    t.is(await nameOf(client), 'feed er');
    await client.query(exit);
    t.is(await nameOf(client), 'ann', exit);
  }
  await client.query('SET ROLE ann');
  await client.query('SET ROLE NONE');
  await client.end();
});

const BLOCKS: readonly (readonly [sql: string, user: string, after: string])[] = [
  ['BEGIN; SET ROLE "feed er"; ROLLBACK', 'ann', 'ann'],
  ['BEGIN; ASSUME SERVICE ACCOUNT "feed er"; ROLLBACK', 'ann', 'ann'],
  ['BEGIN; SET LOCAL ROLE "feed er"', 'feed er', 'ann'],
  ['BEGIN; SET LOCAL ROLE "feed er"; ROLLBACK', 'ann', 'ann'],
  ['BEGIN; SET LOCAL ROLE "feed er"; SET ROLE NONE', 'ann', 'ann'],
  ['BEGIN; SET ROLE "feed er"; SET LOCAL ROLE NONE', 'ann', 'feed er'],
  ['BEGIN; SET ROLE NONE; ROLLBACK', 'feed er', 'feed er'],
  ['BEGIN; SET LOCAL ROLE NONE; DISCARD ALL', 'ann', 'ann'],
  ['BEGIN; SAVEPOINT a; SET ROLE "feed er"; ROLLBACK TO a', 'ann', 'ann'],
  ['BEGIN; SAVEPOINT a; SET LOCAL ROLE "feed er"; RELEASE a', 'feed er', 'ann'],
  ['BEGIN; SET LOCAL ROLE "feed er"; SAVEPOINT a; SET ROLE NONE; ROLLBACK TO a', 'feed er', 'ann'],
  ['SET LOCAL ROLE NONE', 'ann', 'ann'],
  ['SET LOCAL ROLE "feed er"', 'ann', 'ann'],
];

test('a block that is rolled back restores the user; SET LOCAL ROLE ends with it', async (t) => {
  const client = await connect(server, 'ann', 'a');
  const notices: unknown[] = [];
  client.on('notice', ({ message }) => notices.push(message));
  for (const [sql, user, after] of BLOCKS) {
    await client.query(sql);
    t.is(await nameOf(client), user, sql);
    await client.query('COMMIT');
    t.is(await nameOf(client), after, sql);
  }
  const warning = 'SET LOCAL can only be used in transaction blocks';
  t.deepEqual(notices, [warning, warning]);
  await client.query('BEGIN; SET ROLE "feed er"');
  await t.throwsAsync(client.query('SELECT no'));
  await client.query('COMMIT');
  t.is(await nameOf(client), 'ann');
  await client.end();
});

test('SET SESSION AUTHORIZATION and SET ROLE to a forbidden role are refused', async (t) => {
  const client = await connect(server, 'ann', 'a');
  const refused = 'Access denied [ASSUME SERVICE ACCOUNT other]';
  await t.throwsAsync(client.query('SET ROLE other'), { message: refused });
  const unknown = 'Access denied [ASSUME SERVICE ACCOUNT nobody]';
  await t.throwsAsync(client.query('SET ROLE nobody'), { message: unknown });
  await t.throwsAsync(client.query('SET SESSION AUTHORIZATION other'), { message: /SET ROLE/ });
  t.is(await nameOf(client), 'ann');
  await client.end();
});

test('SET ROLE is refused when access control is off', async (t) => {
  const plain = await startTestServer();
  const client = await connect(plain, 'admin', 'quest');
  await t.throwsAsync(client.query('SET ROLE other'), { message: /access control is off/ });
  await client.query('SET ROLE NONE');
  await client.end();
  await plain.stop();
});

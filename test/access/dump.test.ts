/** SHOW CREATE DATABASE with users and permissions. Running its output recreates them. */
import test from 'ava';

import type { TestServer } from '../golden/server.js';
import { ADMIN, exec, rows, run, startAccessServer } from './harness.js';

const CREATED = [
  'CREATE TABLE t (ts TIMESTAMP, a INT, b INT) TIMESTAMP(ts) PARTITION BY DAY WAL',
  'CREATE VIEW v AS (SELECT a FROM t)',
  "CREATE GROUP readers WITH EXTERNAL ALIAS 'CN=it''s, ours'",
  "ALTER GROUP readers WITH EXTERNAL ALIAS 'second'",
  'CREATE GROUP "a b"',
  "CREATE USER ann WITH PASSWORD 'secret-4711'",
  'CREATE USER "o""brien"',
  'ALTER USER "o""brien" DISABLE',
  "CREATE SERVICE ACCOUNT feed WITH PASSWORD 'secret-4711' OWNED BY ann",
  'ADD USER ann TO readers, "a b"',
  'GRANT HTTP, PGWIRE TO readers',
  'GRANT SELECT ON ALL TABLES TO readers WITH GRANT OPTION',
  'GRANT SELECT, UPDATE ON t(a, b) TO "o""brien"',
  'GRANT INSERT, SELECT ON t TO feed',
  'GRANT SELECT ON v TO feed WITH GRANT OPTION',
  'GRANT ASSUME SERVICE ACCOUNT feed TO readers',
];

async function dump(server: TestServer, rest = '', who = ADMIN): Promise<readonly string[]> {
  const found = await rows(server, who, `SHOW CREATE DATABASE${rest}`);
  return found.map(([ddl]) => String(ddl));
}

test('a dump recreates the same users and rights on another server', async (t) => {
  const [first, second] = [await startAccessServer(), await startAccessServer()];
  t.teardown(() => Promise.all([first.stop(), second.stop()]));
  await run(first, ...CREATED);
  const token = await rows(first, ADMIN, "ALTER USER ann CREATE TOKEN TYPE REST WITH TTL '1h'");
  const statements = await dump(first);
  t.false(statements.join('\n').includes('secret-4711'));
  t.false(statements.join('\n').includes(String(token[0]?.[1])));
  await run(second, ...statements);
  t.deepEqual(await dump(second), statements);
  for (const list of [
    'SHOW USERS',
    'SHOW GROUPS',
    'SHOW GROUPS ann',
    'SHOW SERVICE ACCOUNTS ann',
    'SHOW USER "o""brien"',
    ...['readers', 'ann', '"o""brien"', 'feed'].map((name) => `SHOW PERMISSIONS ${name}`),
  ]) {
    t.deepEqual(await rows(second, ADMIN, list), await rows(first, ADMIN, list), list);
  }
});

test('a dump can be limited to categories and omits objects hidden from the user', async (t) => {
  const server = await startAccessServer();
  t.teardown(() => server.stop());
  await run(
    server,
    'CREATE TABLE t (a INT)',
    'CREATE GROUP g',
    "CREATE USER ann WITH PASSWORD 'a'",
    'GRANT HTTP TO ann',
    'GRANT SELECT ON t TO ann',
  );
  t.deepEqual(await dump(server, ' INCLUDE (USERS, GROUPS)'), [
    'CREATE GROUP "g";',
    'CREATE USER "ann";',
  ]);
  t.deepEqual(await dump(server, ' INCLUDE (PERMISSIONS)'), [
    'GRANT HTTP TO "ann";',
    'GRANT SELECT ON "t" TO "ann";',
  ]);
  const starts = async (rest: string, who?: string): Promise<readonly string[]> =>
    (await dump(server, rest, who)).map((one) => one.split(' ', 2).join(' '));
  t.deepEqual(await starts(' EXCLUDE (ACL)'), ['CREATE TABLE']);
  t.deepEqual(await starts(' EXCLUDE (SCHEMA, PERMISSIONS)'), ['CREATE GROUP', 'CREATE USER']);
  t.is((await starts(' INCLUDE ALL')).length, 5);
  t.deepEqual(await starts('', 'ann:a'), ['CREATE TABLE']);
  t.deepEqual(await starts(' INCLUDE ALL', 'ann:a'), ['CREATE TABLE']);
  for (const [category, permission] of [
    ['USERS', 'LIST USERS'],
    ['PERMISSIONS', 'USER DETAILS'],
    ['ACL', 'LIST USERS'],
  ]) {
    const { error } = await exec(server, 'ann:a', `SHOW CREATE DATABASE INCLUDE (${category})`);
    t.is(error, `Access denied [${permission}]`);
  }
  const part = "SELECT count() FROM (SHOW CREATE DATABASE) WHERE ddl LIKE 'GRANT%'";
  t.deepEqual(await rows(server, ADMIN, part), [[2]]);
});

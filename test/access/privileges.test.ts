/** has_table_privilege() and related functions report the permissions of the session's user. */
import test from 'ava';

import type { TestServer } from '../golden/server.js';
import { ADMIN, exec, rows, run, startAccessServer } from './harness.js';

const ANN = 'ann:a';

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(
    server,
    'CREATE TABLE t (ts TIMESTAMP, a INT, b INT) TIMESTAMP(ts) PARTITION BY DAY WAL',
    'CREATE TABLE "in" (x INT)',
    'CREATE TABLE u (x INT)',
    'CREATE VIEW v AS (SELECT a FROM t)',
    "CREATE USER ann WITH PASSWORD 'a'",
    'CREATE USER bob',
    'GRANT HTTP TO ann',
    'GRANT SELECT ON t(a) TO ann',
    'GRANT SELECT ON v TO ann WITH GRANT OPTION',
    'GRANT SELECT, INSERT ON "in" TO ann',
    'GRANT UPDATE ON u(x) TO ann',
    'GRANT TRUNCATE TABLE ON t TO bob',
  );
});

test.after.always(async () => {
  await server.stop();
});

/** Result of each call for a user who has some of the permissions. */
const ANSWERS: Readonly<Record<string, boolean>> = {
  "has_table_privilege('t', 'SELECT')": false,
  "has_table_privilege('in', 'SELECT')": true,
  "has_table_privilege('IN', 'select')": true,
  "has_table_privilege('public.in', 'INSERT')": true,
  "has_table_privilege('\"in\"', 'INSERT')": true,
  "has_table_privilege('in'::regclass, 'INSERT')": true,
  "pg_catalog.has_table_privilege('in', 'INSERT')": true,
  "has_table_privilege('in', 'DELETE')": false,
  "has_table_privilege('in', 'TRUNCATE')": false,
  "has_table_privilege('in', 'DELETE, INSERT')": true,
  "has_table_privilege('in', 'TRIGGER')": false,
  "has_table_privilege('in', 'SELECT WITH GRANT OPTION')": false,
  "has_table_privilege('v', 'SELECT WITH GRANT OPTION')": true,
  "has_table_privilege('u', 'UPDATE')": false,
  "has_table_privilege('nothing', 'SELECT')": false,
  "has_table_privilege('pg_class', 'SELECT')": true,
  "has_table_privilege('pg_class', 'INSERT')": false,
  "has_table_privilege('ann', 'in', 'SELECT')": true,
  "has_table_privilege(current_user, 'in', 'SELECT')": true,
  "has_any_column_privilege('t', 'SELECT')": true,
  "has_any_column_privilege('t', 'INSERT')": false,
  "has_any_column_privilege('u', 'UPDATE')": true,
  "has_column_privilege('t', 'a', 'SELECT')": true,
  "has_column_privilege('t', 'ts', 'SELECT')": true,
  "has_column_privilege('t', 'b', 'SELECT')": false,
  "has_column_privilege('ann', 't', 'b', 'SELECT')": false,
  "has_schema_privilege('public', 'USAGE')": true,
  "has_schema_privilege('public', 'CREATE')": false,
  "has_database_privilege('qdb', 'CONNECT')": false,
  "has_database_privilege('qdb', 'TEMP')": false,
};

test('privilege functions accept literals', async (t) => {
  const calls = Object.keys(ANSWERS);
  const [answers] = await rows(server, ANN, `SELECT ${calls.join(', ')}`);
  t.deepEqual(Object.fromEntries(calls.map((call, index) => [call, answers?.[index]])), ANSWERS);
});

test('the administrator has every privilege', async (t) => {
  const calls = Object.keys(ANSWERS).filter(
    (call) => !/nothing|TRIGGER|TEMP|pg_class|'ann'/.test(call),
  );
  const [answers] = await rows(server, ADMIN, `SELECT ${calls.join(', ')}`);
  t.deepEqual(
    answers,
    calls.map(() => true),
  );
});

test('privilege functions accept catalog columns, as in client queries', async (t) => {
  const question = (table: string): string =>
    `SELECT c.relname FROM pg_catalog.pg_class c
      WHERE c.relname IN ('t', 'in', 'u', 'v') AND has_table_privilege(${table}, 'SELECT')
      ORDER BY 1`;
  for (const table of ['c.oid', 'c.relname']) {
    t.deepEqual(await rows(server, ANN, question(table)), [['in'], ['v']], table);
    t.is((await rows(server, ADMIN, question(table))).length, 4, table);
  }
  t.deepEqual(await rows(server, ANN, question('c.oid').replace('has_table', 'has_any_column')), [
    ['in'],
    ['t'],
    ['v'],
  ]);
});

test("checking another user's privileges requires USER DETAILS", async (t) => {
  const about = "SELECT has_table_privilege('bob', 't', 'TRUNCATE')";
  t.is((await exec(server, ANN, about)).error, 'Access denied [USER DETAILS]');
  t.deepEqual(await rows(server, ADMIN, about), [[true]]);
  t.deepEqual(await rows(server, ADMIN, about.replace('TRUNCATE', 'SELECT')), [[false]]);
  t.regex((await exec(server, ADMIN, about.replace('bob', 'nobody'))).error ?? '', /'nobody'/);
});

test('privilege functions reflect later grants; error positions match the SQL', async (t) => {
  await run(server, "CREATE USER eve WITH PASSWORD 'e'", 'GRANT HTTP TO eve');
  const question = "SELECT has_table_privilege('u', 'SELECT')";
  t.deepEqual(await rows(server, 'eve:e', question), [[false]]);
  await run(server, 'GRANT SELECT ON u TO eve');
  t.deepEqual(await rows(server, 'eve:e', question), [[true]]);
  const { position } = await exec(server, 'eve:e', `${question}, nothing FROM u`);
  t.is(position, question.length + 2);
  t.regex(
    (await exec(server, ANN, "SELECT has_table_privilege('u', 'FLY')")).error ?? '',
    /unrecognized privilege type: 'FLY'/,
  );
});

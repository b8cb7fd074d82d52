/**
 * Calls that act on the server or describe it require administrator permissions, wherever they are
 * used.
 */
import test from 'ava';

import type { TestServer } from '../golden/server.js';
import { ADMIN, exec, run, startAccessServer } from './harness.js';
import { pgClient } from '../pg-client.js';

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(
    server,
    'CREATE TABLE t (i INT)',
    'INSERT INTO t VALUES (1)',
    "CREATE USER ann WITH PASSWORD 'a'",
    "CREATE USER op WITH PASSWORD 'o'",
    'GRANT HTTP, PGWIRE, CREATE TABLE, CREATE VIEW TO ann',
    'GRANT HTTP, PGWIRE, CREATE TABLE, CREATE VIEW, SYSTEM ADMIN TO op',
    'GRANT SELECT, INSERT ON t TO ann',
    'GRANT SELECT, INSERT ON t TO op',
  );
});

test.after.always(() => server.stop());

const DENIED = { status: 403, error: 'Access denied [SYSTEM ADMIN]' };
const CALLS = ['flush_query_cache()', 'FLUSH_QUERY_CACHE()', "hydrate_table_metadata('*')"];
const ROWS = [
  'memory_metrics()',
  'memory_metrics',
  '"memory_metrics"',
  'MEMORY_METRICS m',
  '(SHOW PARAMETERS)',
];

const FORMS: readonly string[] = [
  'SHOW PARAMETERS',
  "(SHOW PARAMETERS) WHERE property_path = 'root'",
  ...CALLS.flatMap((call) => [
    `SELECT ${call}`,
    `SELECT i, ${call} FROM t`,
    `SELECT * FROM t WHERE ${call}`,
    `WITH x AS (SELECT ${call} y) SELECT * FROM x`,
    `SELECT CASE WHEN ${call} THEN 1 ELSE 2 END`,
    `EXPLAIN SELECT ${call}`,
    `INSERT INTO t SELECT CASE WHEN ${call} THEN 1 ELSE 2 END`,
  ]),
  ...ROWS.flatMap((source) => [
    `SELECT count() FROM ${source}`,
    `SELECT 1 FROM t CROSS JOIN ${source} LIMIT 1`,
    `SELECT 1 x UNION ALL SELECT count() FROM ${source}`,
  ]),
];

for (const form of FORMS) {
  test(form, async (t) => {
    t.like(await exec(server, 'ann:a', form), DENIED);
    t.is((await exec(server, 'op:o', form)).status, 200);
    t.is((await exec(server, ADMIN, form)).status, 200);
  });
}

test('a view does not bypass the rights that a server function requires', async (t) => {
  t.like(await exec(server, 'ann:a', 'CREATE VIEW v AS (SELECT * FROM memory_metrics())'), DENIED);
});

test('a prepared statement is checked again at each execution', async (t) => {
  await run(server, "CREATE USER eve WITH PASSWORD 'e'", 'GRANT PGWIRE, SYSTEM ADMIN TO eve');
  const client = pgClient(server.pg, { user: 'eve', password: 'e' });
  await client.connect();
  const statement = { name: 'one', text: 'SELECT count() FROM memory_metrics()' };
  t.is((await client.query(statement)).rows.length, 1);
  await run(server, 'REVOKE SYSTEM ADMIN FROM eve');
  await t.throwsAsync(client.query(statement), { message: DENIED.error });
  await client.end();
});

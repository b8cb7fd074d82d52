/**
 * Gate S17: no table, view or column created by one user may affect other users' catalog queries or
 * the data that access control reads. Covers catalog names and names that resemble them.
 */
import test from 'ava';

import type { TestServer } from '../golden/server.js';
import { ADMIN, exec, rows, run, startAccessServer } from './harness.js';

const MAL = 'mal:pw-12345678';

/** Queries that clients and access control run against the catalog. */
const QUESTIONS = [
  'SELECT table_name FROM tables() ORDER BY 1',
  'SELECT * FROM information_schema.columns ORDER BY table_name, ordinal_position',
  'SELECT table_name FROM information_schema.tables ORDER BY 1',
  'SELECT relname, relkind FROM pg_class ORDER BY 1, 2',
  'SELECT relname FROM pg_catalog.pg_class ORDER BY 1',
  'SELECT attname FROM pg_attribute ORDER BY 1',
  'SELECT nspname FROM pg_namespace ORDER BY 1',
  'SELECT datname FROM pg_catalog.pg_database',
  'SELECT view_name FROM views() ORDER BY 1',
  'SELECT name FROM functions() ORDER BY 1 LIMIT 20',
  'SELECT "column" FROM table_columns(\'base\')',
  'SHOW TABLES',
  "SELECT has_table_privilege('base', 'SELECT')",
];

const CATALOG = [
  'pg_class',
  'pg_database',
  'pg_type',
  'pg_attribute',
  'pg_namespace',
  'pg_proc',
  'pg_tables',
  'pg_anything',
  'tables',
  'query_activity',
  'memory_metrics',
  'writer_pool',
  'checkpoint_status',
  'information_schema.columns',
  'information_schema.tables',
  'information_schema.anything',
  'pg_catalog.pg_class',
  'pg_catalog.pg_database',
  'pg_catalog.x',
  'public.base',
  'qdb.public.base',
  'qdb.base',
];
/** Alternative spellings of the same names. */
const WRITINGS: ((name: string) => string)[] = [
  (name) => `"${name}"`,
  (name) => `"${name.toUpperCase()}"`,
  (name) => `'${name}'`,
  (name) => `"${name.slice(0, 1).toUpperCase()}${name.slice(1)}"`,
];

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(
    server,
    'CREATE TABLE base (ts TIMESTAMP, a INT) TIMESTAMP(ts)',
    'CREATE VIEW base_view AS (SELECT a FROM base)',
    "CREATE USER mal WITH PASSWORD 'pw-12345678'",
    'GRANT HTTP, CREATE TABLE, CREATE VIEW TO mal',
    'GRANT SELECT ON base TO mal',
  );
});

test.after.always(async () => {
  await server.stop();
});

test.serial('catalog table names are refused in every spelling', async (t) => {
  const before = await answers();
  let tried = 0;
  for (const name of CATALOG) {
    for (const written of WRITINGS.map((write) => write(name))) {
      await run(server, 'CREATE TABLE spare (i INT)');
      for (const [who, statement] of [
        [MAL, `CREATE TABLE ${written} (i INT)`],
        [MAL, `CREATE TABLE ${written} AS (SELECT 1 i)`],
        [MAL, `CREATE VIEW ${written} AS (SELECT 1 i)`],
        [ADMIN, `RENAME TABLE spare TO ${written}`],
      ] as const) {
        tried += 1;
        const { error } = await exec(server, who, statement);
        t.not(error, undefined, statement);
        t.false((error ?? '').includes('internal'), `${statement}: ${error ?? ''}`);
      }
      await run(server, 'DROP TABLE spare');
    }
  }
  t.true(tried >= 200, `${tried} tried`);
  t.deepEqual(await answers(), before);
});

test.serial('an import cannot create a catalog table', async (t) => {
  const before = await answers();
  for (const name of CATALOG) {
    const form = new FormData();
    form.append('data', new Blob(['a,b\n1,2\n']), 'f.csv');
    const url = `${server.url}/imp?name=${encodeURIComponent(name)}`;
    const authorization = `Basic ${Buffer.from(MAL).toString('base64')}`;
    await fetch(url, { method: 'POST', body: form, headers: { authorization } });
  }
  const created = (await rows(server, ADMIN, 'SELECT table_name FROM tables()')).flat();
  t.deepEqual(
    created.filter((name) => CATALOG.includes(String(name))),
    [],
  );
  for (const name of created.filter((one) => one !== 'base')) {
    await run(server, `DROP TABLE "${String(name)}"`);
  }
  t.deepEqual(await answers(), before);
});

test.serial('names that only resemble catalog names are ordinary names', async (t) => {
  const before = await answers();
  const names = ['views', 'functions', 'columns', 'users', 'all_permissions', 'access_schema'];
  const columns = ['table_name', 'column_name', 'relname', 'oid', 'name', 'designated'];
  for (const name of names) {
    const list = columns.map((column) => `"${column}" STRING`).join(', ');
    t.is((await exec(server, MAL, `CREATE TABLE "${name}" (${list})`)).error, undefined, name);
    const fake = columns.map(() => "'base'").join(', ');
    t.is((await exec(server, MAL, `INSERT INTO "${name}" VALUES (${fake})`)).error, undefined);
  }
  for (const statement of ['GRANT SELECT ON base(a) TO mal', 'REVOKE SELECT ON base(a) FROM mal']) {
    await run(server, statement);
  }
  await run(server, 'GRANT SELECT ON base TO mal');
  for (const name of names) {
    t.is((await exec(server, MAL, `DROP TABLE "${name}"`)).error, undefined, name);
  }
  t.deepEqual(await answers(), before);
  t.not((await exec(server, MAL, 'SELECT * FROM access_schema()')).error, undefined);
});

async function answers(): Promise<unknown> {
  const all = [];
  for (const who of [ADMIN, MAL]) {
    for (const question of QUESTIONS) {
      const { dataset, error } = await exec(server, who, question);
      all.push([who, question, dataset ?? error]);
    }
  }
  return all;
}

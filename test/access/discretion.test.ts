/** A user without a permission gets the same response whether or not an object exists. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import test from 'ava';

import type { TestServer } from '../golden/server.js';
import { ADMIN, credentials, exec, rows, run, startAccessServer } from './harness.js';

const ANN = 'ann:a';
/** The placeholder for the name. */
const PLACE = /\b_\b/;

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await mkdir(join(server.root, 'import'), { recursive: true });
  await writeFile(join(server.root, 'import', 'x.csv'), 'x\n5\n');
  await run(
    server,
    'CREATE TABLE t (ts TIMESTAMP, a INT, s SYMBOL) TIMESTAMP(ts) PARTITION BY DAY WAL',
    'CREATE TABLE u (a INT)',
    'CREATE VIEW w AS (SELECT a FROM t)',
    "CREATE USER ann WITH PASSWORD 'a'",
  );
});

test.after.always(async () => {
  await server.stop();
});

test.beforeEach(async () => {
  await run(server, 'REVOKE ALL FROM ann', 'GRANT HTTP TO ann');
});

async function errorOf(query: string): Promise<string> {
  return (await exec(server, ANN, query)).error ?? '';
}

async function imported(table: string, query = ''): Promise<string> {
  const form = new FormData();
  form.set('data', new Blob(['x\n5\n']), 'data.csv');
  const response = await fetch(`${server.url}/imp?name=${table}&forceHeader=true${query}`, {
    method: 'POST',
    headers: credentials(ANN),
    body: form,
  });
  return `${response.status} ${(await response.text()).trim()}`;
}

/** Statements in which `_` stands for a table name. */
const ON_TABLES = [
  "COPY _ FROM 'x.csv'",
  "COPY _ FROM 'x.csv' WITH FORMAT 'yyyy-MM-dd'",
  "COPY _ TO 'out' WITH FORMAT CSV",
  "COPY _ TO 'out' WITH FORMAT PARQUET",
  "COPY (SELECT a FROM _) TO 'out' WITH FORMAT PARQUET",
  'ALTER TABLE _ ADD COLUMN b INT',
  'ALTER TABLE _ DROP COLUMN a',
  'INSERT INTO _ (a) VALUES (1)',
  'UPDATE _ SET a = 1',
  'DELETE FROM _ WHERE a = 1',
  'TRUNCATE TABLE _',
  "RENAME TABLE _ TO 'other'",
  'CREATE TABLE _ (a INT)',
  'CREATE TABLE n (LIKE _)',
  'CREATE TABLE n AS (SELECT a FROM _)',
  'CREATE VIEW n AS (SELECT a FROM _)',
  'DROP TABLE _',
  'VACUUM TABLE _',
  'SHOW CREATE TABLE _',
  'SHOW COLUMNS FROM _',
  ...['', 'EXPLAIN '].flatMap((explain) => [
    `${explain}INSERT INTO _ VALUES (1)`,
    `${explain}UPDATE _ SET nothing = 1`,
    `${explain}DELETE FROM _`,
    `${explain}SELECT * FROM _`,
  ]),
  ...['CREATE VIEW', 'CREATE VIEW IF NOT EXISTS', 'CREATE OR REPLACE VIEW', 'ALTER VIEW'].map(
    (words) => `${words} _ AS (SELECT 1 one)`,
  ),
  ...['DROP VIEW', 'DROP VIEW IF EXISTS', 'DROP TABLE IF EXISTS', 'COMPILE VIEW'].map(
    (words) => `${words} _`,
  ),
  ...['SHOW CREATE VIEW _', 'SHOW PARTITIONS FROM _', "SELECT * FROM table_columns('_')"],
  ...['_', '_(*)', '_(a)', '_(* EXCLUDE (a))', '_(nothing)'].flatMap((on) => [
    `GRANT SELECT ON ${on} TO ann`,
    `GRANT SELECT ON ${on} TO ann WITH VERIFICATION`,
    `REVOKE SELECT ON ${on} FROM ann`,
  ]),
];

for (const statement of ON_TABLES) {
  test.serial(`${statement} does not reveal whether a table exists`, async (t) => {
    const there = await errorOf(statement.replace(PLACE, 't'));
    const view = await errorOf(statement.replace(PLACE, 'w'));
    const missing = await errorOf(statement.replace(PLACE, 'missing'));
    t.regex(there, /^Access denied /);
    t.is(missing.replace('missing', 't'), there);
    t.is(view.replace(' w', ' t'), there, 'a view');
  });
}

test.serial('a rename does not reveal whether the new name exists', async (t) => {
  await run(server, 'GRANT SELECT ON t TO ann');
  const refusals = await Promise.all(
    ['u', 'w', 'missing'].map((name) => errorOf(`RENAME TABLE t TO '${name}'`)),
  );
  t.deepEqual([...new Set(refusals)], ['Access denied [RENAME TABLE on t]']);
});

test.serial('principal names are not revealed to users without the grant option', async (t) => {
  await run(server, 'CREATE USER bob', 'CREATE GROUP mates', 'CREATE SERVICE ACCOUNT feed');
  await run(server, 'GRANT SELECT ON t TO ann');
  for (const statement of [
    'GRANT SELECT ON t TO _',
    'GRANT HTTP TO _ WITH GRANT OPTION',
    'REVOKE SELECT ON t FROM _',
    'REVOKE ALL FROM _',
    'GRANT ASSUME SERVICE ACCOUNT _ TO ann',
    'GRANT ASSUME SERVICE ACCOUNT feed TO _',
    'REVOKE ASSUME SERVICE ACCOUNT _ FROM ann',
    'ADD USER _ TO mates',
    'ADD USER ann TO _',
    'REMOVE USER _ FROM mates',
    'DROP USER _',
    'DROP USER IF EXISTS _',
    'DROP GROUP _',
    'DROP SERVICE ACCOUNT _',
    'CREATE USER _',
    'CREATE USER IF NOT EXISTS _',
    'CREATE GROUP _',
    'CREATE SERVICE ACCOUNT _',
    'CREATE SERVICE ACCOUNT n OWNED BY _',
    'ALTER USER _ ENABLE',
    "ALTER USER _ WITH PASSWORD 'x'",
    'SHOW USER _',
    'SHOW GROUPS _',
    'SHOW SERVICE ACCOUNTS _',
    'SHOW PERMISSIONS _',
    "SELECT has_table_privilege('_', 't', 'SELECT')",
    'CREATE TABLE n (a INT) OWNED BY _',
    'CREATE VIEW n AS (SELECT 1 one) OWNED BY _',
    'ALTER TABLE t ADD COLUMN n INT OWNED BY _',
  ]) {
    const missing = await errorOf(statement.replace(PLACE, 'nobody'));
    t.regex(missing, /^Access denied /, statement);
    for (const name of ['bob', 'mates', 'feed']) {
      const there = await errorOf(statement.replace(PLACE, name));
      t.is(there, missing.replace('nobody', name), statement);
    }
  }
  await run(server, 'DROP USER bob', 'DROP GROUP mates', 'DROP SERVICE ACCOUNT feed');
});

/**
 * Statements in which `_` stands for a column name, run by a user who may read a different column.
 */
const ON_COLUMNS = [
  'SELECT _ FROM t',
  'ALTER TABLE t DROP COLUMN _',
  'ALTER TABLE t RENAME COLUMN _ TO z',
  'ALTER TABLE t ALTER COLUMN _ TYPE LONG',
  'ALTER TABLE t ALTER COLUMN _ ADD INDEX',
  'ALTER TABLE t ALTER COLUMN _ SYMBOL CAPACITY 512',
  'ALTER TABLE t ALTER COLUMN _ NOCACHE',
  'ALTER TABLE t ADD COLUMN _ INT',
  'ALTER TABLE t DEDUP ENABLE UPSERT KEYS(ts, _)',
  'INSERT INTO t (_) VALUES (1)',
  'UPDATE t SET _ = 1',
  'DELETE FROM t WHERE _ = 1',
  ...['', ' WITH VERIFICATION'].flatMap((end) => [
    `GRANT SELECT ON t(_) TO ann${end}`,
    `GRANT SELECT ON t(* EXCLUDE (_)) TO ann${end}`,
  ]),
  'REVOKE SELECT ON t(* EXCLUDE (_)) FROM ann',
];

for (const statement of ON_COLUMNS) {
  test.serial(`${statement} does not reveal whether a column exists`, async (t) => {
    await run(server, 'GRANT SELECT ON t(s) TO ann');
    const there = await errorOf(statement.replace(PLACE, 'a'));
    const missing = await errorOf(statement.replace(PLACE, 'nothing'));
    t.regex(there, /^Access denied /);
    t.is(missing.replace('nothing', 'a'), there);
  });
}

test.serial('an import does not reveal whether a table exists', async (t) => {
  t.is(await imported('t'), '403 Access denied [INSERT on t]');
  t.is(await imported('nothing'), '403 Access denied [INSERT on nothing]');
  t.is(await imported('t', '&overwrite=true'), '403 Access denied [INSERT on t]');
  t.is(await imported('nothing', '&overwrite=true'), '403 Access denied [INSERT on nothing]');
  await run(server, 'GRANT INSERT ON ALL TABLES TO ann');
  t.is(
    await imported('nothing'),
    '403 Access denied [CREATE TABLE]',
    'a user who may see all tables gets the exact reason',
  );
});

test.serial('OWNED BY sets the owner of an imported table', async (t) => {
  await run(server, 'GRANT CREATE TABLE, READ FILES TO ann', 'CREATE GROUP plant');
  t.regex(await imported('own'), /^200/);
  t.deepEqual(await rows(server, ANN, 'SELECT x FROM own'), [[5]]);
  t.regex(await imported('theirs', '&owner=plant'), /^200/);
  t.is(await errorOf('SELECT x FROM theirs'), 'Access denied [SELECT on theirs]');
  await run(server, 'ADD USER ann TO plant');
  t.deepEqual(await rows(server, ANN, 'SELECT x FROM theirs'), [[5]]);
  t.regex(
    await imported('nobodys', '&owner=nobody'),
    /user, group or service account 'nobody' does not exist/,
  );
  t.deepEqual(
    await rows(server, ADMIN, "SELECT count() FROM tables() WHERE table_name = 'nobodys'"),
    [[0]],
  );
  await run(server, 'DROP GROUP plant', 'DROP TABLE own', 'DROP TABLE theirs');
});

test.serial('a table that another user creates during an import keeps its owner', async (t) => {
  await run(server, 'GRANT CREATE TABLE TO ann');
  let feed: ((text: string | null) => void) | undefined;
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      feed = (text): void => {
        if (text === null) {
          controller.close();
        } else {
          controller.enqueue(Buffer.from(text));
        }
      };
    },
  });
  const part = 'Content-Disposition: form-data; name="data"; filename="d"';
  feed?.(`--b\r\n${part}\r\n\r\nx\r\n${'5\r\n'.repeat(200_000)}`);
  const answered = fetch(`${server.url}/imp?name=raced&forceHeader=true`, {
    method: 'POST',
    headers: { ...credentials(ANN), 'Content-Type': 'multipart/form-data; boundary=b' },
    body,
    duplex: 'half',
  });
  await new Promise((resolve) => setTimeout(resolve, 300));
  await run(server, 'CREATE TABLE raced (x INT)');
  feed?.('6\r\n--b--\r\n');
  feed?.(null);
  const answer = await answered;
  t.regex(await answer.text(), /already exists|was created concurrently/);
  t.is(await errorOf('SELECT x FROM raced'), 'Access denied [SELECT on raced]');
  t.deepEqual(await rows(server, ADMIN, 'SELECT count() FROM raced'), [[0]]);
});

test.serial('ADD COLUMN … OWNED BY assigns the column to another owner', async (t) => {
  await run(server, 'CREATE USER bob', 'GRANT ADD COLUMN ON t TO ann');
  t.is(await errorOf('ALTER TABLE t ADD COLUMN o INT OWNED BY bob'), '');
  t.is(await errorOf('SELECT o FROM t'), 'Access denied [SELECT on t(o)]');
  const permissions = await rows(server, ADMIN, 'SHOW PERMISSIONS bob');
  t.true(permissions.some((row) => row.slice(0, 3).join(' ') === 'SELECT t o'));
  t.is(
    await errorOf('ALTER TABLE t ADD COLUMN p INT OWNED BY nobody'),
    "user, group or service account 'nobody' does not exist",
  );
  t.is(await errorOf('ALTER TABLE t ADD COLUMN q INT'), '');
  t.is(await errorOf('SELECT q FROM t'), '');
  await run(server, 'DROP USER bob');
});

test.serial('uploading a file for COPY requires WRITE FILES', async (t) => {
  const put = (method: string, query = ''): Promise<Response> =>
    fetch(`${server.url}/api/v1/import/file${query}`, {
      method,
      headers: credentials(ANN),
      ...(method === 'POST' ? { body: 'PAR1' } : {}),
    });
  for (const method of ['POST', 'DELETE']) {
    const refused = await put(method);
    t.is(refused.status, 403);
    t.regex(await refused.text(), /Access denied \[WRITE FILES\]/);
  }
  await run(server, 'GRANT WRITE FILES TO ann');
  const taken = await put('POST');
  t.is(taken.status, 200);
  const { file } = (await taken.json()) as { file: string };
  t.is((await put('DELETE', `?file=${file}`)).status, 200);
});

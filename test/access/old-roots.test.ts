/**
 * Root directories written by older versions: views bound by name, owners and principals without
 * identities.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { openDatabase } from '../../ts/engine/index.js';
import { startTestServer } from '../golden/server.js';
import { ADMIN, exec, rows, run, startAccessServer } from './harness.js';

const ANN = 'ann:pw-12345678';
/** Fields that older versions did not write. */
const LATER: ReadonlySet<string> = new Set(['id', 'owner_id', 'sources']);

/** Removes from every record the fields that this version adds. */
async function makeOld(root: string): Promise<void> {
  const database = await openDatabase({ root });
  for (const kind of ['view', 'access']) {
    const records = await database.loadRecords(kind);
    const old = [...records].map(([key, bytes]) => {
      if (!bytes.toString('utf8').startsWith('{')) {
        // A secret that older versions did not have and do not need.
        return [key, bytes] as const;
      }
      const record = JSON.parse(bytes.toString('utf8')) as Record<string, unknown>;
      const kept = Object.entries(record).filter(([name]) => !LATER.has(name));
      return [key, Buffer.from(JSON.stringify(Object.fromEntries(kept)))] as const;
    });
    await database.commitRecords(kind, new Map(old));
  }
  await database.close();
}

test('views from older versions are bound at first start and keep their owners', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'old-root-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  const first = await startAccessServer(root);
  await run(
    first,
    'CREATE TABLE t (a INT, b INT)',
    'INSERT INTO t VALUES (1, 2)',
    "CREATE USER ann WITH PASSWORD 'pw-12345678'",
    'GRANT HTTP, CREATE VIEW TO ann',
    'GRANT SELECT ON t TO ann',
    'CREATE VIEW by_admin AS (SELECT * FROM t)',
    'CREATE VIEW upon AS (SELECT a FROM by_admin)',
  );
  t.is((await exec(first, ANN, 'CREATE VIEW by_ann AS (SELECT b FROM t)')).error, undefined);
  await first.stop();
  await makeOld(root);

  const second = await startAccessServer(root);
  await run(second, 'RENAME TABLE t TO moved', 'ALTER TABLE moved ADD COLUMN c INT');
  await run(second, 'CREATE TABLE t (a INT, b INT)');
  for (const view of ['by_admin', 'upon', 'by_ann']) {
    t.deepEqual(
      await rows(second, ADMIN, `SELECT * FROM ${view}`),
      { by_admin: [[1, 2]], upon: [[1]], by_ann: [[2]] }[view],
    );
  }
  await run(second, 'REVOKE SELECT ON moved FROM ann');
  const refused = /whose owner lacks a required permission/;
  t.regex((await exec(second, ADMIN, 'SELECT * FROM by_ann')).error ?? '', refused);
  await run(second, 'GRANT SELECT ON moved TO ann');
  t.is((await exec(second, ADMIN, 'SELECT * FROM by_ann')).error, undefined);
  await run(second, 'DROP USER ann', "CREATE USER ann WITH PASSWORD 'pw-12345678'");
  await run(second, 'GRANT SELECT ON moved TO ann');
  const { error } = await exec(second, ADMIN, 'SELECT * FROM by_ann');
  t.regex(error ?? '', refused, 'a new user named ann does not own the view');
  await second.stop();
});

test('an old view of a dropped table does not bind to a table created later', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'old-root-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  const first = await startTestServer({ root });
  const say = async (url: string, query: string): Promise<string> =>
    await (await fetch(`${url}/exec?query=${encodeURIComponent(query)}`)).text();
  for (const text of [
    'CREATE TABLE t (a INT)',
    'CREATE VIEW v AS (SELECT a FROM t)',
    'DROP TABLE t',
  ]) {
    await say(first.url, text);
  }
  await first.stop();
  await makeOld(root);
  const second = await startTestServer({ root });
  await say(second.url, 'CREATE TABLE t (a INT)');
  t.regex(await say(second.url, 'SELECT * FROM v'), /table does not exist \[table=t\]/);
  await say(second.url, 'ALTER VIEW v AS (SELECT a FROM t)');
  t.regex(await say(second.url, 'SELECT * FROM v'), /"count":0/);
  await second.stop();
});

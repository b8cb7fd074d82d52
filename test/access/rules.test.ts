/** How grants are stored and applied, on a real server. */
import test from 'ava';

import type { TestServer } from '../golden/server.js';
import { ADMIN, exec, rows, run, startAccessServer } from './harness.js';

const ANN = 'ann:p';

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(server, "CREATE USER ann WITH PASSWORD 'p'", 'CREATE GROUP ops');
});

test.after.always(async () => {
  await server.stop();
});

test.beforeEach(async () => {
  await run(
    server,
    'DROP ALL TABLES',
    'CREATE TABLE t (ts TIMESTAMP, a INT, b INT) TIMESTAMP(ts) PARTITION BY DAY WAL',
    'CREATE TABLE u (x INT)',
    'REVOKE ALL FROM ann',
    'REVOKE ALL FROM ops',
    'GRANT HTTP TO ann',
  );
});

const error = async (who: string, query: string): Promise<string> =>
  (await exec(server, who, query)).error ?? '';
const permissions = async (who: string): Promise<string[]> => {
  const found = await rows(server, ADMIN, `SHOW PERMISSIONS ${who}`);
  // The grantor is tested in `statements.test.ts`.
  const shown = found.map((row) =>
    row
      .slice(0, 5)
      .filter((cell) => typeof cell === 'string')
      .join(' '),
  );
  return shown.filter((row) => row !== 'HTTP G');
};

test.serial('a permission can be granted only at the levels that it supports', async (t) => {
  t.regex(await error(ADMIN, 'GRANT CREATE TABLE ON t TO ann'), /cannot be granted on tables/);
  t.regex(await error(ADMIN, 'GRANT INSERT ON t(a) TO ann'), /cannot be granted on columns/);
  t.regex(await error(ADMIN, 'GRANT HTTP ON ALL TABLES TO ann'), /cannot be granted on tables/);
  t.regex(await error(ADMIN, 'GRANT FLY TO ann'), /unknown permission 'FLY'/);
  await run(server, 'GRANT SELECT TO ann');
  await run(server, 'GRANT SELECT ON t TO ops', 'GRANT SELECT ON t(a) TO ops');
  t.deepEqual(await permissions('ann'), ['SELECT G']);
  t.deepEqual(
    await permissions('ops'),
    ['SELECT t G'],
    'a column grant is merged into the table grant',
  );
});

test.serial('a table grant covers columns added later; a column list does not', async (t) => {
  await run(server, 'GRANT SELECT ON ALL TABLES TO ann', 'CREATE TABLE later (x INT)');
  t.is(await error(ANN, 'SELECT * FROM later'), '');
  await run(server, 'REVOKE ALL FROM ann', 'GRANT HTTP TO ann', 'GRANT SELECT ON t TO ann');
  await run(server, 'ALTER TABLE t ADD COLUMN c INT');
  t.is(await error(ANN, 'SELECT c FROM t'), '');
  await run(server, 'REVOKE SELECT ON t FROM ann', 'GRANT SELECT ON t(*) TO ann');
  await run(server, 'ALTER TABLE t ADD COLUMN d INT');
  t.is(await error(ANN, 'SELECT c FROM t'), '');
  t.is(await error(ANN, 'SELECT d FROM t'), 'Access denied [SELECT on t(d)]');
});

test.serial('EXCLUDE grants all other columns', async (t) => {
  await run(server, 'GRANT SELECT ON t(* EXCLUDE (b, ts)) TO ann');
  t.deepEqual(
    await permissions('ann'),
    ['SELECT t a G', 'SELECT t ts I'],
    'the timestamp is granted implicitly',
  );
  const refused = async (list: string): Promise<string> =>
    await error(ADMIN, `GRANT SELECT ON ${list} TO ann`);
  t.regex(await refused('t(* EXCLUDE (nothing))'), /column 'nothing' does not exist/);
  t.regex(await refused('t(* EXCLUDE (ts, a, b))'), /removes all columns/);
  t.not(await refused('t(* EXCLUDE ())'), '');
  t.not(await refused('t(a EXCLUDE (b))'), '');
  t.regex(await refused('missing(*)'), /'missing' does not exist/);
});

test.serial(
  'revoking one table from ALL TABLES keeps other existing tables but not new ones',
  async (t) => {
    await run(server, 'GRANT SELECT ON ALL TABLES TO ann', 'REVOKE SELECT ON t FROM ann');
    await run(server, 'CREATE TABLE later (x INT)');
    t.is(await error(ANN, 'SELECT * FROM u'), '');
    t.is(await error(ANN, 'SELECT * FROM t'), 'Access denied [SELECT on t]');
    t.is(await error(ANN, 'SELECT * FROM later'), 'Access denied [SELECT on later]');
  },
);

test.serial('granting again without the grant option removes the option', async (t) => {
  await run(server, 'GRANT SELECT ON t TO ann WITH GRANT OPTION');
  t.is(await error(ANN, 'GRANT SELECT ON t TO ops'), '');
  t.is(await error(ANN, 'REVOKE SELECT ON t FROM ops'), '');
  await run(server, 'GRANT SELECT ON t TO ann');
  t.regex(await error(ANN, 'GRANT SELECT ON t TO ops'), /WITH GRANT OPTION/);
});

test.serial('the creator has all rights, with grant option, until they are revoked', async (t) => {
  await run(server, 'GRANT CREATE TABLE, CREATE VIEW, CREATE SERVICE ACCOUNT TO ann');
  await run(server, 'GRANT ADD COLUMN ON t TO ann');
  for (const statement of [
    'CREATE TABLE own (x INT)',
    'CREATE VIEW seen AS (SELECT x FROM own)',
    'ALTER TABLE t ADD COLUMN mine INT',
    'CREATE SERVICE ACCOUNT bot',
    'GRANT SELECT, DROP TABLE ON own TO ops',
    'GRANT SELECT ON seen TO ops',
    'GRANT SELECT, UPDATE ON t(mine) TO ops',
    'GRANT ASSUME SERVICE ACCOUNT bot TO ops',
  ]) {
    t.is(await error(ANN, statement), '', statement);
  }
  await run(server, 'REVOKE ALL ON own FROM ann');
  t.is(await error(ANN, 'SELECT * FROM own'), 'Access denied [SELECT on own]');
  await run(server, 'DROP VIEW seen', 'DROP SERVICE ACCOUNT bot');
});

test.serial('OWNED BY assigns another owner', async (t) => {
  await run(server, 'CREATE TABLE given (x INT) OWNED BY ops');
  await run(server, 'CREATE VIEW given_view AS (SELECT x FROM given) OWNED BY ops');
  t.true((await permissions('ops')).includes('DROP TABLE given G'));
  t.true((await permissions('ops')).includes('DROP VIEW given_view G'));
  t.regex(await error(ADMIN, 'CREATE TABLE n (x INT) OWNED BY nobody'), /'nobody'/);
  t.deepEqual(await rows(server, ADMIN, "SELECT * FROM tables() WHERE table_name = 'n'"), []);
  await run(server, 'DROP VIEW given_view');
});

test.serial('a grant can be made before the table exists and is dropped with it', async (t) => {
  await run(server, 'GRANT SELECT ON soon TO ann');
  t.deepEqual(await permissions('ann'), []);
  await run(server, 'CREATE TABLE soon (x INT)');
  t.deepEqual(await permissions('ann'), ['SELECT soon G']);
  t.is(await error(ANN, 'SELECT * FROM soon'), '');
  await run(server, "RENAME TABLE soon TO 'moved'");
  t.deepEqual(await permissions('ann'), ['SELECT moved G']);
  for (const drop of ['DROP TABLE moved', 'DROP TABLE moved CASCADE PERMISSIONS']) {
    await run(server, drop, 'CREATE TABLE moved (x INT)');
    t.is(await error(ANN, 'SELECT * FROM moved'), 'Access denied [SELECT on moved]', drop);
  }
});

test.serial('WITH VERIFICATION requires that the objects and principals exist', async (t) => {
  const grant = async (on: string, to: string): Promise<string> =>
    await error(ADMIN, `GRANT SELECT ON ${on} TO ${to} WITH VERIFICATION`);
  t.is(await grant('t(a)', 'ann'), '');
  t.regex(await grant('t', 'nobody'), /'nobody'/);
  t.regex(await grant('missing', 'ann'), /'missing' does not exist/);
  t.regex(await grant('t(missing)', 'ann'), /'missing' does not exist/);
});

test.serial(
  'a view hides rows with a fixed variable that its reader cannot override',
  async (t) => {
    await run(
      server,
      "INSERT INTO t VALUES ('2026-01-01', 1, 10), ('2026-01-01', 2, 20)",
      'CREATE VIEW every AS (DECLARE OVERRIDABLE @a := 0 SELECT b FROM t WHERE a = @a)',
      'CREATE VIEW one AS (DECLARE @a := 1 SELECT * FROM every)',
      'GRANT SELECT ON one TO ann',
    );
    t.deepEqual(await rows(server, ANN, 'SELECT * FROM one'), [[10]]);
    t.regex(await error(ANN, 'DECLARE @a := 2 SELECT * FROM one'), /not overridable/);
    t.is(
      await error(ANN, 'DECLARE @a := 2 SELECT * FROM every'),
      'Access denied [SELECT on every]',
    );
    t.is(
      await error(ADMIN, 'GRANT SELECT ON one(b) TO ann'),
      "'one' is a view: omit the column list",
    );
    await run(server, 'DROP VIEW one', 'DROP VIEW every');
  },
);

/** What users learn about other users' views, and about views that they may not read. */
import test from 'ava';

import { ADMIN, exec, rows, run, startAccessServer } from '../access/harness.js';
import type { TestServer } from '../golden/server.js';
import { until } from '../until.js';

const ANN = 'ann:a';
const RIGHTS = [
  'ALTER MATERIALIZED VIEW',
  'REFRESH MATERIALIZED VIEW',
  'DROP MATERIALIZED VIEW',
  'SELECT',
];
const ANSWERED = 'SELECT ts, max(v) FROM secret_base SAMPLE BY 1h';

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(
    server,
    'CREATE TABLE secret_base (ts TIMESTAMP, v LONG, hidden LONG) TIMESTAMP(ts) PARTITION BY DAY',
    `INSERT INTO secret_base SELECT timestamp_sequence('2026-01-01', 1000000), x, x
      FROM long_sequence(10000)`,
    'CREATE MATERIALIZED VIEW seen AS (SELECT ts, max(v) hi FROM secret_base SAMPLE BY 1m)',
    'CREATE MATERIALIZED VIEW other AS (SELECT ts, max(hidden) hi FROM secret_base SAMPLE BY 1m)',
    `CREATE LIVE VIEW seen_live FLUSH EVERY 100ms IN MEMORY 1s START FROM BEGINNING AS (
      SELECT ts, sum(hidden) OVER (ORDER BY ts) x FROM secret_base)`,
    `CREATE LIVE VIEW other_live FLUSH EVERY 100ms IN MEMORY 1s START FROM BEGINNING AS (
      SELECT ts, sum(hidden) OVER (ORDER BY ts) x FROM secret_base)`,
    // When a refresh fails, its error quotes the value that cannot be converted.
    'CREATE TABLE notes (ts TIMESTAMP, note VARCHAR) TIMESTAMP(ts) PARTITION BY DAY',
    "INSERT INTO notes VALUES ('2026-01-01', 'my diary')",
    `CREATE MATERIALIZED VIEW quoting AS (
      SELECT ts, max(note::decimal(9,2)) n FROM notes SAMPLE BY 1h)`,
    "CREATE USER ann WITH PASSWORD 'a'",
  );
  await until(async () => {
    const [[count]] = (await rows(
      server,
      ADMIN,
      `SELECT count() FROM materialized_views() WHERE refresh_base_table_txn = base_table_txn`,
    )) as [[number]];
    return count >= 2;
  }, 'the views are current');
});

test.after.always(async () => {
  await server.stop();
});

test.beforeEach(async () => {
  await run(server, 'REVOKE ALL FROM ann', 'GRANT HTTP TO ann');
});

/** Returns the full contents of the lists. */
async function listed(): Promise<string> {
  const parts: string[] = [];
  for (const list of ['jobs()', 'materialized_views()', 'live_views()', 'tables()']) {
    parts.push(JSON.stringify(await rows(server, ANN, `SELECT * FROM ${list}`)));
  }
  return parts.join('\n');
}

const plan = async (who: string, query: string): Promise<string> => {
  const { dataset, error } = await exec(server, who, `EXPLAIN (PHYSICAL) ${query}`);
  return error ?? (dataset ?? []).flat().join('\n');
};

test.serial('users without a right on a view learn nothing about it', async (t) => {
  const text = await listed();
  t.notRegex(text, /seen|other|secret_base|hidden/);
  const there = await exec(server, ANN, "SELECT pause_job('refresh', 'seen')");
  const not = await exec(server, ANN, "SELECT pause_job('refresh', 'nope')");
  t.is(there.error?.replace('seen', 'nope'), not.error);
  t.is(there.status, not.status);
});

test.serial('a right on one view does not reveal its base table or query', async (t) => {
  for (const right of RIGHTS) {
    await run(server, 'REVOKE ALL FROM ann', 'GRANT HTTP TO ann', `GRANT ${right} ON seen TO ann`);
    const text = await listed();
    t.regex(text, /"seen"/, right);
    t.notRegex(text, /other|seen_live|hidden/, right);
    if (right !== 'SELECT') {
      t.notRegex(text, /secret_base/, right);
    }
  }
  for (const right of ['DROP LIVE VIEW', 'SELECT']) {
    await run(server, 'REVOKE ALL FROM ann', 'GRANT HTTP TO ann');
    await run(server, `GRANT ${right} ON seen_live TO ann`);
    const text = await listed();
    t.regex(text, /"seen_live"/, right);
    t.notRegex(text, /other|"seen"/, right);
    if (right !== 'SELECT') {
      t.notRegex(text, /secret_base|hidden/, right);
    }
  }
});

test.serial('values in refresh errors are shown only to users who may read them', async (t) => {
  const error = "SELECT last_error, state FROM jobs() WHERE name = 'quoting'";
  await until(async () => {
    const [found] = await rows(server, ADMIN, error);
    return String(found?.[0]).includes('my diary');
  }, 'the refresh fails');
  t.deepEqual(await rows(server, ANN, error), []);
  for (const right of RIGHTS) {
    await run(server, 'REVOKE ALL FROM ann', 'GRANT HTTP TO ann');
    await run(server, `GRANT ${right} ON quoting TO ann`);
    t.is((await rows(server, ANN, error)).length, 1, right);
    t.notRegex(await listed(), /diary/, right);
  }
  await run(server, 'GRANT SELECT ON quoting TO ann', 'GRANT SELECT ON notes TO ann');
  t.regex(await listed(), /diary/);
});

test.serial('only users who may read the query of a view see why it is invalid', async (t) => {
  await run(server, 'ALTER TABLE secret_base RENAME COLUMN hidden TO concealed');
  const reason = `SELECT invalidation_reason FROM live_views() WHERE view_name = 'other_live'`;
  await until(async () => {
    const [[found]] = (await rows(server, ADMIN, reason)) as [[string | null]];
    return found !== null;
  }, 'the reason is listed');
  await run(
    server,
    'GRANT DROP LIVE VIEW ON other_live TO ann',
    'GRANT DROP MATERIALIZED VIEW ON other TO ann',
  );
  const text = await listed();
  t.regex(text, /"other_live"/);
  t.regex(text, /"other"/);
  t.regex(text, /invalid/);
  t.notRegex(text, /hidden|concealed|secret_base/);
  await run(server, 'GRANT SELECT ON other_live TO ann');
  t.regex(await listed(), /hidden/);
  await run(server, 'ALTER TABLE secret_base RENAME COLUMN concealed TO hidden');
});

test.serial('EXPLAIN does not name views that the user may not see', async (t) => {
  t.regex(await plan(ADMIN, ANSWERED), /TableScanExec: seen/);
  await run(server, 'GRANT SELECT ON secret_base TO ann');
  for (const query of [ANSWERED, `SELECT * FROM (${ANSWERED}) LIMIT 1`]) {
    const shown = await plan(ANN, query);
    t.notRegex(shown, /seen|other/);
    t.regex(shown, /secret_base/);
    t.is((await exec(server, ANN, `EXPLAIN ANALYZE ${query}`)).error, undefined);
    t.notRegex(await plan(ANN, query), /seen|other/);
  }
  // A result cached for a user who may see the view is not returned to a user who may not, or vice
  // versa.
  const [mine, theirs] = [await rows(server, ANN, ANSWERED), await rows(server, ADMIN, ANSWERED)];
  t.deepEqual(mine, theirs);
  t.notRegex(await plan(ANN, ANSWERED), /seen/);
  await run(server, 'GRANT SELECT ON seen TO ann');
  t.regex(await plan(ANN, ANSWERED), /TableScanExec: seen/);
});

/** Views whose queries fail at run time: the state listed for them, and how they recover. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rows, run, withServer } from '../scenario/statements.js';
import { until } from '../until.js';
import { current, invalid, live, sorted, status } from './views.js';

const NOTES = `CREATE TABLE notes (ts TIMESTAMP, note VARCHAR) TIMESTAMP(ts) PARTITION BY DAY`;
const SUMS = 'SELECT ts, sum(note::decimal(9,2)) x FROM notes SAMPLE BY 1h';

async function job(server: TestServer, view: string): Promise<readonly unknown[]> {
  const found = await rows(
    server,
    `SELECT state, failures, last_error FROM jobs() WHERE kind = 'refresh' AND name = '${view}'`,
  );
  return found[0] ?? [];
}

test('a non-numeric value stops the refresh until the value is removed', async (t) => {
  await withServer(async (server) => {
    await run(server, NOTES, "INSERT INTO notes VALUES ('2026-01-01', '1.5')");
    await run(server, `CREATE MATERIALIZED VIEW sums AS (${SUMS})`);
    await run(
      server,
      'CREATE MATERIALIZED VIEW counts AS (SELECT ts, count() n FROM notes SAMPLE BY 1h)',
      `CREATE LIVE VIEW totals FLUSH EVERY 100ms START FROM BEGINNING AS (
         SELECT ts, sum(note::decimal(9,2)) OVER (ORDER BY ts) x FROM notes)`,
    );
    await current(server, 'sums', 'counts');
    await live(server, 'totals');
    const shown = [await sorted(server, 'sums'), await sorted(server, 'totals')];
    const refreshed = `SELECT last_refresh_finish_timestamp FROM materialized_views()
      WHERE view_name = 'sums'`;
    const finished = await rows(server, refreshed);

    await run(server, "INSERT INTO notes VALUES ('2026-01-01T05:00', 'a diary')");
    const reasons = [await invalid(server, 'sums'), await status(server, 'totals', 'invalid')];
    for (const reason of reasons) {
      t.regex(String(reason), /^refresh failed and will be retried: .*a diary/);
    }
    const [state, failures, error] = await job(server, 'sums');
    t.regex(String(state), /failing|running/);
    t.true(Number(failures) > 0);
    t.is(`refresh failed and will be retried: ${String(error)}`, String(reasons[0]));
    t.deepEqual(await rows(server, refreshed), finished, 'the last successful refresh');
    t.deepEqual([await sorted(server, 'sums'), await sorted(server, 'totals')], shown);
    // Other views continue to be refreshed.
    await current(server, 'counts');
    t.is((await rows(server, 'counts')).length, 2);

    await run(server, "DELETE FROM notes WHERE note = 'a diary'");
    await current(server, 'sums');
    await live(server, 'totals');
    t.deepEqual(
      await rows(
        server,
        "SELECT invalidation_reason FROM materialized_views() WHERE view_name = 'sums'",
      ),
      [[null]],
    );
    t.is((await job(server, 'sums'))[1], 0);
    return server;
  });
});

test('each REFRESH retries a failed view immediately', async (t) => {
  await withServer(async (server) => {
    await run(server, NOTES, "INSERT INTO notes VALUES ('2026-01-01', 'no')");
    await run(server, `CREATE MATERIALIZED VIEW sums AS (${SUMS})`);
    const failures = async (): Promise<number> => Number((await job(server, 'sums'))[1]);
    // The next automatic attempt is eight seconds away.
    await until(async () => (await failures()) === 4, 'the refresh fails four times');
    await run(server, 'REFRESH MATERIALIZED VIEW sums FULL');
    await until(async () => (await failures()) === 5, 'the refresh is retried');
    const began = performance.now();
    await run(server, 'REFRESH MATERIALIZED VIEW sums FULL');
    await until(async () => (await failures()) === 6, 'the refresh is retried once');
    await run(server, "UPDATE notes SET note = '2'", 'REFRESH MATERIALIZED VIEW sums FULL');
    await current(server, 'sums');
    t.true(performance.now() - began < 7_000, 'REFRESH waited for the next automatic attempt');
    t.deepEqual(await sorted(server, 'sums'), await sorted(server, SUMS));
    return server;
  });
});

test('a refresh that exceeds its memory limit is reported', async (t) => {
  const server = await startTestServer({
    set: ['query.memory.pool=64M', 'query.memory.limit=16M'],
  });
  t.teardown(async () => {
    await server.stop();
  });
  await run(
    server,
    'CREATE TABLE t (ts TIMESTAMP, v LONG) TIMESTAMP(ts) PARTITION BY DAY',
    "INSERT INTO t VALUES ('2026-01-01', 1)",
    'CREATE MATERIALIZED VIEW kinds AS (SELECT ts, count_distinct(v) n FROM t SAMPLE BY 1d)',
  );
  await current(server, 'kinds');
  await run(
    server,
    `INSERT INTO t SELECT timestamp_sequence('2026-01-01T01', 1000), x FROM long_sequence(3000000)`,
  );
  t.regex(
    String(await invalid(server, 'kinds')),
    /^refresh failed and will be retried: out of mem/,
  );
  t.deepEqual(await rows(server, 'SELECT n FROM kinds'), [[1]]);
  // Deletes in steps, because row positions take up memory as well.
  for (const maximum of [2_000_000, 1_000_000, 1_000]) {
    await run(server, `DELETE FROM t WHERE v > ${maximum}`);
  }
  await current(server, 'kinds');
  t.deepEqual(await rows(server, 'SELECT n FROM kinds'), [[1000]]);
});

test('dropping a lookup table invalidates the view that reads it', async (t) => {
  const lookup = 'CREATE TABLE names (k LONG, name VARCHAR)';
  const named = `SELECT t.ts ts, name, count() n FROM t JOIN names ON t.k = names.k SAMPLE BY 1h`;
  await withServer(async (server) => {
    await run(
      server,
      'CREATE TABLE t (ts TIMESTAMP, k LONG) TIMESTAMP(ts) PARTITION BY DAY',
      "INSERT INTO t VALUES ('2026-01-01', 1)",
      lookup,
      "INSERT INTO names VALUES (1, 'one')",
    );
    await run(server, `CREATE MATERIALIZED VIEW named WITH BASE t AS (${named})`);
    await current(server, 'named');
    await run(server, 'DROP TABLE names', "INSERT INTO t VALUES ('2026-01-01T03:00', 1)");
    t.is(await invalid(server, 'named'), 'drop table operation');
    t.is((await job(server, 'named'))[0], 'stopped');
    t.is((await rows(server, 'named')).length, 1, 'the view keeps its rows');
    await run(server, lookup, "INSERT INTO names VALUES (1, 'uno')");
    await run(server, 'REFRESH MATERIALIZED VIEW named FULL');
    await current(server, 'named');
    t.deepEqual(await sorted(server, 'named'), await sorted(server, named));
    return server;
  });
});

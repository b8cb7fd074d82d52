/**
 * Refreshes of views over adversarial bases, with little memory: one huge group, millions of
 * groups, long gaps, no rows, thousands of partitions, more data than fits in memory.
 */
import { setTimeout as sleep } from 'node:timers/promises';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { cpuSeconds } from '../limits/measure.js';
import { exec, rows, run } from '../scenario/statements.js';
import { until } from '../until.js';
import { current, sorted } from './views.js';

const ROWS = 2_000_000;
const FEW = ['memory.limit=1500M', 'query.memory.pool=256M', 'query.memory.limit=96M'];

async function serve(
  t: { teardown: (end: () => Promise<void>) => void },
  ...set: readonly string[]
): Promise<TestServer> {
  const server = await startTestServer({ set: [...FEW, ...set] });
  t.teardown(async () => {
    await server.stop();
  });
  return server;
}

/** A query for which a full refresh takes seconds. */
const SLOW = `SELECT ts, s, count() n, max(regexp_replace(rpad('x' || v, 60, 'no'),
  '(.|..|...)+(r|w)+9', 'a')) x FROM t SAMPLE BY 1d`;

interface Job {
  readonly state: string;
  readonly error: string | null;
  readonly runs: number;
  readonly failures: number;
  readonly nextMs: number;
}

async function job(server: TestServer, view: string): Promise<Job> {
  const [found] = await rows(
    server,
    `SELECT state, last_error, runs, failures, next_run FROM jobs() WHERE name = '${view}'`,
  );
  const [state, error, runs, failures, next] = found ?? [];
  return {
    state: String(state),
    error: error as string | null,
    runs: Number(runs),
    failures: Number(failures),
    nextMs: Date.parse(String(next)) - Date.now(),
  };
}

/** Compares sums over a view with sums over the result of its query. */
async function same(server: TestServer, view: string, query: string): Promise<[unknown, unknown]> {
  const sums = 'count(), sum(n), min(ts), max(ts), sum(x)';
  return [
    await rows(server, `SELECT ${sums} FROM ${view}`),
    await rows(server, `SELECT ${sums} FROM (${query})`),
  ];
}

test('views handle one huge group and a million groups in one bucket', async (t) => {
  const server = await serve(t);
  await run(
    server,
    `CREATE TABLE t (ts TIMESTAMP, k LONG, s SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY`,
    `INSERT INTO t SELECT timestamp_sequence('2026-01-01', 1000), x / 2, 's', x % 1000
      FROM long_sequence(${ROWS})`,
  );
  const queries = {
    one: `SELECT ts, s, count() n, sum(v) x FROM t SAMPLE BY 1d`,
    many: `SELECT ts, k, count() n, sum(v) x FROM t SAMPLE BY 1d`,
    rows: `SELECT ts, v n, k x FROM t`,
  };
  for (const [view, query] of Object.entries(queries)) {
    await run(server, `CREATE MATERIALIZED VIEW ${view}_ AS (${query})`);
  }
  await run(
    server,
    `CREATE LIVE VIEW live_ FLUSH EVERY 100ms IN MEMORY 1s START FROM BEGINNING AS (
      SELECT ts, row_number() OVER (PARTITION BY s ORDER BY ts) n,
        sum(v) OVER (PARTITION BY s ORDER BY ts) x FROM t)`,
  );
  const steps = [
    '',
    "INSERT INTO t VALUES ('2026-01-01T00:00:00.5', -1, 'other', 7)",
    'UPDATE t SET v = 5 WHERE k = 77',
    'DELETE FROM t WHERE k < 1000',
  ];
  for (const step of steps) {
    if (step !== '') {
      await run(server, step);
    }
    await current(server, 'one_', 'many_', 'rows_');
    for (const [view, query] of Object.entries(queries)) {
      const [shown, expected] = await same(server, `${view}_`, query);
      t.deepEqual(shown, expected, `${view}: ${step}`);
    }
  }
  const lag = "SELECT lag_seqtxn, view_status FROM live_views() WHERE view_name = 'live_'";
  await until(async () => {
    const [found] = await rows(server, lag);
    return found?.[0] === 0 && found[1] === 'active';
  }, 'the live view is current');
  const [shown, expected] = await same(
    server,
    'live_',
    `SELECT ts, row_number() OVER (PARTITION BY s ORDER BY ts) n,
      sum(v) OVER (PARTITION BY s ORDER BY ts) x FROM t`,
  );
  t.deepEqual(shown, expected);
});

test('views handle empty tables, a gap of a century and 3,000 single-row partitions', async (t) => {
  const server = await serve(t);
  await run(
    server,
    'CREATE TABLE t (ts TIMESTAMP, v LONG) TIMESTAMP(ts) PARTITION BY DAY',
    'CREATE MATERIALIZED VIEW seconds AS (SELECT ts, sum(v) x FROM t SAMPLE BY 1s)',
    `CREATE MATERIALIZED VIEW zoned AS (SELECT ts, sum(v) x FROM t
      SAMPLE BY 1h ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin') PARTITION BY MONTH`,
    'CREATE MATERIALIZED VIEW micros AS (SELECT ts, sum(v) x FROM t SAMPLE BY 1U)',
    'CREATE MATERIALIZED VIEW upon AS (SELECT ts, sum(x) x FROM seconds SAMPLE BY 1y)',
  );
  const views = ['seconds', 'zoned', 'micros', 'upon'];
  const queries = new Map([
    ['seconds', 'SELECT ts, sum(v) x FROM t SAMPLE BY 1s'],
    [
      'zoned',
      "SELECT ts, sum(v) x FROM t SAMPLE BY 1h ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin'",
    ],
    ['micros', 'SELECT ts, sum(v) x FROM t SAMPLE BY 1U'],
    ['upon', 'SELECT ts, sum(v) x FROM t SAMPLE BY 1y'],
  ]);
  const compare = async (what: string): Promise<void> => {
    await current(server, ...views);
    for (const [view, query] of queries) {
      t.deepEqual(await sorted(server, view), await sorted(server, query), `${what}: ${view}`);
    }
  };
  await compare('no rows');
  await run(server, "INSERT INTO t VALUES ('1970-01-01', 1), ('2070-01-01', 2)");
  await compare('a century');
  await run(server, "INSERT INTO t VALUES ('2020-02-02', 3)", 'DELETE FROM t WHERE v = 1');
  await compare('between');
  await run(
    server,
    `INSERT INTO t SELECT dateadd('d', x::int, '2000-01-01'), x FROM long_sequence(3000)`,
  );
  await compare('3,000 partitions');
  await run(server, 'UPDATE t SET v = v + 1 WHERE v % 2 = 0');
  await compare('half of them changed');
  await run(server, 'DELETE FROM t');
  await compare('no rows any more');
});

test('a refresh that exceeds its memory limit is reported, backs off and recovers', async (t) => {
  const server = await serve(t, 'query.memory.limit=24M');
  await run(
    server,
    `CREATE TABLE t (ts TIMESTAMP, v LONG) TIMESTAMP(ts) PARTITION BY DAY`,
    `INSERT INTO t SELECT timestamp_sequence('2026-01-01', 1000), x FROM long_sequence(${ROWS})`,
    // Each group stores all of its values.
    `CREATE MATERIALIZED VIEW large AS (SELECT ts, count_distinct(v) n FROM t SAMPLE BY 1d)`,
    'CREATE MATERIALIZED VIEW small AS (SELECT ts, count() n FROM t SAMPLE BY 1h)',
  );
  await until(async () => (await job(server, 'large')).failures >= 2, 'the refresh fails twice');
  const failing = await job(server, 'large');
  t.regex(failing.error ?? '', /memory/);
  if (failing.state !== 'running') {
    t.is(failing.state, 'failing');
    t.true(failing.nextMs > 500, `the next attempt is in ${failing.nextMs} ms`);
  }
  t.deepEqual(await rows(server, 'large'), []);
  // The other view stays up to date, and the server responds.
  for (let hour = 0; hour < 5; hour += 1) {
    await run(server, `INSERT INTO t VALUES ('2026-02-01T0${hour}', 1)`);
    await current(server, 'small');
  }
  t.deepEqual(await rows(server, 'SELECT sum(n) FROM small'), [[ROWS + 5]]);
  const { runs } = await job(server, 'large');
  t.true(runs < 12, `${runs} tries`);
  // A smaller amount of data fits within the limit.
  await run(server, "DELETE FROM t WHERE ts IN '2026-01-01' AND v % 1000 <> 7");
  await run(server, 'REFRESH MATERIALIZED VIEW large FULL');
  await current(server, 'large');
  const [shown] = await rows(server, 'SELECT sum(n) FROM large');
  const distinct = 'SELECT ts, count_distinct(v) n FROM t SAMPLE BY 1d';
  const [expected] = await rows(server, `SELECT sum(n) FROM (${distinct})`);
  t.deepEqual(shown, expected);
  const after = await job(server, 'large');
  t.deepEqual([after.error, after.failures], [null, 0]);
});

test('a long refresh does not delay other views', async (t) => {
  const server = await serve(t);
  await run(
    server,
    'CREATE TABLE t (ts TIMESTAMP, s SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY',
    `INSERT INTO t SELECT timestamp_sequence('2026-01-01', 1000), 's', x
      FROM long_sequence(${ROWS})`,
    'CREATE TABLE u (ts TIMESTAMP, v LONG) TIMESTAMP(ts) PARTITION BY DAY',
    'CREATE MATERIALIZED VIEW quick AS (SELECT ts, sum(v) x FROM u SAMPLE BY 1h)',
    `CREATE MATERIALIZED VIEW slow AS (${SLOW})`,
  );
  await until(
    async () => (await job(server, 'slow')).state === 'running',
    'the refresh is running',
  );
  await run(server, "INSERT INTO u VALUES ('2026-01-01', 1)");
  await current(server, 'quick');
  t.is((await job(server, 'slow')).state, 'running');
});

test('DROP, ALTER, TRUNCATE and shutdown during refreshes are safe', async (t) => {
  const server = await startTestServer({ set: FEW });
  t.teardown(async () => {
    await server.stop();
  });
  const table = `CREATE TABLE t (ts TIMESTAMP, s SYMBOL, v LONG) TIMESTAMP(ts) PARTITION BY DAY`;
  const fill = `INSERT INTO t SELECT timestamp_sequence('2026-01-01', 1000), 's', x
    FROM long_sequence(${ROWS})`;
  const runs = async (): Promise<void> => {
    await until(async () => (await job(server, 'v')).state === 'running', 'the refresh is running');
  };
  const begin = async (): Promise<void> => {
    await run(server, 'DROP TABLE IF EXISTS t', 'DROP MATERIALIZED VIEW IF EXISTS v', table, fill);
    await run(server, `CREATE MATERIALIZED VIEW v AS (${SLOW})`);
    await runs();
  };
  const statements = [
    'DROP MATERIALIZED VIEW v',
    'ALTER MATERIALIZED VIEW v SET REFRESH MANUAL',
    'ALTER MATERIALIZED VIEW v SET TTL 2 YEARS',
    'ALTER TABLE t DROP COLUMN v',
    'ALTER TABLE t ADD COLUMN w LONG',
    'ALTER TABLE t ALTER COLUMN v TYPE DOUBLE',
    "ALTER TABLE t DROP PARTITION LIST '2026-01-01'",
    'TRUNCATE TABLE t',
    'RENAME TABLE t TO u',
    'DROP TABLE t',
  ];
  for (const statement of statements) {
    await begin();
    const began = performance.now();
    const { error } = await exec(server, statement);
    t.is(error, undefined, statement);
    // Changing the type is extra work.
    const isQuick = !statement.includes('TYPE');
    t.true(!isQuick || performance.now() - began < 5_000, `${statement} waited for a refresh`);
    await exec(
      server,
      "SELECT cancel_query(query_id) FROM query_activity() WHERE query LIKE 'REFR%'",
    );
    await exec(server, 'DROP MATERIALIZED VIEW IF EXISTS v');
    await exec(server, 'DROP TABLE IF EXISTS u');
    t.deepEqual(await rows(server, "SELECT name FROM jobs() WHERE kind = 'refresh'"), []);
  }
  await begin();
  const began = performance.now();
  t.is(await server.stop(), 0);
  t.true(performance.now() - began < 10_000, 'the shutdown waited for a refresh');
  t.notRegex(server.log(), /panic|refresh_failed.*internal/i);
});

test('each of 300 views refreshes once per commit; idle views cost nothing', async (t) => {
  const count = 300;
  const server = await serve(t, 'metrics.enabled=true');
  await run(
    server,
    'CREATE TABLE t (ts TIMESTAMP, v LONG) TIMESTAMP(ts) PARTITION BY DAY',
    "INSERT INTO t VALUES ('2026-01-01', 1)",
    `CREATE TABLE bad (ts TIMESTAMP, s VARCHAR) TIMESTAMP(ts) PARTITION BY DAY`,
    "INSERT INTO bad VALUES ('2026-01-01', 'no')",
  );
  const names = Array.from({ length: count }, (_, at) => `v${at}`);
  for (const name of names) {
    await run(
      server,
      `CREATE MATERIALIZED VIEW ${name} AS (SELECT ts, sum(v) x FROM t SAMPLE BY 1h)`,
    );
  }
  const behind = async (): Promise<number> => {
    const [[found]] = (await rows(
      server,
      `SELECT count() FROM materialized_views()
        WHERE base_table_name = 't' AND refresh_base_table_txn IS DISTINCT FROM base_table_txn`,
    )) as [[number]];
    return found;
  };
  const settled = async (): Promise<void> => {
    await until(async () => (await behind()) === 0, 'all views are current');
  };
  const runs = async (): Promise<number> => {
    const [[found]] = (await rows(server, "SELECT sum(runs) FROM jobs() WHERE name LIKE 'v%'")) as [
      [number],
    ];
    return found;
  };
  await settled();
  const reads = async (): Promise<number> => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    return Number(/^tidemark_view_base_reads_total (\d+)$/m.exec(text)?.[1]);
  };
  const [before, readBefore] = [await runs(), await reads()];
  for (let hour = 1; hour <= 3; hour += 1) {
    await run(server, `INSERT INTO t VALUES ('2026-01-01T0${hour}', ${hour})`);
    await settled();
  }
  t.is((await runs()) - before, 3 * count, 'one refresh per view and commit');
  // Only a few of the 900 refreshes read the base: those after the commit, those when the last view
  // releases the base, and those that had already started.
  const read = (await reads()) - readBefore;
  t.true(read >= 3 && read <= 20, `${read} reads`);
  t.deepEqual(
    await rows(server, `SELECT (SELECT sum(x) FROM v0), (SELECT sum(x) FROM v${count - 1})`),
    [[7, 7]],
  );

  // However fast the base changes, no view may lag behind permanently.
  const shown = async (): Promise<Map<string, number>> => {
    const found = await rows(
      server,
      `SELECT view_name, refresh_base_table_txn FROM materialized_views()
        WHERE base_table_name = 't'`,
    );
    return new Map(found.map(([name, txn]) => [String(name), Number(txn)]));
  };
  const atFirst = await shown();
  const state = { over: false };
  const writer = (async () => {
    for (let minute = 0; !state.over; minute += 1) {
      const at = new Date(Date.UTC(2026, 0, 2) + minute * 60_000).toISOString();
      await run(server, `INSERT INTO t VALUES ('${at}', 1)`);
    }
  })();
  await until(async () => {
    const now = await shown();
    return names.every((name) => (now.get(name) ?? 0) > (atFirst.get(name) ?? 0));
  }, 'every view advances while the base changes');
  state.over = true;
  await writer;
  await settled();

  // A failing view that is waiting must not cause the others to be polled constantly.
  await run(
    server,
    'CREATE MATERIALIZED VIEW fails AS (SELECT ts, max(s::decimal(9,2)) x FROM bad SAMPLE BY 1h)',
  );
  await until(async () => (await job(server, 'fails')).failures > 2, 'the refresh fails');
  const cpu = await cpuSeconds(server);
  await sleep(4_000);
  const idle = (await cpuSeconds(server)) - cpu;
  t.true(idle < 0.2, `${idle} s of CPU time in 4 idle seconds`);
});

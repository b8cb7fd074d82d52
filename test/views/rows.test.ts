/**
 * Materialized views of rows: plain rows, the latest row of each key, and rows that do not expire.
 */
import test from 'ava';

import { restart, rows, run, withServer } from '../scenario/statements.js';
import { until } from '../until.js';
import { current, error, sorted } from './views.js';

const TABLE = `CREATE TABLE t (ts TIMESTAMP, tank SYMBOL, level DOUBLE, n LONG) TIMESTAMP(ts)
  PARTITION BY DAY`;
const ROWS = `INSERT INTO t VALUES
  ('2024-01-01T00:10:00Z','a',1.0,1), ('2024-01-01T00:20:00Z','b',2.0,2),
  ('2024-01-02T01:10:00Z','a',3.0,3), ('2024-01-03T00:10:00Z','a',2.0,null)`;
const CHANGES = [
  "INSERT INTO t VALUES ('2024-01-04', 'b', 5.0, 7), ('2024-01-01T00:15:00Z', 'c', 0.5, 9)",
  "UPDATE t SET level = 9.0 WHERE ts = '2024-01-02T01:10:00Z'",
  "DELETE FROM t WHERE ts = '2024-01-03T00:10:00Z'",
  "DELETE FROM t WHERE tank = 'c'",
];

test('views of unaggregated rows and LATEST ON views follow every change', async (t) => {
  const queries = {
    plain: 'SELECT * FROM t',
    some: "SELECT ts, level * 2 twice, tank FROM t WHERE tank <> 'b'",
    newest: 'SELECT * FROM t LATEST ON ts PARTITION BY tank',
    low: 'SELECT ts, tank FROM (SELECT * FROM t LATEST ON ts PARTITION BY tank) WHERE level < 4',
    daily: `SELECT ts, count() n FROM (SELECT * FROM t LATEST ON ts PARTITION BY tank)
      SAMPLE BY 1d`,
  };
  await withServer(async (first) => {
    let server = first;
    await run(server, TABLE, ROWS);
    const names = Object.keys(queries);
    for (const [name, query] of Object.entries(queries)) {
      await run(server, `CREATE MATERIALIZED VIEW ${name} AS (${query})`);
    }
    await run(
      server,
      'CREATE MATERIALIZED VIEW upon AS (SELECT ts, max(level) m FROM newest SAMPLE BY 1d)',
    );
    const compare = async (what: string): Promise<void> => {
      await current(server, ...names, 'upon');
      for (const [name, query] of Object.entries(queries)) {
        t.deepEqual(await sorted(server, name), await sorted(server, query), `${what}: ${name}`);
      }
      const upon = `SELECT ts, max(level) m FROM (${queries.newest}) SAMPLE BY 1d`;
      t.deepEqual(await sorted(server, 'upon'), await sorted(server, upon), `${what}: upon`);
    };
    await compare('the first fill');
    for (const change of CHANGES) {
      await run(server, change);
      await compare(change);
    }
    server = await restart(server);
    await run(server, "INSERT INTO t VALUES ('2024-01-01T00:11:00Z', 'd', 9.0, 2)");
    await compare('after a kill');
    const kept = await rows(server, "SELECT partitionBy FROM tables() WHERE table_name = 'plain'");
    t.deepEqual(kept, [['DAY']], 'the view is partitioned like its base');
    return server;
  });
});

test('EXPIRE ROWS hides rows from every reader, and DROP EXPIRE shows them again', async (t) => {
  const policies = [
    ["WHEN ts < '2024-01-02'", "ts >= '2024-01-02'"],
    ['WHEN n > 2', 'n IS NULL OR n <= 2'],
    [
      'WHEN row_number() OVER (PARTITION BY tank ORDER BY ts DESC) > 1',
      'SELECT * FROM t LATEST ON ts PARTITION BY tank',
    ],
    ['KEEP LATEST PARTITION BY tank', 'SELECT * FROM t LATEST ON ts PARTITION BY tank'],
    ['KEEP LATEST ON ts PARTITION BY tank', 'SELECT * FROM t LATEST ON ts PARTITION BY tank'],
    ['KEEP HIGHEST ON level', 'level = 3.0'],
    ['KEEP LOWEST ON level PARTITION BY tank', 'n = 1 OR n = 2'],
    ['KEEP 2 HIGHEST ON level PARTITION BY tank', 'n IS NULL OR n > 1'],
    ['KEEP 1 LOWEST ON tank', "ts = '2024-01-01T00:10:00Z'"],
  ] as const;
  await withServer(async (first) => {
    let server = first;
    await run(server, TABLE, ROWS, 'CREATE MATERIALIZED VIEW v AS (SELECT * FROM t)');
    await run(server, 'CREATE VIEW reads_v AS (SELECT tank, level FROM v)');
    await current(server, 'v');
    for (const [policy, left] of policies) {
      await run(server, `ALTER MATERIALIZED VIEW v SET EXPIRE ROWS ${policy} CLEANUP EVERY 2h`);
      const expected = left.startsWith('SELECT') ? left : `SELECT * FROM t WHERE ${left}`;
      const shown = await sorted(server, expected);
      t.true(shown.length > 0 && shown.length < 4, policy);
      t.deepEqual(await sorted(server, 'v'), shown, policy);
      t.deepEqual(await rows(server, 'SELECT count() FROM v'), [[shown.length]], policy);
      t.deepEqual(await rows(server, 'SELECT count() FROM reads_v'), [[shown.length]], policy);
      const joined = 'SELECT count() FROM t JOIN v ON t.ts = v.ts AND t.tank = v.tank';
      t.deepEqual(await rows(server, joined), [[shown.length]], policy);
      const [[ddl]] = (await rows(server, 'SHOW CREATE MATERIALIZED VIEW v')) as [[string]];
      t.true(ddl.endsWith(`EXPIRE ROWS ${policy} CLEANUP EVERY 2h;`), ddl);
    }
    await run(server, 'ALTER MATERIALIZED VIEW v SET EXPIRE ROWS WHEN level > 2.5');
    server = await restart(server);
    t.is((await rows(server, 'v')).length, 3);
    const [[ddl]] = (await rows(server, 'SHOW CREATE MATERIALIZED VIEW v')) as [[string]];
    await run(server, 'DROP MATERIALIZED VIEW v', ddl);
    await current(server, 'v');
    t.is((await rows(server, 'v')).length, 3, 'the view was re-created from its DDL');
    await run(server, 'ALTER MATERIALIZED VIEW v DROP EXPIRE');
    t.is((await rows(server, 'v')).length, 4);
    return server;
  });
});

test('an invalid policy is refused with the position of the error', async (t) => {
  const cases = [
    ['WHEN nope > 1', /Invalid column: nope/],
    ['WHEN level', /boolean|BOOLEAN/],
    ['WHEN level > (SELECT max(level) FROM t)', /can only read the rows of the view itself/],
    ['WHEN level > $1', /bind variables|parameter/],
    ['KEEP HIGHEST ON tank', /require numbers or times, found SYMBOL/],
    ['KEEP LATEST PARTITION BY nope', /Invalid column: nope/],
    ['KEEP LATEST', /partition/i],
    ['KEEP HIGHEST ON level CLEANUP EVERY 5x', /interval|unit/i],
  ] as const;
  await withServer(async (server) => {
    await run(server, TABLE, ROWS, 'CREATE MATERIALIZED VIEW v AS (SELECT * FROM t)');
    await current(server, 'v');
    for (const [policy, why] of cases) {
      t.regex(await error(server, `ALTER MATERIALIZED VIEW v SET EXPIRE ROWS ${policy}`), why);
      const create = `CREATE MATERIALIZED VIEW w AS (SELECT * FROM t) EXPIRE ROWS ${policy}`;
      t.regex(await error(server, create), why);
    }
    t.is((await rows(server, 'v')).length, 4);
    await run(
      server,
      `CREATE MATERIALIZED VIEW w AS (SELECT * FROM t) PARTITION BY DAY
      EXPIRE ROWS KEEP LATEST PARTITION BY tank`,
    );
    await current(server, 'w');
    t.is((await rows(server, 'w')).length, 2);
    return server;
  });
});

test('cleanup removes only rows that are hidden permanently', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE);
    const recent = "dateadd('h', -1, now())";
    await run(
      server,
      `INSERT INTO t SELECT dateadd('m', (-10 * x)::int, now()), 'a', 1.0, x::int
         FROM long_sequence(12)`,
      'CREATE MATERIALIZED VIEW v AS (SELECT * FROM t)',
      'CREATE MATERIALIZED VIEW w AS (SELECT * FROM t)',
    );
    await current(server, 'v', 'w');
    const stored = async (view: string): Promise<unknown> =>
      (await rows(server, `SELECT sum(numRows) FROM table_partitions('${view}')`))[0]?.[0];
    const runs = async (view: string): Promise<number> => {
      const found = `SELECT runs FROM jobs() WHERE kind = 'cleanup' AND name = '${view}'`;
      return Number((await rows(server, found))[0]?.[0] ?? 0);
    };
    const hidden = [`WHEN ${recent} > ts`, `WHEN ts <= ${recent}`];
    await run(server, `ALTER MATERIALIZED VIEW v SET EXPIRE ROWS ${hidden[0]} CLEANUP EVERY 1s`);
    await until(async () => (await stored('v')) === 5, 'the rows are removed');
    t.is((await rows(server, 'v')).length, 5);
    // None of these policies hides a row permanently.
    for (const policy of [
      `WHEN ts > ${recent}`,
      `WHEN ts < ${recent} AND level > 0`,
      "WHEN ts < dateadd('h', -hour(now()), now())",
      `WHEN ts < ${recent} OR n > 1000`,
      'KEEP LATEST PARTITION BY tank',
      'KEEP 2 HIGHEST ON level',
    ]) {
      await run(server, `ALTER MATERIALIZED VIEW w SET EXPIRE ROWS ${policy} CLEANUP EVERY 1s`);
      const before = await runs('w');
      await until(async () => (await runs('w')) > before + 1, `${policy}: the job ran`);
      t.is(await stored('w'), 12, policy);
    }
    // A new policy has its own schedule, which applies even while the job waits for its next run.
    await run(server, `ALTER MATERIALIZED VIEW w SET EXPIRE ROWS KEEP LATEST PARTITION BY tank`);
    await run(server, `ALTER MATERIALIZED VIEW w SET EXPIRE ROWS ${hidden[1]} CLEANUP EVERY 1s`);
    await until(async () => (await stored('w')) === 5, 'the rows are removed');
    // A late row causes its bucket to be recomputed. The row is hidden and removed again.
    await run(server, "INSERT INTO t VALUES (dateadd('h', -5, now()), 'b', 1.0, 100)");
    await current(server, 'w');
    t.is((await rows(server, 'w')).length, 5);
    await until(async () => (await stored('w')) === 5, 'the late row is removed');
    await run(server, 'ALTER MATERIALIZED VIEW w DROP EXPIRE');
    t.is((await rows(server, 'w')).length, 5);
    return server;
  });
});

test('refresh jobs can be paused and resumed', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS, 'CREATE MATERIALIZED VIEW v AS (SELECT * FROM t)');
    await current(server, 'v');
    const state = async (kind: string): Promise<unknown> =>
      (await rows(server, `SELECT state FROM jobs() WHERE kind = '${kind}'`))[0]?.[0];
    t.deepEqual(await rows(server, "SELECT pause_job('refresh', 'v')"), [[true]]);
    t.deepEqual(await rows(server, "SELECT pause_job('checkpoint')"), [[true]]);
    t.deepEqual(await rows(server, "SELECT pause_job('refresh', 'nope')"), [[false]]);
    t.deepEqual(await rows(server, "SELECT pause_job('nope')"), [[false]]);
    t.is(await state('refresh'), 'paused');
    t.is(await state('checkpoint'), 'paused');
    await run(server, "INSERT INTO t VALUES ('2024-02-01', 'z', 1.0, 1)");
    await new Promise((done) => setTimeout(done, 300));
    t.is((await rows(server, 'v')).length, 4);
    t.deepEqual(await rows(server, "SELECT resume_job('refresh', 'v')"), [[true]]);
    t.deepEqual(await rows(server, "SELECT resume_job('checkpoint')"), [[true]]);
    await current(server, 'v');
    t.is((await rows(server, 'v')).length, 5);
    t.not(await state('refresh'), 'paused');
    t.not(await state('checkpoint'), 'paused');
    t.regex(await error(server, 'SELECT pause_job(n) FROM t'), /constant strings/);
    return server;
  });
});

test('the PostgreSQL catalog lists materialized views', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, 'CREATE MATERIALIZED VIEW v AS (SELECT ts, tank FROM t)');
    const kinds = "SELECT relname, relkind FROM pg_class WHERE relname IN ('t', 'v') ORDER BY 1";
    t.deepEqual(await rows(server, kinds), [
      ['t', 'r'],
      ['v', 'm'],
    ]);
    const views = 'SELECT matviewname, ispopulated, definition FROM pg_matviews';
    t.deepEqual(await rows(server, views), [['v', true, 'SELECT ts, tank FROM t']]);
    t.deepEqual(await rows(server, 'SELECT tablename FROM pg_tables'), [['t']]);
    return server;
  });
});

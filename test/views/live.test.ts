/**
 * Live views over HTTP: their contents and freshness, which queries are accepted, invalidation and
 * repair.
 */
import test from 'ava';

import { restart, rows, run, withServer } from '../scenario/statements.js';
import { until } from '../until.js';
import { current, error, live, sorted, status } from './views.js';

const TABLE = `CREATE TABLE t (ts TIMESTAMP, s SYMBOL, x DOUBLE, n LONG) TIMESTAMP(ts)
  PARTITION BY DAY WAL`;
const ROWS = `INSERT INTO t VALUES
  ('2026-03-01T10:00:00Z','a',1.0,1), ('2026-03-01T10:01:00Z','b',2.0,2),
  ('2026-03-02T10:00:00Z','a',3.0,3), ('2026-03-02T10:00:00Z','a',4.0,4)`;
const HEAD = 'FLUSH EVERY 100ms START FROM BEGINNING AS';
const RUNNING = `SELECT ts, s, x, sum(x) OVER (PARTITION BY s ORDER BY ts) total,
  row_number() OVER (ORDER BY ts) number FROM t`;

test('live views show appended and late rows, updates and deletes', async (t) => {
  await withServer(async (first) => {
    let server = first;
    const views = new Map([
      ['running', RUNNING],
      ['plain', "SELECT ts, s, x * 2 twice FROM t WHERE s != 'c'"],
      ['bounded', "SELECT ts, avg(x) OVER (ORDER BY ts RANGE '90' SECOND PRECEDING) a FROM t"],
    ]);
    await run(server, TABLE);
    for (const [view, query] of views) {
      await run(server, `CREATE LIVE VIEW ${view} ${HEAD} (${query})`);
    }
    const compare = async (what: string): Promise<void> => {
      await live(server, ...views.keys());
      for (const [view, query] of views) {
        t.deepEqual(await sorted(server, view), await sorted(server, query), `${view}: ${what}`);
      }
    };
    await compare('no rows');
    const steps = [
      ROWS,
      "INSERT INTO t VALUES ('2026-03-02T10:00:00Z', 'b', 5.0, 5)",
      "INSERT INTO t VALUES ('2026-03-02T10:00:00Z', 'a', 6.0, 6), ('2026-03-03', 'c', 7.0, 7)",
      "INSERT INTO t VALUES ('2026-03-01T10:00:30Z', 'd', 8.0, 8)",
      "UPDATE t SET s = 'b' WHERE ts = '2026-03-01T10:00:00Z'",
      'DELETE FROM t WHERE x = 4',
      'ALTER TABLE t DEDUP ENABLE UPSERT KEYS(ts, s)',
      "INSERT INTO t VALUES ('2026-03-02T10:00:00Z', 'b', 50.0, 5)",
      "INSERT INTO t VALUES ('2026-03-02T10:00:00Z', 'b', 50.0, 5)",
      'ALTER TABLE t DEDUP DISABLE',
      "INSERT INTO t VALUES ('2026-03-04', 'é', 1.5, 9)",
    ];
    for (const step of steps) {
      await run(server, step);
      await compare(step);
    }
    server = await restart(server);
    await compare('a kill');
    await run(server, "INSERT INTO t VALUES ('2026-03-05', 'a', 1.0, 1)");
    await compare('rows after a kill');
    return server;
  });
});

test('anchored windows restart at their anchor in views and queries', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE);
    await run(
      server,
      `INSERT INTO t VALUES ('2026-03-28T01:29:59Z','a',1.0,1), ('2026-03-29T00:59:59Z','a',2.0,1),
         ('2026-03-29T01:00:00Z','a',4.0,2), ('2026-03-30T00:29:59Z','a',8.0,2),
         ('2026-03-30T00:30:00Z','a',16.0,1), ('2026-03-30T00:30:00Z','b',32.0,1)`,
    );
    const over = (anchor: string): string =>
      `SELECT ts, sum(x) OVER w x FROM t
         WINDOW w AS (PARTITION BY s ORDER BY ts ANCHOR ${anchor})`;
    const totals = async (from: string): Promise<readonly unknown[]> =>
      (await rows(server, from)).map((row) => row[1]);
    const cases: readonly (readonly [string, readonly number[]])[] = [
      // The clock skips 02:30 on the 29th, so the day starts at 03:00.
      ["DAILY '02:30' 'Europe/Paris'", [1, 2, 4, 12, 16, 32]],
      ["DAILY '00:00'", [1, 2, 6, 8, 24, 32]],
      ["EXPRESSION timestamp_floor('1d', ts)", [1, 2, 6, 8, 24, 32]],
      // The value comes up again and starts a new period.
      ['EXPRESSION n', [1, 3, 4, 12, 16, 32]],
    ];
    for (const [index, [anchor, expected]] of cases.entries()) {
      t.deepEqual(await totals(over(anchor)), expected, anchor);
      await run(server, `CREATE LIVE VIEW v${index} ${HEAD} (${over(anchor)})`);
      await live(server, `v${index}`);
      t.deepEqual(await totals(`v${index}`), expected, anchor);
    }
    await run(server, "INSERT INTO t VALUES ('2026-03-29T00:00:00Z','a',100.0,2)");
    for (const [index, [anchor]] of cases.entries()) {
      await live(server, `v${index}`);
      t.deepEqual(await sorted(server, `v${index}`), await sorted(server, over(anchor)), anchor);
    }
    const deviation = over("DAILY '00:00'").replace('sum(x)', 'stddev(x)');
    t.deepEqual(await totals(`SELECT ts, x FROM (${deviation}) WHERE x IS NULL`), [
      null,
      null,
      null,
      null,
    ]);
    const refused: readonly (readonly [string, RegExp])[] = [
      ["DAILY '25:00'", /^66: invalid time of day '25:00': expected HH:MM/],
      ["DAILY '02:30' 'Mars/Base'", /invalid timezone: Mars\/Base/],
      ['EXPRESSION 7', /must depend on the row and nothing else/],
      ['EXPRESSION rnd_long()', /must depend on the row and nothing else/],
      ['EXPRESSION x', /must be TIMESTAMP, LONG or INT, found DOUBLE/],
    ];
    for (const [anchor, message] of refused) {
      const text = `SELECT sum(x) OVER w FROM t WINDOW w AS (ORDER BY ts ANCHOR ${anchor})`;
      t.regex(await error(server, text), message, anchor);
    }
    const inline = "SELECT sum(x) OVER (ORDER BY ts ANCHOR DAILY '00:00') FROM t";
    t.regex(await error(server, inline), /^32: ANCHOR is only allowed in a named WINDOW/);
    const framed =
      "SELECT sum(x) OVER w FROM t WINDOW w AS (ORDER BY ts ROWS 2 PRECEDING ANCHOR DAILY '00:00')";
    t.regex(await error(server, framed), /cannot have a frame/);
    return server;
  });
});

test('an invalid live view is refused with the position of the error', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, 'CREATE VIEW v AS (SELECT ts, x FROM t)', 'CREATE TABLE r (x INT)');
    await run(server, 'CREATE TABLE b (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY BYPASS WAL');
    await run(server, `CREATE LIVE VIEW known ${HEAD} (SELECT ts, x FROM t)`);
    const begin = `CREATE LIVE VIEW w ${HEAD} `;
    const simple = `${begin.length}: live view select must be a simple scan of a single table`;
    const cases: readonly (readonly [string, RegExp])[] = [
      ['SELECT * FROM t', /^68: wildcard column select is not allowed in live view queries/],
      ['SELECT ts, x FROM t ORDER BY ts', /live view select must be a simple scan of a single/],
      ['SELECT ts, x FROM t LIMIT 3', new RegExp(`^${simple}`)],
      ['SELECT ts, sum(x) FROM t SAMPLE BY 1h', /must be a simple scan/],
      ['SELECT ts, sum(x) x FROM t GROUP BY ts', /must be a simple scan/],
      ['SELECT t.ts, t.x FROM t ASOF JOIN known', /must be a simple scan/],
      ['SELECT ts, x FROM (SELECT ts, x FROM t)', /must be a simple scan/],
      ['WITH c AS (SELECT ts, x FROM t) SELECT ts, x FROM c', /must be a simple scan/],
      ['SELECT ts, x FROM t WHERE x > (SELECT max(x) FROM t)', /must be a simple scan/],
      ["SELECT ts, x FROM t WHERE ts > '2026'", /^87: a filter on the designated timestamp/],
      ['SELECT ts, now() x FROM t', /^72: non-deterministic function cannot be used in live view/],
      ['SELECT ts, rnd_int() x FROM t', /^72: non-deterministic function/],
      ['SELECT ts, lead(x) OVER (ORDER BY ts) FROM t', /^72: .* cannot read later rows/],
      ['SELECT ts, ntile(3) OVER (ORDER BY ts) FROM t', /cannot read later rows/],
      ['SELECT ts, sum(x) OVER () FROM t', /cannot read later rows/],
      ['SELECT ts, sum(x) OVER (ORDER BY x) FROM t', /ordered by the designated timestamp/],
      ['SELECT x FROM t', /must have the designated timestamp of the base table: ts/],
      ['SELECT ts time, x FROM t', /must have the designated timestamp of the base table: ts/],
      ['SELECT ts, x FROM known', /^79: live views are not allowed as base tables in V1/],
      ['SELECT ts, x FROM v', /^79: base table must be a WAL table/],
      ['SELECT ts FROM b', /base table must be a WAL table/],
      ['SELECT x FROM r', /^75: live view base table must have a designated timestamp/],
      ['SELECT ts, x FROM nothing', /table does not exist/],
      ['SELECT ts, y FROM t', /^72: Invalid column: y/],
      ['SELECT ts, x a, s a FROM t', /Duplicate column/],
    ];
    for (const [query, message] of cases) {
      t.regex(await error(server, begin + query), message, query);
    }
    const body = 'START FROM BEGINNING AS (SELECT ts, x FROM t)';
    const statements: readonly (readonly [string, RegExp])[] = [
      [
        `CREATE LIVE VIEW w FLUSH EVERY 99ms ${body}`,
        /^31: live view FLUSH EVERY must be at least 100ms/,
      ],
      [
        `CREATE LIVE VIEW w FLUSH EVERY 2h ${body}`,
        /^31: live view FLUSH EVERY must be at most 1h/,
      ],
      [
        `CREATE LIVE VIEW w FLUSH EVERY 1s IN MEMORY 500ms ${body}`,
        /^44: live view IN MEMORY must be at least/,
      ],
      [
        `CREATE LIVE VIEW w FLUSH EVERY 1s IN MEMORY 61m ${body}`,
        /^44: live view IN MEMORY must be at most 1h/,
      ],
      [`CREATE LIVE VIEW w FLUSH EVERY 1w ${body}`, /^31: invalid interval '1w'/],
      [
        `CREATE LIVE VIEW w FLUSH EVERY 1s PARTITION BY NONE ${body}`,
        /live view has to be partitioned/,
      ],
      ['CREATE LIVE VIEW w FLUSH EVERY 1s AS (SELECT ts FROM t)', /^34: 'start from' expected/],
      [
        "CREATE LIVE VIEW w FLUSH EVERY 1s START FROM 'soon' AS (SELECT ts FROM t)",
        /^45: invalid START FROM timestamp: soon/,
      ],
      [`CREATE LIVE VIEW w ${body}`, /^19: 'flush every' expected/],
      [
        `CREATE LIVE VIEW w FLUSH EVERY 1s IN MEMORY 1s IN MEMORY 2s ${body}`,
        /^47: duplicate IN MEMORY clause/,
      ],
      [`CREATE LIVE VIEW known ${HEAD} (SELECT ts FROM t)`, /^17: live view already exists/],
      [
        `CREATE LIVE VIEW t ${HEAD} (SELECT ts FROM t)`,
        /^17: table or view with the requested name/,
      ],
      [
        `CREATE LIVE VIEW IF NOT EXISTS v ${HEAD} (SELECT ts FROM t)`,
        /table or view with the requested/,
      ],
      ['CREATE TABLE known (x INT)', /already exists/],
      ['DROP LIVE VIEW t', /^15: live view name expected, got table or view/],
      ['DROP LIVE VIEW w', /^15: live view does not exist/],
      ['DROP MATERIALIZED VIEW known', /materialized view name expected/],
      ['DROP TABLE known', /table name expected, got view/],
      ['REFRESH MATERIALIZED VIEW known', /materialized view name expected/],
      ['SHOW CREATE TABLE known', /table name expected/],
      ['SHOW CREATE MATERIALIZED VIEW known', /materialized view name expected/],
      ['SHOW CREATE LIVE VIEW w', /^22: live view does not exist/],
      ["INSERT INTO known VALUES ('2026', 1)", /cannot modify live view \[view=known\]/],
      ['UPDATE known SET x = 1', /cannot modify live view/],
      ['DELETE FROM known', /cannot modify live view/],
      ['TRUNCATE TABLE known', /table name expected/],
      ['ALTER TABLE known ADD COLUMN y INT', /cannot modify live view/],
      [
        'CREATE MATERIALIZED VIEW m AS (SELECT ts, sum(x) x FROM known SAMPLE BY 1h)',
        /not live views/,
      ],
    ];
    for (const [statement, message] of statements) {
      t.regex(await error(server, statement), message, statement);
    }
    await run(server, `CREATE LIVE VIEW IF NOT EXISTS known ${HEAD} (SELECT ts FROM t)`);
    await run(server, 'DROP LIVE VIEW IF EXISTS nothing');
    await run(server, 'CREATE VIEW wide AS (SELECT ts, x FROM known)', 'SELECT * FROM wide');
    return server;
  });
});

test('a live view is listed with its clauses, and SHOW CREATE returns them as SQL', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS);
    const written = `CREATE LIVE VIEW IF NOT EXISTS v FLUSH EVERY 250ms START FROM '2026-03-02'
      PARTITION BY HOUR IN MEMORY 2m AS SELECT ts, s, x FROM t WHERE x > 0`;
    await run(server, written);
    await live(server, 'v');
    const ddl = [
      "CREATE LIVE VIEW 'v' FLUSH EVERY 250ms IN MEMORY 2m PARTITION BY HOUR",
      "START FROM '2026-03-02T00:00:00.000000Z' AS (\nSELECT ts, s, x FROM t WHERE x > 0\n);",
    ].join(' ');
    t.deepEqual(await rows(server, 'SHOW CREATE LIVE VIEW v'), [[ddl]]);
    t.deepEqual(await rows(server, 'SHOW CREATE DATABASE INCLUDE (LIVE_VIEWS)'), [[ddl]]);
    const listed = await rows(
      server,
      `SELECT view_name, base_table_name, view_status, invalidation_reason, flush_every_interval,
         flush_every_interval_unit, in_memory_interval, in_memory_interval_unit, lag_seqtxn,
         view_lower_bound_timestamp, seed_target_seqtxn FROM live_views()`,
    );
    const bound = '2026-03-02T00:00:00.000000Z';
    const found = ['v', 't', 'active', null, 250, 'MILLISECOND', 2, 'MINUTE', 0, bound, null];
    t.deepEqual(listed, [found]);
    const columns = await rows(server, 'SHOW COLUMNS FROM v');
    t.deepEqual(
      columns.map((column) => column.slice(0, 2)),
      [
        ['ts', 'TIMESTAMP'],
        ['s', 'SYMBOL'],
        ['x', 'DOUBLE'],
      ],
    );
    const [all] = await rows(server, 'SELECT * FROM live_views()');
    t.is(all?.length, 52);
    const types = "SELECT table_type, matView, partitionBy FROM tables() WHERE table_name = 'v'";
    t.deepEqual(await rows(server, types), [['L', false, 'HOUR']]);
    t.deepEqual(await rows(server, 'SELECT view_name FROM materialized_views()'), []);
    t.deepEqual((await rows(server, 'v')).length, 2, 'rows before the lower bound are excluded');
    const jobs = "SELECT state FROM jobs() WHERE name = 'v'";
    await until(async () => (await rows(server, jobs))[0]?.[0] === 'waiting', 'the job is waiting');
    await run(server, 'DROP LIVE VIEW v', ddl);
    await live(server, 'v');
    t.deepEqual((await rows(server, 'v')).length, 2);
    await run(
      server,
      'ALTER LIVE VIEW v SUSPEND WAL',
      "INSERT INTO t VALUES ('2026-04-01','a',1.0,1)",
    );
    await until(async () => (await rows(server, jobs))[0]?.[0] === 'paused', 'the job is paused');
    t.deepEqual((await rows(server, 'v')).length, 2, 'a suspended view is unchanged');
    await run(server, 'ALTER LIVE VIEW v RESUME WAL');
    await live(server, 'v');
    t.deepEqual((await rows(server, 'v')).length, 3);
    await run(server, 'DROP LIVE VIEW v');
    const now = 'CREATE LIVE VIEW v FLUSH EVERY 1s START FROM NOW AS (SELECT ts, x FROM t)';
    await run(
      server,
      now,
      "INSERT INTO t VALUES ('2026-04-02','a',1.0,1), ('2099-01-01','a',2.0,1)",
    );
    await live(server, 'v');
    t.deepEqual(await rows(server, 'SELECT x FROM v'), [[2]]);
    const [again] = await rows(server, 'SHOW CREATE LIVE VIEW v');
    t.regex(String(again?.[0]), /START FROM NOW/);
    return server;
  });
});

/** Returns rows one second apart at the end of `t`, with the numbers `from` to `to`. */
function seconds(from: number, to: number): string {
  return `INSERT INTO t SELECT timestamp_sequence('2026-05-01'::timestamp + ${from} * 1000000L,
    1000000L), 'k' || (x % 3), x::double, x FROM long_sequence(${to - from})`;
}

const second = (number: number): string =>
  new Date(Date.UTC(2026, 4, 1) + number * 1_000).toISOString();

test('rows are recomputed from the nearest checkpoint before a late row', async (t) => {
  const queries = {
    endless: `SELECT ts, s, x, sum(x) OVER (PARTITION BY s ORDER BY ts) total,
      lag(x, 2) OVER (ORDER BY ts) before, max(x) OVER (ORDER BY ts
        RANGE BETWEEN '10' MINUTE PRECEDING AND CURRENT ROW) highest FROM t`,
    anchored: `SELECT ts, s, x, sum(x) OVER w total, row_number() OVER w number FROM t
      WINDOW w AS (PARTITION BY s ORDER BY ts ANCHOR EXPRESSION timestamp_floor('30d', ts))`,
  };
  const repair = `SELECT checkpoint_repair_low_timestamp, checkpoint_repair_last_disposition,
    checkpoint_repair_resumes, checkpoint_timeline_entries FROM live_views() WHERE view_name = `;
  await withServer(async (server) => {
    await run(server, TABLE, seconds(0, 300_000));
    for (const [view, query] of Object.entries(queries)) {
      await run(server, `CREATE LIVE VIEW ${view} ${HEAD} (${query})`);
    }
    const compare = async (what: string): Promise<void> => {
      await live(server, ...Object.keys(queries));
      for (const [view, query] of Object.entries(queries)) {
        const differing = `SELECT count() FROM (SELECT * FROM ${view} EXCEPT ALL (${query}))`;
        t.deepEqual(await rows(server, differing), [[0]], `${view}, ${what}`);
      }
    };
    await compare('filled');
    let resumes = 0;
    // `behind` rows follow the late row. A repair may read at most three times as many.
    for (const behind of [40_000, 120_000, 9_000, 2, 20_000]) {
      await run(server, `INSERT INTO t VALUES ('${second(300_000 - behind)}', 'k1', 5.0, 0)`);
      await compare(`late by ${behind}`);
      resumes += 1;
      for (const view of Object.keys(queries)) {
        const [found] = await rows(server, `${repair}'${view}'`);
        const [low, disposition, resumed, states] = found ?? [];
        const read = 300_000 - (Date.parse(String(low)) - Date.UTC(2026, 4, 1)) / 1_000;
        t.true(read >= behind && read <= 3 * behind + 30_000, `${view}: ${read} of ${behind}`);
        t.deepEqual([disposition, resumed], ['resume from anchor', resumes], view);
        t.true(Number(states) > 3 && Number(states) < 100, `${String(states)} states`);
      }
    }
    await run(server, "UPDATE t SET x = 7.0 WHERE s = 'k2' AND ts > '2026-05-04T08'");
    await compare('changed');
    await run(server, `DELETE FROM t WHERE ts > '${second(299_000)}'`);
    await compare('the end is deleted');
    await run(server, seconds(299_500, 301_000));
    await compare('rows follow');
    // Archived rows are no longer in the base, but every earlier state still includes them.
    await run(server, "ALTER TABLE t DROP PARTITION LIST '2026-05-01'");
    await run(server, seconds(301_000, 302_000));
    await live(server, ...Object.keys(queries));
    await run(server, `INSERT INTO t VALUES ('${second(301_500)}', 'k1', 5.0, 0)`);
    await live(server, 'endless');
    const [found] = await rows(server, `${repair}'endless'`);
    t.deepEqual(found?.slice(0, 2), [null, 'boundary rebuild']);
    const later = `SELECT * FROM endless WHERE ts >= '${second(301_500)}'`;
    const computed = `SELECT * FROM (${queries.endless}) WHERE ts >= '${second(301_500)}'`;
    t.deepEqual(await rows(server, later), await rows(server, computed));
    return server;
  });
});

/**
 * Cases in which rows that the views filter out come after rows that they show. Each case lists its
 * statements step by step.
 */
const ENDS: readonly (readonly [what: string, steps: readonly string[]])[] = [
  ['deleted', ['DELETE FROM t WHERE x = 0', "INSERT INTO t VALUES ('2026-03-02T11', 'a', 5.0, 5)"]],
  [
    'deleted, then a row at the last remaining timestamp',
    ['DELETE FROM t WHERE x = 0', "INSERT INTO t VALUES ('2026-03-02T10', 'a', 5.0, 5)"],
  ],
  [
    'deleted with all recomputed rows, then a row with a longer lookback',
    [
      "INSERT INTO t VALUES ('2026-03-04T08', 'a', 5.0, 5)",
      'ALTER TABLE t ADD COLUMN z INT',
      "DELETE FROM t WHERE ts >= '2026-03-03'",
      "INSERT INTO t(ts, s, x, n) VALUES ('2026-03-02T11', 'a', 6.0, 6)",
    ],
  ],
  [
    'filtered out after an update, then deleted',
    [
      "INSERT INTO t VALUES ('2026-03-03T13', 'a', 5.0, 5)",
      "UPDATE t SET x = 0 WHERE ts >= '2026-03-03'",
      'DELETE FROM t WHERE x = 0',
      "INSERT INTO t VALUES ('2026-03-02T11', 'a', 6.0, 6), ('2026-03-03T12', 'b', 7.0, 7)",
    ],
  ],
  [
    'in a dropped partition, then a row before the view starts',
    [
      "ALTER TABLE t DROP PARTITION LIST '2026-03-03'",
      "INSERT INTO t VALUES ('2026-02-01', 'a', 5.0, 5)",
      "INSERT INTO t VALUES ('2026-03-02T11', 'a', 6.0, 6)",
    ],
  ],
  [
    'all rows deleted',
    [
      "DELETE FROM t WHERE ts < '2026-03-03'",
      'DELETE FROM t WHERE x = 0',
      "INSERT INTO t VALUES ('2026-03-02T11', 'a', 6.0, 6)",
    ],
  ],
];

test('rows deleted at the end of a base table disappear from the view', async (t) => {
  const windows = {
    endless: 'sum(x) OVER (PARTITION BY s ORDER BY ts) a, row_number() OVER (ORDER BY ts) b',
    ranged:
      "sum(x) OVER (PARTITION BY s ORDER BY ts RANGE BETWEEN '2' DAY PRECEDING AND CURRENT ROW) a",
    anchored: `sum(x) OVER w a, row_number() OVER w b`,
  };
  const query = (columns: string, from: string): string =>
    `SELECT ts, s, x, ${columns} FROM ${from} WHERE x > 0
      WINDOW w AS (PARTITION BY s ORDER BY ts ANCHOR DAILY '09:30')`;
  const started = "(SELECT * FROM t WHERE ts >= '2026-03-01')";
  await withServer(async (server) => {
    for (const [what, steps] of ENDS) {
      await run(server, TABLE, ROWS, "INSERT INTO t VALUES ('2026-03-03T12:00:00Z', 'a', 0.0, 0)");
      for (const [view, columns] of Object.entries(windows)) {
        const clauses = "FLUSH EVERY 100ms START FROM '2026-03-01' AS";
        await run(server, `CREATE LIVE VIEW ${view} ${clauses} (${query(columns, 't')})`);
      }
      for (const step of ['SELECT 1', ...steps]) {
        await run(server, step);
        await live(server, ...Object.keys(windows));
        for (const [view, columns] of Object.entries(windows)) {
          const expected = await sorted(server, query(columns, started));
          t.deepEqual(await sorted(server, view), expected, `${view}: ${what}: ${step}`);
        }
      }
      for (const view of Object.keys(windows)) {
        await run(server, `DROP LIVE VIEW ${view}`);
      }
      await run(server, 'DROP TABLE t');
    }
    return server;
  });
});

test('rows between many recomputed ranges are not lost', async (t) => {
  // The changes at minutes 10 and 18 are so close that they are read as one range but shown as two.
  // All other changes are read and shown as separate ranges.
  const changed = Array.from({ length: 255 }, (_, index) => 32 + index * 16);
  const minutes = [10, 18, ...changed];
  const query = `SELECT ts, x, n, sum(x) OVER (ORDER BY ts
    RANGE BETWEEN '5' MINUTE PRECEDING AND CURRENT ROW) a FROM t`;
  await withServer(async (server) => {
    await run(
      server,
      TABLE,
      `INSERT INTO t SELECT timestamp_sequence('2026-05-01', 60000000L), 'a', 1.0, x
         FROM long_sequence(4200)`,
      `CREATE LIVE VIEW v ${HEAD} (${query})`,
    );
    await live(server, 'v');
    await run(server, 'ALTER LIVE VIEW v SUSPEND WAL');
    for (const some of [minutes.slice(0, 128), minutes.slice(128)]) {
      await run(server, `UPDATE t SET x = 2.0 WHERE n IN (${some.join(', ')})`);
    }
    await run(server, 'ALTER LIVE VIEW v RESUME WAL');
    await live(server, 'v');
    t.deepEqual(await sorted(server, 'v'), await sorted(server, query));
    return server;
  });
});

test('rows of dropped partitions stay in the view across late rows and restarts', async (t) => {
  await withServer(async (first) => {
    let server = first;
    await run(server, TABLE, ROWS, `CREATE LIVE VIEW v ${HEAD} (${RUNNING})`);
    await live(server, 'v');
    const shown = await rows(server, 'v');
    await run(server, "ALTER TABLE t DROP PARTITION LIST '2026-03-01'");
    await run(server, "INSERT INTO t VALUES ('2026-03-03', 'a', 10.0, 1)");
    await live(server, 'v');
    const next = ['2026-03-03T00:00:00.000000Z', 'a', 10, 18, 5];
    t.deepEqual(
      await rows(server, 'v'),
      [...shown, next],
      'the aggregates continue from the retained state',
    );
    server = await restart(server);
    await run(server, "INSERT INTO t VALUES ('2026-03-01T23:00:00Z', 'z', 1.0, 1)");
    await run(server, "INSERT INTO t VALUES ('2026-03-02T23:00:00Z', 'z', 2.0, 1)");
    await live(server, 'v');
    const before = "SELECT ts, s, x, total, number FROM v WHERE ts < '2026-03-01T23:00:00Z'";
    t.deepEqual(
      await rows(server, before),
      shown.slice(0, 2),
      'late rows do not change earlier rows',
    );
    t.deepEqual(await rows(server, "SELECT s, x, total FROM v WHERE s = 'z'"), [
      ['z', 1, 1],
      ['z', 2, 3],
    ]);
    const kept = await rows(server, 'v');
    await run(server, 'TRUNCATE TABLE t');
    await run(server, "INSERT INTO t VALUES ('2026-03-04', 'a', 1.0, 1)");
    await live(server, 'v');
    t.deepEqual(
      (await rows(server, 'v')).slice(0, -1),
      kept,
      'TRUNCATE does not remove rows from the view',
    );
    await run(server, "INSERT INTO t VALUES ('2026-03-02T10:00:00.5Z', 'y', 1.0, 1)");
    await run(server, "UPDATE t SET x = 5.0 WHERE s = 'y'");
    await live(server, 'v');
    const late = await rows(server, "SELECT x FROM v WHERE s = 'y'");
    t.deepEqual(late, [[5]], 'later changes are applied');
    t.deepEqual((await rows(server, 'v')).length, kept.length + 2);
    t.is(await status(server, 'v', 'active'), null);
    return server;
  });
});

test('a view stops when its base table becomes incompatible, and resumes afterwards', async (t) => {
  await withServer(async (server) => {
    const cases: readonly (readonly [string, string, string])[] = [
      ['ALTER TABLE t DROP COLUMN x', 'drop column operation', 'ALTER TABLE t ADD COLUMN x DOUBLE'],
      [
        'ALTER TABLE t RENAME COLUMN x TO z',
        'rename column operation',
        'ALTER TABLE t RENAME COLUMN z TO x',
      ],
      [
        'ALTER TABLE t ALTER COLUMN x TYPE FLOAT',
        'column has a different type [column=x, type=FLOAT, expected=DOUBLE]',
        'ALTER TABLE t ALTER COLUMN x TYPE DOUBLE',
      ],
      ['RENAME TABLE t TO u', 'rename table operation', 'RENAME TABLE u TO t'],
    ];
    const query = 'SELECT ts, x, sum(x) OVER (ORDER BY ts) total FROM t';
    const view = `CREATE LIVE VIEW v ${HEAD} (${query})`;
    for (const [statement, reason, repair] of cases) {
      await run(server, 'DROP LIVE VIEW IF EXISTS v', 'DROP TABLE IF EXISTS t', TABLE, ROWS, view);
      await live(server, 'v');
      const shown = await rows(server, 'v');
      await run(server, statement);
      await until(async () => (await status(server, 'v', 'invalid')) === reason, reason);
      const table = statement.startsWith('RENAME') ? 'u' : 't';
      await run(server, `INSERT INTO ${table}(ts, s) VALUES ('2026-03-09', 'q')`);
      t.deepEqual(await rows(server, 'v'), shown, 'the invalid view is readable and unchanged');
      await run(server, repair);
      await live(server, 'v');
      const after = await rows(server, 'v');
      t.deepEqual(after.slice(0, -1), shown, `${statement}: earlier rows are retained`);
      t.is(after.at(-1)?.[0], '2026-03-09T00:00:00.000000Z', 'the missed row is added');
    }
    await run(server, 'DROP TABLE t');
    t.is(await status(server, 'v', 'invalid'), 'drop table operation');
    const kept = await rows(server, 'v');
    await run(server, TABLE, ROWS);
    const other = "a different table has the base table's name [table=t]";
    await until(async () => (await status(server, 'v', 'invalid')) === other, other);
    t.deepEqual(await rows(server, 'v'), kept);
    await run(server, 'DROP LIVE VIEW v', view);
    const harmless = [
      'ALTER TABLE t DROP COLUMN n',
      'ALTER TABLE t RENAME COLUMN s TO r',
      'ALTER TABLE t ADD COLUMN more INT',
      'ALTER TABLE t SET TTL 100 YEARS',
    ];
    for (const statement of harmless) {
      await run(server, statement, "INSERT INTO t(ts, x) VALUES ('2026-05-01', 1.0)");
      await live(server, 'v');
      t.is(await status(server, 'v', 'active'), null, statement);
    }
    return server;
  });
});

test('a live view over a materialized view follows it until a full refresh', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS);
    await run(server, 'CREATE MATERIALIZED VIEW m AS (SELECT ts, s, sum(x) x FROM t SAMPLE BY 1h)');
    const query = 'SELECT ts, s, x, lag(x) OVER (PARTITION BY s ORDER BY ts) before FROM m';
    await current(server, 'm');
    await run(server, `CREATE LIVE VIEW v ${HEAD} (${query})`);
    const steps = [
      "INSERT INTO t VALUES ('2026-03-02T10:30:00Z', 'a', 9.0, 1)",
      "INSERT INTO t VALUES ('2026-03-01T10:30:00Z', 'b', 9.0, 1)",
      "DELETE FROM t WHERE ts IN '2026-03-01'",
    ];
    for (const step of steps) {
      await run(server, step);
      await current(server, 'm');
      await live(server, 'v');
      t.deepEqual(await sorted(server, 'v'), await sorted(server, query), step);
    }
    await run(server, 'REFRESH MATERIALIZED VIEW m FULL');
    const reason = await status(server, 'v', 'invalid');
    t.is(reason, 'full refresh of the base materialized view');
    return server;
  });
});

test('views support many keys, many rows per key and many commits at one timestamp', async (t) => {
  t.timeout(300_000);
  await withServer(async (server) => {
    await run(
      server,
      'CREATE TABLE big (ts TIMESTAMP, k LONG, x LONG) TIMESTAMP(ts) PARTITION BY DAY WAL',
    );
    const query = `SELECT ts, k, count() OVER (PARTITION BY k ORDER BY ts) c,
      first_value(x) OVER (PARTITION BY k ORDER BY ts) f, lag(x) OVER (PARTITION BY k ORDER BY ts) l
      FROM big`;
    await run(server, `CREATE LIVE VIEW v ${HEAD} (${query})`);
    const totals = (from: string): string =>
      `SELECT count(), sum(c), sum(f), sum(l), max(c) FROM ${from}`;
    const compare = async (what: string): Promise<void> => {
      await live(server, 'v');
      t.deepEqual(await rows(server, totals('v')), await rows(server, totals(`(${query})`)), what);
    };
    const grow = (from: string, key: string, count: number): string =>
      `INSERT INTO big SELECT timestamp_sequence('${from}', 1000), ${key}, x
         FROM long_sequence(${count})`;
    await run(server, grow('2026-01-01', 'x', 300_000));
    await compare('many keys');
    await run(server, grow('2026-01-02', '7', 300_000));
    await compare('one key');
    for (let commit = 0; commit < 40; commit += 1) {
      await run(server, `INSERT INTO big VALUES ('2026-01-03', ${commit % 5}, ${commit})`);
      if (commit % 8 === 0) {
        await compare(`one instant, ${commit}`);
      }
    }
    await run(server, "INSERT INTO big VALUES ('2026-01-04', 3, 1)");
    await compare('an instant that was not the last');
    return server;
  });
});

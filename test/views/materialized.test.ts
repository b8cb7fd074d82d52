/**
 * Materialized views over HTTP: their contents and freshness, invalidation, and the permissions
 * needed to change them.
 */
import test from 'ava';

import { exec, restart, rows, run, withServer } from '../scenario/statements.js';
import { until } from '../until.js';
import { current, error, invalid, sorted } from './views.js';

const TABLE = `CREATE TABLE t (ts TIMESTAMP, s SYMBOL, x DOUBLE) TIMESTAMP(ts)
  PARTITION BY DAY WAL`;
const ROWS = `INSERT INTO t VALUES
  ('2024-01-01T00:10:00Z','a',1.0), ('2024-01-01T00:20:00Z','b',2.0),
  ('2024-01-01T01:10:00Z','a',3.0), ('2024-01-02T00:10:00Z','a',4.0)`;
const START = ` START '2030-01-01T00:00:00.000000Z' TIME ZONE 'Europe/Paris'`;
const PERIOD = ` PERIOD (LENGTH 1h TIME ZONE 'UTC' DELAY 4m)`;
const HOURLY = 'SELECT ts, s, sum(x) x, count() n, first(x) f, last(x) l FROM t SAMPLE BY 1h';
const DAILY = 'SELECT ts, sum(x) x, sum(n) n FROM hourly SAMPLE BY 1d';

test('views and views over views follow appends, late rows, updates and deletes', async (t) => {
  await withServer(async (first) => {
    let server = first;
    await run(server, TABLE, ROWS, `CREATE MATERIALIZED VIEW hourly AS (${HOURLY})`);
    await run(server, `CREATE MATERIALIZED VIEW daily AS (${DAILY}) PARTITION BY YEAR`);
    const compare = async (what: string): Promise<void> => {
      await current(server, 'hourly', 'daily');
      t.deepEqual(await sorted(server, 'hourly'), await sorted(server, HOURLY), what);
      t.deepEqual(await sorted(server, 'daily'), await sorted(server, DAILY), what);
    };
    await compare('the first fill');
    const steps = [
      "INSERT INTO t VALUES ('2024-01-02T00:50:00Z', 'c', 5.0)",
      "INSERT INTO t VALUES ('2021-06-01T12:00:00Z', 'a', 7.0), ('2024-01-03', 'b', 8.0)",
      "UPDATE t SET x = 100.0 WHERE ts = '2024-01-01T00:10:00Z'",
      "DELETE FROM t WHERE s = 'b' AND ts IN '2024-01-01'",
      "DELETE FROM t WHERE ts IN '2021-06-01'",
      'ALTER TABLE t ADD COLUMN y LONG',
      "INSERT INTO t VALUES ('2024-01-02T00:55:00Z', 'c', 6.0, 1)",
    ];
    for (const step of steps) {
      await run(server, step);
      await compare(step);
    }
    server = await restart(server);
    await compare('a kill');
    await run(server, "INSERT INTO t VALUES ('2024-01-01T00:11:00Z', 'a', 9.0, 2)");
    await compare('rows after a kill');
    return server;
  });
});

test('unsupported changes invalidate a view until a full refresh', async (t) => {
  const cases = [
    ['TRUNCATE TABLE t', 'truncate operation'],
    ['ALTER TABLE t DROP COLUMN x', 'drop column operation'],
    ['ALTER TABLE t RENAME COLUMN x TO y', 'rename column operation'],
    ["ALTER TABLE t DROP PARTITION LIST '2024-01-01'", 'drop partition operation'],
    ['RENAME TABLE t TO u', 'rename table operation'],
    ['DROP TABLE t', 'drop table operation'],
  ] as const;
  await withServer(async (server) => {
    for (const [statement, reason] of cases) {
      await run(server, 'DROP TABLE IF EXISTS t', 'DROP TABLE IF EXISTS u', TABLE, ROWS);
      await run(server, 'DROP MATERIALIZED VIEW IF EXISTS v');
      await run(server, 'CREATE MATERIALIZED VIEW v AS (SELECT ts, sum(x) x FROM t SAMPLE BY 1d)');
      await current(server, 'v');
      const shown = await rows(server, 'v');
      await run(server, statement);
      t.is(await invalid(server, 'v'), reason);
      t.deepEqual(await rows(server, 'v'), shown, 'the view is still readable');
      t.regex(await error(server, 'REFRESH MATERIALIZED VIEW v INCREMENTAL'), /is invalid/);
      if (/COLUMN|DROP TABLE/.test(statement)) {
        await run(server, 'DROP TABLE IF EXISTS t', TABLE, ROWS);
      }
      // A renamed table keeps its identity.
      const base = statement.startsWith('RENAME') ? 'u' : 't';
      await run(server, `INSERT INTO ${base} VALUES ('2025-01-01', 'z', 1.0)`);
      await run(server, 'REFRESH MATERIALIZED VIEW v FULL');
      await current(server, 'v');
      const query = `SELECT ts, sum(x) x FROM ${base} SAMPLE BY 1d`;
      t.deepEqual(await rows(server, 'v'), await rows(server, query), statement);
      await run(server, `INSERT INTO ${base} VALUES ('2025-01-02', 'z', 1.0)`);
      await current(server, 'v');
      t.deepEqual(
        await rows(server, 'v'),
        await rows(server, query),
        `${statement}, then an insert`,
      );
    }
    await run(server, 'DROP MATERIALIZED VIEW v', 'DROP TABLE t', TABLE, ROWS);
    await run(server, 'CREATE MATERIALIZED VIEW v AS (SELECT ts, sum(x) x FROM t SAMPLE BY 1d)');
    const harmless = [
      'ALTER TABLE t ALTER COLUMN x TYPE FLOAT',
      'ALTER TABLE t ADD COLUMN late INT',
      'ALTER TABLE t DROP COLUMN s',
      "ALTER TABLE t CONVERT PARTITION TO PARQUET LIST '2024-01-01'",
      'ALTER TABLE t SET TTL 100 YEARS',
    ];
    for (const statement of harmless) {
      await run(server, statement);
      await current(server, 'v');
      const query = 'SELECT ts, sum(x) x FROM t SAMPLE BY 1d';
      t.deepEqual(await rows(server, 'v'), await rows(server, query), statement);
    }
    return server;
  });
});

test('manual, range and full refreshes work, and refresh limits apply', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS);
    await run(
      server,
      `CREATE MATERIALIZED VIEW v REFRESH MANUAL DEFERRED AS (
         SELECT ts, sum(x) x FROM t SAMPLE BY 1d)`,
    );
    const finished = 'SELECT last_refresh_finish_timestamp FROM materialized_views()';
    const refresh = async (how: string): Promise<unknown> => {
      const [before] = await rows(server, finished);
      await run(server, `REFRESH MATERIALIZED VIEW v ${how}`);
      for (;;) {
        const [now] = await rows(server, finished);
        if (now?.[0] !== before?.[0]) {
          return await rows(server, 'v');
        }
      }
    };
    t.deepEqual(await rows(server, 'v'), [], 'no rows before the lower bound');
    const days = [
      ['2024-01-01T00:00:00.000000Z', 6],
      ['2024-01-02T00:00:00.000000Z', 4],
    ];
    t.deepEqual(await refresh('INCREMENTAL'), days);
    await run(server, "INSERT INTO t VALUES ('2024-01-01T05:00:00Z', 'a', 10.0)");
    await run(server, "INSERT INTO t VALUES ('2024-01-02T05:00:00Z', 'a', 20.0)");
    t.deepEqual(await rows(server, 'v'), days);
    const range = await refresh("RANGE FROM '2024-01-02' TO '2024-01-03'");
    t.deepEqual(range, [days[0], ['2024-01-02T00:00:00.000000Z', 24]]);
    const all = [
      ['2024-01-01T00:00:00.000000Z', 16],
      ['2024-01-02T00:00:00.000000Z', 24],
    ];
    t.deepEqual(await refresh(''), all);
    await run(server, 'ALTER MATERIALIZED VIEW v SET REFRESH LIMIT 8 DAYS');
    await run(server, "INSERT INTO t VALUES ('2024-01-01T06:00:00Z', 'a', 100.0)");
    t.deepEqual(await refresh('INCREMENTAL'), all, 'rows before the refresh limit are ignored');
    t.deepEqual(await refresh('FULL'), [['2024-01-01T00:00:00.000000Z', 116], all[1]]);
    t.regex(
      await error(server, "REFRESH MATERIALIZED VIEW v RANGE FROM '2024-02-02' TO '2024-01-01'"),
      /invalid timestamp range/,
    );
    await run(server, 'ALTER MATERIALIZED VIEW v SET REFRESH IMMEDIATE');
    await run(server, 'ALTER MATERIALIZED VIEW v SET REFRESH LIMIT 0h');
    await run(server, "INSERT INTO t VALUES ('2024-01-02T06:00:00Z', 'a', 1.0)");
    await current(server, 'v');
    t.is((await rows(server, 'v'))[1]?.[1], 25);
    return server;
  });
});

test('period views show completed periods', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE);
    await run(
      server,
      "INSERT INTO t SELECT dateadd('h', -3, now()), 'a', 1.0 FROM long_sequence(1)",
    );
    await run(server, "INSERT INTO t SELECT now(), 'a', 1.0 FROM long_sequence(1)");
    await run(
      server,
      `CREATE MATERIALIZED VIEW v REFRESH IMMEDIATE PERIOD (SAMPLE BY INTERVAL) AS (
         SELECT ts, sum(x) x FROM t SAMPLE BY 1h)`,
      `CREATE MATERIALIZED VIEW w REFRESH PERIOD (LENGTH 1d DELAY 1h) AS (
         SELECT ts, sum(x) x FROM t SAMPLE BY 1h)`,
      `CREATE MATERIALIZED VIEW u AS (SELECT ts, sum(x) x FROM t SAMPLE BY 1h)`,
    );
    await current(server, 'u', 'v', 'w');
    const counts = await rows(server, 'SELECT (SELECT count() FROM u), (SELECT count() FROM v)');
    t.deepEqual(counts, [[2, 1]]);
    return server;
  });
});

test("a view's rows cannot be changed directly", async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS);
    await run(server, 'CREATE MATERIALIZED VIEW v AS (SELECT ts, sum(x) x FROM t SAMPLE BY 1d)');
    await current(server, 'v');
    const shown = await rows(server, 'v');
    const refused = /cannot modify materialized view|got view or materialized view name/;
    const statements = [
      "INSERT INTO v VALUES ('2024-01-01', 1)",
      'INSERT INTO v SELECT * FROM v',
      'UPDATE v SET x = 1',
      'DELETE FROM v',
      'DELETE FROM v WHERE x > 1',
      'TRUNCATE TABLE v',
      'DROP TABLE v',
      'RENAME TABLE v TO w',
      'ALTER TABLE v ADD COLUMN y INT',
      'ALTER TABLE v DROP COLUMN x',
      "ALTER TABLE v DROP PARTITION LIST '2024'",
      'ALTER TABLE v DEDUP ENABLE UPSERT KEYS(ts)',
      'SHOW CREATE TABLE v',
    ];
    for (const statement of statements) {
      t.regex(await error(server, statement), refused, statement);
    }
    for (const overwrite of [false, true]) {
      const body = new FormData();
      body.append('data', new Blob(['ts,x\n2024-01-05T00:00:00Z,5\n']), 'v.csv');
      const url = `${server.url}/imp?name=v&fmt=json&overwrite=${overwrite}`;
      const answer = await fetch(url, { method: 'POST', body });
      t.regex(await answer.text(), refused, `import, overwrite=${overwrite}`);
    }
    const line = await fetch(`${server.url}/write`, {
      method: 'POST',
      body: 'v x=5 1704067200000000000\n',
    });
    t.regex(await line.text(), refused, 'line protocol');
    const column = await fetch(`${server.url}/write`, {
      method: 'POST',
      body: 'v y=5 1704067200000000000\n',
    });
    t.regex(await column.text(), refused, 'a new column over the line protocol');
    t.deepEqual(await rows(server, 'v'), shown);
    t.regex(await error(server, 'DROP VIEW v'), /view name expected/);
    t.regex(await error(server, 'DROP MATERIALIZED VIEW t'), /materialized view name expected/);
    await run(server, 'DROP MATERIALIZED VIEW v');
    t.deepEqual(await rows(server, 'materialized_views()'), []);
    return server;
  });
});

test('queries that cannot be refreshed incrementally are refused with a reason', async (t) => {
  const cases = [
    ['SELECT ts, sum(x) FROM t SAMPLE BY 1h FILL(PREV)', /FILL on base table is not supported/],
    ["SELECT ts, sum(x) FROM t SAMPLE BY 1h FROM '2024-01-01'", /FROM-TO on base table/],
    ['SELECT x FROM t', /requires SAMPLE BY/],
    ['SELECT ts, sum(x) FROM t SAMPLE BY 1h LIMIT 3', /it has a LIMIT/],
    [
      'SELECT ts, sum(x) FROM (SELECT ts, x FROM t LIMIT 3) SAMPLE BY 1h',
      /reads rows outside its bucket/,
    ],
    [
      'SELECT ts, sum(x) FROM (SELECT DISTINCT ts, x FROM t) TIMESTAMP(ts) SAMPLE BY 1h',
      /reads rows outside its bucket/,
    ],
    [
      'SELECT ts, sum(r) FROM (SELECT ts, row_number() OVER () r FROM t) SAMPLE BY 1h',
      /reads rows outside its bucket/,
    ],
    [
      'SELECT t.ts, sum(t.x) FROM t JOIN t u ON t.s = u.s SAMPLE BY 1h',
      /base table more than once/,
    ],
    ['SELECT ts, sum(x) FROM t WHERE x > (SELECT avg(x) FROM t) SAMPLE BY 1h', /more than once/],
    ['SELECT ts, sum(x) FROM t WHERE ts < now() SAMPLE BY 1h', /not the clock/],
    ['SELECT ts, sum(x * rnd_double()) FROM t SAMPLE BY 1h', /not the clock, random values/],
    [
      'SELECT ts, sum(t.x) FROM t CROSS JOIN u SAMPLE BY 1h',
      /specify the base table with WITH BASE/,
    ],
    ['SELECT ts, sum(x) FROM v SAMPLE BY 1h', /can only read tables, not views/],
    ['SELECT sum(x) FROM t SAMPLE BY 1h', /must select its bucket timestamp/],
    [
      "SELECT dateadd('h', 1, ts) ts, sum(x) FROM t SAMPLE BY 1h",
      /must select its bucket timestamp/,
    ],
    ['SELECT x, count() FROM t', /requires SAMPLE BY/],
    [
      'SELECT ts, sum(x) FROM t SAMPLE BY 1h UNION SELECT ts, sum(x) FROM t SAMPLE BY 2h',
      /more th/,
    ],
  ] as const;
  await withServer(async (server) => {
    await run(
      server,
      TABLE,
      ROWS,
      'CREATE TABLE u (k SYMBOL)',
      'CREATE VIEW v AS (SELECT * FROM t)',
    );
    for (const [query, why] of cases) {
      t.regex(await error(server, `CREATE MATERIALIZED VIEW m AS (${query})`), why, query);
    }
    const grouped = `SELECT timestamp_floor('1h', ts) hour, s, max(x) m FROM t
      GROUP BY timestamp_floor('1h', ts), s`;
    await run(server, `CREATE MATERIALIZED VIEW m AS (${grouped})`);
    await current(server, 'm');
    t.deepEqual(await sorted(server, 'm'), await sorted(server, grouped));
    t.regex(await error(server, `CREATE MATERIALIZED VIEW m AS (${grouped})`), /already exists/);
    await run(server, `CREATE MATERIALIZED VIEW IF NOT EXISTS m AS (${grouped})`);
    return server;
  });
});

test('a bucket uses the lookup rows that exist when it is computed', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS, 'CREATE TABLE names (s SYMBOL, name VARCHAR)');
    await run(server, "INSERT INTO names VALUES ('a', 'first'), ('b', 'second')");
    const joined = `SELECT t.ts, names.name, sum(t.x) x FROM t JOIN names ON t.s = names.s
      SAMPLE BY 1d`;
    await run(server, `CREATE MATERIALIZED VIEW v WITH BASE t AS (${joined})`);
    await current(server, 'v');
    t.deepEqual(await sorted(server, 'v'), await sorted(server, joined));
    await run(server, "INSERT INTO names VALUES ('c', 'third')");
    await run(server, "INSERT INTO t VALUES ('2024-02-01', 'c', 1.0)");
    await current(server, 'v');
    t.deepEqual(await sorted(server, 'v'), await sorted(server, joined));
    return server;
  });
});

test('local-day buckets are correct across clock changes', async (t) => {
  await withServer(async (server) => {
    const local = `SELECT ts, count() n, sum(x) x FROM t SAMPLE BY 1h
      ALIGN TO CALENDAR TIME ZONE 'Europe/Berlin'`;
    await run(server, TABLE);
    await run(server, `CREATE MATERIALIZED VIEW v AS (${local})`);
    for (const step of ['2024-10-27T00:30', '2024-10-27T01:30', '2024-10-26T23:10']) {
      await run(
        server,
        `INSERT INTO t SELECT timestamp_sequence('${step}', 700000000), 'a', x::double
           FROM long_sequence(20)`,
      );
      await current(server, 'v');
      t.deepEqual(await sorted(server, 'v'), await sorted(server, local), step);
    }
    return server;
  });
});

test('SHOW CREATE returns SQL that creates the same view', async (t) => {
  const definitions = [
    `CREATE MATERIALIZED VIEW 'v' WITH BASE 't' REFRESH IMMEDIATE AS (
SELECT ts, s, last(x) l FROM t SAMPLE BY 1d
) PARTITION BY MONTH;`,
    `CREATE MATERIALIZED VIEW 'v' WITH BASE 't' REFRESH EVERY 1h DEFERRED${START} AS (
SELECT ts, sum(x) x FROM t SAMPLE BY 1h
) PARTITION BY DAY TTL 2 YEARS;`,
    `CREATE MATERIALIZED VIEW 'v' WITH BASE 't' REFRESH MANUAL${PERIOD} AS (
SELECT ts, sum(x) x FROM t SAMPLE BY 10m
) PARTITION BY WEEK TTL 8 WEEKS;`,
  ];
  await withServer(async (server) => {
    await run(server, TABLE);
    for (const definition of definitions) {
      await run(server, definition);
      const shown = await rows(server, 'SHOW CREATE MATERIALIZED VIEW v');
      t.deepEqual(shown, [[definition]]);
      const database = await rows(server, 'SHOW CREATE DATABASE');
      t.is(database.at(-1)?.[0], definition);
      await run(server, 'DROP MATERIALIZED VIEW v');
    }
    return server;
  });
});

test('a query that fails at run time is retried, and other views continue', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS);
    await run(
      server,
      `CREATE MATERIALIZED VIEW bad AS (SELECT ts, sum(x::varchar::long) x FROM t SAMPLE BY 1h)`,
      `CREATE MATERIALIZED VIEW good AS (SELECT ts, sum(x) x FROM t SAMPLE BY 1h)`,
    );
    await current(server, 'good');
    const jobs = await rows(server, "SELECT kind, name, runs > 0 FROM jobs() WHERE name = 'good'");
    t.deepEqual(jobs, [['refresh', 'good', true]]);
    t.is((await exec(server, 'jobs()')).error, undefined);
    return server;
  });
});

const DEFERRED = 'REFRESH IMMEDIATE DEFERRED';
const SUMS = 'AS (SELECT ts, sum(x) x FROM t SAMPLE BY 1d)';
/**
 * Statements that create a view whose base already has rows; the view waits for the next commit.
 */
const WAITING: Readonly<Record<string, readonly string[]>> = {
  'over a new base': [TABLE, ROWS, `CREATE MATERIALIZED VIEW v ${DEFERRED} ${SUMS}`],
  'over a base with another view': [
    TABLE,
    `CREATE MATERIALIZED VIEW other ${SUMS}`,
    ROWS,
    `CREATE MATERIALIZED VIEW v ${DEFERRED} ${SUMS}`,
  ],
  'over a base with a waiting view': [
    TABLE,
    `CREATE MATERIALIZED VIEW other ${DEFERRED} ${SUMS}`,
    ROWS,
    `CREATE MATERIALIZED VIEW v ${DEFERRED} ${SUMS}`,
  ],
  'of periods': [TABLE, ROWS, `CREATE MATERIALIZED VIEW v ${DEFERRED} PERIOD (LENGTH 1d) ${SUMS}`],
  'by ALTER': [
    TABLE,
    `CREATE MATERIALIZED VIEW v REFRESH MANUAL DEFERRED ${SUMS}`,
    ROWS,
    `ALTER MATERIALIZED VIEW v SET ${DEFERRED}`,
  ],
};

test('a deferred view is empty until the next commit to its base table', async (t) => {
  for (const [how, statements] of Object.entries(WAITING)) {
    await withServer(async (first) => {
      let server = first;
      // Another view follows this table. Its refresh shows that the scheduler has run.
      await run(server, 'CREATE TABLE clock (ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY');
      await run(
        server,
        'CREATE MATERIALIZED VIEW ticks AS (SELECT ts, count() n FROM clock SAMPLE BY 1d)',
      );
      await run(server, ...statements);
      const stays = async (what: string): Promise<void> => {
        for (let tick = 1; tick <= 3; tick += 1) {
          await run(server, `INSERT INTO clock VALUES ('2024-01-0${tick}')`);
          await current(server, 'ticks');
        }
        t.deepEqual(await rows(server, 'v'), [], `${how}, ${what}`);
      };
      await stays('when it is made');
      server = await restart(server);
      await stays('after a kill');
      await run(server, "INSERT INTO t VALUES ('2024-01-03', 'a', 5.0)");
      await until(async () => (await rows(server, 'v')).length === 3, 'the view is filled');
      t.pass(how);
      return server;
    });
  }
});

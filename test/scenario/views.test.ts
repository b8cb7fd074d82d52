/**
 * Views over HTTP: their rows, how views become invalid and valid again, and which statements are
 * refused.
 */
import test from 'ava';

import { exec, restart, rows, run, withServer } from './statements.js';

const TABLE = `CREATE TABLE t (ts TIMESTAMP, s SYMBOL, x DOUBLE) TIMESTAMP(ts) PARTITION BY DAY`;
const ROWS = `INSERT INTO t VALUES ('2024-01-01', 'a', 1.0), ('2024-01-02', 'b', 2.0),
  ('2024-01-03', 'a', 3.0)`;
const STATES = 'SELECT view_name, view_status, invalidation_reason FROM views()';

test('a view keeps reading the same tables after renames and after a kill', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS, "CREATE VIEW v AS (SELECT ts, x FROM t WHERE s = 'a')");
    await run(server, 'CREATE VIEW w AS (SELECT max(x) m FROM v)');
    t.deepEqual(await rows(server, 'SELECT * FROM w'), [[3]]);
    t.deepEqual(await rows(server, 'SELECT ts, sum(x) FROM v SAMPLE BY 1d LIMIT 1'), [
      ['2024-01-01T00:00:00.000000Z', 1],
    ]);
    await run(server, 'RENAME TABLE t TO u', 'ALTER TABLE u RENAME COLUMN x TO y');
    await run(server, 'CREATE TABLE t (ts TIMESTAMP, s SYMBOL, x DOUBLE)');
    await run(server, "INSERT INTO t VALUES ('2024-01-01', 'a', 99.0)");
    t.deepEqual(await rows(server, STATES), [
      ['v', 'valid', ''],
      ['w', 'valid', ''],
    ]);
    t.deepEqual(
      await rows(server, 'SELECT * FROM w'),
      [[3]],
      'the view still reads its original table',
    );
    const again = await restart(server);
    await run(again, 'DROP TABLE t', 'RENAME TABLE u TO t', 'COMPILE VIEW w');
    await run(again, 'ALTER TABLE t RENAME COLUMN y TO x');
    t.deepEqual(await rows(again, 'SELECT * FROM w'), [[3]]);
    await run(again, 'ALTER TABLE t ALTER COLUMN x TYPE INT');
    const shape = "SELECT type FROM table_columns('v')";
    t.deepEqual(await rows(again, shape), [['TIMESTAMP'], ['INT']]);
    await run(again, "ALTER VIEW v AS (SELECT ts, x, s FROM t WHERE s = 'b')");
    t.deepEqual(await rows(again, 'SELECT * FROM w'), [[2]]);
    return again;
  });
});

test('a view of a dropped table is invalid even if a new table reuses its name', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS);
    await run(
      server,
      'CREATE VIEW v AS (SELECT ts, x FROM t)',
      'CREATE VIEW w AS (SELECT * FROM v)',
    );
    await run(server, 'CREATE VIEW narrow AS (SELECT count() n FROM t)');
    await run(server, 'CREATE VIEW every AS (SELECT * FROM t)');
    await run(server, 'CREATE VIEW whole AS (SELECT count() n FROM (t))');
    await run(server, 'CREATE VIEW common AS (SELECT count() n FROM t NATURAL JOIN t u)');
    await run(server, 'ALTER TABLE t ADD COLUMN late INT');
    const names = "SELECT string_agg(\"column\", ',') FROM table_columns('every')";
    t.deepEqual(await rows(server, names), [['ts,s,x']], 'a column added later is not included');
    await run(server, 'ALTER TABLE t DROP COLUMN x', 'ALTER TABLE t ADD COLUMN x DOUBLE');
    const gone = "column 'x' of 't' was dropped after the view was created";
    for (const view of ['v', 'every']) {
      t.is((await exec(server, view)).error, `view '${view}' is invalid: ${gone}`);
    }
    t.is((await exec(server, 'w')).error, `view 'v' is invalid: ${gone}`);
    t.is(
      (await exec(server, 'whole')).error,
      `view 'whole' is invalid: ${gone}`,
      'a view that selects * is invalid',
    );
    const joined = `view 'common' is invalid: ${gone}`;
    t.is((await exec(server, 'common')).error, joined, 'a common column was dropped');
    t.deepEqual(await rows(server, 'narrow'), [[3]], 'the view does not use the dropped column');
    await run(server, 'ALTER VIEW v AS (SELECT ts, x FROM t)');
    t.deepEqual(
      await rows(server, 'SELECT count() FROM w'),
      [[3]],
      'the repaired view is the same view',
    );
    await run(server, 'DROP VIEW v', 'CREATE VIEW v AS (SELECT ts, x FROM t)');
    t.is((await exec(server, 'w')).error, "view 'w' is invalid: table does not exist [table=v]");
    await run(server, 'DROP TABLE t', TABLE);
    const reason = 'table does not exist [table=t]';
    const { error, position } = await exec(server, 'SELECT * FROM v');
    t.deepEqual([error, position], [`view 'v' is invalid: ${reason}`, 14]);
    t.is((await exec(server, 'COMPILE VIEW v')).error, error);
    t.deepEqual(await rows(server, `${STATES} WHERE view_name = 'v'`), [['v', 'invalid', reason]]);
    return server;
  });
});

test('views of a table survive an import that overwrites the table', async (t) => {
  await withServer(async (server) => {
    const load = async (csv: string): Promise<void> => {
      const form = new FormData();
      form.append('data', new Blob([csv]), 'f.csv');
      const query = 'name=im&overwrite=true&forceHeader=true';
      const answer = await fetch(`${server.url}/imp?${query}`, { method: 'POST', body: form });
      t.is(answer.status, 200, await answer.text());
    };
    await load('a,b\n1,2\n');
    await run(
      server,
      'CREATE VIEW v AS (SELECT b FROM im)',
      'CREATE VIEW every AS (SELECT * FROM im)',
    );
    await load('c,b,a\n5,6,7\n');
    t.deepEqual(await rows(server, 'v'), [[6]]);
    t.deepEqual(await rows(server, 'every'), [[7, 6]], 'only the original columns are returned');
    await load('b\n8\n');
    t.deepEqual(await rows(server, 'v'), [[8]]);
    t.regex((await exec(server, 'every')).error ?? '', /column 'a' of 'im' was dropped/);
    return server;
  });
});

test('a reader may override only variables declared OVERRIDABLE', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS);
    const declared = "DECLARE OVERRIDABLE @m := 1, @n := 9, OVERRIDABLE @d := '2024-01'";
    await run(
      server,
      `CREATE VIEW v AS (${declared} SELECT x FROM t WHERE x > @m AND x < @n AND ts IN @d)`,
    );
    t.deepEqual(await rows(server, 'v'), [[2], [3]]);
    t.deepEqual(await rows(server, 'DECLARE @m := 1 + 1 SELECT * FROM v'), [[3]]);
    t.deepEqual(await rows(server, "DECLARE @d := '2024-01-02' SELECT * FROM v"), [[2]]);
    t.deepEqual(await rows(server, 'DECLARE @other := 5 SELECT * FROM v WHERE x < @other'), [
      [2],
      [3],
    ]);
    const { error } = await exec(server, 'DECLARE @n := 2 SELECT * FROM v');
    t.is(error, 'variable is not overridable: @n');
    return server;
  });
});

test('a view is read-only, has a unique name and cannot read itself', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, 'CREATE VIEW v AS (SELECT x FROM t)');
    await run(server, 'CREATE VIEW w AS (SELECT x FROM v)');
    const refused: [string, string][] = [
      ['INSERT INTO v VALUES (1)', 'cannot modify view [view=v]'],
      ['UPDATE v SET x = 1', 'cannot modify view [view=v]'],
      ['DELETE FROM v', 'cannot modify view [view=v]'],
      ['ALTER TABLE v ADD COLUMN y INT', 'cannot modify view [view=v]'],
      ['TRUNCATE TABLE v', 'table name expected, got view or materialized view name'],
      ['DROP TABLE v', 'table name expected, got view or materialized view name'],
      ['DROP VIEW t', 'view name expected, got table name'],
      ['CREATE TABLE V (x INT)', 'table already exists'],
      ['CREATE VIEW v AS (SELECT 1)', 'view already exists [view=v]'],
      ['ALTER VIEW nosuch AS (SELECT 1)', 'view does not exist [view=nosuch]'],
      ['ALTER VIEW v AS (SELECT x FROM w)', 'circular dependency detected [view=v]'],
      ['CREATE OR REPLACE VIEW v AS (SELECT x FROM v)', 'circular dependency detected [view=v]'],
      ['CREATE VIEW y AS (SELECT $1 a)', 'bind variables are not allowed in a view'],
      ['CREATE VIEW y AS (SELECT nope FROM t)', 'Invalid column: nope'],
    ];
    for (const [text, message] of refused) {
      t.is((await exec(server, text)).error, message, text);
    }
    t.deepEqual(await rows(server, 'SHOW CREATE DATABASE INCLUDE (VIEWS)'), [
      ["CREATE VIEW 'v' AS ( \nSELECT x FROM t\n);"],
      ["CREATE VIEW 'w' AS ( \nSELECT x FROM v\n);"],
    ]);
    return server;
  });
});

test('statements without effect return a notice', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE);
    const { notice } = await run(server, 'ALTER TABLE t SUSPEND WAL');
    t.is(notice, 'commits are applied immediately: the table is not suspended');
    t.is((await run(server, 'ALTER TABLE t ADD COLUMN y INT')).notice, undefined);
    t.regex((await exec(server, 'ALTER TABLE t REBASE WAL INTO dir')).error ?? '', /not supported/);
    return server;
  });
});

test('a second connection can cancel a query with cancel_query or CANCEL QUERY', async (t) => {
  await withServer(async (server) => {
    const heavy = 'SELECT count() FROM long_sequence(300000) a cross join long_sequence(300000) b';
    for (const cancel of ['SELECT cancel_query($)', 'CANCEL QUERY $']) {
      const running = exec(server, heavy);
      let id: number | undefined;
      while (id === undefined) {
        const queries = await rows(server, 'SELECT query_id, query FROM query_activity()');
        const found = queries.find(([, text]) => text === heavy)?.[0];
        id = typeof found === 'number' ? found : undefined;
      }
      await run(server, cancel.replace('$', String(id)));
      t.is((await running).error, 'cancelled by user', cancel);
    }
    t.deepEqual(await rows(server, 'SELECT cancel_query(987654)'), [[false]]);
    return server;
  });
});

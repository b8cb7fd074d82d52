/** Table and row changes as PostgreSQL migrations and object mappers write them. */
import test from 'ava';

import { exec, restart, rows, run, withServer } from './statements.js';

const KEYED = `CREATE TABLE k (ts TIMESTAMP, s SYMBOL, v INT DEFAULT 5) TIMESTAMP(ts)
  PARTITION BY DAY WAL`;

test('IF EXISTS skips missing columns, and the rest of the statement runs', async (t) => {
  await withServer(async (server) => {
    await run(server, 'CREATE TABLE a (x INT, y INT, z INT)');
    await run(server, 'ALTER TABLE a DROP COLUMN IF EXISTS nope, DROP COLUMN IF EXISTS y');
    await run(server, 'ALTER TABLE IF EXISTS a DROP COLUMN z');
    await run(
      server,
      'ALTER TABLE IF EXISTS b DROP COLUMN z',
      'ALTER TABLE IF EXISTS b RENAME TO a',
    );
    const columns = await rows(server, 'SELECT "column" FROM table_columns(\'a\')');
    t.deepEqual(columns.flat(), ['x']);
    t.like(await exec(server, 'ALTER TABLE b DROP COLUMN z'), {
      error: 'table does not exist [table=b]',
    });
    t.like(await exec(server, 'ALTER TABLE a DROP COLUMN IF EXISTS x, DROP COLUMN nope'), {
      error: 'Invalid column: nope',
    });
    t.deepEqual((await rows(server, 'SELECT "column" FROM table_columns(\'a\')')).flat(), ['x']);
    return server;
  });
});

test('serial columns accept DEFAULT VALUES and explicit values', async (t) => {
  await withServer(async (server) => {
    await run(server, 'CREATE TABLE a (id SERIAL, v INT DEFAULT 5, n INT)');
    await run(server, 'INSERT INTO a DEFAULT VALUES', 'INSERT INTO a DEFAULT VALUES');
    await run(server, 'INSERT INTO a (id, v) OVERRIDING SYSTEM VALUE VALUES (9, 1)');
    t.deepEqual(await rows(server, 'SELECT id, v, n FROM a ORDER BY id'), [
      [1, 5, null],
      [2, 5, null],
      [9, 1, null],
    ]);
    await run(server, 'UPDATE a SET v = DEFAULT, n = 3 WHERE id = 9', 'UPDATE a SET n = DEFAULT');
    t.deepEqual(await rows(server, 'SELECT v, n FROM a WHERE id = 9'), [[5, null]]);
    t.like(await exec(server, 'UPDATE a SET v = n + default'), {
      error: 'Invalid column: default',
    });
    await run(server, 'CREATE TABLE b (id INT NOT NULL, v INT)', 'INSERT INTO b VALUES (1, 1)');
    const none = "column 'id' is NOT NULL and has no DEFAULT: expected a value";
    t.like(await exec(server, 'UPDATE b SET id = DEFAULT'), { error: none, position: 18 });
    t.regex(
      ((await exec(server, 'INSERT INTO b DEFAULT VALUES')) as { error: string }).error,
      /NOT NULL/,
    );
    await run(server, KEYED);
    t.regex(
      ((await exec(server, 'INSERT INTO k DEFAULT VALUES')) as { error: string }).error,
      /designated timestamp column cannot be NULL/,
    );
    return server;
  });
});

test('TRUNCATE restarts sequences, and CASCADE truncates referencing tables', async (t) => {
  await withServer(async (server) => {
    await run(
      server,
      'CREATE TABLE a (id SERIAL PRIMARY KEY, v INT)',
      'CREATE TABLE b (id SERIAL PRIMARY KEY, a INT REFERENCES a (id))',
      'CREATE TABLE c (b INT REFERENCES b (id))',
      'CREATE TABLE d (v INT)',
    );
    const fill = [
      'INSERT INTO a (v) VALUES (1), (2)',
      'INSERT INTO b (a) VALUES (1)',
      'INSERT INTO c VALUES (1)',
      'INSERT INTO d VALUES (1)',
    ];
    const counts = async (): Promise<unknown[]> => {
      const [row = []] = await rows(
        server,
        `SELECT (SELECT count() FROM a), (SELECT count() FROM b), (SELECT count() FROM c),
          (SELECT count() FROM d)`,
      );
      return [...row];
    };
    await run(server, ...fill, 'TRUNCATE a');
    t.deepEqual(await counts(), [0, 1, 1, 1]);
    await run(server, 'INSERT INTO a (v) VALUES (1)');
    t.deepEqual(await rows(server, 'SELECT id FROM a'), [[3]]);
    await run(server, 'TRUNCATE TABLE ONLY a RESTART IDENTITY CASCADE');
    t.deepEqual(await counts(), [0, 0, 0, 1]);
    await run(server, ...fill);
    t.deepEqual(await rows(server, 'SELECT id FROM a ORDER BY id'), [[1], [2]]);
    t.deepEqual(await rows(server, 'SELECT id FROM b'), [[1]]);
    return server;
  });
});

test('CREATE TABLE AS accepts VALUES, TABLE, column names and WITH NO DATA', async (t) => {
  await withServer(async (server) => {
    await run(
      server,
      "CREATE TABLE a AS VALUES (1, 'x'), (2, 'y')",
      'CREATE TABLE b (n, t) AS SELECT * FROM a',
      'CREATE TABLE c AS TABLE b WITH NO DATA',
      'CREATE TABLE d AS (SELECT * FROM b LIMIT 1) WITH DATA',
      'CREATE TABLE e (LIKE b INCLUDING ALL)',
    );
    t.deepEqual(await rows(server, 'SELECT column1, column2 FROM a ORDER BY 1'), [
      [1, 'x'],
      [2, 'y'],
    ]);
    t.deepEqual(await rows(server, 'SELECT n, t FROM b ORDER BY 1'), [
      [1, 'x'],
      [2, 'y'],
    ]);
    t.deepEqual(await rows(server, 'SELECT count() FROM c WHERE n IS NOT NULL'), [[0]]);
    t.deepEqual(await rows(server, 'SELECT n FROM d'), [[1]]);
    t.deepEqual(await rows(server, 'SELECT n FROM e'), []);
    t.deepEqual(await rows(server, 'TABLE b ORDER BY n DESC LIMIT ALL'), [
      [2, 'y'],
      [1, 'x'],
    ]);
    t.deepEqual(await rows(server, 'SELECT t FROM b WHERE n IN (VALUES (2), (3))'), [['y']]);
    return server;
  });
});

test('a key added by ALTER TABLE deduplicates like a key from CREATE TABLE', async (t) => {
  await withServer(async (server) => {
    for (const key of ['PRIMARY KEY (ts, s)', 'CONSTRAINT one UNIQUE (ts, s)']) {
      await run(server, KEYED, "INSERT INTO k VALUES ('2024-01-01', 'a', 1)");
      await run(server, `ALTER TABLE k ADD ${key}`);
      t.deepEqual(await rows(server, "SELECT dedup FROM tables() WHERE table_name = 'k'"), [
        [true],
      ]);
      await run(server, "INSERT INTO k VALUES ('2024-01-01', 'a', 2), ('2024-01-01', 'b', 3)");
      t.deepEqual(await rows(server, 'SELECT s, v FROM k ORDER BY s'), [
        ['a', 2],
        ['b', 3],
      ]);
      await run(
        server,
        `INSERT INTO k AS old VALUES ('2024-01-01', 'a', 40)
           ON CONFLICT (ts, s) DO UPDATE SET v = old.v + excluded.v RETURNING old.v`,
        `INSERT INTO k VALUES ('2024-01-01', 'b', 40)
           ON CONFLICT (ts, s) DO UPDATE SET v = DEFAULT`,
      );
      t.deepEqual(await rows(server, 'SELECT s, v FROM k ORDER BY s'), [
        ['a', 42],
        ['b', 5],
      ]);
      await run(server, 'DROP TABLE k');
    }
    // A key that does not include the timestamp is not a DEDUP key.
    await run(server, KEYED, 'ALTER TABLE k ADD PRIMARY KEY (s)');
    t.deepEqual(await rows(server, "SELECT dedup FROM tables() WHERE table_name = 'k'"), [[false]]);
    return server;
  });
});

test('INSERT accepts sub-queries alongside literals', async (t) => {
  await withServer(async (server) => {
    await run(server, KEYED, 'CREATE TABLE a (id INT, at TIMESTAMP, s SYMBOL)');
    await run(
      server,
      "INSERT INTO a VALUES (7, '2026-01-02', 'x')",
      `INSERT INTO k (ts, s, v) VALUES ('2026-01-01', 'l', 1), ('2026-01-01T01', null, -2),
        ((SELECT max(at) FROM a), 'q', (SELECT max(id) FROM a) + 1),
        ('2026-01-03', (SELECT s FROM a WHERE id = 0), null)`,
      "INSERT INTO k (ts, s) VALUES ((SELECT max(at) FROM a) + INTERVAL '2 days', 'd')",
    );
    t.deepEqual(await rows(server, 'SELECT ts, s, v FROM k'), [
      ['2026-01-01T00:00:00.000000Z', 'l', 1],
      ['2026-01-01T01:00:00.000000Z', null, -2],
      ['2026-01-02T00:00:00.000000Z', 'q', 8],
      ['2026-01-03T00:00:00.000000Z', null, null],
      ['2026-01-04T00:00:00.000000Z', 'd', 5],
    ]);
    t.like(await exec(server, 'INSERT INTO k (ts, v) VALUES ((SELECT at FROM a), DEFAULT)'), {
      error: 'DEFAULT cannot be combined with a sub-query: omit the column',
    });
    t.like(
      await exec(server, "INSERT INTO k (ts, v) VALUES ('2026-01-01', 1), ((SELECT at FROM a))"),
      {
        error: 'all rows of VALUES must have the same number of values',
      },
    );
    const many = Array.from({ length: 500 }, (_, index) => `(${index}, ${index})`).join();
    await run(server, 'CREATE TABLE m (x INT, y INT)');
    await run(server, `INSERT INTO m VALUES (-1, (SELECT max(id) FROM a)), ${many}`);
    t.deepEqual(await rows(server, 'SELECT count(), sum(y), first(x), last(x) FROM m'), [
      [501, 124_757, -1, 499],
    ]);
    t.deepEqual(
      await rows(server, 'SELECT * FROM (VALUES (1, (SELECT max(id) FROM a)), (2, 3)) v(x, y)'),
      [
        [1, 7],
        [2, 3],
      ],
    );
    return server;
  });
});

test('tableoid returns the OID of the table', async (t) => {
  await withServer(async (server) => {
    await run(server, 'CREATE TABLE a (x INT)', 'INSERT INTO a VALUES (1)');
    t.deepEqual(await rows(server, 'SELECT a.tableoid::regclass, x FROM a'), [['a', 1]]);
    t.deepEqual(await rows(server, "SELECT count() FROM a WHERE tableoid = 'a'::regclass::oid"), [
      [1],
    ]);
    t.like(await exec(server, 'SELECT tableoid FROM long_sequence(1)'), {
      error: 'Invalid column: tableoid',
    });
    return server;
  });
});

test('IDENTITY columns start and increment as declared', async (t) => {
  await withServer(async (first) => {
    let server = first;
    const identity = 'GENERATED BY DEFAULT AS IDENTITY';
    t.deepEqual(
      await exec(
        server,
        `CREATE TABLE a (id INT ${identity} (START WITH 10 INCREMENT BY 5), v INT)`,
      ),
      { ddl: 'OK' },
    );
    await run(server, 'INSERT INTO a (v) VALUES (1), (2)', 'INSERT INTO a VALUES (40, 3)');
    await run(server, 'INSERT INTO a (v) SELECT x::int FROM long_sequence(2)');
    t.deepEqual((await rows(server, 'SELECT id FROM a ORDER BY id')).flat(), [10, 15, 20, 25, 40]);
    server = await restart(server);
    await run(server, 'INSERT INTO a (v) VALUES (6)');
    t.deepEqual(await rows(server, 'SELECT max(id) FROM a'), [[45]]);
    await run(server, 'TRUNCATE a RESTART IDENTITY', 'INSERT INTO a (v) VALUES (7)');
    t.deepEqual(await rows(server, 'SELECT id FROM a'), [[10]]);
    const maximum = `LONG ${identity} (START 9223372036854775800 INCREMENT 5 CACHE 1)`;
    await run(server, `CREATE TABLE b (id ${maximum}, v INT)`, 'INSERT INTO b (v) VALUES (1), (2)');
    t.like(await exec(server, 'INSERT INTO b (v) VALUES (3)'), {
      error: 'the column has reached its maximum value 9223372036854775807',
    });
    const other = await exec(server, `CREATE TABLE c (id INT ${identity} (INCREMENT -1), v INT)`);
    t.regex(JSON.stringify(other), /other IDENTITY options have no effect/);
    const refused = JSON.stringify(await exec(server, 'SELECT next_id(1, 2)'));
    t.regex(refused, /is only valid as the DEFAULT of an integer column/);
    return server;
  });
});

/** DEFAULT, NOT NULL and RETURNING in INSERT, import, UPDATE and ALTER TABLE, and after a kill. */
import test from 'ava';

import { pgClient } from '../pg-client.js';
import { exec, restart, rows, run, withServer } from './statements.js';

const TABLE = `CREATE TABLE t (ts TIMESTAMP DEFAULT '2024-01-05', s SYMBOL DEFAULT 'none' NOT NULL,
  i INT NOT NULL, v VARCHAR DEFAULT concat('a', 1 + 1), u UUID DEFAULT rnd_uuid4())
  TIMESTAMP(ts) PARTITION BY DAY`;

test('omitted columns get their defaults', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE);
    await run(server, 'INSERT INTO t (i) VALUES (1), (2)', 'INSERT INTO t (i, v) VALUES (3, null)');
    await run(server, 'INSERT INTO t (i, s) SELECT x::int, null::symbol FROM long_sequence(0)');
    await run(server, 'INSERT INTO t (i) SELECT (x + 3)::int FROM long_sequence(1)');
    const expected = [
      ['2024-01-05T00:00:00.000000Z', 'none', 1, 'a2'],
      ['2024-01-05T00:00:00.000000Z', 'none', 2, 'a2'],
      ['2024-01-05T00:00:00.000000Z', 'none', 3, null],
      ['2024-01-05T00:00:00.000000Z', 'none', 4, 'a2'],
    ];
    t.deepEqual(await rows(server, 'SELECT ts, s, i, v FROM t'), expected);
    t.deepEqual(await rows(server, 'SELECT count_distinct(u) FROM t'), [[4]]);
    const form = new FormData();
    form.set('data', new Blob(['i,ts\n5,2024-01-06T00:00:00.000000Z\n']));
    const url = `${server.url}/imp?name=t&fmt=json&forceHeader=true`;
    const answer = (await (await fetch(url, { method: 'POST', body: form })).json()) as object;
    t.like(answer, { status: 'OK' });
    const imported = ['2024-01-06T00:00:00.000000Z', 'none', 5, 'a2'];
    t.deepEqual((await rows(server, 'SELECT ts, s, i, v FROM t')).at(-1), imported);
    const again = await restart(server);
    await run(again, 'INSERT INTO t (i) VALUES (6)');
    t.deepEqual((await rows(again, 'SELECT s, v FROM t WHERE i = 6'))[0], ['none', 'a2']);
    const [[ddl] = []] = await rows(again, 'SHOW CREATE TABLE t');
    t.regex(String(ddl), /s SYMBOL NOT NULL DEFAULT 'none',\n\ti INT NOT NULL,/);
    await run(again, 'DROP TABLE t', String(ddl), 'INSERT INTO t (i) VALUES (7)');
    t.deepEqual(await rows(again, 'SELECT s, i, v FROM t'), [['none', 7, 'a2']]);
    return again;
  });
});

test('NOT NULL columns never store null', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, 'INSERT INTO t (i) VALUES (1)');
    const missing = "column 'i' is NOT NULL";
    const refused: [string, string, number][] = [
      ["INSERT INTO t (s) VALUES ('a')", `${missing} and has no DEFAULT: expected a value`, 12],
      ['INSERT INTO t (i) VALUES (1), (null)', `${missing}: expected a value`, 31],
      ['INSERT INTO t (i) SELECT null::int', `${missing}: expected a value`, 0],
      ['UPDATE t SET i = null', `${missing}: expected a value`, 0],
      ['CREATE TABLE x (a INT DEFAULT nope)', 'Invalid column: nope', 30],
      [
        'CREATE TABLE x (a INT NOT NULL DEFAULT null)',
        "column 'a' is NOT NULL and its default is null",
        39,
      ],
      [
        'ALTER TABLE t ADD COLUMN n INT NOT NULL',
        "column 'n' is NOT NULL: expected a DEFAULT for the existing rows of 't'",
        25,
      ],
    ];
    for (const [text, message, position] of refused) {
      const { error, position: at } = await exec(server, text);
      t.deepEqual([error, at], [message, position], text);
    }
    t.deepEqual(await rows(server, 'SELECT count() FROM t'), [[1]]);
    await run(server, 'ALTER TABLE t ADD COLUMN n INT NOT NULL DEFAULT 7');
    t.deepEqual(await rows(server, 'SELECT i, n FROM t'), [[1, 7]]);
    return server;
  });
});

test('an import treats a missing required value as invalid', async (t) => {
  await withServer(async (server) => {
    await run(server, 'CREATE TABLE t (i INT NOT NULL, v VARCHAR NOT NULL, d DOUBLE)');
    const text = 'i,v,d\n1,a,1.5\n,b,2\nbad,c,3\n4,,4\n5,e,bad\n';
    const send = async (atomicity: string): Promise<Record<string, unknown>> => {
      const form = new FormData();
      form.set('data', new Blob([text]));
      const request = `name=t&fmt=json&forceHeader=true&badLines=true&atomicity=${atomicity}`;
      const url = `${server.url}/imp?${request}`;
      const response = await fetch(url, { method: 'POST', body: form });
      return (await response.json()) as Record<string, unknown>;
    };
    t.deepEqual(await send('abort'), {
      status: "column 'i' is NOT NULL: expected a value [line=1, col=0]",
    });
    t.deepEqual(await rows(server, 'SELECT count() FROM t'), [[0]]);
    t.like(await send('skipRow'), { status: 'OK', rowsImported: 1, rowsRejected: 4 });
    t.deepEqual(await rows(server, 'SELECT * FROM t'), [[1, 'a', 1.5]]);
    await run(server, 'TRUNCATE TABLE t');
    const skipped = await send('skipCol');
    t.like(skipped, { status: 'OK', rowsImported: 2, rowsRejected: 3 });
    const errors = (skipped['columns'] as readonly { errors: number }[]).map((c) => c.errors);
    t.deepEqual(errors, [2, 1, 1]);
    t.deepEqual(skipped['badLines'], [
      "line 3, field 1: column 'i' is NOT NULL: expected a value",
      'line 4, field 1: bad syntax',
      "line 5, field 2: column 'v' is NOT NULL: expected a value",
      'line 6, field 3: bad syntax',
    ]);
    t.deepEqual(await rows(server, 'SELECT * FROM t'), [
      [1, 'a', 1.5],
      [5, 'e', null],
    ]);
    return server;
  });
});

test('importing into a column type that CSV cannot represent is refused', async (t) => {
  await withServer(async (server) => {
    await run(server, 'CREATE TABLE t (i INT, a BINARY)');
    const form = new FormData();
    form.set('data', new Blob(['i,a\n1,abc\n']));
    const url = `${server.url}/imp?name=t&fmt=json&forceHeader=true`;
    const response = await fetch(url, { method: 'POST', body: form });
    const { status } = (await response.json()) as { status: string };
    t.regex(status, /^column 'a': no adapter for type \[.*name=BINARY/);
    t.deepEqual(await rows(server, 'SELECT count() FROM t'), [[0]]);
    return server;
  });
});

test('an INSERT returns the number of inserted rows', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE);
    const one = await exec(
      server,
      'INSERT INTO t (i) VALUES (1), (2) RETURNING i * 10 AS ten, s, v',
    );
    t.deepEqual(one.dataset, [
      [10, 'none', 'a2'],
      [20, 'none', 'a2'],
    ]);
    const all = await rows(server, 'INSERT INTO t (i, u) VALUES (3, null) RETURNING *');
    t.deepEqual(all, [['2024-01-05T00:00:00.000000Z', 'none', 3, 'a2', null]]);
    const many = 'INSERT INTO t (i) SELECT x::int FROM long_sequence(100000) RETURNING i';
    t.is((await rows(server, many)).length, 100_000);
    t.deepEqual(await rows(server, 'SELECT count() FROM t'), [[100_003]]);
    const failed = await exec(server, 'INSERT INTO t (i) VALUES (4) RETURNING sum(i)');
    t.regex(failed.error ?? '', /not allowed in RETURNING/);
    t.deepEqual(await rows(server, 'SELECT count() FROM t'), [[100_003]]);
    return server;
  });
});

test('a missing required value has the SQLSTATE of PostgreSQL over the wire', async (t) => {
  await withServer(async (server) => {
    await run(server, 'CREATE TABLE t (i INT NOT NULL, v INT)');
    await run(server, 'INSERT INTO t VALUES (1, 1)');
    const client = pgClient(server.pg);
    await client.connect();
    const refused: readonly (string | { text: string; values: unknown[] })[] = [
      'INSERT INTO t VALUES (null, 1)',
      'INSERT INTO t (v) VALUES (1)',
      'INSERT INTO t SELECT null, v FROM t',
      { text: 'INSERT INTO t VALUES ($1, $2)', values: [null, 1] },
      'UPDATE t SET i = null',
      'UPDATE t SET i = DEFAULT',
    ];
    for (const statement of refused) {
      await t.throwsAsync(client.query(statement), { code: '23502' }, JSON.stringify(statement));
    }
    await client.end();
    t.deepEqual(await rows(server, 'SELECT * FROM t'), [[1, 1]]);
    return server;
  });
});

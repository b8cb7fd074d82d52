/**
 * RETURNING returns rows as they are after an UPDATE and before a DELETE, over HTTP and the wire
 * protocol.
 */
import test from 'ava';

import { exec, restart, rows, run, withServer } from './statements.js';

const TABLE = `CREATE TABLE t (ts TIMESTAMP, s SYMBOL, i INT, v VARCHAR)
  TIMESTAMP(ts) PARTITION BY DAY`;
const ROWS = `INSERT INTO t VALUES ('2024-01-01T01', 'a', 1, 'x'), ('2024-01-01T02', 'b', 2, 'y'),
  ('2024-01-02T01', 'a', 3, null), ('2024-01-03T01', 'c', null, 'z')`;

test('RETURNING returns the new rows of an UPDATE and the deleted rows of a DELETE', async (t) => {
  await withServer(async (server) => {
    await run(
      server,
      TABLE,
      ROWS,
      'CREATE TABLE k (s SYMBOL, w INT)',
      "INSERT INTO k VALUES ('b', 9)",
    );
    for (const [text, expected] of [
      [
        "UPDATE t SET i = i * 10, v = 'new' WHERE s = 'a' RETURNING i, v, s, i + 1 AS more",
        [
          [10, 'new', 'a', 11],
          [30, 'new', 'a', 31],
        ],
      ],
      ["UPDATE t SET s = 'd' WHERE s = 'c' RETURNING s", [['d']]],
      [
        'UPDATE t x SET i = k.w FROM k WHERE x.s = k.s RETURNING x.i, k.*, x.s s1',
        [[9, 'b', 9, 'b']],
      ],
      ['UPDATE t SET i = 0 WHERE i = 77 RETURNING *', []],
      [
        "DELETE FROM t WHERE s = 'd' RETURNING *",
        [['2024-01-03T01:00:00.000000Z', 'd', null, 'z']],
      ],
      ['DELETE FROM t AS x USING k WHERE x.s = k.s RETURNING k.w + 1, x.v', [[10, 'y']]],
      ['DELETE FROM t WHERE i = 77 RETURNING ts', []],
    ] as const) {
      t.deepEqual(await rows(server, text), expected as unknown as unknown[][], text);
    }
    const left = [
      ['a', 10],
      ['a', 30],
    ];
    t.deepEqual(await rows(server, 'SELECT s, i FROM t'), left);
    const again = await restart(server);
    t.deepEqual(await rows(again, 'SELECT s, i FROM t'), left);
    t.deepEqual(await rows(again, 'DELETE FROM t RETURNING i'), [[10], [30]]);
    t.deepEqual(await rows(again, 'SELECT * FROM t'), []);
    return again;
  });
});

test('RETURNING returns the same random values that are stored', async (t) => {
  await withServer(async (server) => {
    await run(server, 'CREATE TABLE n AS (SELECT x, 0.0 d FROM long_sequence(20000))');
    const drawn = await rows(server, 'UPDATE n SET d = rnd_double() RETURNING x, d');
    t.is(drawn.length, 20_000);
    t.deepEqual(await rows(server, 'SELECT x, d FROM n'), drawn);
    t.is((await rows(server, 'DELETE FROM n WHERE x > 10000 RETURNING x')).length, 10_000);
    return server;
  });
});

test('an invalid RETURNING is refused before anything changes', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS);
    for (const [text, message] of [
      ['UPDATE t SET i = 0 RETURNING sum(i)', /not allowed in RETURNING/],
      ['DELETE FROM t RETURNING row_number() OVER ()', /not allowed in RETURNING/],
      ['DELETE FROM t RETURNING nope', /Invalid column: nope/],
      ['DELETE FROM t RETURNING', /column expression expected/],
      ["UPDATE t SET i = 0 RETURNING i, 'a'::int", /^inconvertible value: a/],
    ] as const) {
      t.regex((await exec(server, text)).error ?? '', message, text);
    }
    t.deepEqual(await rows(server, 'SELECT sum(i), count() FROM t'), [[6, 4]]);
    await run(
      server,
      "CREATE TABLE big AS (SELECT rpad('', 1000, 'x') v FROM long_sequence(100000))",
    );
    const much = await exec(server, 'DELETE FROM big RETURNING v');
    t.regex(
      much.error ?? '',
      /^RETURNING result is too large: at most 64 MiB of rows are allowed$/,
    );
    t.deepEqual(await rows(server, 'SELECT count() FROM big'), [[100_000]]);
    return server;
  });
});

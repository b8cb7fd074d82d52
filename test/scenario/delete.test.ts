/**
 * DELETE over HTTP: the deleted rows, the state after a kill, and the rows that a slow reader can
 * still see.
 */
import test from 'ava';

import { exec, restart, rows, run, withServer } from './statements.js';

const TABLE = `CREATE TABLE t (ts TIMESTAMP, s SYMBOL, i INT, v VARCHAR)
  TIMESTAMP(ts) PARTITION BY DAY`;
const ROWS = `INSERT INTO t VALUES ('2024-01-01T01', 'a', 1, 'x'), ('2024-01-01T02', 'b', 2, 'y'),
  ('2024-01-02T01', 'a', 3, null), ('2024-01-03T01', 'c', null, 'z'),
  ('2024-01-03T02', 'd', 5, 'z')`;

test('rows deleted by condition, join or sub-query stay deleted', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS, 'CREATE TABLE k (s SYMBOL)', "INSERT INTO k VALUES ('d')");
    const gone = async (text: string): Promise<number | undefined> =>
      (await run(server, text)).updated;
    t.is(await gone("DELETE FROM t WHERE s = 'a' AND i = 1"), 1);
    t.is(await gone('DELETE FROM t x USING k WHERE x.s = k.s'), 1);
    t.is(await gone('WITH m AS (SELECT 2 n) DELETE FROM t WHERE i IN (SELECT n FROM m)'), 1);
    t.is(await gone("DELETE FROM t WHERE s = 'nobody'"), 0);
    const left = [
      ['a', 3],
      ['c', null],
    ];
    t.deepEqual(await rows(server, 'SELECT s, i FROM t'), left);
    const bounds = 'SELECT count(), min(ts), max(ts) FROM t';
    const expected = [[2, '2024-01-02T01:00:00.000000Z', '2024-01-03T01:00:00.000000Z']];
    t.deepEqual(await rows(server, bounds), expected);
    const again = await restart(server);
    t.deepEqual(await rows(again, 'SELECT s, i FROM t'), left);
    t.deepEqual(await rows(again, bounds), expected);
    t.deepEqual(await run(again, 'DELETE FROM t'), { ddl: 'OK', dml: 'OK', updated: 2 });
    t.deepEqual(await rows(again, 'SELECT * FROM t'), []);
    return again;
  });
});

test('rows deleted from DEDUP tables and Parquet partitions stay deleted', async (t) => {
  await withServer(async (server) => {
    const key = "('2024-01-01T01', 'a', 9, 'again')";
    await run(server, `${TABLE} WAL DEDUP UPSERT KEYS(ts, s)`, ROWS, `INSERT INTO t VALUES ${key}`);
    await run(server, 'DELETE FROM t WHERE i = 9');
    t.deepEqual(await rows(server, "SELECT i FROM t WHERE ts IN '2024-01-01'"), [[2]]);
    await run(server, `INSERT INTO t VALUES ${key}`);
    await run(server, "ALTER TABLE t CONVERT PARTITION TO PARQUET LIST '2024-01-01'");
    t.is((await run(server, "DELETE FROM t WHERE s = 'b'")).updated, 1);
    const left = [['a', 9]];
    t.deepEqual(await rows(server, "SELECT s, i FROM t WHERE ts IN '2024-01-01'"), left);
    await run(server, 'ALTER TABLE t SQUASH PARTITIONS');
    const again = await restart(server);
    t.deepEqual(await rows(again, "SELECT s, i FROM t WHERE ts IN '2024-01-01'"), left);
    return again;
  });
});

test('rows that no DELETE matches survive concurrent inserts and deletes', async (t) => {
  await withServer(async (server) => {
    await run(server, 'CREATE TABLE n (ts TIMESTAMP, i LONG) TIMESTAMP(ts) PARTITION BY HOUR');
    const insert = async (from: number): Promise<void> => {
      for (let i = from; i < from + 40; i += 1) {
        await run(server, `INSERT INTO n VALUES (${i}000000, ${i})`);
      }
    };
    const gone: number[] = [];
    const remove = async (): Promise<void> => {
      for (let round = 0; round < 20; round += 1) {
        const { updated } = await run(server, 'DELETE FROM n WHERE i % 2 = 1');
        gone.push(updated ?? 0);
      }
    };
    await Promise.all([insert(0), insert(1_000), remove(), remove()]);
    await remove();
    t.is(
      gone.reduce((sum, count) => sum + count, 0),
      40,
    );
    t.deepEqual(await rows(server, 'SELECT count(), sum(i) FROM n'), [[40, 2 * 380 + 20_000]]);
    return server;
  });
});

test('invalid deletes are refused with a reason', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS);
    const refused: [string, string, number][] = [
      ['DELETE FROM nosuch', 'table does not exist [table=nosuch]', 12],
      ['DELETE FROM t WHERE nope = 1', 'Invalid column: nope', 20],
      ['DELETE t', "'FROM' expected", 7],
    ];
    for (const [text, message, position] of refused) {
      const { error, position: at } = await exec(server, text);
      t.deepEqual([error?.toLowerCase(), at], [message.toLowerCase(), position], text);
    }
    t.deepEqual(await rows(server, 'SELECT count() FROM t'), [[5]]);
    return server;
  });
});

/**
 * Every change that SQL over HTTP can make to a table: the response, later queries, readers of the
 * previous snapshot, and durability after a kill.
 */
import test from 'ava';

import { exec, restart, rows, run, withServer } from './statements.js';

const TABLE = `CREATE TABLE t (ts TIMESTAMP, s SYMBOL, i INT, v VARCHAR)
  TIMESTAMP(ts) PARTITION BY DAY`;
const ROWS = `INSERT INTO t VALUES ('2024-01-01T01', 'a', 1, '10'), ('2024-01-01T02', 'b', 2, 'x'),
  ('2024-01-02T01', 'a', 3, null), ('2024-01-03T01', 'c', null, '40')`;
const SHAPE = 'SELECT "column", type FROM table_columns(\'t\')';

test('every change is acknowledged and visible, and survives a kill', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS, 'CREATE TABLE k (s SYMBOL, n INT)');
    await run(server, "INSERT INTO k VALUES ('a', 100), ('c', 300)");
    const count = async (statement: string): Promise<number | undefined> =>
      (await run(server, statement)).updated;
    t.is(await count("UPDATE t SET i = i + 1, v = 'new' WHERE s = 'a'"), 2);
    t.is(await count('UPDATE t SET i = k.n FROM k WHERE t.s = k.s AND t.i IS NULL'), 1);
    const common = 'WITH m AS (SELECT s, max(n) n FROM k GROUP BY s)';
    t.is(await count(`${common} UPDATE t x SET i = m.n FROM m WHERE x.s = m.s AND x.i = 4`), 1);
    t.is(await count("UPDATE t SET v = 'nobody' WHERE i = 77"), 0);
    t.deepEqual(await rows(server, 'SELECT s, i, v FROM t'), [
      ['a', 2, 'new'],
      ['b', 2, 'x'],
      ['a', 100, 'new'],
      ['c', 300, '40'],
    ]);
    await run(
      server,
      'ALTER TABLE t ALTER COLUMN i TYPE VARCHAR',
      'ALTER TABLE t ALTER COLUMN v TYPE LONG',
      "UPDATE t SET s = 'z' WHERE ts IN '2024-01-03'",
      "ALTER TABLE t DETACH PARTITION LIST '2024-01-01'",
      'ALTER TABLE t ADD COLUMN w DOUBLE',
    );
    const seen = 'SELECT ts, s, i, v, w FROM t';
    const detached = [
      ['2024-01-02T01:00:00.000000Z', 'a', '100', null, null],
      ['2024-01-03T01:00:00.000000Z', 'z', '300', 40, null],
    ];
    t.deepEqual(await rows(server, seen), detached);
    const partitions = "SELECT name, numRows, attached, detached FROM table_partitions('t')";
    const listed = await rows(server, partitions);
    server = await restart(server);
    t.deepEqual(await rows(server, seen), detached);
    t.deepEqual(await rows(server, partitions), listed);
    await run(server, "ALTER TABLE t ATTACH PARTITION WHERE ts < '2024-01-02'");
    await run(server, 'ALTER TABLE t SQUASH PARTITIONS', 'RENAME TABLE t TO u');
    server = await restart(server);
    t.deepEqual(await rows(server, 'SELECT s, i, v FROM u'), [
      ['a', '2', null],
      ['b', '2', null],
      ['a', '100', null],
      ['z', '300', 40],
    ]);
    await run(server, "ALTER TABLE u DROP PARTITION LIST '2024-01-01', '2024-01-02'");
    t.deepEqual(await rows(server, 'SELECT count() FROM u'), [[1]]);
    await run(server, 'ALTER TABLE u SET TTL 1 DAY', "INSERT INTO u (ts) VALUES ('2024-01-05')");
    t.deepEqual(await rows(server, 'SELECT count() FROM u'), [[1]]);
    await run(server, 'TRUNCATE TABLE u, k KEEP SYMBOL MAPS', 'DROP TABLE IF EXISTS nosuch');
    server = await restart(server);
    t.deepEqual(await rows(server, 'SELECT count() FROM u'), [[0]]);
    t.deepEqual(await rows(server, 'SELECT count() FROM k'), [[0]]);
    await run(server, 'DROP ALL TABLES');
    t.deepEqual(await rows(server, 'SELECT count() FROM tables()'), [[0]]);
    return server;
  });
});

test('invalid changes are refused with a reason and have no effect', async (t) => {
  await withServer(async (server) => {
    await run(server, TABLE, ROWS, 'CREATE TABLE flat (x INT)');
    const shape = await rows(server, SHAPE);
    const before = await rows(server, 'SELECT * FROM t');
    const refused: readonly (readonly [string, string])[] = [
      ['UPDATE t SET ts = 0', 'Designated timestamp column cannot be updated'],
      ['UPDATE t SET i = 1, i = 2', 'Duplicate column [name=i] in SET clause'],
      ['UPDATE t SET i = 1.5', 'inconvertible types: DOUBLE -> INT [from=, to=i]'],
      ["UPDATE t SET i = 'abc'", 'inconvertible value: `abc` [STRING -> INT]'],
      ['UPDATE t SET i = v', 'inconvertible value: x [CHAR -> INT]'],
      ['UPDATE t SET i = max(i)', 'aggregate functions are not allowed here'],
      ['ALTER TABLE t ALTER COLUMN i ADD INDEX', 'indexes are supported only for symbol type'],
      ['ALTER TABLE t ALTER COLUMN i CACHE', 'cache is only supported for symbol type'],
      ["ALTER TABLE t DROP PARTITION LIST '2024-01'", "'yyyy-MM-dd' expected, not '2024-01'"],
      ["ALTER TABLE t DROP PARTITION LIST '2024-02-01'", 'could not remove partition [table=t'],
      ["ALTER TABLE t DETACH PARTITION LIST '2024-01-03'", 'DETACH_ERR_ACTIVE'],
      ["ALTER TABLE t ATTACH PARTITION LIST '2024-01-03'", 'ATTACH_ERR_PARTITION_EXISTS'],
      [
        "ALTER TABLE flat DROP PARTITION LIST '2024-01-03'",
        'table is not partitioned [table=flat]',
      ],
      ['ALTER TABLE flat SET TTL 1 DAY', 'cannot set TTL on a non-partitioned table'],
      ['ALTER TABLE t DEDUP ENABLE UPSERT KEYS(s)', 'must include dedicated timestamp column'],
      ['TRUNCATE TABLE t, nosuch', 'table does not exist [table=nosuch]'],
    ];
    for (const [statement, message] of refused) {
      const { error } = await exec(server, statement);
      t.true(error?.includes(message), `${statement}: ${error ?? 'no error'}`);
    }
    t.deepEqual(await rows(server, SHAPE), shape);
    t.deepEqual(await rows(server, 'SELECT * FROM t'), before);
    return server;
  });
});

test('no changes are lost when updates and inserts run concurrently', async (t) => {
  await withServer(async (server) => {
    await run(server, 'CREATE TABLE n (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY');
    let updated = 0;
    const updates = async (): Promise<void> => {
      for (let round = 0; round < 12; round += 1) {
        const answer = await run(server, 'UPDATE n SET x = x + 1');
        updated += answer.updated ?? 0;
      }
    };
    const inserts = async (day: number): Promise<void> => {
      for (let round = 0; round < 40; round += 1) {
        const ts = `2024-01-0${String(day)}T${String(round % 24).padStart(2, '0')}`;
        await run(server, `INSERT INTO n VALUES ('${ts}', 0)`);
      }
    };
    await Promise.all([updates(), updates(), inserts(1), inserts(2), inserts(3)]);
    const sums = 'SELECT count(), sum(x) FROM n';
    t.deepEqual(await rows(server, sums), [[120, updated]]);
    server = await restart(server);
    t.deepEqual(await rows(server, sums), [[120, updated]]);
    return server;
  });
});

test('a slow reader sees the rows of its snapshot', async (t) => {
  await withServer(async (server) => {
    const count = 2_000_000;
    await run(
      server,
      `CREATE TABLE big AS (SELECT (1704067200000000 + (x - 1) * 100000)::timestamp ts, x, 1L one
        FROM long_sequence(${String(count)})) TIMESTAMP(ts) PARTITION BY DAY`,
    );
    const query = encodeURIComponent('SELECT x, one FROM big');
    const response = await fetch(`${server.url}/exp?query=${query}`);
    t.is((await run(server, 'UPDATE big SET one = 2')).updated, count);
    await run(server, "ALTER TABLE big DROP PARTITION LIST '2024-01-01'");
    await run(server, 'ALTER TABLE big SQUASH PARTITIONS', 'ALTER TABLE big DROP COLUMN x');
    const lines = (await response.text()).trimEnd().split('\r\n').slice(1);
    t.is(lines.length, count);
    const wrong = lines.findIndex((line, index) => line !== `${String(index + 1)},1`);
    t.is(wrong, -1, `${String(wrong)}: ${lines[wrong] ?? ''}`);
    const now = await rows(server, 'SELECT count(), min(one) FROM big');
    t.deepEqual(now, [[count - 864_000, 2]]);
    return server;
  });
});

/** SET TYPE: as in QuestDB, a table reports the new type only after a restart. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { send, rowsOf } from '../limits/client.js';

async function types(server: TestServer): Promise<unknown> {
  return await rowsOf(server, 'select table_name, walEnabled, dedup from tables() order by 1');
}

async function isBypass(server: TestServer, table: string): Promise<boolean> {
  const [row] = await rowsOf(server, `show create table ${table}`);
  return String(row?.[0]).includes(' BYPASS WAL');
}

test('SET TYPE takes effect at the next restart, and only the last SET TYPE counts', async (t) => {
  const first = await startTestServer();
  const table = (name: string, type: string): string =>
    `create table ${name} (x int, ts timestamp) timestamp(ts) partition by day ${type}`;
  await rowsOf(first, table('a', 'wal'));
  await rowsOf(first, table('b', 'bypass wal'));
  await rowsOf(first, table('c', 'wal dedup upsert keys(ts)'));
  await rowsOf(first, table('d', 'wal'));
  await rowsOf(first, table('gone', 'wal'));
  await rowsOf(first, 'create table e (x int)');
  for (const [name, type] of [
    ['a', 'bypass wal'],
    ['b', 'wal'],
    ['c', 'bypass wal'],
    ['d', 'bypass wal'],
    ['d', 'wal'],
    ['gone', 'bypass wal'],
  ]) {
    await rowsOf(first, `alter table ${name} set type ${type}`);
  }
  await rowsOf(first, 'drop table gone');
  const { error } = await send(first, 'alter table e set type wal');
  t.regex(error ?? '', /^cannot set the type of table 'e': expected a partitioned table/);
  t.deepEqual(await types(first), [
    ['a', true, false],
    ['b', false, false],
    ['c', true, true],
    ['d', true, false],
    ['e', false, false],
  ]);
  first.process.kill('SIGKILL');
  await new Promise((resolve) => first.process.once('close', resolve));

  for (let start = 0; start < 2; start += 1) {
    const again = await startTestServer({ root: first.root });
    t.deepEqual(await types(again), [
      ['a', false, false],
      ['b', true, false],
      ['c', false, true],
      ['d', true, false],
      ['e', false, false],
    ]);
    t.true(await isBypass(again, 'a'));
    t.false(await isBypass(again, 'b'));
    t.deepEqual(await rowsOf(again, 'select name from wal_tables() order by 1'), [['b'], ['d']]);
    await rowsOf(again, `insert into a values (${start}, ${start})`);
    t.deepEqual(await rowsOf(again, 'select count() from a'), [[start + 1]]);
    await again.stop();
  }
  await first.stop();
});

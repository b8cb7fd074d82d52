/**
 * A DELETE collects row positions in memory, and must stay within the query's limit or be refused.
 */
import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { send, rowsOf } from './client.js';

const ROWS = 2_000_000;

test('a DELETE that exceeds its memory is refused while other queries continue', async (t) => {
  const server = await startTestServer({ set: ['query.memory.limit=8M'] });
  t.teardown(async () => {
    await server.stop();
  });
  await rowsOf(
    server,
    `create table t as (select x, timestamp_sequence('2026-01-01', 1000) ts
     from long_sequence(${ROWS})) timestamp(ts) partition by day`,
  );
  const { error, status } = await send(server, 'delete from t where x > 0');
  t.regex(error ?? '', /memory/);
  t.not(status, 200);
  const count = 'select count(), min(x), max(x) from t';
  t.deepEqual(await rowsOf(server, count), [[ROWS, 1, ROWS]]);
  await rowsOf(server, 'delete from t where x > 1800000');
  t.deepEqual(await rowsOf(server, count), [[1_800_000, 1, 1_800_000]]);
  // The memory used by the refused DELETE has been released.
  for (const last of [1_600_000, 1_400_000]) {
    await rowsOf(server, `delete from t where x > ${last}`);
    t.deepEqual(await rowsOf(server, count), [[last, 1, last]]);
  }
});

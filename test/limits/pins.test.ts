/**
 * A query that still reads a dropped partition is listed, with the age of the data and the disk
 * space it uses.
 */
import { createConnection } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { until } from '../until.js';
import { rowsOf } from './client.js';

test('a snapshot that pins a dropped partition is listed with its age and size', async (t) => {
  const server = await startTestServer();
  t.teardown(async () => {
    await server.stop();
  });
  await rowsOf(
    server,
    `create table t as (select x, timestamp_sequence('2026-01-01', 1000000) ts
     from long_sequence(200000)) timestamp(ts) partition by day`,
  );
  const [size] = await rowsOf(server, "select diskSize from table_partitions('t') limit 1");
  const { hostname, port } = new URL(server.url);
  const reader = createConnection({ host: hostname, port: Number(port) });
  reader.on('error', () => undefined);
  const endless = 'select count() from t a cross join t b cross join t c where a.x + b.x = -1';
  reader.write(
    `GET /exec?query=${encodeURIComponent(endless)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
  );
  await until(async () => {
    const running = await rowsOf(server, 'select query from query_activity()');
    return running.some(([text]) => String(text).startsWith('select count() from t a cross'));
  }, 'the query is running');
  await rowsOf(server, "alter table t drop partition list '2026-01-01'");
  await sleep(200);
  const pins = await rowsOf(server, 'select ageMicros, heldBytes, readers from snapshots()');
  const [oldest] = pins;
  t.true(Number(oldest?.[0]) >= 200_000, JSON.stringify(pins));
  t.is(oldest?.[1], size?.[0]);
  t.deepEqual(pins.at(-1)?.slice(0, 2), [0, 0]);
  // The writer did not wait for the reader, and new readers wait for neither of them.
  t.deepEqual(await rowsOf(server, 'select count() from t'), [[200_000 - 86_400]]);
  reader.destroy();
  const snapshots = (): ReturnType<typeof rowsOf> =>
    rowsOf(server, 'select epoch from snapshots()');
  await until(async () => (await snapshots()).length === 1, 'only the newest snapshot remains');
  t.is((await snapshots()).length, 1);
});

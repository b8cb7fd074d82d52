/** However much data is unwritten, stopping takes a bounded time and leaves no temporary files. */
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { exec } from '../torture/client.js';

const PARTITIONS = 6_000;
const STOP_MS = 4_500;

test('shutdown does not wait for a final checkpoint, and no rows are lost', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-stop-'));
  t.teardown(() => {
    rmSync(root, { recursive: true, force: true });
  });
  let server = await startTestServer({ root });
  await exec(server, 'CREATE TABLE t (ts TIMESTAMP, v LONG) TIMESTAMP(ts) PARTITION BY HOUR');
  const hour = (number: number): string => {
    const at = new Date(Date.UTC(2024, 0, 1) + number * 3_600_000);
    return `('${at.toISOString()}', ${number})`;
  };
  for (let from = 0; from < PARTITIONS; from += 500) {
    const rows = Array.from({ length: 500 }, (_, row) => hour(from + row));
    await exec(server, `INSERT INTO t VALUES ${rows.join(', ')}`);
  }
  // Leftovers from a cancelled query.
  mkdirSync(join(root, 'tmp', 'datafusion-left'));
  writeFileSync(join(root, 'tmp', 'datafusion-left', 'spilled'), 'rows');
  const began = performance.now();
  t.is(await server.stop(), 0);
  const took = performance.now() - began;
  t.true(took < STOP_MS, `the shutdown took ${took} ms`);
  t.deepEqual(readdirSync(join(root, 'tmp')), []);
  t.false(server.log().includes('forced to stop'), server.log());
  server = await startTestServer({ root });
  t.deepEqual((await exec(server, 'SELECT count(), sum(v) FROM t')).dataset, [
    [PARTITIONS, (PARTITIONS * (PARTITIONS - 1)) / 2],
  ]);
  await server.stop();
});

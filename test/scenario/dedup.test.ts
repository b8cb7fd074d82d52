/** DEDUP UPSERT KEYS over HTTP, with rows that each ingestion endpoint delivers more than once. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

async function exec(server: TestServer, query: string): Promise<readonly (readonly unknown[])[]> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  const answer = (await response.json()) as { dataset?: unknown[][]; error?: string };
  if (answer.error !== undefined) {
    throw new Error(`${query}: ${answer.error}`);
  }
  return answer.dataset ?? [];
}

async function deliver(server: TestServer, value: string): Promise<void> {
  const form = new FormData();
  const lines = [1, 2, 3].map((hour) => `2024-01-01T0${String(hour)}:00:00.000000Z,k,${value}`);
  form.append('data', new Blob([`ts,s,x\n${lines.join('\n')}\n`]));
  const response = await fetch(`${server.url}/imp?name=dd&fmt=json`, {
    method: 'POST',
    body: form,
  });
  await response.text();
}

test('after any redelivery, only the last row of each key is stored', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-dedup-'));
  let server = await startTestServer({ root });
  try {
    await exec(
      server,
      'CREATE TABLE dd (ts TIMESTAMP, s SYMBOL, x INT) TIMESTAMP(ts) PARTITION BY DAY WAL ' +
        'DEDUP UPSERT KEYS(ts, s)',
    );
    await deliver(server, '1');
    await deliver(server, '2');
    t.deepEqual(await exec(server, 'SELECT count(), sum(x) FROM dd'), [[3, 6]]);
    await exec(server, "INSERT INTO dd VALUES ('2024-01-01T02:00', 'k', 5)");
    await exec(server, "INSERT INTO dd SELECT ts, 'k', 7 FROM dd WHERE x = 2");
    const expected = [
      ['2024-01-01T01:00:00.000000Z', 'k', 7],
      ['2024-01-01T02:00:00.000000Z', 'k', 5],
      ['2024-01-01T03:00:00.000000Z', 'k', 7],
    ];
    t.deepEqual(await exec(server, 'SELECT * FROM dd'), expected);
    server.process.kill('SIGKILL');
    await once(server.process, 'exit');
    server = await startTestServer({ root });
    t.deepEqual(await exec(server, 'SELECT * FROM dd'), expected);
    t.deepEqual(await exec(server, 'SELECT count() FROM dd'), [[3]]);
    await server.stop();
  } finally {
    server.process.kill('SIGKILL');
    await rm(root, { recursive: true, force: true });
  }
});

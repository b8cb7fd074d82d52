/** What a new table gets from the configuration. */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

type Rows = readonly (readonly unknown[])[];

async function exec(server: TestServer, query: string): Promise<Rows> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  const answer = (await response.json()) as { dataset?: Rows; error?: string };
  if (answer.error !== undefined) {
    throw new Error(`${query}: ${answer.error}`);
  }
  return answer.dataset ?? [];
}

async function importText(server: TestServer, name: string, text: string): Promise<void> {
  const form = new FormData();
  form.append('data', new Blob([text]), `${name}.csv`);
  const query = `fmt=json&name=${name}&timestamp=ts&partitionBy=DAY&forceHeader=true`;
  const response = await fetch(`${server.url}/imp?${query}`, { method: 'POST', body: form });
  const answer = (await response.json()) as { status?: string };
  if (answer.status !== 'OK') {
    throw new Error(JSON.stringify(answer));
  }
}

const DEFAULTS = 'select table_name, maxUncommittedRows, o3MaxLag from tables() order by 1';

test('new tables take both keys from --set, the environment and the file', async (t) => {
  const set = ['cairo.max.uncommitted.rows=1234', 'cairo.o3.max.lag=7s'];
  const environment = {
    QDB_CAIRO_MAX_UNCOMMITTED_ROWS: '1234',
    QDB_CAIRO_O3_MAX_LAG: '7000', // a bare number counts milliseconds
  };
  const root = mkdtempSync(join(tmpdir(), 'tidemark-defaults-'));
  await mkdir(join(root, 'conf'));
  const lines = 'cairo.max.uncommitted.rows=1234\ncairo.o3.max.lag=7s\n';
  writeFileSync(join(root, 'conf', 'server.conf'), lines);
  for (const options of [{ set }, { environment }, { root }]) {
    const server = await startTestServer(options);
    await exec(server, 'create table a (ts timestamp) timestamp(ts) partition by day');
    const own = 'with maxUncommittedRows = 10, o3MaxLag = 1s';
    await exec(server, `create table b (ts timestamp) timestamp(ts) partition by day ${own}`);
    await importText(server, 'c', 'ts,x\n2024-01-01T00:00:00.000000Z,1\n');
    t.deepEqual(await exec(server, DEFAULTS), [
      ['a', 1234, 7_000_000],
      ['b', 10, 1_000_000],
      ['c', 1234, 7_000_000],
    ]);
    await server.stop();
  }
});

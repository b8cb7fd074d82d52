/** Configured defaults for new tables, and the rows of `table_segments`. */
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

test('defaults for new tables come from --set, the environment or the file', async (t) => {
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

test('an import buffers at most cairo.max.uncommitted.rows rows', async (t) => {
  const rows = Array.from({ length: 3_000 }, (_, row) => {
    return `${new Date(row * 1000).toISOString().replace('Z', '000Z')},${row}\n`;
  });
  for (const [maximum, segments] of [
    ['1000', true],
    ['500000', false],
  ] as const) {
    const server = await startTestServer({
      set: [`cairo.max.uncommitted.rows=${maximum}`, 'cairo.o3.max.lag=1s'],
    });
    await importText(server, 'many', `ts,x\n${rows.join('')}`);
    const [row] = await exec(server, "select * from table_segments('many')");
    t.deepEqual(row?.slice(0, 2), ['1970-01-01', 3_000]);
    t.is(Number(row?.[2]) > 1, segments, JSON.stringify(row));
    t.deepEqual(row?.slice(3, 5), [0, 1]);
    t.true(Number(row?.[5]) > 0);
    await server.stop();
  }
});

test('table_segments reports in-memory runs and their overlap', async (t) => {
  const server = await startTestServer();
  await exec(server, 'create table s (ts timestamp, x int) timestamp(ts) partition by day');
  const text = (from: number): string =>
    `ts,x\n1970-01-01T0${from}:00:00.000000Z,1\n1970-01-01T09:00:00.000000Z,2\n`;
  await exec(server, "insert into s values ('1970-01-01T05:00:00.000000Z', 1)");
  const query = "select name, numRows, segments, runs, overlap from table_segments('s')";
  t.deepEqual(await exec(server, query), [['1970-01-01', 1, 0, 1, 1]]);
  await importText(server, 's', text(1));
  t.deepEqual(await exec(server, query), [['1970-01-01', 3, 1, 1, 2]]);
  await t.throwsAsync(exec(server, "select * from table_segments('nope')"), { message: /nope/ });
  await server.stop();
});

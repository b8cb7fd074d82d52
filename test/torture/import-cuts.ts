/**
 * npm run import-cuts -- [--offsets N] [--seed S]
 *
 * Aborts an import at N byte offsets, including every offset near the end of the body and at the
 * ends of its three parts. No row may be visible, and with `overwrite=true` the old table must
 * remain. Then runs imports with an error in the last row and `atomicity=abort`, and complete
 * imports, to prove that the harness can detect rows.
 */
import { readdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';

import { startTestServer } from '../golden/server.js';
import { exec, importCsv, Refused } from './client.js';
import { Harness, type Random, sleep } from './harness.js';

const ROWS = 2_000;
const LAST_BYTES = 40;
const PARALLEL = 8;
const CLEAR_MS = 10_000;
const BOUNDARY = 'cut-here';

const harness: Harness = new Harness('import-cuts', ['offsets']);
const offsets = harness.number('offsets', 200);
const server = await startTestServer();
const address = new URL(server.url);

const lines = Array.from(
  { length: ROWS },
  (_, row) => `${new Date(Date.UTC(2024, 0, 1) + row * 60_000).toISOString()},${row},text ${row}`,
);
/** The rows in three parts, each with its own header. */
const CHUNKS = [lines.slice(0, 100), lines.slice(100, 1_200), lines.slice(1_200)].map(
  (part) => `ts,x,note\n${part.join('\n')}\n`,
);

await exec(server, 'CREATE TABLE old (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY');
await exec(server, "INSERT INTO old VALUES ('2020-01-01T00:00:00Z', 42)");
await cuts();
await completeImports();
await badLastRow();
await server.stop();
harness.finish();

/** Returns a request's bytes. A chunked request has no total length to compare with. */
function request(table: string, overwrite: boolean, chunked: boolean): Buffer {
  const type = 'Content-Disposition: form-data; name="data"; filename="data.csv"';
  const parts = CHUNKS.map((csv) => `--${BOUNDARY}\r\n${type}\r\n\r\n${csv}\r\n`);
  const body = `${parts.join('')}--${BOUNDARY}--\r\n`;
  const query = `name=${table}&timestamp=ts&partitionBy=DAY&fmt=json&overwrite=${overwrite}`;
  const framing = chunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`;
  const content = chunked ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body;
  return Buffer.from(
    `POST /imp?${query} HTTP/1.1\r\nHost: ${address.host}\r\n${framing}\r\n` +
      `Content-Type: multipart/form-data; boundary=${BOUNDARY}\r\n\r\n${content}`,
  );
}

async function cuts(): Promise<void> {
  const near = Math.min(LAST_BYTES, Math.floor(offsets / 2));
  const complete = request('new0', false, false).length;
  // Offsets are counted back from the end of the closing boundary.
  const random = Array.from({ length: offsets }, (_, index) =>
    index < near ? index + 1 : harness.random.between(1, complete - 10),
  );
  const chosen = [...random, ...chunkBoundaries()];
  let next = 0;
  const worker = async (random: Random, number: number): Promise<void> => {
    for (let missing = chosen[next++]; missing !== undefined; missing = chosen[next++]) {
      await runCut(random, number, missing).catch((error: unknown) => {
        harness.fail(`${missing} bytes missing: ${String(error)}`);
      });
    }
  };
  const workers = Array.from({ length: PARALLEL }, (_, n) => worker(harness.random.fork(), n));
  await Promise.all(workers);
  const tables = await exec(server, "select table_name from tables() where table_name <> 'old'");
  harness.judge(
    tables.dataset.length === 0 ? undefined : `tables remain: ${JSON.stringify(tables.dataset)}`,
  );
  const staged = await leftFiles();
  harness.judge(staged.length === 0 ? undefined : `files remain: ${staged.join(', ')}`);
}

/** Returns the files in the staging directory. An aborted import may still be cleaning up. */
async function leftFiles(): Promise<readonly string[]> {
  const end = Date.now() + CLEAR_MS;
  for (;;) {
    const staged = await readdir(join(server.root, 'db', 'stage'));
    if (staged.length === 0 || Date.now() > end) {
      return staged;
    }
    await sleep(20);
  }
}

/** Returns offsets between parts: before, inside and after a boundary. */
function chunkBoundaries(): number[] {
  const text = request('new0', false, false).toString('latin1');
  const end = text.lastIndexOf(`--${BOUNDARY}--`) + `--${BOUNDARY}--`.length;
  const starts = [...text.matchAll(new RegExp(`--${BOUNDARY}\r\n`, 'g'))].map(({ index }) => index);
  const around = [-2, 0, 5, `--${BOUNDARY}\r\n`.length];
  return starts.flatMap((start) => around.map((bytes) => end - start - bytes));
}

async function runCut(random: Random, worker: number, missing: number): Promise<void> {
  const overwrite = random.next() < 0.5;
  const table = overwrite ? 'old' : `new${worker}`;
  const bytes = request(table, overwrite, random.next() < 0.5);
  // After the closing boundary either result is valid, because everything was sent but not yet
  // answered.
  const closing = `--${BOUNDARY}--`;
  const at = bytes.lastIndexOf(closing) + closing.length - missing;
  await sendChunk(bytes.subarray(0, at), random.next() < 0.5);
  const seen = overwrite
    ? await exec(server, 'select x from old')
    : await exec(server, `select table_name from tables() where table_name = '${table}'`);
  const expected = overwrite ? '[[42]]' : '[]';
  const found = JSON.stringify(seen.dataset).slice(0, 60);
  harness.judge(
    found === expected ? undefined : `cut at ${at} of ${bytes.length}, ${table}: ${found}`,
  );
}

/** Sends bytes and ends the connection, with a normal close or a reset. */
async function sendChunk(bytes: Buffer, reset: boolean): Promise<void> {
  const socket = connect(Number(address.port), address.hostname);
  socket.on('error', () => undefined);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  await new Promise((resolve) => socket.write(bytes, resolve));
  await sleep(2);
  if (reset) {
    socket.resetAndDestroy();
  } else {
    socket.end();
    socket.resume();
  }
  await Promise.race([closed, sleep(1_000)]);
  socket.destroy();
  await sleep(10);
}

async function completeImports(): Promise<void> {
  for (const chunked of [false, true]) {
    const table = `whole${chunked ? 1 : 0}`;
    await sendComplete(request(table, false, chunked));
    const { dataset } = await exec(server, `select count() from ${table}`);
    harness.judge(dataset[0]?.[0] === ROWS ? undefined : `${table}: ${JSON.stringify(dataset)}`);
  }
}

async function sendComplete(bytes: Buffer): Promise<void> {
  const socket = connect(Number(address.port), address.hostname);
  socket.write(bytes);
  await new Promise((resolve) => socket.once('data', resolve));
  socket.destroy();
}

async function badLastRow(): Promise<void> {
  for (const table of ['bad', 'old']) {
    const columns = table === 'old' ? 'ts,x' : 'ts,x,note';
    const rows = lines.map((line) => line.split(',').slice(0, columns.split(',').length).join(','));
    const last = `2024-01-09T00:00:00.000Z,not a number${table === 'old' ? '' : ',n'}`;
    const text = `${columns}\n${rows.join('\n')}\n${last}\n`;
    const schema = JSON.stringify([{ name: 'x', type: 'LONG' }]);
    let refused = false;
    try {
      await importCsv(server, table, text, { atomicity: 'abort' }, schema);
    } catch (error) {
      refused = error instanceof Refused;
    }
    const left = await exec(
      server,
      `select table_name from tables() where table_name = '${table}'`,
    );
    const there = left.dataset.length > 0 ? await exec(server, `select x from ${table}`) : left;
    const expected = table === 'old' ? '[[42]]' : '[]';
    const found = JSON.stringify(there.dataset).slice(0, 60);
    harness.judge(refused && found === expected ? undefined : `an error at the end: ${found}`);
  }
}

/** Uploading Parquet files into the import directory, and removing them. */
import { mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import test from 'ava';

import { until } from '../until.js';
import { type Harness, startHarness } from './harness.js';

let harness: Harness;
let importRoot: string;
test.before(async () => {
  importRoot = await mkdtemp(join(tmpdir(), 'tidemark-import-'));
  harness = await startHarness({ importRoot });
});
test.after.always(async () => {
  await harness.server.close();
  await rm(importRoot, { recursive: true, force: true });
});

const target = (): string => `${harness.url}/api/v1/import/file`;
const stored = (): Promise<string[]> => readdir(join(importRoot, 'upload'));

async function send(body: Uint8Array): Promise<string> {
  const response = await fetch(target(), { method: 'POST', body });
  return ((await response.json()) as { file: string }).file;
}

test.serial('an uploaded file gets a generated name, by which it can be deleted', async (t) => {
  const bytes = new Uint8Array(300_000).map((_, index) => index % 251);
  const file = await send(bytes);
  t.regex(file, /^upload\/[0-9a-f]{32}\.parquet$/);
  t.deepEqual(new Uint8Array(await readFile(join(importRoot, file))), bytes);
  const removed = await fetch(`${target()}?file=${file}`, { method: 'DELETE' });
  t.is(removed.status, 200);
  t.deepEqual(await stored(), []);
});

test.serial('file names that were not generated are refused', async (t) => {
  await writeFile(join(importRoot, 'other.parquet'), 'kept');
  for (const file of ['other.parquet', 'upload/../other.parquet', '/etc/passwd', '']) {
    const query = new URLSearchParams({ file }).toString();
    t.is((await fetch(`${target()}?${query}`, { method: 'DELETE' })).status, 400, file);
  }
  t.is(await readFile(join(importRoot, 'other.parquet'), 'utf8'), 'kept');
});

/** Starts an upload and disconnects after `afterMs` milliseconds. */
async function breakOff(afterMs: number): Promise<void> {
  await new Promise<void>((resolve) => {
    const socket = connect(harness.port, '127.0.0.1', () => {
      socket.write(
        'POST /api/v1/import/file HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nPAR1',
        () => setTimeout(() => socket.destroy(), afterMs),
      );
    });
    // The server may close first.
    socket
      .on('error', () => undefined)
      .once('close', () => {
        resolve();
      });
  });
}

test.serial('aborted uploads leave no files', async (t) => {
  for (let round = 0; round < 10; round += 1) {
    await Promise.all(Array.from({ length: 60 }, (_, index) => breakOff((index * 37) % 13)));
    await sleep(300);
  }
  // The server notices the disconnect a moment later. This does not delay the next upload.
  const file = await send(new Uint8Array([1]));
  await sleep(500);
  await until(
    async () => (await stored()).length === 1,
    'files left by aborted uploads are deleted',
  );
  t.deepEqual(await stored(), [file.slice('upload/'.length)]);
});

test.serial('abandoned uploads are deleted after a day', async (t) => {
  const left = await send(new Uint8Array([1]));
  const yesterday = Date.now() / 1000 - 25 * 3600;
  await utimes(join(importRoot, left), yesterday, yesterday);
  const fresh = await send(new Uint8Array([2]));
  const names = (await stored()).map((name) => `upload/${name}`);
  t.false(names.includes(left));
  t.true(names.includes(fresh));
});

test.serial('a read-only server refuses uploads', async (t) => {
  const readOnly = await startHarness({ importRoot, set: ['http.security.readonly=true'] });
  const response = await fetch(`${readOnly.url}/api/v1/import/file`, { method: 'POST', body: 'x' });
  t.is(response.status, 403);
  await readOnly.server.close();
});

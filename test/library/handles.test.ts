/** Handles of the embedded library on one root: in one thread, in workers, and in processes. */
import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';

import test, { type ExecutionContext } from 'ava';

import { open } from '../../ts/index.js';
import { isRefused } from './with-library.js';

// In-memory databases are created in a directory that only this file uses, so they can be counted.
process.env['TMPDIR'] = mkdtempSync(join(tmpdir(), 'tidemark-handles-'));
const LIBRARY = new URL('../../ts/index.js', import.meta.url).href;

async function rootOf(t: ExecutionContext): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-handles-'));
  t.teardown(() => rm(root, { recursive: true, force: true }));
  return root;
}

test.after.always(() => rm(tmpdir(), { recursive: true, force: true }));

test('handles in one process share a root; closing the last handle releases it', async (t) => {
  const root = await rootOf(t);
  const first = await open(root);
  const second = await open({ root: join(root, '.') });
  await first.execute('CREATE TABLE t (x INT)');
  await second.execute('INSERT INTO t VALUES (1)');
  t.deepEqual(await first.query('SELECT x FROM t'), [{ x: 1 }]);
  const other = (): Promise<unknown> => open({ root, workers: 1 });
  await isRefused(t, other, 'InvalidValue', /is already open in this process with other options$/);
  await first.close();
  await first.close();
  await isRefused(t, () => first.query('SELECT 1'), 'Closed', 'the database is closed');
  t.deepEqual(await second.query('SELECT x FROM t'), [{ x: 1 }]);
  await second.close();
  const again = await open({ root, workers: 1 });
  t.deepEqual(await again.query('SELECT x FROM t'), [{ x: 1 }]);
  await again.close();
});

test('handles opened concurrently share a root', async (t) => {
  const root = await rootOf(t);
  const handles = await Promise.all(Array.from({ length: 8 }, () => open(root)));
  await Promise.all(handles.map((db, index) => db.execute(`CREATE TABLE t${index} (x INT)`)));
  await Promise.all(handles.map((db) => db.close()));
  const again = await open(root);
  t.is((await again.query('SELECT table_name FROM tables()')).length, 8);
  await again.close();
});

test('worker threads share the root, and may exit without closing their handles', async (t) => {
  const root = await rootOf(t);
  const db = await open(root);
  await db.execute('CREATE TABLE t (x INT)');
  const program = `
    const { workerData } = require('node:worker_threads');
    import('${LIBRARY}').then(async ({ open }) => {
      const db = await open(workerData.root);
      await db.execute('INSERT INTO t VALUES ($1)', [workerData.x]);
    });`;
  const workers = [1, 2, 3].map(
    (x) => new Worker(program, { eval: true, workerData: { root, x } }),
  );
  const exits = workers.map((worker) => once(worker, 'exit') as Promise<unknown>);
  t.deepEqual(await Promise.all(exits), [[0], [0], [0]]);
  t.deepEqual(await db.query('SELECT x FROM t ORDER BY x'), [{ x: 1 }, { x: 2 }, { x: 3 }]);
  await db.close();
  const again = await open(root);
  await again.close();
});

test('another process is refused with the process ID of the owner', async (t) => {
  const root = await rootOf(t);
  const db = await open(root);
  const program = `
    const { open } = await import('${LIBRARY}');
    await open('${root}').catch(({ code, message }) => console.log(code, message));`;
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ['--input-type=module', '--eval', program]);
  t.is(stdout.trim(), `RootLocked ${root} is in use by another process [pid=${process.pid}]`);
  await db.close();
});

test('a program can serve its open database, which remains open afterwards', async (t) => {
  const root = await rootOf(t);
  const db = await open(root);
  await db.execute('CREATE TABLE t (x INT)');
  const free = ['http.bind.to', 'http.min.bind.to', 'pg.net.bind.to', 'line.tcp.net.bind.to'];
  const set = free.map((key) => `${key}=127.0.0.1:0`);
  const server = await db.serve({ set, writeLog: () => undefined });
  const url = `http://${server.httpAddress}/exec?query=`;
  const inserted = await fetch(url + encodeURIComponent('INSERT INTO t VALUES (5)'));
  t.is(inserted.status, 200);
  t.deepEqual(await db.query('SELECT x FROM t'), [{ x: 5 }]);
  await server.close();
  await t.throwsAsync(() => fetch(`${url}SELECT+1`));
  t.deepEqual(await db.query('SELECT x FROM t'), [{ x: 5 }]);
  await db.close();
});

test('a database opened read-only refuses every write', async (t) => {
  const root = await rootOf(t);
  const db = await open(root);
  await db.execute('CREATE TABLE t (x INT)');
  const reader = await open({ root, readOnly: true });
  t.deepEqual(await reader.query('SELECT x FROM t'), []);
  const writes: (() => Promise<unknown>)[] = [
    () => reader.execute('INSERT INTO t VALUES (1)'),
    () => reader.execute('DROP TABLE t'),
    async () => (await reader.appender('t')).append({ x: 1 }),
    () => reader.importCsv('t', ['x\n1\n']),
    () => reader.transaction((tx) => tx.execute('INSERT INTO t VALUES (1)')),
  ];
  for (const write of writes) {
    await isRefused(t, write, 'ReadOnly', /only/);
  }
  t.deepEqual(await db.query('SELECT x FROM t'), []);
  await reader.close();
  await db.close();
});

test('a database in memory leaves no files behind', async (t) => {
  const temporary = async (): Promise<number> =>
    (await readdir(tmpdir())).filter((name) => name.startsWith('tidemark-memory-')).length;
  const [one, other] = await Promise.all([open(':memory:'), open(':memory:')]);
  await one.execute('CREATE TABLE t (x INT)');
  await isRefused(t, () => other.query('SELECT x FROM t'), 'TableNotFound', /./);
  t.is(await temporary(), 2);
  await Promise.all([one.close(), other.close()]);
  t.is(await temporary(), 0);
});

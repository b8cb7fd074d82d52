/**
 * Functions that list files: the files that COPY and queries may read, and the files that COPY
 * wrote.
 */
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, rows } from '../scenario/statements.js';
import { put, write } from './harness.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
  await mkdir(join(server.root, 'import', 'deep', 'er'), { recursive: true });
  await put(server, 'a.csv', 'x\n1\n');
  await put(server, 'b.json', '{"x":1}');
  await put(server, 'deep/c.csv', 'x\n1\n22\n');
  await put(server, 'deep/er/d.csv', '');
  await symlink('/etc/passwd', join(server.root, 'import', 'link.csv'));
  await symlink('/etc', join(server.root, 'import', 'etc'));
});

test.after.always(async () => {
  await server.stop();
});

const paths = async (source: string): Promise<unknown[]> =>
  (await rows(server, `SELECT path FROM ${source}`)).flat();

test.serial('files in the import directory are listed, but symbolic links are not', async (t) => {
  const all = ['a.csv', 'b.json', 'deep/c.csv', 'deep/er/d.csv'];
  t.deepEqual(await paths('import_files()'), all);
  for (const everything of ["files('.')", "files('')", "files('./')", "glob('**')"]) {
    t.deepEqual(await paths(everything), all, everything);
  }
  t.deepEqual(await paths("files('deep')"), ['deep/c.csv', 'deep/er/d.csv']);
  t.deepEqual(await paths("files('./deep/er/')"), ['deep/er/d.csv']);
  t.deepEqual(await paths("glob('*.csv')"), ['a.csv']);
  t.deepEqual(await paths("glob('**/[cd].csv')"), ['deep/c.csv', 'deep/er/d.csv']);
  t.deepEqual(await paths("glob('none*')"), []);
  const query = "SELECT diskSize, diskSizeHuman FROM files('deep') WHERE path LIKE '%c.csv'";
  t.deepEqual(await rows(server, query), [[7, '7.0 B']]);
  const recent = "SELECT count() FROM import_files() WHERE modifiedTime > dateadd('h', -1, now())";
  t.deepEqual(await rows(server, recent), [[4]]);
});

test.serial('a repeated statement lists files added in the meantime', async (t) => {
  t.deepEqual(await paths("glob('new/*')"), []);
  await mkdir(join(server.root, 'import', 'new'));
  await put(server, 'new/one.csv', 'x\n1\n');
  t.deepEqual(await paths("glob('new/*')"), ['new/one.csv']);
});

test.serial('files written by COPY are listed', async (t) => {
  t.deepEqual(await paths('export_files()'), []);
  await write(server, "COPY (SELECT 1 AS x) TO 'out' WITH FORMAT CSV");
  t.deepEqual(await paths('export_files()'), ['out.csv']);
});

test.serial('nothing outside the configured directories is listed', async (t) => {
  for (const [source, message] of [
    ["files('/etc')", /outside the import directory/],
    ["files('..')", /outside the import directory/],
    ["glob('../**')", /outside the import directory/],
    ["glob('')", /outside the import directory/],
    ['glob()', /glob requires 1 argument/],
    ["import_files('.')", /import_files requires 0 argument/],
    ["files('a', 'b')", /files requires 1 argument/],
    ['files(null)', /file name expected/],
  ] as const) {
    const answer = await exec(server, `SELECT * FROM ${source}`);
    t.regex(answer.error ?? '', message, source);
  }
  t.deepEqual(await paths("files('etc')"), []);
});

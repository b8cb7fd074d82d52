/** COPY without a server: the embedded library runs the same jobs. */
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import test from 'ava';

import { open } from '../../ts/index.js';
import { until } from '../until.js';

test('the embedded library supports COPY, and stops its jobs on close', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-embedded-'));
  try {
    const database = await open({ root });
    const answer = await database.query(
      "COPY (SELECT x FROM long_sequence(2)) TO 'two' WITH FORMAT CSV",
    );
    t.regex(answer[0]?.['id'] as string, /^[\da-f]{16}$/);
    const log = "SELECT status FROM sys.copy_export_log WHERE phase = 'success'";
    await until(async () => (await database.query(log)).length > 0, 'the first job ends');
    t.is(await readFile(join(root, 'export', 'two.csv'), 'utf8'), '"x"\r\n1\r\n2\r\n');
    const long = 'long_sequence(1000000)';
    await database.execute(
      `COPY (SELECT a.x FROM ${long} a CROSS JOIN ${long} b) TO 'long' WITH FORMAT CSV`,
    );
    await database.close();
    const again = await open({ root });
    const ends = await again.query(
      "SELECT message FROM sys.copy_export_log WHERE status = 'cancelled'",
    );
    t.is(ends[0]?.['message'], 'the server is shutting down');
    await again.close();
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

test('the embedded library can query text files and export the result', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-embedded-'));
  try {
    await mkdir(join(root, 'import'));
    await writeFile(join(root, 'import', 'plain.csv'), 'a,b\n1,2\n3,4\n');
    await writeFile(join(root, 'import', 'packed.json'), gzipSync('{"a":5}\n{"a":6}\n'));
    const database = await open({ root });
    const both = `SELECT a FROM read_csv('plain.csv')
      UNION ALL SELECT a FROM read_json('packed.json')`;
    const rows = await database.query(both);
    t.deepEqual(rows, [{ a: 1 }, { a: 3 }, { a: 5 }, { a: 6 }]);
    await database.query(`COPY (${both}) TO 'both' WITH FORMAT CSV`);
    const log = "SELECT status FROM sys.copy_export_log WHERE phase = 'success'";
    await until(async () => (await database.query(log)).length > 0, 'the job ends');
    t.is(await readFile(join(root, 'export', 'both.csv'), 'utf8'), '"a"\r\n1\r\n3\r\n5\r\n6\r\n');
    await database.close();
  } finally {
    await rm(root, { recursive: true, force: true });
  }
});

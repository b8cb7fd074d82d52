/** A Parquet file that is damaged is an error of the file, wherever its reader stops. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { ask, rowsOf } from '../limits/client.js';

/** Bytes at the head of a file: the header and the values of its first pages. */
const HEAD_BYTES = 180;

test('a flipped bit is no internal error', async (t) => {
  t.timeout(120_000);
  const server = await startTestServer();
  try {
    await rowsOf(server, 'create table t (i int, s symbol, d double)');
    await rowsOf(server, "insert into t select x::int, 'k' || (x % 3), x from long_sequence(20)");
    const exported = await fetch(`${server.url}/exp?fmt=parquet&query=t`);
    const whole = Buffer.from(await exported.arrayBuffer());
    t.true(whole.length > HEAD_BYTES);
    const file = join(server.root, 'import', 'damaged.parquet');
    await mkdir(join(server.root, 'import'), { recursive: true });
    const wrong: string[] = [];
    let stopped = 0;
    for (let at = 4; at < HEAD_BYTES; at += 1) {
      for (const bit of [1, 5]) {
        const damaged = Buffer.from(whole);
        damaged[at] = (whole[at] ?? 0) ^ (1 << bit);
        await writeFile(file, damaged);
        const { status, error } = await ask(
          server,
          "select * from read_parquet('damaged.parquet')",
        );
        if (status >= 500 || error?.includes('internal') === true) {
          wrong.push(`byte ${at}, bit ${bit}: ${status} ${error ?? ''}`);
        }
        stopped += error?.includes('the file is damaged') === true ? 1 : 0;
      }
    }
    t.deepEqual(wrong, []);
    t.true(stopped > 0, 'some of them bring the reader of the library to a panic');
    t.deepEqual(await rowsOf(server, 'select 1'), [[1]]);
  } finally {
    await server.stop();
  }
});

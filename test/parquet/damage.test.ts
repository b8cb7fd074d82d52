/** A damaged Parquet file causes an error about the file, wherever the reader stops. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { send, rowsOf } from '../limits/client.js';

/** Bytes at the start of a file: the header and the values of its first pages. */
const HEAD_BYTES = 180;

test('a flipped bit never causes an internal error', async (t) => {
  t.timeout(120_000);
  const server = await startTestServer();
  try {
    await rowsOf(server, 'create table t (i int, s symbol, d double)');
    await rowsOf(server, "insert into t select x::int, 'k' || (x % 3), x from long_sequence(20)");
    const exported = await fetch(`${server.url}/exp?fmt=parquet&query=t`);
    const complete = Buffer.from(await exported.arrayBuffer());
    t.true(complete.length > HEAD_BYTES);
    const file = join(server.root, 'import', 'damaged.parquet');
    await mkdir(join(server.root, 'import'), { recursive: true });
    const wrong: string[] = [];
    let stopped = 0;
    for (let at = 4; at < HEAD_BYTES; at += 1) {
      for (const bit of [1, 5]) {
        const damaged = Buffer.from(complete);
        damaged[at] = (complete[at] ?? 0) ^ (1 << bit);
        await writeFile(file, damaged);
        const { status, error } = await send(
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
    t.true(stopped > 0, 'some files cause a panic in the library');
    t.deepEqual(await rowsOf(server, 'select 1'), [[1]]);
  } finally {
    await server.stop();
  }
});

/** Builds a file without rows, whose columns are groups nested `levels` deep. */
function nestedFile(levels: number): Buffer {
  const count: number[] = [];
  for (let left = levels + 2; left > 0; left = Math.floor(left / 128)) {
    count.push((left % 128) | (left > 127 ? 128 : 0));
  }
  // Thrift's compact protocol: the version, the schema from the root down, no rows.
  const group = Buffer.from('3502180161150200', 'hex');
  const footer = Buffer.concat([
    Buffer.from('150219fc', 'hex'),
    Buffer.from(count),
    Buffer.from('4806736368656d61150200', 'hex'),
    ...Array.from({ length: levels }, () => group),
    Buffer.from('15042502180161001600190c00', 'hex'),
  ]);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(footer.length);
  return Buffer.concat([Buffer.from('PAR1'), footer, length, Buffer.from('PAR1')]);
}

test('columns nested hundreds of levels deep are read; deeper nesting is refused', async (t) => {
  const server = await startTestServer();
  try {
    const folder = join(server.root, 'import');
    await mkdir(folder, { recursive: true });
    for (const [levels, expected] of [
      [50, undefined],
      [900, undefined],
      [1_000, /^cannot read 'deep\.parquet': columns are nested more than 1000 levels deep$/],
      [50_000, /nested more than 1000 levels deep$/],
      [1_000_000, /nested more than 1000 levels deep$/],
    ] as const) {
      await writeFile(join(folder, 'deep.parquet'), nestedFile(levels));
      const { rows, error } = await send(server, "select * from read_parquet('deep.parquet')");
      if (expected === undefined) {
        t.deepEqual(rows, [], `${levels} levels: ${error ?? ''}`);
      } else {
        t.regex(error ?? '', expected, `${levels} levels`);
      }
    }
    t.deepEqual(await rowsOf(server, 'select 1'), [[1]]);
  } finally {
    await server.stop();
  }
});

/**
 * When a partition is converted, the files in the old format are removed soon after their last
 * reader ends.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { until } from '../until.js';
import { rowsOf } from './client.js';

const DAY = '2024-01-01';
const DROPS: Readonly<Record<string, string>> = {
  'nothing dropped': '',
  'partition dropped': `alter table t drop partition list '${DAY}'`,
  'table dropped': 'drop table t',
};

for (const [name, drop] of Object.entries(DROPS)) {
  test(`old files of a converted partition are removed: ${name}`, async (t) => {
    const server = await startTestServer({ set: ['shared.query.worker.count=2'] });
    t.teardown(() => server.stop());
    const files = async (): Promise<readonly string[]> => {
      const found = await readdir(join(server.root, 'db', 't'), { recursive: true });
      return found.filter((file) => file.includes(DAY));
    };
    await rowsOf(
      server,
      `create table t as (select timestamp_sequence('${DAY}', 1000000) ts, x
        from long_sequence(100000)) timestamp(ts) partition by day`,
    );
    const original = await files();
    t.is(original.length, 1);
    for (const format of ['parquet', 'native']) {
      await rowsOf(server, `alter table t convert partition to ${format} list '${DAY}'`);
    }
    if (drop !== '') {
      await rowsOf(server, drop);
    }
    const remaining = drop === '' ? 1 : 0;
    const isFree = async (): Promise<boolean> =>
      (await files().catch(() => [])).length === remaining;
    await until(isFree, 'the old files are removed');
    t.notDeepEqual(await files().catch(() => []), original);
  });
}

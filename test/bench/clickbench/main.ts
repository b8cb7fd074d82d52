/**
 * node build/test/bench/clickbench/main.js --rows N [--seed N] --out FOLDER
 *
 * Writes generated rows of ClickBench's table (`hits.csv`), and the schema and the 43 queries
 * scaled to N rows (`kit.json`). `clickbench.py` loads and runs them.
 */
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { COLUMNS, csvHeader, csvLine, hitRows } from './columns.js';
import { queriesFor } from './queries.js';

const CHUNK_BYTES = 1 << 20;

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '1000000' },
    seed: { type: 'string', default: '1' },
    out: { type: 'string' },
  },
});
const rows = Number(values.rows);
const folder = values.out ?? 'clickbench-data';
await mkdir(folder, { recursive: true });
await writeRows(join(folder, 'hits.csv'));
const columns = COLUMNS.map(([name, type]) => ({ name, type }));
const kit = { rows, seed: Number(values.seed), columns, queries: queriesFor(rows) };
await writeFile(join(folder, 'kit.json'), `${JSON.stringify(kit, null, 1)}\n`);

async function writeRows(path: string): Promise<void> {
  const file = createWriteStream(path);
  let chunk = csvHeader();
  for (const row of hitRows(rows, Number(values.seed))) {
    chunk += csvLine(row);
    if (chunk.length >= CHUNK_BYTES) {
      if (!file.write(chunk)) {
        await once(file, 'drain');
      }
      chunk = '';
    }
  }
  file.end(chunk);
  await once(file, 'finish');
}

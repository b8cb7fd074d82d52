/**
 * The engine log. Runs alone in its process, because it receives the log lines of all databases.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { openDatabase } from '../../ts/engine/index.js';

test('closing a database delivers its entire log', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-log-'));
  const events: string[] = [];
  for (let round = 1; round <= 50; round += 1) {
    const database = await openDatabase({
      root,
      logSink: (lines) => {
        events.push(...lines.map((line) => line.event));
      },
    });
    await database.close();
    t.is(events.filter((event) => event === 'closed').length, round);
  }
  await rm(root, { recursive: true, force: true });
});

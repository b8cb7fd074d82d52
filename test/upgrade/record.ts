/**
 * Records a data directory of the current format: `node build/test/upgrade/record.js`. Run it once
 * per format version, before that version is released. The test opens every recorded directory.
 */
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { exitCode, startTestServer } from '../golden/server.js';
import { until } from '../until.js';
import { ADMIN, answers, CONTENT, formatOf, ROOTS, run, SETTINGS, viewRows } from './content.js';

/** Starts a server, writes the content, and returns the answers to all queries. */
async function record(): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-record-'));
  const server = await startTestServer({ root, set: SETTINGS });
  for (const statement of CONTENT) {
    await run(server, ADMIN, statement);
  }
  await until(async () => (await viewRows(server)) === 3, 'the materialized view has its rows');
  await server.stop();
  // The log of a killed server has rows that a start must replay.
  const killed = await startTestServer({ root, set: SETTINGS });
  await run(killed, ADMIN, "INSERT INTO trades VALUES ('2026-01-03T09:00', 'C', 4.0, 40, NULL)");
  await until(async () => (await viewRows(killed)) === 4, 'the materialized view has its rows');
  const recorded = await answers(killed);
  killed.process.kill('SIGKILL');
  await exitCode(killed.process);
  const version = formatOf(await readFile(join(root, 'db', 'FORMAT'), 'utf8'));
  const folder = join(ROOTS, `v${version}`);
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  await cp(join(root, 'db'), join(folder, 'db'), { recursive: true });
  await rm(join(folder, 'db', 'reserve'), { force: true });
  await rm(root, { recursive: true });
  await writeFile(join(folder, 'expected.json'), `${JSON.stringify(recorded, null, 2)}\n`);
}

await record();

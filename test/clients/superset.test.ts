/**
 * The connections of `docs/connect/superset.md`: its user and its URIs, QuestDB's dialect for
 * SQLAlchemy, and the statements of its engine specification. `recorded.test.ts` replays the
 * statements that Superset sends with its PostgreSQL engine specification.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { pgClient } from '../pg-client.js';
import { answerOf, program, skip, SOURCES, TOOLS } from './harness.js';

const PAGE = readFileSync(new URL('../../docs/connect/superset.md', SOURCES), 'utf8');
const PYTHON = join(TOOLS, 'superset', 'bin', 'python3');
const addon = new URL('../../../native/index.js', import.meta.url);
const expected = JSON.parse(readFileSync(new URL('expected.json', SOURCES), 'utf8')) as Readonly<
  Record<string, unknown>
>;

const blocksOf = (language: string): string[] =>
  [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(
    ([, code = '']) => code.trim(),
  );

test('Superset: the URIs of the page connect, and questdb-connect works', async (t) => {
  t.timeout(120_000);
  if (!existsSync(addon) || !existsSync(PYTHON)) {
    skip(t, 'the addon or questdb-connect is not installed: node scripts/setup-tests.mjs');
    return;
  }
  const server = await startTestServer({ set: ['acl.enabled=true', 'acl.admin.password=quest'] });
  t.teardown(() => server.stop());
  const client = pgClient(server.pg);
  await client.connect();
  for (const statement of blocksOf('sql').flatMap((code) => code.split(';'))) {
    await client.query(statement);
  }
  await client.end();
  const port = server.pg.split(':').at(-1) ?? '';
  const uris = blocksOf('text').map((uri) => uri.replace('8812', port));
  const seen = await answerOf(PYTHON, [program('questdb_dialect.py'), port, ...uris]);
  t.deepEqual(seen, expected['questdb-connect']);
});

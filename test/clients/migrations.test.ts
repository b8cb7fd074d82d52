/**
 * Migration tools, each run from an empty database to completion. The expected results of each
 * check are in `expected.json`; `docs/clients.md` counts the checks.
 */
import { existsSync, readFileSync } from 'node:fs';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import test from 'ava';

import { answerOf, has, PASSWORD, portFor, program, run, skip, SOURCES, TOOLS } from './harness.js';

const expected = JSON.parse(readFileSync(new URL('expected.json', SOURCES), 'utf8')) as Record<
  string,
  unknown
>;

for (const tool of ['sqlalchemy', 'alembic', 'django']) {
  test.serial(`${tool}: creates tables, alters them, reads and writes rows`, async (t) => {
    const port = await portFor(t);
    if (port === null) {
      return;
    }
    if (!(await has('python3', '-c', `import ${tool}, psycopg`))) {
      skip(t, `${tool} is not installed: node scripts/setup-tests.mjs`);
      return;
    }
    t.deepEqual(await answerOf('python3', [program('migrations.py'), String(port), tool]), {
      ...(expected[tool] as object),
    });
  });
}

for (const tool of ['knex', 'typeorm', 'sequelize', 'kysely', 'drizzle']) {
  test.serial(`${tool}: creates tables, alters them, reads and writes rows`, async (t) => {
    const port = await portFor(t);
    if (port === null) {
      return;
    }
    const modules = join(TOOLS, 'node', 'node_modules');
    if (!existsSync(join(modules, tool === 'drizzle' ? 'drizzle-kit' : tool))) {
      skip(t, `${tool} is not installed: node scripts/setup-tests.mjs`);
      return;
    }
    const args = [program('migrations.mjs'), String(port), modules, tool];
    t.deepEqual(await answerOf(process.execPath, args), expected[tool]);
  });
}

test.serial('gorm runs AutoMigrate, handles rows and queries the catalog', async (t) => {
  const port = await portFor(t);
  const client = join(TOOLS, 'bin', 'gorm-client');
  if (port === null) {
    return;
  }
  if (!existsSync(client)) {
    skip(t, 'GORM is not built: node scripts/setup-tests.mjs');
    return;
  }
  t.deepEqual(await answerOf(client, [String(port)]), expected['gorm']);
});

test.serial('dbt builds seeds, models and snapshots twice, then with --full-refresh', async (t) => {
  const port = await portFor(t);
  const dbt = join(TOOLS, 'dbt', 'bin', 'dbt');
  if (port === null) {
    return;
  }
  if (!existsSync(dbt)) {
    skip(t, 'dbt is not installed: node scripts/setup-tests.mjs');
    return;
  }
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-dbt-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  await cp(fileURLToPath(new URL('dbt/', SOURCES)), folder, { recursive: true });
  const env = { ...process.env, TIDEMARK_PORT: String(port), PGPASSWORD: PASSWORD };
  const steps: Record<string, string> = {};
  for (const step of ['build', 'build again', 'build --full-refresh']) {
    const words = step.replace(' again', '').split(' ');
    const args = ['--no-version-check', ...words, '--profiles-dir', '.'];
    const ran = run(dbt, args, { cwd: folder, env });
    const { stdout } = await ran.catch((error: unknown) => error as { stdout: string });
    steps[step] = /PASS=\d+ WARN=\d+ ERROR=\d+ SKIP=\d+/.exec(stdout)?.[0] ?? stdout;
  }
  t.deepEqual(steps, expected['dbt']);
});

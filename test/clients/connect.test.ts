/** The examples in `docs/connect`, run against a server if their language is installed. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { has, ODBC_PROBE, PASSWORD, portFor, run, skip, TOOLS } from './harness.js';
import { blocksOf } from './pages.js';

/** Returns a page's examples in one language, adapted to this server's port. */
async function examples(page: string, language: string, port: number): Promise<string[]> {
  const blocks = await blocksOf(page, language);
  return blocks.map((code) => code.replaceAll('8812', String(port)));
}

test.serial('Python clients connect: psycopg, SQLAlchemy, pandas, asyncpg, Polars', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  if (!(await has('python3', '-c', 'import psycopg, sqlalchemy, pandas, asyncpg, polars'))) {
    skip(t, 'drivers of Python are not installed: node scripts/setup-tests.mjs');
    return;
  }
  const codes = await examples('python', 'python', port);
  t.is(codes.length, 4);
  for (const code of codes) {
    await t.notThrowsAsync(run('python3', ['-c', code]), code);
  }
});

test.serial('JavaScript clients connect: node-postgres, postgres.js', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const modules = join(TOOLS, 'node');
  if (!existsSync(join(modules, 'node_modules', 'postgres'))) {
    skip(t, 'drivers of Node are not installed: node scripts/setup-tests.mjs');
    return;
  }
  const folder = await mkdtemp(join(modules, 'example-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const codes = await examples('javascript', 'js', port);
  t.is(codes.length, 2);
  for (const code of codes) {
    const file = join(folder, 'example.mjs');
    await writeFile(file, code);
    await t.notThrowsAsync(run(process.execPath, [file]), code);
  }
});

test.serial('psql connects', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  if (!(await has('psql', '--version'))) {
    skip(t, 'psql is not installed');
    return;
  }
  const env = { ...process.env, PGPASSWORD: PASSWORD };
  for (const code of await examples('psql-and-admin', 'sh', port)) {
    await t.notThrowsAsync(run('sh', ['-e', '-c', code], { env, cwd: tmpdir() }), code);
  }
});

/** Pages with one example per language, and how to run it. */
const OTHERS: readonly {
  readonly page: string;
  readonly language: string;
  readonly command: string;
  readonly flag: string;
  /** Code that checks whether the driver is installed. */
  readonly probe: string;
}[] = [
  {
    page: 'ruby-php-perl',
    language: 'ruby',
    command: 'ruby',
    flag: '-e',
    probe: 'require "pg"',
  },
  {
    page: 'ruby-php-perl',
    language: 'php',
    command: 'php',
    flag: '-r',
    probe: 'exit(extension_loaded("pdo_pgsql") ? 0 : 1);',
  },
  { page: 'ruby-php-perl', language: 'perl', command: 'perl', flag: '-e', probe: 'use DBD::Pg' },
  {
    page: 'dotnet-odbc-bi',
    language: 'python',
    command: 'python3',
    flag: '-c',
    probe: ODBC_PROBE,
  },
];

for (const { page, language, command, flag, probe } of OTHERS) {
  test.serial(`${page}: ${language}`, async (t) => {
    const port = await portFor(t);
    if (port === null) {
      return;
    }
    if (!(await has(command, flag, probe))) {
      skip(t, `the driver of ${language} is not installed: node scripts/setup-tests.mjs`);
      return;
    }
    const codes = await examples(page, language, port);
    t.is(codes.length, 1);
    for (const code of codes) {
      await t.notThrowsAsync(run(command, [flag, code]), code);
    }
  });
}

/**
 * Drivers for Perl, PHP and Ruby, ODBC, ibis, and Rails's object mapper, each tested by a program
 * in `programs`. The expected results of each check are in `expected.json`; `docs/clients.md`
 * counts the checks.
 */
import { readFileSync } from 'node:fs';

import test from 'ava';

import { answerOf, has, ODBC_PROBE, portFor, program, skip, SOURCES } from './harness.js';

const expected = JSON.parse(readFileSync(new URL('expected.json', SOURCES), 'utf8')) as Record<
  string,
  unknown
>;

interface Client {
  readonly tool: string;
  readonly title: string;
  readonly command: string;
  readonly file: string;
  /** Command arguments that check whether all dependencies are installed. */
  readonly probe: readonly string[];
}

const CLIENTS: readonly Client[] = [
  {
    tool: 'odbc',
    title: 'ODBC: values, parameter arrays, catalog functions and transactions work',
    command: 'python3',
    file: 'odbc.py',
    probe: ['-c', ODBC_PROBE],
  },
  {
    tool: 'ibis',
    title: 'ibis: tables, expressions and data frames in both directions work',
    command: 'python3',
    file: 'ibis_postgres.py',
    probe: ['-c', 'import ibis, packaging, psycopg, pyarrow'],
  },
  {
    tool: 'dbdpg',
    title: 'DBD::Pg: values, placeholders, catalog methods, COPY and transactions work',
    command: 'perl',
    file: 'dbdpg.pl',
    probe: ['-MDBD::Pg', '-e', '1'],
  },
  {
    tool: 'pdo',
    title: 'PDO: values, real and emulated prepares, COPY and transactions work',
    command: 'php',
    file: 'pdo.php',
    probe: ['-r', 'exit(extension_loaded("pdo_pgsql") ? 0 : 1);'],
  },
  {
    tool: 'rubypg',
    title: 'ruby-pg: values, type maps, COPY, pipelines, cursors and cancelling work',
    command: 'ruby',
    file: 'rubypg.rb',
    probe: ['-e', 'require "pg"'],
  },
  {
    tool: 'activerecord',
    title: 'Active Record: migrations, models and catalog queries work',
    command: 'ruby',
    file: 'activerecord.rb',
    probe: ['-e', 'require "pg"; require "active_record"'],
  },
];

for (const { tool, title, command, file, probe } of CLIENTS) {
  test.serial(title, async (t) => {
    const port = await portFor(t);
    if (port === null) {
      return;
    }
    if (!(await has(command, ...probe))) {
      skip(t, `${tool} is not installed: node scripts/setup-tests.mjs`);
      return;
    }
    t.deepEqual(await answerOf(command, [program(file), String(port)]), expected[tool]);
  });
}

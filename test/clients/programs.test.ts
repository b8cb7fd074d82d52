/** Programs shipped with PostgreSQL, against a real server: `\copy` in psql, pgbench. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';

import { has, PASSWORD, portFor, run, skip } from './harness.js';

const environment = { ...process.env, PGPASSWORD: PASSWORD, PGUSER: 'admin', PGDATABASE: 'qdb' };

/** Returns the path of a PostgreSQL client program, or null if it is missing. */
async function programFor(
  t: ExecutionContext,
  name: string,
): Promise<((...args: string[]) => Promise<{ stdout: string; stderr: string }>) | null> {
  const port = await portFor(t);
  if (port === null) {
    return null;
  }
  if (!(await has(name, '--version'))) {
    skip(t, `${name} is not installed`);
    return null;
  }
  const connection = ['-h', '127.0.0.1', '-p', String(port)];
  return (...args) => run(name, [...connection, ...args], { env: environment });
}

test('psql: \\copy reads and writes files, and COPY accepts inline data', async (t) => {
  const psql = await programFor(t, 'psql');
  if (psql === null) {
    return;
  }
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-psql-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const commands = (...texts: string[]): string[] => texts.flatMap((text) => ['-c', text]);
  const file = join(folder, 'rows');
  const quiet = ['-X', '-A', '-t', '-q', '-v', 'ON_ERROR_STOP=1'];
  const script = commands(
    'CREATE TABLE pc (a INT, v VARCHAR, d DOUBLE)',
    'INSERT INTO pc VALUES (1, \'a,"b"\', 1.5), (2, null, null)',
    `\\copy pc TO '${file}.csv' CSV HEADER`,
    `\\copy pc FROM '${file}.csv' CSV HEADER`,
    `\\copy (SELECT * FROM pc WHERE a = 1) TO '${file}.bin' BINARY`,
    `\\copy pc FROM '${file}.bin' BINARY`,
    'SELECT a, v, d, count() FROM pc ORDER BY a',
  );
  const { stdout } = await psql(...quiet, ...script);
  t.is(stdout, '1|a,"b"|1.5|4\n2|||2\n');
  t.is(await readFile(`${file}.csv`, 'utf8'), 'a,v,d\n1,"a,""b""",1.5\n2,,\n');
  const wrong = psql(...quiet, ...commands(`\\copy pc (v, a, d) FROM '${file}.csv' CSV HEADER`));
  const { stderr } = await t.throwsAsync<Error & { stderr: string }>(wrong);
  t.regex(stderr, /inconvertible value[^]*CONTEXT: {2}COPY pc, line 2/);
});

/** Commands that query the catalog, each with a pattern that its output must match. */
const CATALOG_COMMANDS: readonly (readonly [string, RegExp])[] = [
  ['\\l', /^qdb\|admin\|UTF8\|/m],
  ['\\l+', /^qdb\|/m],
  ['\\d', /^public\|cat\|table\|admin\npublic\|cat_view\|view\|admin$/m],
  ['\\dt', /^public\|cat\|table\|admin$/m],
  ['\\dt+', /^public\|cat\|table\|admin\|/m],
  ['\\dv', /^public\|cat_view\|view\|admin$/m],
  ['\\d cat', /^ts\|timestamp without time zone\|\|not null\|$/m],
  ['\\d cat', /^price\|double precision\|\|\|1.5$/m],
  ['\\d+ cat', /^sym\|character varying\|/m],
  ['\\d cat_view', /^n\|bigint\|/m],
  ['\\sv cat_view', /SELECT sym/i],
  ['\\d pg_class', /^relname\|name\|/m],
  ['\\dn', /^public\|admin$/m],
  ['\\du', /^admin\|/m],
  ['\\dx', /^questdb\|/m],
  ['\\db', /^pg_default\|admin\|/m],
  ['\\df abs', /abs/],
  ['\\dT', /^$/],
  ['\\di', /^public\|pgbench_accounts_pkey\|index\|/m],
  ['\\dp', /^public\|cat\|table\|/m],
];

test('psql: the describe commands work', async (t) => {
  const psql = await programFor(t, 'psql');
  if (psql === null) {
    return;
  }
  await psql(
    '-X',
    '-q',
    '-c',
    'CREATE TABLE cat (ts TIMESTAMP NOT NULL, sym SYMBOL, price DOUBLE DEFAULT 1.5) TIMESTAMP(ts)',
    '-c',
    'CREATE VIEW cat_view AS (SELECT sym, count() n FROM cat)',
  );
  for (const [command, shown] of CATALOG_COMMANDS) {
    const { stdout, stderr } = await psql('-X', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-c', command);
    t.is(stderr.replace(/^Did not find .*\n/gm, ''), '', command);
    t.regex(stdout, shown, command);
  }
});

test('pgbench -i creates keys and vacuums, then each query mode runs', async (t) => {
  const psql = await programFor(t, 'psql');
  const pgbench = await programFor(t, 'pgbench');
  if (psql === null || pgbench === null) {
    return;
  }
  await pgbench('-i', '-q');
  const { stdout } = await psql('-XAt', '-c', 'SELECT count() FROM pgbench_accounts');
  t.is(stdout, '100000\n');
  for (const mode of ['simple', 'extended', 'prepared']) {
    const report = await pgbench('-n', '-S', '-c', '2', '-t', '50', '-M', mode);
    t.regex(report.stdout, /actually processed: 100\/100/, mode);
    t.regex(report.stdout, /failed transactions: 0 /, mode);
  }
});

test('vacuumdb vacuums every table with each option', async (t) => {
  const psql = await programFor(t, 'psql');
  const vacuumdb = await programFor(t, 'vacuumdb');
  if (psql === null || vacuumdb === null) {
    return;
  }
  await psql('-Xqc', 'CREATE TABLE vacuumed (a INT)');
  for (const options of [['-t', 'vacuumed'], ['-z', '-v', '-t', 'vacuumed'], ['-f']]) {
    const { stderr } = await vacuumdb(...options);
    t.notRegex(stderr, /ERROR/, options.join(' '));
  }
});

for (const name of ['pg_dump', 'pg_dumpall']) {
  test(`${name}: the error message names the alternative`, async (t) => {
    const dump = await programFor(t, name);
    if (dump === null) {
      return;
    }
    const refused = await t.throwsAsync<Error & { stderr: string }>(dump());
    t.regex(refused.stderr, /cannot dump .* BACKUP DATABASE, COPY … TO or \/exp/);
  });
}

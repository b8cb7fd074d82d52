/**
 * Gate S14: every clause that can name a column is tested with an ungranted column, over every
 * protocol. Each query first runs as a user with the permission, to rule out any other reason for a
 * refusal.
 */
import test from 'ava';
import { pgClient } from '../pg-client.js';

import { parse } from '../../ts/sql/index.js';
import type { TestServer } from '../golden/server.js';
import { ITEMS } from '../sql/grammar/index.js';
import { TABLES as GRAMMAR_TABLES } from '../sql/grammar/states.js';
import { CLAUSES, type Clause, COLUMNS, TABLES } from './clauses.js';
import { ADMIN, credentials, exec, run, startAccessServer } from './harness.js';

const FULL = 'whole:p';
const RIGHTS = [
  'HTTP, PGWIRE, CREATE TABLE, CREATE VIEW, WRITE FILES',
  'INSERT, DELETE ON sec, own, sink',
  'UPDATE, SELECT ON own, sink',
  'UPDATE ON sec',
];

/** Ways to run a SELECT. */
const WAYS: Readonly<Record<string, (query: string) => string>> = {
  itself: (query) => query,
  'in a sub-query': (query) => `SELECT count() FROM (${query})`,
  'in a CTE': (query) => `WITH q AS (${query}) SELECT count() FROM q`,
  'under EXPLAIN': (query) => `EXPLAIN ${query}`,
  'by COPY': (query) => `COPY (${query}) TO 'never' WITH FORMAT CSV`,
  'in EXISTS': (query) => `SELECT 1 FROM own WHERE EXISTS (${query})`,
  'into a table': (query) => `CREATE TABLE never AS (SELECT count() n FROM (${query}))`,
  'in a view': (query) => `CREATE VIEW never AS (SELECT count() n FROM (${query}))`,
  'in a replaced view': (query) => `CREATE OR REPLACE VIEW seen AS (${query})`,
  'in an altered view': (query) => `ALTER VIEW seen AS (${query})`,
};

let server: TestServer;

test.before(async () => {
  server = await startAccessServer(undefined, 'cairo.commit.mode=nosync', 'log.level=error');
  await run(
    server,
    ...TABLES,
    "CREATE USER whole WITH PASSWORD 'p'",
    'GRANT SELECT ON sec TO whole',
  );
  await run(server, 'CREATE VIEW seen AS (SELECT pub FROM own)');
  for (const column of COLUMNS) {
    await run(server, `CREATE USER no_${column} WITH PASSWORD 'p'`);
    await run(server, `GRANT SELECT ON sec(* EXCLUDE (${column})) TO no_${column}`);
  }
  for (const user of ['whole', ...COLUMNS.map((column) => `no_${column}`)]) {
    for (const right of RIGHTS) {
      await run(server, `GRANT ${right} TO ${user}`);
    }
    await run(server, `GRANT ALTER VIEW, SELECT ON seen TO ${user}`);
  }
});

test.after.always(async () => {
  await server.stop();
});

const withoutColumn = ({ column }: Clause): string => `no_${column}:p`;

async function isDenied(who: string, text: string): Promise<string | null> {
  const { error } = await exec(server, who, text);
  return error?.startsWith('Access denied [') === true ? null : (error ?? 'answered');
}

async function cleanUp(): Promise<void> {
  // The object is either a table or a view, and dropping the wrong kind fails.
  for (const kind of ['TABLE', 'VIEW']) {
    await exec(server, ADMIN, `DROP ${kind} IF EXISTS taken`);
  }
}

test.serial(`all ${CLAUSES.length} clauses require the right on columns they read`, async (t) => {
  const problems: string[] = [];
  for (const clause of CLAUSES) {
    const { column, text } = clause;
    const { error } = await exec(server, FULL, text);
    if (error !== undefined) {
      problems.push(`${text}: ${error}`);
    }
    await cleanUp();
    const refusal = (await exec(server, withoutColumn(clause), text)).error ?? 'answered';
    if (!refusal.startsWith('Access denied [') || !refusal.includes(`sec(${column})`)) {
      problems.push(`${text}: without the right: ${refusal}`);
    }
    await cleanUp();
  }
  t.deepEqual(problems, []);
});

test.serial('every protocol requires the right on each column that a clause reads', async (t) => {
  const queries = CLAUSES.filter(({ isQuery, text }) => isQuery && !text.startsWith('sec'));
  const problems: string[] = [];
  for (const [name, way] of Object.entries(WAYS)) {
    for (const clause of queries) {
      const text = way(clause.text);
      const problem = await isDenied(withoutColumn(clause), text);
      if (problem !== null) {
        problems.push(`${name}: ${text}: ${problem}`);
      }
    }
  }
  for (const clause of queries) {
    const url = `${server.url}/exp?query=${encodeURIComponent(clause.text)}`;
    const { status } = await fetch(url, { headers: credentials(withoutColumn(clause)) });
    if (status !== 403) {
      problems.push(`/exp: ${clause.text}: ${status}`);
    }
  }
  t.deepEqual(problems, []);
});

test.serial('prepared statements are rechecked after a revoke, rename or re-create', async (t) => {
  const client = pgClient(server.pg, { user: 'whole', password: 'p' });
  await client.connect();
  t.teardown(() => client.end());
  const queries = CLAUSES.filter(({ column, isQuery }) => isQuery && column === 'secret');
  const all = async (denied: boolean, when: string): Promise<void> => {
    for (const [index, { text }] of queries.entries()) {
      const request = client.query({ name: `q${index}`, text }).then(
        () => 'answered',
        (error: unknown) => (error as Error).message,
      );
      t.regex(await request, denied ? /^Access denied \[/ : /^answered$/, `${when}: ${text}`);
    }
  };
  await all(false, 'granted');
  await run(server, 'REVOKE SELECT ON sec FROM whole');
  await run(server, 'GRANT SELECT ON sec(* EXCLUDE (secret)) TO whole');
  await all(true, 'revoked');
  await run(server, 'GRANT SELECT ON sec TO whole');
  await all(false, 'granted again');
  await run(server, 'REVOKE SELECT ON sec FROM whole', 'GRANT SELECT ON sec(pub) TO whole');
  await run(server, 'ALTER TABLE sec RENAME COLUMN secret TO hidden');
  await run(server, 'ALTER TABLE sec RENAME COLUMN pub TO secret');
  await run(server, 'ALTER TABLE sec RENAME COLUMN secret TO pub');
  await run(server, 'ALTER TABLE sec RENAME COLUMN hidden TO secret');
  await all(true, 'columns renamed');
  await run(server, 'RENAME TABLE sec TO old_sec', TABLES[0] ?? '');
  await all(true, 'another table of the name');
  await run(server, 'DROP TABLE sec', 'RENAME TABLE old_sec TO sec');
  await run(server, 'GRANT SELECT ON sec TO whole');
  await all(false, 'as it was');
});

test.serial('a view returns only what its owner may read at the time of the query', async (t) => {
  await run(server, "CREATE USER reader WITH PASSWORD 'p'", 'GRANT HTTP TO reader');
  const queries = CLAUSES.filter(({ column, isQuery }) => isQuery && column === 'sym');
  for (const { text } of queries) {
    const query = text === 'sec' ? 'SELECT * FROM sec' : text;
    const created = await exec(
      server,
      FULL,
      `CREATE OR REPLACE VIEW held AS (SELECT count() n FROM (${query}))`,
    );
    t.is(created.error, undefined, query);
    await run(server, 'GRANT SELECT ON held TO reader');
    t.is((await exec(server, 'reader:p', 'SELECT * FROM held')).error, undefined, query);
    await run(server, 'REVOKE SELECT ON sec(sym) FROM whole');
    t.is(await isDenied('reader:p', 'SELECT * FROM held'), null, query);
    t.is(await isDenied(ADMIN, 'SELECT * FROM held'), null, query);
    await run(server, 'GRANT SELECT ON sec TO whole');
  }
});

/** Statements of the grammar table that read data, without duplicates. */
const READING: ReadonlySet<string> = new Set(['Query', 'Select', 'SetOperation', 'Explain']);
const STATEMENTS = ITEMS.filter(({ kind, hasUsers }) => kind === 'works' && hasUsers !== true)
  .flatMap(({ statements }) => statements)
  .filter((text) => {
    const { nodes, root } = parse(text);
    return READING.has(nodes[root]?.kind ?? '') && !nodes.some(({ kind }) => kind === 'Parameter');
  });

/**
 * A statement that cannot be bound without a column reads that column, whichever clause names it.
 * The statement must be refused for a user who has every permission except the one on that column.
 */
test.serial('every statement that reads a column requires the right on that column', async (t) => {
  const validate = async (who: string, text: string): Promise<string> => {
    const url = `${server.url}/api/v1/sql/validate?query=${encodeURIComponent(text)}`;
    const answer = await fetch(url, { headers: credentials(who) });
    return answer.status === 200 ? '' : await answer.text();
  };
  await run(server, 'DROP ALL TABLES', "CREATE USER most WITH PASSWORD 'p'", 'GRANT HTTP TO most');
  await run(server, ...GRAMMAR_TABLES);
  const valid: string[] = [];
  for (const text of new Set(STATEMENTS)) {
    if ((await validate(ADMIN, text)) === '') {
      valid.push(text);
    }
  }
  let pairs = 0;
  const problems: string[] = [];
  const creates = GRAMMAR_TABLES.filter((text) => text.startsWith('CREATE'));
  for (const create of creates) {
    const { nodes, root } = parse(create);
    const node = nodes[root];
    if (node?.kind !== 'CreateTable') {
      continue;
    }
    const table = node.name.text;
    const naming = valid.filter((text) => new RegExp(`\\b${table}\\b`, 'i').test(text));
    for (const { text: column } of node.columns.map(({ name }) => name)) {
      if (column === 'ts') {
        continue;
      }
      await run(server, `ALTER TABLE ${table} DROP COLUMN ${column}`);
      const reading: string[] = [];
      for (const text of naming) {
        if ((await validate(ADMIN, text)) !== '') {
          reading.push(text);
        }
      }
      const filled = GRAMMAR_TABLES.filter((text) => text.startsWith(`INSERT INTO ${table} `));
      await run(server, `DROP TABLE ${table}`, create, ...filled);
      await run(server, 'REVOKE ALL FROM most', 'GRANT HTTP, READ FILES TO most');
      for (const other of creates.map((text) => /TABLE (\w+)/.exec(text)?.[1] ?? '')) {
        const but = other === table ? `(* EXCLUDE (${column}))` : '';
        await run(server, `GRANT SELECT ON ${other}${but} TO most`);
      }
      for (const text of reading) {
        pairs += 1;
        const problem = await validate('most:p', text);
        if (!problem.includes('Access denied')) {
          problems.push(`${table}.${column}: ${text}: ${problem}`);
        }
      }
    }
  }
  t.log(`${valid.length} statements, ${pairs} pairs of a statement and a column`);
  t.deepEqual(problems, []);
  t.true(pairs > 300);
});

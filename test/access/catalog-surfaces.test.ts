/**
 * Checks every catalog list as seen by users who each have a single permission. A list must show
 * the object that the permission applies to, and exactly the contents that the user may read. The
 * lists are discovered from the server, so new lists are included automatically.
 */
import test from 'ava';

import type { TestServer } from '../golden/server.js';
import { ADMIN, exec, rows, run, startAccessServer } from './harness.js';

/**
 * Permissions on an object that no other case uses, with the names that they make visible and the
 * contents that they make readable.
 */
interface Case {
  readonly is: 'table' | 'view';
  readonly grants: readonly string[];
  /** Whether the user may see the object's name. */
  readonly visible: boolean;
  readonly reads: readonly ('first' | 'second')[];
}

const NOTHING: Case = { is: 'table', grants: [], visible: false, reads: [] };
const visible = (is: Case['is'], ...grants: readonly string[]): Case => ({
  is,
  grants,
  visible: true,
  reads: [],
});

const CASES: readonly Case[] = [
  NOTHING,
  { ...NOTHING, is: 'view' },
  ...['INSERT', 'DROP TABLE', 'DELETE', 'TRUNCATE TABLE', 'RENAME TABLE', 'UPDATE'].map((name) =>
    visible('table', name),
  ),
  ...['UPDATE', 'ALTER COLUMN TYPE', 'DROP COLUMN'].map((name) =>
    visible('table', `${name} (first)`),
  ),
  { ...visible('table', 'SELECT (first)'), reads: ['first'] },
  { ...visible('table', 'SELECT (second)', 'UPDATE (first)'), reads: ['second'] },
  { ...visible('table', 'SELECT (first)', 'INSERT'), reads: ['first'] },
  { ...visible('table', 'SELECT'), reads: ['first', 'second'] },
  ...['DROP VIEW', 'ALTER VIEW', 'COMPILE VIEW', 'INSERT'].map((name) => visible('view', name)),
  { ...visible('view', 'SELECT'), reads: ['first', 'second'] },
];

const FIRST_YEAR = 2040;
const year = (index: number): number => FIRST_YEAR + index;
const name = (index: number): string => `object${index}x`;
const column = (index: number, columnKind: string): string => `${columnKind}${index}x`;
const literal = (index: number): string => `definition${index}x`;
const userOf = (index: number): string => `user${index}x`;

let server: TestServer;

test.before(async () => {
  server = await startAccessServer();
  await run(server, 'CREATE TABLE beneath (ts TIMESTAMP, a INT) TIMESTAMP(ts) PARTITION BY YEAR');
  for (const [index, { is, grants }] of CASES.entries()) {
    const [first, second] = [column(index, 'first'), column(index, 'second')];
    await run(
      server,
      ...(is === 'table'
        ? [
            `CREATE TABLE ${name(index)} (ts TIMESTAMP, ${first} INT, ${second} SYMBOL,
              UNIQUE (${first}), UNIQUE (${second})) TIMESTAMP(ts) PARTITION BY YEAR`,
            `INSERT INTO ${name(index)} VALUES ('${year(index)}-01-01', 1, 'x')`,
          ]
        : [
            `CREATE VIEW ${name(index)} AS (SELECT ts, a ${first}, '${literal(index)}' ${second}
              FROM beneath)`,
          ]),
      `CREATE USER ${userOf(index)} WITH PASSWORD 'p'`,
      `GRANT HTTP TO ${userOf(index)}`,
      ...grants.map((grant) => {
        const [permission = '', columnKind] = grant.split(' (');
        const on = columnKind === undefined ? '' : `(${column(index, columnKind.slice(0, -1))})`;
        return `GRANT ${permission} ON ${name(index)}${on} TO ${userOf(index)}`;
      }),
    );
  }
});

test.after.always(() => server.stop());

/**
 * A catalog list. `allColumns`: whether the list shows an object only to users who may read all its
 * columns.
 */
interface Surface {
  readonly query: string;
  readonly allColumns?: boolean;
}

/** Table functions that are unrelated to the catalog or do not take a table. */
const OTHER_FUNCTIONS = /^(long_sequence|generate_series|read_parquet)$/;

async function surfaces(): Promise<readonly Surface[]> {
  const tables = await rows(
    server,
    ADMIN,
    `SELECT n.nspname || '.' || c.relname FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname <> 'public'`,
  );
  const functions = await rows(
    server,
    ADMIN,
    "SELECT DISTINCT name, signature FROM functions() WHERE type = 'CURSOR'",
  );
  const names = CASES.map((_, index) => name(index));
  const of = (functionName: string, signature: string): readonly string[] =>
    signature.endsWith('()')
      ? [`SELECT * FROM ${functionName}()`]
      : names.map((one) => `SELECT * FROM ${functionName}('${one}')`);
  return [
    ...tables.map(([table]) => ({ query: `SELECT * FROM ${String(table)}` })),
    ...functions
      .filter(([one]) => !OTHER_FUNCTIONS.test(String(one)))
      .flatMap(([one, signature]) => of(String(one), String(signature)))
      .map((query) => ({ query })),
    ...names.map((one) => ({ query: `SELECT * FROM table_segments('${one}')` })),
    { query: 'SELECT * FROM all_tables()' },
    { query: 'SHOW TABLES' },
    { query: 'SHOW CREATE DATABASE', allColumns: true },
    { query: 'SHOW CREATE DATABASE INCLUDE (TABLES, VIEWS)', allColumns: true },
    { query: 'SELECT oid::regclass::text, pg_get_viewdef(oid) FROM pg_class' },
    { query: "SELECT relname, has_table_privilege(oid, 'SELECT') FROM pg_class" },
    ...names.flatMap((one): readonly Surface[] => [
      { query: `SHOW COLUMNS FROM ${one}` },
      { query: `SHOW PARTITIONS FROM ${one}` },
      { query: `SHOW CREATE TABLE ${one}`, allColumns: true },
      { query: `SHOW CREATE VIEW ${one}`, allColumns: true },
      { query: `SELECT '${one}'::regclass::text` },
    ]),
  ];
}

/** Returns which of the test's names occur in a result; none if the query is refused. */
async function words(who: string, query: string): Promise<ReadonlySet<string>> {
  const { dataset } = await exec(server, who, query);
  const text = JSON.stringify(dataset ?? []);
  const found = text.match(/(object|first|second|definition)\d+x|20[4-9]\d-/g) ?? [];
  return new Set<string>(found);
}

/** Lists with one row per column or key. They show a table only if they show its columns. */
const OF_COLUMNS =
  /columns|pg_attribute|pg_attrdef|pg_index|_indexes|pg_constraint|constraint|key_column/;

/** Returns all names that a user may see in a list. */
function allowed(index: number, { query, allColumns = false }: Surface): ReadonlySet<string> {
  const { is, visible: isSeen, reads } = CASES[index] ?? NOTHING;
  const isWhole = reads.length === 2;
  const isEmpty = OF_COLUMNS.test(query) && reads.length === 0;
  if (!isSeen || isEmpty || (allColumns && !isWhole)) {
    return new Set();
  }
  return new Set([
    name(index),
    ...reads.map((columnKind) => column(index, columnKind)),
    ...(reads.length > 0 && is === 'table' ? [`${year(index)}-`] : []),
    ...(isWhole && is === 'view' ? [literal(index)] : []),
  ]);
}

test('every catalog list shows exactly the objects that the user has rights on', async (t) => {
  const all = await surfaces();
  t.true(all.length > 100, `${all.length} lists`);
  const shown = new Map<string, ReadonlySet<string>>();
  for (const { query } of all) {
    shown.set(query, await words(ADMIN, query));
  }
  const ofAll = new Set([...shown.values()].flatMap((found) => [...found]));
  for (const [index, { is }] of CASES.entries()) {
    const parts = [name(index), column(index, 'first'), is === 'view' ? literal(index) : ''];
    t.true(
      parts.every((part) => part === '' || ofAll.has(part)),
      `the administrator sees all of ${name(index)}`,
    );
  }
  for (const [index, one] of CASES.entries()) {
    for (const surface of all) {
      const { query } = surface;
      const may = allowed(index, surface);
      const expected = [...(shown.get(query) ?? [])].filter((word) => may.has(word));
      const found = await words(`${userOf(index)}:p`, query);
      t.deepEqual([...found].sort(), expected.sort(), `${one.is} ${one.grants.join()}: ${query}`);
    }
  }
});

test('a foreign key does not reveal columns hidden from the user', async (t) => {
  await run(
    server,
    'CREATE TABLE kept (shown INT, hidden INT, PRIMARY KEY (hidden))',
    'CREATE TABLE pointing (x INT REFERENCES kept (hidden))',
    "CREATE USER pointer WITH PASSWORD 'p'",
    'GRANT HTTP TO pointer',
    'GRANT SELECT ON pointing TO pointer',
    'GRANT SELECT ON kept(shown) TO pointer',
  );
  const ddl = async (who: string): Promise<string> =>
    String((await rows(server, who, 'SHOW CREATE TABLE pointing'))[0]?.[0]);
  t.true((await ddl(ADMIN)).includes('hidden'));
  t.false((await ddl('pointer:p')).includes('hidden'));
  t.false((await ddl('pointer:p')).includes('kept'));
});

test('row statistics are shown only to users who may read rows', async (t) => {
  const figures = `SELECT table_name, table_row_count, table_txn IS NULL FROM tables()`;
  const stored = 'SELECT tableName, rowCount, diskSize IS NULL FROM table_storage()';
  for (const [index, { is, visible: isSeen, reads }] of CASES.entries()) {
    if (is === 'table' && isSeen) {
      const reader = reads.length > 0;
      for (const query of [figures, stored]) {
        const found = await rows(server, `${userOf(index)}:p`, query);
        t.deepEqual(found, [[name(index), reader ? 1 : null, !reader]], query);
      }
    }
  }
});

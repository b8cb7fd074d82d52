/** ON CONFLICT, temporary tables, serial columns and column constraints, through node-postgres. */
import test, { type ExecutionContext } from 'ava';
import type pg from 'pg';

import { until } from '../until.js';
import { PASSWORD, portFor } from './harness.js';
import { pgClient } from '../pg-client.js';

type Query = (text: string, values?: unknown[]) => Promise<string>;

interface Connected {
  /** Runs a statement. Returns rows joined by `|`, or SQLSTATE and message. */
  readonly query: Query;
  readonly client: pg.Client;
}

async function connected(t: ExecutionContext): Promise<Connected | null> {
  const port = await portFor(t);
  if (port === null) {
    return null;
  }
  const client = pgClient(`127.0.0.1:${port}`, { password: PASSWORD });
  await client.connect();
  t.teardown(() => client.end());
  const query: Query = async (text, values = []) => {
    try {
      const result = await client.query<unknown[]>({ text, values, rowMode: 'array' });
      return result.rows.map((row) => row.join(',')).join('|');
    } catch (error) {
      const { code, message } = error as pg.DatabaseError;
      return `${code} ${message}`;
    }
  };
  return { query, client };
}

const KEYED =
  '(ts TIMESTAMP, k SYMBOL, v INT, w VARCHAR) TIMESTAMP(ts) PARTITION BY DAY WAL ' +
  'DEDUP UPSERT KEYS(ts, k)';

test('ON CONFLICT keeps existing rows or updates them as SET specifies', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { query } = session;
  await query(`CREATE TABLE up ${KEYED}`);
  const all = 'SELECT k, v, w FROM up ORDER BY k';
  await query("INSERT INTO up VALUES (0, 'a', 1, 'x'), (0, 'b', 2, 'y')");
  await query(
    "INSERT INTO up (ts, k, v) VALUES (0, 'a', 7), (0, 'c', 3), (0, 'c', 4) ON CONFLICT DO NOTHING",
  );
  t.is(await query(all), 'a,1,x|b,2,y|c,3,');
  const update = 'ON CONFLICT (k, ts) DO UPDATE SET v = up.v + excluded.v, ts = excluded.ts';
  const returned = await query(
    `INSERT INTO up (ts, k, v) VALUES ($1, $2, $3) ${update} RETURNING k, v, w`,
    ['1970-01-01', 'a', 10],
  );
  t.is(returned, 'a,11,x');
  await query(
    `INSERT INTO up SELECT ts, k, v, 'z' FROM up ${update}, w = excluded.w WHERE up.v > 3`,
  );
  t.is(await query(all), 'a,22,z|b,2,y|c,3,');
  t.regex(
    await query(`INSERT INTO up (ts, k, v) VALUES (0, 'd', 1), (0, 'd', 2) ${update}`),
    /cannot affect row a second time/,
  );
  t.regex(
    await query("INSERT INTO up VALUES (0, 'a', 1, '') ON CONFLICT (k) DO NOTHING"),
    /\(ts, k\)/,
  );
  t.regex(
    await query("INSERT INTO up VALUES (0, 'a', 1, '') ON CONFLICT (ts, k) DO UPDATE SET k = 'b'"),
    /key column 'k' cannot be updated/,
  );
  await query('CREATE TABLE unkeyed (a INT)');
  t.is(await query('INSERT INTO unkeyed VALUES (1) ON CONFLICT DO NOTHING'), '');
  t.regex(
    await query('INSERT INTO unkeyed VALUES (1) ON CONFLICT (a) DO NOTHING'),
    /does not enforce any keys/,
  );
  t.is(await query('SELECT count(*) FROM unkeyed'), '1');
});

test('ON CONFLICT sees rows inserted in the same block', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { query } = session;
  await query(`CREATE TABLE upb ${KEYED}`);
  await query('BEGIN');
  await query("INSERT INTO upb VALUES (0, 'a', 1, 'x')");
  await query("INSERT INTO upb VALUES (0, 'a', 9, 'y') ON CONFLICT DO NOTHING");
  t.is(await query('SELECT v FROM upb'), '1');
  const more = 'INSERT INTO upb (ts, k, v) VALUES ($1, $2, $3) ON CONFLICT (ts, k) DO UPDATE SET ';
  await query(`${more} v = upb.v + excluded.v`, ['1970-01-01', 'a', 5]);
  t.is(await query('SELECT v, w FROM upb'), '6,x');
  await query('COMMIT');
  t.is(await query('SELECT v, w FROM upb'), '6,x');
});

test('a temporary table is dropped with its connection, or at the end of its block', async (t) => {
  const one = await connected(t);
  const other = await connected(t);
  if (one === null || other === null) {
    return;
  }
  await one.query('CREATE TEMPORARY TABLE own (n INT)');
  await one.query('INSERT INTO own VALUES (1)');
  t.is(await one.query('SELECT n FROM own'), '1');
  await one.query('CREATE TABLE kept (n INT)');
  await one.query('CREATE TEMP TABLE IF NOT EXISTS kept (n INT)');
  await one.query('BEGIN');
  await one.query('CREATE TEMP TABLE brief (n INT) ON COMMIT DROP');
  t.is(await one.query('SELECT count(*) FROM brief'), '0');
  await one.query('COMMIT');
  t.regex(await one.query('SELECT count(*) FROM brief'), /^42P01 /);
  await one.client.end();
  await until(
    async () => (await other.query('SELECT n FROM own')).startsWith('42P01'),
    'the table is dropped',
  );
  t.is(await other.query('SELECT count(*) FROM kept'), '0');
});

test('a permanent table that reuses the name of a dropped temporary table is kept', async (t) => {
  const one = await connected(t);
  const other = await connected(t);
  if (one === null || other === null) {
    return;
  }
  await one.query('CREATE TEMP TABLE passing (n INT)');
  await one.query('CREATE TEMP TABLE moving (n INT)');
  await one.query('DROP TABLE passing');
  await other.query('CREATE TABLE passing AS SELECT x FROM long_sequence(3)');
  await other.query('RENAME TABLE moving TO moved');
  await one.client.end();
  await until(
    async () => (await other.query('SELECT n FROM moved')).startsWith('42P01'),
    'the table is dropped',
  );
  t.is(await other.query('SELECT count(*) FROM passing'), '3');
});

test('temporary views and copies of a table are dropped with their connection', async (t) => {
  const one = await connected(t);
  const other = await connected(t);
  if (one === null || other === null) {
    return;
  }
  await one.query('CREATE TABLE tv_base (n INT)');
  await one.query('INSERT INTO tv_base VALUES (1), (2)');
  t.is(await one.query('CREATE TEMP TABLE tv_copy (LIKE tv_base)'), '');
  t.is(await one.query('CREATE UNLOGGED TABLE tv_stays (n INT)'), '');
  const first = 'VIEW tv_first AS SELECT n + 1 AS m FROM tv_base';
  t.is(await one.query(`CREATE OR REPLACE TEMPORARY ${first}`), '');
  t.is(await one.query('CREATE LOCAL TEMP VIEW tv_second AS SELECT m FROM tv_first'), '');
  t.is(await one.query('SELECT m FROM tv_second'), '2|3');
  t.regex(
    await one.query('CREATE OR REPLACE TEMP VIEW tv_second AS SELECT 1 AS m'),
    /^\w+ view already exists \[view=tv_second\]$/,
  );
  t.regex(
    await one.query('CREATE TEMP VIEW IF NOT EXISTS tv_x AS SELECT 1 AS m'),
    /'if not exists'/,
  );
  await one.query('CREATE TEMP VIEW tv_passing AS SELECT 1 AS m');
  await one.query('DROP VIEW tv_passing');
  await other.query('CREATE VIEW tv_passing AS SELECT 2 AS m');
  await one.client.end();
  for (const gone of ['tv_first', 'tv_second', 'tv_copy']) {
    const left = async (): Promise<string> => other.query(`SELECT count(*) FROM ${gone}`);
    await until(async () => (await left()).startsWith('42P01'), `${gone} dropped`);
  }
  t.is(await other.query('SELECT m FROM tv_passing'), '2');
  t.is(await other.query('SELECT count(*) FROM tv_base'), '2');
  t.is(await other.query('SELECT count(*) FROM tv_stays'), '0');
});

test('DISCARD drops a temporary view', async (t) => {
  const one = await connected(t);
  if (one === null) {
    return;
  }
  await one.query('CREATE TEMP VIEW td_view AS SELECT 1 AS m');
  await one.query('DISCARD TEMP');
  t.regex(await one.query('SELECT m FROM td_view'), /^42P01 /);
});

test('serial numbers start at 1 in each table and fit their column type', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { query } = session;
  await query('CREATE TABLE numbered (id SERIAL PRIMARY KEY, v INT)');
  t.is(await query('INSERT INTO numbered (v) VALUES (7), (8) RETURNING id'), '1|2');
  t.is(await query('INSERT INTO numbered (v) VALUES ($1) RETURNING id', [9]), '3');
  await query('INSERT INTO numbered (v) SELECT x FROM long_sequence(2)');
  t.is(await query('SELECT max(id) FROM numbered'), '5');
  await query('CREATE TABLE given (id BIGINT GENERATED BY DEFAULT AS IDENTITY, v INT)');
  await query('INSERT INTO given VALUES (41, 1)');
  t.is(await query('INSERT INTO given (v) VALUES (2) RETURNING id'), '42');
  t.is(
    await query("SELECT column_default FROM information_schema.columns WHERE table_name = 'given'"),
    "nextval('given_id_seq'::regclass)|",
  );
});

test('lastval() and currval() return the values of the current session', async (t) => {
  const one = await connected(t);
  const other = await connected(t);
  if (one === null || other === null) {
    return;
  }
  const { query } = one;
  await query('CREATE TABLE parents (id SERIAL, v INT)');
  await query('CREATE TABLE children (id BIGSERIAL, parent INT, at TIMESTAMP)');
  t.regex(await query('SELECT lastval()'), /^55000 /);
  t.regex(await query("SELECT currval('parents_id_seq')"), /^55000 /);
  t.is(await query('SELECT lastval() FROM parents'), '');
  await query('INSERT INTO parents (v) VALUES (5)');
  const names = ['parents_id_seq', 'PARENTS_ID_SEQ', 'public.parents_id_seq', '"parents_id_seq"'];
  for (const name of names) {
    t.is(await query('SELECT currval($1), lastval()', [name]), '1,1', name);
  }
  t.is(await query("SELECT currval('parents_id_seq'::regclass)"), '1');
  t.is(await query("SELECT pg_get_serial_sequence('parents', 'v')"), '');
  t.is(await query("SELECT currval(pg_get_serial_sequence('parents', 'id'))"), '1');
  // Preparing a statement without executing it consumes no sequence value. Statements without
  // parameters are also prepared before they are executed.
  const child = "INSERT INTO children (parent, at) VALUES (currval('parents_id_seq'), now())";
  t.is(await query(`${child} RETURNING id, parent`), '1,1');
  await query('INSERT INTO parents (v) VALUES ($1), ($2)', [6, 7]);
  await query('INSERT INTO children (parent) SELECT lastval() FROM long_sequence(3)');
  t.is(await query('SELECT parent FROM children'), '1|3|3|3');
  t.is(await query("SELECT lastval(), currval('parents_id_seq')"), '4,3');
  await query('INSERT INTO parents (id, v) VALUES (90, 8)');
  t.is(await query("SELECT lastval() + 1 WHERE currval('parents_id_seq') = 3"), '5');
  t.regex(await other.query('SELECT lastval()'), /^55000 /);
  await other.query('INSERT INTO parents (v) VALUES (9)');
  t.is(await other.query('SELECT lastval()'), '4');
  t.is(await query("SELECT currval('parents_id_seq')"), '3');
  await query('DISCARD SEQUENCES');
  t.regex(await query('SELECT lastval()'), /^55000 /);
});

test("after a prepared multi-row insert, lastval() returns the session's last value", async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { client, query } = session;
  await query('CREATE TABLE piped (id SERIAL, v VARCHAR)');
  const insert = { name: 'piped', text: 'INSERT INTO piped (v) VALUES ($1 || $2)' };
  const last = { name: 'last', text: 'SELECT lastval() AS n' };
  for (let round = 1; round <= 3; round += 1) {
    await client.query({ ...insert, values: ['a', 'b'] });
    t.is((await client.query<{ n: string }>(last)).rows[0]?.n, `${round}`);
  }
});

test('column constraints are set and dropped', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { query } = session;
  await query('CREATE TABLE ruled (a INT, b VARCHAR(10), c DECIMAL(10, 2))');
  await query('INSERT INTO ruled (b) VALUES (null)');
  t.regex(
    await query('ALTER TABLE ruled ALTER COLUMN a SET NOT NULL'),
    /'a' of 'ruled' contains nulls/,
  );
  await query('UPDATE ruled SET a = 1');
  t.is(
    await query(
      "ALTER TABLE ruled ALTER COLUMN a SET NOT NULL, ALTER COLUMN b SET DEFAULT upper('x')",
    ),
    '',
  );
  t.regex(await query("INSERT INTO ruled (b) VALUES ('y')"), /'a' is NOT NULL and has no DEFAULT/);
  await query('INSERT INTO ruled (a) VALUES (2)');
  await query('ALTER TABLE ruled ALTER COLUMN a DROP NOT NULL, ALTER COLUMN b DROP DEFAULT');
  await query('INSERT INTO ruled (c) VALUES (1.5)');
  t.is(await query('SELECT a, b, c FROM ruled'), '1,,|2,X,|,,1.50');
  await query('ALTER TABLE ruled ALTER COLUMN b TYPE VARCHAR(80) USING b::varchar(80)');
  await query('ALTER TABLE ruled ALTER COLUMN c TYPE DOUBLE PRECISION');
  t.is(
    await query(
      'SELECT column_name, data_type, character_maximum_length FROM information_schema.columns ' +
        "WHERE table_name = 'ruled'",
    ),
    'a,integer,|b,character varying,80|c,double precision,',
  );
  t.is(await query('CREATE TABLE timed (at TIMESTAMP, s VARCHAR, PRIMARY KEY (at, s))'), '');
  t.is(
    await query(
      'SELECT constraint_name, column_name FROM information_schema.key_column_usage ' +
        "WHERE table_name = 'timed'",
    ),
    'timed_pkey,at|timed_pkey,s',
  );
  await query('CREATE VIEW seen AS SELECT a FROM ruled');
  await query('ALTER TABLE seen RENAME TO renamed');
  t.is(await query('SELECT count(*) FROM renamed'), '3');
  t.is(
    await query("SELECT * FROM UNNEST('{1,2}'::int[], '{t,f}'::bool[], '{\"a b\",NULL}'::text[])"),
    '1,true,a b|2,false,',
  );
});

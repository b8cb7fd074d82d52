/** ON CONFLICT, temporary tables, serial columns and column constraints, through node-postgres. */
import test, { type ExecutionContext } from 'ava';
import type pg from 'pg';

import { until } from '../until.js';
import { PASSWORD, portFor } from './harness.js';
import { pgClient } from '../pg-client.js';

type Ask = (text: string, values?: unknown[]) => Promise<string>;

interface Connected {
  /** Runs a statement. Returns rows joined by `|`, or SQLSTATE and message. */
  readonly ask: Ask;
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
  const ask: Ask = async (text, values = []) => {
    try {
      const result = await client.query<unknown[]>({ text, values, rowMode: 'array' });
      return result.rows.map((row) => row.join(',')).join('|');
    } catch (error) {
      const { code, message } = error as pg.DatabaseError;
      return `${code} ${message}`;
    }
  };
  return { ask, client };
}

const KEYED =
  '(ts TIMESTAMP, k SYMBOL, v INT, w VARCHAR) TIMESTAMP(ts) PARTITION BY DAY WAL ' +
  'DEDUP UPSERT KEYS(ts, k)';

test('ON CONFLICT keeps existing rows or updates them as SET specifies', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { ask } = session;
  await ask(`CREATE TABLE up ${KEYED}`);
  const all = 'SELECT k, v, w FROM up ORDER BY k';
  await ask("INSERT INTO up VALUES (0, 'a', 1, 'x'), (0, 'b', 2, 'y')");
  await ask(
    "INSERT INTO up (ts, k, v) VALUES (0, 'a', 7), (0, 'c', 3), (0, 'c', 4) ON CONFLICT DO NOTHING",
  );
  t.is(await ask(all), 'a,1,x|b,2,y|c,3,');
  const update = 'ON CONFLICT (k, ts) DO UPDATE SET v = up.v + excluded.v, ts = excluded.ts';
  const returned = await ask(
    `INSERT INTO up (ts, k, v) VALUES ($1, $2, $3) ${update} RETURNING k, v, w`,
    ['1970-01-01', 'a', 10],
  );
  t.is(returned, 'a,11,x');
  await ask(`INSERT INTO up SELECT ts, k, v, 'z' FROM up ${update}, w = excluded.w WHERE up.v > 3`);
  t.is(await ask(all), 'a,22,z|b,2,y|c,3,');
  t.regex(
    await ask(`INSERT INTO up (ts, k, v) VALUES (0, 'd', 1), (0, 'd', 2) ${update}`),
    /cannot affect row a second time/,
  );
  t.regex(
    await ask("INSERT INTO up VALUES (0, 'a', 1, '') ON CONFLICT (k) DO NOTHING"),
    /\(ts, k\)/,
  );
  t.regex(
    await ask("INSERT INTO up VALUES (0, 'a', 1, '') ON CONFLICT (ts, k) DO UPDATE SET k = 'b'"),
    /key column 'k' cannot be updated/,
  );
  await ask('CREATE TABLE unkeyed (a INT)');
  t.is(await ask('INSERT INTO unkeyed VALUES (1) ON CONFLICT DO NOTHING'), '');
  t.regex(
    await ask('INSERT INTO unkeyed VALUES (1) ON CONFLICT (a) DO NOTHING'),
    /enforces no keys/,
  );
  t.is(await ask('SELECT count(*) FROM unkeyed'), '1');
});

test('ON CONFLICT sees rows inserted in the same block', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { ask } = session;
  await ask(`CREATE TABLE upb ${KEYED}`);
  await ask('BEGIN');
  await ask("INSERT INTO upb VALUES (0, 'a', 1, 'x')");
  await ask("INSERT INTO upb VALUES (0, 'a', 9, 'y') ON CONFLICT DO NOTHING");
  t.is(await ask('SELECT v FROM upb'), '1');
  const more = 'INSERT INTO upb (ts, k, v) VALUES ($1, $2, $3) ON CONFLICT (ts, k) DO UPDATE SET ';
  await ask(`${more} v = upb.v + excluded.v`, ['1970-01-01', 'a', 5]);
  t.is(await ask('SELECT v, w FROM upb'), '6,x');
  await ask('COMMIT');
  t.is(await ask('SELECT v, w FROM upb'), '6,x');
});

test('a temporary table is dropped with its connection, or at the end of its block', async (t) => {
  const one = await connected(t);
  const other = await connected(t);
  if (one === null || other === null) {
    return;
  }
  await one.ask('CREATE TEMPORARY TABLE own (n INT)');
  await one.ask('INSERT INTO own VALUES (1)');
  t.is(await one.ask('SELECT n FROM own'), '1');
  await one.ask('CREATE TABLE kept (n INT)');
  await one.ask('CREATE TEMP TABLE IF NOT EXISTS kept (n INT)');
  await one.ask('BEGIN');
  await one.ask('CREATE TEMP TABLE brief (n INT) ON COMMIT DROP');
  t.is(await one.ask('SELECT count(*) FROM brief'), '0');
  await one.ask('COMMIT');
  t.regex(await one.ask('SELECT count(*) FROM brief'), /^42P01 /);
  await one.client.end();
  await until(async () => (await other.ask('SELECT n FROM own')).startsWith('42P01'), 'dropped');
  t.is(await other.ask('SELECT count(*) FROM kept'), '0');
});

test('a permanent table renamed to the name of a dropped temporary table is kept', async (t) => {
  const one = await connected(t);
  const other = await connected(t);
  if (one === null || other === null) {
    return;
  }
  await one.ask('CREATE TEMP TABLE passing (n INT)');
  await one.ask('CREATE TEMP TABLE moving (n INT)');
  await one.ask('DROP TABLE passing');
  await other.ask('CREATE TABLE passing AS SELECT x FROM long_sequence(3)');
  await other.ask('RENAME TABLE moving TO moved');
  await one.client.end();
  await until(async () => (await other.ask('SELECT n FROM moved')).startsWith('42P01'), 'dropped');
  t.is(await other.ask('SELECT count(*) FROM passing'), '3');
});

test('temporary views and copies of a table are dropped with their connection', async (t) => {
  const one = await connected(t);
  const other = await connected(t);
  if (one === null || other === null) {
    return;
  }
  await one.ask('CREATE TABLE tv_base (n INT)');
  await one.ask('INSERT INTO tv_base VALUES (1), (2)');
  t.is(await one.ask('CREATE TEMP TABLE tv_copy (LIKE tv_base)'), '');
  t.is(await one.ask('CREATE UNLOGGED TABLE tv_stays (n INT)'), '');
  const first = 'VIEW tv_first AS SELECT n + 1 AS m FROM tv_base';
  t.is(await one.ask(`CREATE OR REPLACE TEMPORARY ${first}`), '');
  t.is(await one.ask('CREATE LOCAL TEMP VIEW tv_second AS SELECT m FROM tv_first'), '');
  t.is(await one.ask('SELECT m FROM tv_second'), '2|3');
  t.regex(
    await one.ask('CREATE OR REPLACE TEMP VIEW tv_second AS SELECT 1 AS m'),
    /^\w+ view already exists \[view=tv_second\]$/,
  );
  t.regex(await one.ask('CREATE TEMP VIEW IF NOT EXISTS tv_x AS SELECT 1 AS m'), /'if not exists'/);
  await one.ask('CREATE TEMP VIEW tv_passing AS SELECT 1 AS m');
  await one.ask('DROP VIEW tv_passing');
  await other.ask('CREATE VIEW tv_passing AS SELECT 2 AS m');
  await one.client.end();
  for (const gone of ['tv_first', 'tv_second', 'tv_copy']) {
    const left = async (): Promise<string> => other.ask(`SELECT count(*) FROM ${gone}`);
    await until(async () => (await left()).startsWith('42P01'), `${gone} dropped`);
  }
  t.is(await other.ask('SELECT m FROM tv_passing'), '2');
  t.is(await other.ask('SELECT count(*) FROM tv_base'), '2');
  t.is(await other.ask('SELECT count(*) FROM tv_stays'), '0');
});

test('DISCARD drops a temporary view', async (t) => {
  const one = await connected(t);
  if (one === null) {
    return;
  }
  await one.ask('CREATE TEMP VIEW td_view AS SELECT 1 AS m');
  await one.ask('DISCARD TEMP');
  t.regex(await one.ask('SELECT m FROM td_view'), /^42P01 /);
});

test('serial numbers start at 1, per table, and fit their column type', async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { ask } = session;
  await ask('CREATE TABLE numbered (id SERIAL PRIMARY KEY, v INT)');
  t.is(await ask('INSERT INTO numbered (v) VALUES (7), (8) RETURNING id'), '1|2');
  t.is(await ask('INSERT INTO numbered (v) VALUES ($1) RETURNING id', [9]), '3');
  await ask('INSERT INTO numbered (v) SELECT x FROM long_sequence(2)');
  t.is(await ask('SELECT max(id) FROM numbered'), '5');
  await ask('CREATE TABLE given (id BIGINT GENERATED BY DEFAULT AS IDENTITY, v INT)');
  await ask('INSERT INTO given VALUES (41, 1)');
  t.is(await ask('INSERT INTO given (v) VALUES (2) RETURNING id'), '42');
  t.is(
    await ask("SELECT column_default FROM information_schema.columns WHERE table_name = 'given'"),
    "nextval('given_id_seq'::regclass)|",
  );
});

test('lastval() and currval() return the values of the current session', async (t) => {
  const one = await connected(t);
  const other = await connected(t);
  if (one === null || other === null) {
    return;
  }
  const { ask } = one;
  await ask('CREATE TABLE parents (id SERIAL, v INT)');
  await ask('CREATE TABLE children (id BIGSERIAL, parent INT, at TIMESTAMP)');
  t.regex(await ask('SELECT lastval()'), /^55000 /);
  t.regex(await ask("SELECT currval('parents_id_seq')"), /^55000 /);
  t.is(await ask('SELECT lastval() FROM parents'), '');
  await ask('INSERT INTO parents (v) VALUES (5)');
  const names = ['parents_id_seq', 'PARENTS_ID_SEQ', 'public.parents_id_seq', '"parents_id_seq"'];
  for (const name of names) {
    t.is(await ask('SELECT currval($1), lastval()', [name]), '1,1', name);
  }
  t.is(await ask("SELECT currval('parents_id_seq'::regclass)"), '1');
  t.is(await ask("SELECT pg_get_serial_sequence('parents', 'v')"), '');
  t.is(await ask("SELECT currval(pg_get_serial_sequence('parents', 'id'))"), '1');
  // Preparing a statement without executing it consumes no sequence value. Statements without
  // parameters are also prepared before they are executed.
  const child = "INSERT INTO children (parent, at) VALUES (currval('parents_id_seq'), now())";
  t.is(await ask(`${child} RETURNING id, parent`), '1,1');
  await ask('INSERT INTO parents (v) VALUES ($1), ($2)', [6, 7]);
  await ask('INSERT INTO children (parent) SELECT lastval() FROM long_sequence(3)');
  t.is(await ask('SELECT parent FROM children'), '1|3|3|3');
  t.is(await ask("SELECT lastval(), currval('parents_id_seq')"), '4,3');
  await ask('INSERT INTO parents (id, v) VALUES (90, 8)');
  t.is(await ask("SELECT lastval() + 1 WHERE currval('parents_id_seq') = 3"), '5');
  t.regex(await other.ask('SELECT lastval()'), /^55000 /);
  await other.ask('INSERT INTO parents (v) VALUES (9)');
  t.is(await other.ask('SELECT lastval()'), '4');
  t.is(await ask("SELECT currval('parents_id_seq')"), '3');
  await ask('DISCARD SEQUENCES');
  t.regex(await ask('SELECT lastval()'), /^55000 /);
});

test("prepared multi-row inserts: lastval() returns the session's last value", async (t) => {
  const session = await connected(t);
  if (session === null) {
    return;
  }
  const { client, ask } = session;
  await ask('CREATE TABLE piped (id SERIAL, v VARCHAR)');
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
  const { ask } = session;
  await ask('CREATE TABLE ruled (a INT, b VARCHAR(10), c DECIMAL(10, 2))');
  await ask('INSERT INTO ruled (b) VALUES (null)');
  t.regex(
    await ask('ALTER TABLE ruled ALTER COLUMN a SET NOT NULL'),
    /'a' of 'ruled' contains nulls/,
  );
  await ask('UPDATE ruled SET a = 1');
  t.is(
    await ask(
      "ALTER TABLE ruled ALTER COLUMN a SET NOT NULL, ALTER COLUMN b SET DEFAULT upper('x')",
    ),
    '',
  );
  t.regex(await ask("INSERT INTO ruled (b) VALUES ('y')"), /'a' is NOT NULL and has no DEFAULT/);
  await ask('INSERT INTO ruled (a) VALUES (2)');
  await ask('ALTER TABLE ruled ALTER COLUMN a DROP NOT NULL, ALTER COLUMN b DROP DEFAULT');
  await ask('INSERT INTO ruled (c) VALUES (1.5)');
  t.is(await ask('SELECT a, b, c FROM ruled'), '1,,|2,X,|,,1.50');
  await ask('ALTER TABLE ruled ALTER COLUMN b TYPE VARCHAR(80) USING b::varchar(80)');
  await ask('ALTER TABLE ruled ALTER COLUMN c TYPE DOUBLE PRECISION');
  t.is(
    await ask(
      'SELECT column_name, data_type, character_maximum_length FROM information_schema.columns ' +
        "WHERE table_name = 'ruled'",
    ),
    'a,integer,|b,character varying,80|c,double precision,',
  );
  t.is(await ask('CREATE TABLE timed (at TIMESTAMP, s VARCHAR, PRIMARY KEY (at, s))'), '');
  t.is(
    await ask(
      'SELECT constraint_name, column_name FROM information_schema.key_column_usage ' +
        "WHERE table_name = 'timed'",
    ),
    'timed_pkey,at|timed_pkey,s',
  );
  await ask('CREATE VIEW seen AS SELECT a FROM ruled');
  await ask('ALTER TABLE seen RENAME TO renamed');
  t.is(await ask('SELECT count(*) FROM renamed'), '3');
  t.is(
    await ask("SELECT * FROM UNNEST('{1,2}'::int[], '{t,f}'::bool[], '{\"a b\",NULL}'::text[])"),
    '1,true,a b|2,false,',
  );
});

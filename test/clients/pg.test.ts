/**
 * PostgreSQL wire protocol clients against a real server: node-postgres and psql. Missing programs
 * are skipped with a notice.
 */
import test from 'ava';
import type pg from 'pg';

import { has, PASSWORD, portFor, run, skip } from './harness.js';
import { pgClient } from '../pg-client.js';

async function connect(port: number): Promise<pg.Client> {
  const client = pgClient(`127.0.0.1:${port}`, { password: PASSWORD });
  await client.connect();
  return client;
}

/** Returns values as the server wrote them, unparsed by the driver. */
const raw = { getTypeParser: () => (value: string | Buffer) => String(value) };

test('node-postgres: parameters, types and prepared statements work', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = await connect(port);
  await client.query(
    'CREATE TABLE np (ts TIMESTAMP, s SYMBOL, i INT, l LONG, d DOUBLE, b BOOLEAN, v VARCHAR) ' +
      'TIMESTAMP(ts) PARTITION BY DAY',
  );
  const insert = {
    name: 'insert-np',
    text: 'INSERT INTO np VALUES ($1, $2, $3, $4, $5, $6, $7)',
  };
  const rows = [
    ['2024-01-01T00:00:00.000001Z', 'a', 1, '9007199254740993', 1.5, true, "it's"],
    ['2024-01-02T00:00:00Z', 'b', 2, null, null, false, null],
  ];
  for (const values of rows) {
    const { rowCount, command } = await client.query({ ...insert, values });
    t.is(rowCount, 1);
    t.is(command, 'INSERT');
  }
  const all = await client.query({ text: 'SELECT * FROM np', types: raw, rowMode: 'array' });
  t.deepEqual(all.rows, [
    ['2024-01-01 00:00:00.000001', 'a', '1', '9007199254740993', '1.5', 't', "it's"],
    ['2024-01-02 00:00:00.000000', 'b', '2', null, null, 'f', null],
  ]);
  t.deepEqual(
    all.fields.map(({ dataTypeID }) => dataTypeID),
    [1114, 1043, 23, 20, 701, 16, 1043],
  );
  const one = await client.query('SELECT i FROM np WHERE s = $1 AND ts > $2', ['b', '2024-01-01']);
  t.deepEqual(one.rows, [{ i: 2 }]);
  await client.end();
});

test('node-postgres: BYTEA parameters work, and their types are described', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = await connect(port);
  await client.query('CREATE TABLE bp (i INT, b BINARY)');
  const bytes = Buffer.from([0, 255, 92, 120, 97]);
  for (const [i, value] of [bytes, null, Buffer.alloc(0)].entries()) {
    await client.query('INSERT INTO bp VALUES ($1, $2)', [i, value]);
  }
  const query = 'SELECT base64(b, 9) b, length(b) n FROM bp ORDER BY i';
  t.deepEqual((await client.query(query)).rows, [
    { b: bytes.toString('base64'), n: '5' },
    { b: null, n: '-1' },
    { b: '', n: '0' },
  ]);
  const { fields } = await client.query('SELECT b FROM bp WHERE i = 1');
  t.deepEqual(
    fields.map(({ dataTypeID, format }) => [dataTypeID, format]),
    [[17, 'binary']],
  );
  await client.end();
});

test('node-postgres: errors have SQLSTATE and position; blocks are atomic', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = await connect(port);
  const error = await t.throwsAsync(client.query('SELECT * FROM nowhere'));
  const { code, position } = error as unknown as pg.DatabaseError;
  t.is(code, '42P01');
  t.is(position, '15');
  await client.query('CREATE TABLE nb (a INT)');
  await client.query('BEGIN');
  await client.query('INSERT INTO nb VALUES (1)');
  await client.query('INSERT INTO nb VALUES (2)');
  await client.query('ROLLBACK');
  await client.query('BEGIN');
  await client.query('INSERT INTO nb VALUES (3)');
  await client.query('COMMIT');
  t.deepEqual((await client.query('SELECT a FROM nb')).rows, [{ a: 3 }]);
  await client.query('BEGIN');
  await t.throwsAsync(client.query('SELECT * FROM nowhere'));
  const refused = await t.throwsAsync(client.query('SELECT 1'));
  t.is((refused as unknown as pg.DatabaseError).code, '25P02');
  await client.query('ROLLBACK');
  await client.end();
});

test('node-postgres: a cast sets the type of a parameter in VALUES', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = await connect(port);
  await client.query('CREATE TABLE cast_in (a LONG, v VARCHAR, d DOUBLE, ts TIMESTAMP)');
  const text =
    'INSERT INTO cast_in VALUES ($1::bigint, CAST($2 AS varchar), ' +
    '$3::double precision::double, $4::timestamp)';
  await client.query(text, [7, 'x', 1.5, '2024-01-02T00:00:00']);
  await client.query(text, [null, null, null, null]);
  const { rows } = await client.query('SELECT a, v, d, ts::varchar t FROM cast_in');
  t.deepEqual(rows, [
    { a: '7', v: 'x', d: 1.5, t: '2024-01-02T00:00:00.000000Z' },
    { a: null, v: null, d: null, t: null },
  ]);
  await client.end();
});

test('node-postgres: notices, RETURNING rows and DELETE command tags arrive', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = await connect(port);
  try {
    const notices: (string | undefined)[] = [];
    client.on('notice', ({ message }) => notices.push(message));
    await client.query('CREATE TABLE tagged (ts TIMESTAMP, n INT DEFAULT 7) TIMESTAMP(ts)');
    await client.query('VACUUM TABLE tagged');
    t.deepEqual(notices, ['unused files are removed automatically']);
    // Active Record sends this immediately after connecting.
    await client.query("SET client_min_messages TO 'warning'");
    await client.query('VACUUM TABLE tagged');
    t.is(notices.length, 1);
    for (const back of ['RESET ALL', 'SET client_min_messages TO DEFAULT', 'DISCARD ALL']) {
      await client.query('SET client_min_messages = ERROR');
      await client.query(back);
      await client.query('VACUUM TABLE tagged');
    }
    t.is(notices.length, 4);
    const wrong = client.query("SET client_min_messages = 'loud'");
    await t.throwsAsync(wrong, { message: /client_min_messages/ });
    const insert = 'INSERT INTO tagged (ts) VALUES ($1), ($2) RETURNING n, ts';
    const answer = await client.query(insert, ['2024-01-01', '2024-01-02']);
    t.is(answer.command, 'INSERT');
    t.is(answer.rowCount, 2);
    const numbers = answer.rows.map(({ n }: { n: number }) => n);
    t.deepEqual(numbers, [7, 7]);
    const simple = await client.query("INSERT INTO tagged VALUES ('2024-01-03', 1) RETURNING *");
    t.is(simple.rows.length, 1);
    const gone = await client.query('DELETE FROM tagged WHERE n = $1', [7]);
    t.deepEqual([gone.command, gone.rowCount], ['DELETE', 2]);
  } finally {
    await client.end();
  }
});

test('node-postgres: sub-queries in the select list do not affect ORDER BY', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = await connect(port);
  const of = (what: string): string =>
    `(SELECT ${what} FROM long_sequence(50) y WHERE y.x = z.x) ${what.slice(0, 3)}`;
  const { rows } = await client.query<{ key: string }>(
    `SELECT x % 1000 key, ${of('count()')}, ${of('sum(y.x)')} FROM long_sequence(100000) z ` +
      'ORDER BY x % 1000, x',
  );
  const keys = rows.map(({ key }) => Number(key));
  t.deepEqual(
    keys,
    [...keys].sort((a, b) => a - b),
  );
  t.is(keys.length, 100_000);
  await client.end();
});

test('psql: multiple statements, settings and a long result work', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  if (!(await has('psql', '--version'))) {
    skip(t, 'psql is not installed');
    return;
  }
  const address = `host=127.0.0.1 port=${port} user=admin dbname=qdb`;
  const script = [
    "CREATE TABLE ps (a INT, s SYMBOL); INSERT INTO ps VALUES (1, 'x');",
    'SELECT a, s FROM ps',
    'SELECT count() FROM long_sequence(200000)',
  ];
  const { stdout } = await run(
    'psql',
    [address, '-X', '-A', '-t', '-q', ...script.flatMap((text) => ['-c', text])],
    { env: { ...process.env, PGPASSWORD: PASSWORD } },
  );
  t.is(stdout, '1|x\n200000\n');
  const wrong = run('psql', [address, '-X', '-c', 'SELECT 1'], {
    env: { ...process.env, PGPASSWORD: 'no' },
  });
  await t.throwsAsync(wrong, { message: /invalid username\/password/ });
});

test('node-postgres: zone names and sequences work; unsupported SQL is refused', async (t) => {
  const port = await portFor(t);
  if (port === null) {
    return;
  }
  const client = await connect(port);
  const refused = async (text: string): Promise<Partial<pg.DatabaseError>> => {
    const failed: unknown = await client.query(text).catch((error: unknown) => error);
    return failed as Partial<pg.DatabaseError>;
  };
  await client.query('CREATE TABLE zoned (ts TIMESTAMP, i INT) TIMESTAMP(ts) PARTITION BY DAY');
  await client.query(
    `INSERT INTO zoned VALUES ('2026-01-01 10:00:00 UTC', 1), ('2026-01-01 10:00 Z', 2),
      ('2026-01-01 10:00:00.5 Europe/Berlin', 3)`,
  );
  await client.query('INSERT INTO zoned VALUES ($1, $2)', ['2026-01-01 12:00:00.25 UTC', 4]);
  const found = async (condition: string, values: unknown[] = []): Promise<unknown> => {
    const { rows } = await client.query(
      `SELECT i FROM zoned WHERE ${condition} ORDER BY i`,
      values,
    );
    return rows.map((row: { i: number }) => row.i).join();
  };
  t.is(await found("ts >= '2026-01-01 11:00:00 Europe/Berlin'"), '1,2,4');
  t.is(await found('ts = $1', ['2026-01-01 10:00:00 UTC']), '1,2');
  t.is(await found('ts BETWEEN $1 AND $2', ['2026-01-01 UTC', '2026-01-01 09:30 UTC']), '3');
  await t.throwsAsync(found('ts < $1', ['2026-01-01 10:00:00 Nowhere/City']), {
    message: 'Invalid date',
  });
  t.like(await refused("INSERT INTO zoned VALUES ('2026-01-01 10:00 EST', 5)"), { code: '22P02' });
  for (const [text, code, position] of [
    ['SELECT lastval()', '55000', undefined],
    ["SELECT currval('zoned_id_seq')", '55000', undefined],
    ["SELECT nextval('zoned_id_seq')", '0A000', undefined],
    ["SELECT 1, 'a'::int", '22P02', '11'],
    ["SELECT CAST('x' AS long)", '22P02', '13'],
    ["SELECT 'y' + 1", '22P02', '8'],
    ["SELECT 1 FROM zoned WHERE i = 'abc'", '22P02', '31'],
    ["SELECT '{int,nope}'::regtype[]", '42P01', '8'],
    ["SELECT CASE WHEN i > 0 THEN 'x' ELSE interval '1 day' END FROM zoned", '22P02', '29'],
  ] as const) {
    t.like(await refused(text), position === undefined ? { code } : { code, position }, text);
  }
  t.deepEqual((await client.query('SHOW client_min_messages')).rows, [
    { client_min_messages: 'notice' },
  ]);
  t.is((await client.query('LISTEN jobs')).command, 'LISTEN');
  t.is(await found('EXISTS (SELECT FROM zoned z WHERE z.i > zoned.i)'), '1,2,3');
  const both: unknown = await client.query('SELECT $$a $1; b$$ AS x; SELECT $q$;$q$ AS y');
  t.like(both, [{ rows: [{ x: 'a $1; b' }] }, { rows: [{ y: ';' }] }]);
  await client.end();
});

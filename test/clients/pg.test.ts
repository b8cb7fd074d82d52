/**
 * Real clients of the PostgreSQL wire protocol against a real server: node-postgres, psql and
 * psycopg. What a machine does not have is skipped, loudly.
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';

import test, { type ExecutionContext } from 'ava';
import pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';

const run = promisify(execFile);
const PASSWORD = 'quest';
const WAIT_MS = 60_000;

const addon = new URL('../../../native/index.js', import.meta.url);
const started: Promise<TestServer> | null = existsSync(addon) ? startTestServer() : null;

test.after.always(async () => {
  const server = await started?.catch(() => null);
  await server?.stop();
});

/** The server, or null when the addon is not built. */
async function serverFor(t: ExecutionContext): Promise<TestServer | null> {
  t.timeout(WAIT_MS);
  if (started === null) {
    skip(t, 'the native addon is not built');
    return null;
  }
  return started;
}

function skip(t: ExecutionContext, why: string): void {
  process.stdout.write(`SKIPPED: ${t.title}: ${why}\n`);
  t.pass(`skipped: ${why}`);
}

async function has(command: string, ...args: readonly string[]): Promise<boolean> {
  try {
    await run(command, [...args]);
    return true;
  } catch {
    return false;
  }
}

function portOf(server: TestServer): number {
  return Number(server.pg.split(':').at(-1));
}

async function connect(server: TestServer): Promise<pg.Client> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port: portOf(server),
    user: 'admin',
    password: PASSWORD,
    database: 'qdb',
  });
  await client.connect();
  return client;
}

/** Values as the server wrote them, not as the driver reads them. */
const raw = { getTypeParser: () => (value: string | Buffer) => String(value) };

test('node-postgres: parameters, types, prepared statements', async (t) => {
  const server = await serverFor(t);
  if (server === null) {
    return;
  }
  const client = await connect(server);
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

test('node-postgres: errors have a class and a position; blocks are atomic', async (t) => {
  const server = await serverFor(t);
  if (server === null) {
    return;
  }
  const client = await connect(server);
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

test('node-postgres: notices, rows of RETURNING, tags of DELETE', async (t) => {
  const server = await serverFor(t);
  if (server === null) {
    return;
  }
  const client = await connect(server);
  try {
    const notices: (string | undefined)[] = [];
    client.on('notice', ({ message }) => notices.push(message));
    await client.query('CREATE TABLE told (ts TIMESTAMP, n INT DEFAULT 7) TIMESTAMP(ts)');
    await client.query('VACUUM TABLE told');
    t.deepEqual(notices, ['files that nobody reads are removed by themselves']);
    const insert = 'INSERT INTO told (ts) VALUES ($1), ($2) RETURNING n, ts';
    const answer = await client.query(insert, ['2024-01-01', '2024-01-02']);
    t.is(answer.command, 'INSERT');
    t.is(answer.rowCount, 2);
    const numbers = answer.rows.map(({ n }: { n: number }) => n);
    t.deepEqual(numbers, [7, 7]);
    const simple = await client.query("INSERT INTO told VALUES ('2024-01-03', 1) RETURNING *");
    t.is(simple.rows.length, 1);
    const gone = await client.query('DELETE FROM told WHERE n = $1', [7]);
    t.deepEqual([gone.command, gone.rowCount], ['DELETE', 2]);
  } finally {
    await client.end();
  }
});

test('psql: several statements, settings, a long result', async (t) => {
  const server = await serverFor(t);
  if (server === null) {
    return;
  }
  if (!(await has('psql', '--version'))) {
    skip(t, 'psql is not installed');
    return;
  }
  const address = `host=127.0.0.1 port=${portOf(server)} user=admin dbname=qdb`;
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

/** Prints one JSON line; binary results, a pipeline, a stream, a rollback. */
const PSYCOPG = `
import json, sys, datetime, psycopg
out = {}
with psycopg.connect(host='127.0.0.1', port=int(sys.argv[1]), user='admin', password='quest',
                     dbname='qdb', autocommit=True) as c:
    c.execute('CREATE TABLE py (ts TIMESTAMP, s SYMBOL, x DOUBLE) TIMESTAMP(ts) PARTITION BY DAY')
    when = datetime.datetime(2024, 1, 1, 0, 0, 0, 7)
    with c.cursor() as cur:
        cur.executemany('INSERT INTO py VALUES (%s, %s, %s)',
                        [(when, 'a', 1.5), (when, 'b', None)])
    out['text'] = [[str(v) for v in row] for row in c.execute('SELECT * FROM py').fetchall()]
    with c.cursor(binary=True) as cur:
        rows = cur.execute('SELECT * FROM py').fetchall()
        out['binary'] = [[str(v) for v in row] for row in rows]
    with c.pipeline():
        first, second = c.execute('SELECT 1'), c.execute('SELECT 2')
        out['pipeline'] = [first.fetchone()[0], second.fetchone()[0]]
    with c.cursor() as cur:
        out['stream'] = sum(1 for _ in cur.stream('SELECT x FROM long_sequence(5000)'))
    try:
        c.execute('SELECT nope FROM py')
    except psycopg.errors.UndefinedColumn as error:
        out['error'] = error.sqlstate
print(json.dumps(out))
`;

test('psycopg: text and binary rows, pipelines, streams, errors', async (t) => {
  const server = await serverFor(t);
  if (server === null) {
    return;
  }
  if (!(await has('python3', '-c', 'import psycopg'))) {
    skip(t, 'psycopg is not installed');
    return;
  }
  const { stdout } = await run('python3', ['-c', PSYCOPG, String(portOf(server))]);
  const rows = [
    ['2024-01-01 00:00:00.000007', 'a', '1.5'],
    ['2024-01-01 00:00:00.000007', 'b', 'None'],
  ];
  t.deepEqual(JSON.parse(stdout), {
    text: rows,
    binary: rows,
    pipeline: [1, 2],
    stream: 5_000,
    error: '42703',
  });
});

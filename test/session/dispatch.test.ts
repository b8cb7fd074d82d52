/**
 * A statement's kind is determined from its syntax tree, so whitespace, comments and aliases make
 * no difference.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';
import type pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';
import { pgClient } from '../pg-client.js';

let server: TestServer;
let folder = '';

test.before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-front-door-'));
  writeFileSync(join(folder, 'server.conf'), '');
  server = await startTestServer({ args: ['--config', join(folder, 'server.conf')] });
});

test.after.always(async () => {
  await server.stop();
  rmSync(folder, { recursive: true });
});

interface Answer {
  readonly columns?: readonly { readonly name: string; readonly type: string }[];
  readonly dataset?: readonly (readonly unknown[])[];
  readonly ddl?: string;
  readonly error?: string;
  readonly position?: number;
}

async function exec(query: string): Promise<Answer> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(query)}`);
  return (await response.json()) as Answer;
}

async function connect(): Promise<pg.Client> {
  const client = pgClient(server.pg);
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Runs `work` over a separate connection. */
async function connected<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const RELOADS: readonly (readonly [string, string])[] = [
  ['SELECT reload_config() -- now', 'reload_config'],
  ['SELECT /* x */ reload_config()', 'reload_config'],
  ['SELECT reload_config() ok', 'ok'],
  ['SELECT reload_config ( ) AS "ok"', 'ok'],
  ['(select Reload_Config())', 'reload_config'],
  ['SELECT reload_config()::boolean AS b', 'b'],
];

for (const [text, name] of RELOADS) {
  test(`the configuration reloads over HTTP and PostgreSQL: ${text}`, async (t) => {
    const { columns, dataset, error } = await exec(text);
    t.is(error, undefined);
    t.deepEqual(columns, [{ name, type: 'BOOLEAN' }]);
    t.deepEqual(dataset, [[true]]);
    await connected(async (client) => {
      t.deepEqual((await client.query<object>(text)).rows, [{ [name]: true }]);
      // The statement is prepared once, but evaluated at each execution.
      for (let round = 0; round < 2; round += 1) {
        t.deepEqual((await client.query<object>({ name: 'r', text })).rows, [{ [name]: true }]);
      }
    });
  });
}

test('pg_backend_pid() can be used in any expression', async (t) => {
  await connected(async (client) => {
    const first = async (text: string, values: unknown[] = []): Promise<object | undefined> =>
      (await client.query<object>(text, values)).rows[0];
    const row = (await first('SELECT pg_backend_pid()')) as { pg_backend_pid: number };
    const pid = row.pg_backend_pid;
    t.true(pid > 0);
    t.deepEqual(await first('SELECT pg_backend_pid() AS pid'), { pid });
    t.deepEqual(await first('SELECT pg_catalog.pg_backend_pid() pid, 1 one'), { pid, one: 1 });
    t.deepEqual(await first('SELECT 1 one, pg_backend_pid()'), { one: 1, pg_backend_pid: pid });
    t.deepEqual(await first('SELECT pid FROM (SELECT pg_backend_pid() pid)'), { pid });
    t.deepEqual(await first('SELECT $1::int x, pg_backend_pid() pid', [5]), { x: 5, pid });
    t.deepEqual(
      await first('SELECT x FROM long_sequence(3) WHERE pg_backend_pid() = $1 AND x = 2', [pid]),
      { x: '2' },
    );
    await client.query('CREATE TABLE pids (n INT, pid INT)');
    await client.query('INSERT INTO pids VALUES ($1, pg_backend_pid())', [1]);
    await client.query('INSERT INTO pids SELECT 2, pg_backend_pid()');
    const { rows } = await client.query<object>('SELECT * FROM pids ORDER BY n');
    t.deepEqual(rows, [
      { n: 1, pid },
      { n: 2, pid },
    ]);
  });
  const { columns, dataset } = await exec('SELECT pg_backend_pid() AS pid, 1 AS one');
  t.deepEqual(columns, [
    { name: 'pid', type: 'INT' },
    { name: 'one', type: 'INT' },
  ]);
  t.deepEqual(dataset, [[0, 1]], 'HTTP has no session of its own');
});

test('pg_terminate_backend accepts the pid as a parameter', async (t) => {
  const victim = await connect();
  const ended = new Promise((resolve) => victim.once('error', resolve));
  const { rows } = await victim.query<{ n: number }>('SELECT pg_backend_pid() n');
  await connected(async (client) => {
    const call = 'SELECT pg_terminate_backend($1) /* now */ AS gone';
    const none = await client.query<object>('SELECT pg_cancel_backend($1)', [1]);
    t.deepEqual(none.rows, [{ pg_cancel_backend: false }]);
    t.deepEqual((await client.query<object>(call, [rows[0]?.n])).rows, [{ gone: true }]);
    await ended;
    await t.throwsAsync(client.query(call, [null]), { message: /expects a number, found null/ });
  });
});

const REFUSED: readonly (readonly [string, RegExp, number])[] = [
  [
    'select * from (select pg_cancel_backend(1))',
    /pg_cancel_backend\(\) can be used only in a SELECT without FROM/,
    22,
  ],
  [
    'SELECT reload_config() FROM long_sequence(3)',
    /reload_config\(\) can be used only in a SELECT without FROM/,
    7,
  ],
  [
    'SELECT 1 WHERE reload_config()',
    /reload_config\(\) can be used only in a SELECT without FROM/,
    15,
  ],
  [
    'SELECT CASE WHEN reload_config() THEN 1 END',
    /reload_config\(\) can be used only in a SELECT without FROM/,
    17,
  ],
  [
    'EXPLAIN SELECT reload_config()',
    /reload_config\(\) can be used only in a SELECT without FROM/,
    15,
  ],
  [
    'SELECT reload_tls() UNION SELECT true',
    /reload_tls\(\) can be used only in a SELECT without FROM/,
    7,
  ],
  ['SELECT * FROM pg_cancel_backend(1)', /pg_cancel_backend\(\) .* cannot be used as a table/, 14],
  ['SELECT pg_terminate_backend(1 + 1)', /expects a number or a parameter/, 7],
  ['SELECT pg_cancel_backend()', /expects 1 arguments, found 0/, 7],
  ['SELECT reload_config(1)', /expects 0 arguments, found 1/, 7],
  ['SELECT pg_backend_pid() OVER ()', /cannot be used over many rows/, 7],
  ['CREATE VIEW mine AS (SELECT pg_backend_pid())', /cannot be used in a view/, 28],
];

for (const [text, message, position] of REFUSED) {
  test(`${text} is refused instead of returning false`, async (t) => {
    const answer = await exec(text);
    t.regex(answer.error ?? '', message);
    t.is(answer.position, position);
    await connected(async (client) => {
      await t.throwsAsync(client.query(text), { message, code: '0A000' });
      await t.throwsAsync(client.query({ name: 'p', text }), { message });
    });
  });
}

test('a query can be cancelled by its pid in pg_stat_activity', async (t) => {
  const text = 'SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE pid = -1';
  t.deepEqual((await exec(text)).dataset, []);
});

test('session statements may contain comments', async (t) => {
  await connected(async (client) => {
    const rows = async (text: string): Promise<unknown[]> =>
      (await client.query<object>(text)).rows;
    await client.query('CREATE TABLE steps (n INT)');
    await client.query('BEGIN/* x */WORK');
    await client.query('INSERT INTO steps VALUES (1)');
    await client.query('SAVEPOINT/**/"A b"');
    await client.query('INSERT INTO steps VALUES (2)');
    await client.query('ROLLBACK/**/TO -- back\n "A b"');
    await client.query('COMMIT/* now */WORK');
    t.deepEqual(await rows('SELECT * FROM steps'), [{ n: 1 }]);
    const text = 'START/**/TRANSACTION; DECLARE/**/c CURSOR FOR SELECT * FROM nowhere';
    const error = await t.throwsAsync(client.query(text));
    t.like(error, { code: '42P01', position: String(text.indexOf('nowhere') + 1) });
    await client.query('ROLLBACK -- of the failed block');
    await client.query('BEGIN; DECLARE/**/c CURSOR FOR SELECT x::int x FROM long_sequence(4)');
    t.deepEqual(await rows('FETCH/**/2 FROM c'), [{ x: 1 }, { x: 2 }]);
    const prepared = await client.query<object>({ name: 'f', text: 'FETCH /* one */ c -- x' });
    t.deepEqual(prepared.rows, [{ x: 3 }]);
    await client.query('CLOSE/**/c; END/**/');
    await t.throwsAsync(client.query('FETCH c'), { code: '34000' });
    const wrong = client.query("SET/**/statement_timeout = 'soon'");
    await t.throwsAsync(wrong, { message: /statement_timeout/ });
    await t.throwsAsync(client.query('SET/**/ROLE stranger'), {
      message: /access control|stranger/,
    });
    await t.throwsAsync(client.query('SAVEPOINT'), { code: '42601' });
  });
});

test('over HTTP, session statements have no effect or require a wire connection', async (t) => {
  for (const text of ['BEGIN', 'COMMIT -- x', 'SET/**/a = 1', 'SAVEPOINT a', 'DISCARD ALL']) {
    t.like(await exec(text), { ddl: 'OK' }, text);
  }
  const refused = [
    'FETCH ALL FROM c',
    'DECLARE c CURSOR FOR SELECT 1',
    'COPY steps FROM/**/STDIN',
    'COPY (SELECT 1) TO STDOUT -- x',
    'NOTIFY x',
  ];
  for (const text of refused) {
    t.regex((await exec(text)).error ?? '', /requires a PostgreSQL wire protocol connection/, text);
  }
});

/**
 * Agents log in as their user and have that user's permissions; write access is granted separately.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { rows, run, startAccessServer } from '../access/harness.js';
import { exitCode, runCli, startTestServer } from '../golden/server.js';
import { answer, exec, failure, WAYS } from './harness.js';

const SETUP = [
  'CREATE TABLE trades (ts TIMESTAMP, symbol SYMBOL, trader VARCHAR) ' +
    'TIMESTAMP(ts) PARTITION BY DAY',
  "INSERT INTO trades VALUES ('2026-03-02T09:00:00Z', 'GOLD', 'ann')",
  'CREATE TABLE secrets (v VARCHAR)',
  "CREATE USER reader WITH PASSWORD 'a long one'",
  'GRANT HTTP TO reader',
  'GRANT SELECT ON trades(symbol) TO reader',
  "CREATE USER writer WITH PASSWORD 'a long one'",
  'GRANT HTTP TO writer',
  'GRANT SELECT, INSERT ON trades TO writer',
  "CREATE USER outsider WITH PASSWORD 'a long one'",
];

for (const [way, connect] of WAYS) {
  test(`over ${way}, users have only their granted rights`, async (t) => {
    const server = await startAccessServer();
    t.teardown(() => server.stop());
    await run(server, ...SETUP);
    const client = await connect(server.url, { user: 'reader', password: 'a long one' });
    t.teardown(() => client.close());

    const { tables } = (await answer(client, 'list_tables')) as { tables: { name: string }[] };
    t.deepEqual(
      tables.map(({ name }) => name),
      ['trades'],
    );
    const described = await answer(client, 'describe_table', { table: 'trades' });
    // The designated timestamp is granted together with a column.
    t.deepEqual(
      (described['columns'] as { name: string }[]).map(({ name }) => name),
      ['ts', 'symbol'],
    );
    t.false('ddl' in described);
    const sample = await answer(client, 'sample_table', { table: 'trades' });
    t.deepEqual(sample['rows'], [['2026-03-02T09:00:00.000000Z', 'GOLD']]);
    t.like(await answer(client, 'query', { sql: 'SELECT symbol FROM trades' }), {
      rows: [['GOLD']],
    });
    for (const tool of ['query', 'explain', 'check_query']) {
      t.regex(
        await failure(client, tool, { sql: 'SELECT trader FROM trades' }),
        /^AccessDenied: Access denied \[SELECT on trades\(trader\)\][^]*hint: /,
      );
    }
    // The error is the same whether or not the table exists.
    for (const table of ['secrets', 'nowhere']) {
      t.regex(await failure(client, 'query', { sql: `SELECT * FROM ${table}` }), /^AccessDenied: /);
    }
    await t.throwsAsync(client.readResource({ uri: 'tidemark://tables/secrets' }));
    const { resources } = await client.listResources();
    t.false(resources.some(({ uri }) => uri.includes('secrets')));
    const prompt = await client.getPrompt({
      name: 'write_sql',
      arguments: { question: 'q', tables: 'secrets' },
    });
    t.regex(JSON.stringify(prompt.messages.at(-1)), /describe_table failed for 'secrets'/);
  });

  test(`over ${way}, a write requires both the agent grant and the user's right`, async (t) => {
    const server = await startAccessServer();
    t.teardown(() => server.stop());
    await run(server, ...SETUP);
    const login = { user: 'writer', password: 'a long one' };
    const insert = "INSERT INTO trades VALUES ('2026-03-02T10:00:00Z', $1, 'bob')";
    const reading = await connect(server.url, login);
    t.teardown(() => reading.close());
    const sql = insert.replace('$1', "'IRON'");
    t.regex(await failure(reading, 'query', { sql }), /^ReadOnly: [^]*hint: .*execute/);
    t.regex(await failure(reading, 'execute', { sql }), /not found/);
    for (const change of [
      'DROP TABLE trades',
      "UPDATE trades SET trader = 'x'",
      'CREATE TABLE mine (a INT)',
      "COPY trades TO 'x' WITH FORMAT PARQUET",
      "ALTER USER writer WITH PASSWORD 'another one'",
      'SELECT reload_config()',
    ]) {
      t.regex(
        await failure(reading, 'query', { sql: change }),
        /^(?:ReadOnly|AccessDenied): /,
        change,
      );
      t.regex(await failure(reading, 'explain', { sql: change }), /^\w+: /, change);
    }
    // EXPLAIN does not execute the statement, as the final row count proves.
    t.deepEqual(await answer(reading, 'explain', { sql, analyze: true }), { plan: 'INSERT' });

    const writing = await connect(server.url, { ...login, mayWrite: true });
    t.teardown(() => writing.close());
    const { tools } = await writing.listTools();
    const tool = tools.find(({ name }) => name === 'execute');
    t.like(tool?.annotations, { readOnlyHint: false, destructiveHint: true });
    t.like(await answer(writing, 'execute', { sql: insert, parameters: ['IRON'] }), {
      command: 'INSERT',
      rows_affected: 1,
    });
    t.regex(await failure(writing, 'query', { sql }), /^ReadOnly: /, 'the query tool is read-only');
    t.regex(await failure(writing, 'execute', { sql: 'DROP TABLE trades' }), /^AccessDenied: /);
    t.deepEqual(await rows(server, 'admin:quest', 'SELECT count() FROM trades'), [[2]]);
  });

  test(`over ${way}, users without access are refused`, async (t) => {
    const server = await startAccessServer();
    t.teardown(() => server.stop());
    await run(server, ...SETUP);
    const created = await rows(
      server,
      'admin:quest',
      "ALTER USER reader CREATE TOKEN TYPE REST WITH TTL '1d'",
    );
    const token = created.flat().find((cell) => String(cell).startsWith('tdm_'));
    const client = await connect(server.url, { token: String(token) });
    t.teardown(() => client.close());
    t.like(await answer(client, 'query', { sql: 'SELECT symbol FROM trades' }), {
      rows: [['GOLD']],
    });
    const wrong = [
      {},
      { user: 'reader', password: 'wrong' },
      { user: 'outsider', password: 'a long one' },
      { token: 'tdm_wrong' },
    ];
    for (const login of wrong) {
      await t.throwsAsync(connect(server.url, login), { message: /401|403|denied|Unauthorized/i });
    }
    await run(server, 'DROP USER reader');
    await t.throwsAsync(
      client.callTool({ name: 'list_tables' }).then((result) => {
        if (result.isError === true) {
          throw new Error(JSON.stringify(result.content));
        }
      }),
      { message: /401|Unauthorized/i },
    );
  });
}

test('read-only servers and servers without agent writes offer no write tool', async (t) => {
  for (const setting of ['http.security.readonly=true', 'mcp.writes.allowed=false']) {
    const server = await startTestServer({ set: [setting] });
    t.teardown(() => server.stop());
    for (const [, connect] of WAYS) {
      const client = await connect(server.url, { mayWrite: true });
      const { tools } = await client.listTools();
      t.false(tools.some(({ name }) => name === 'execute'));
      t.regex(await failure(client, 'query', { sql: 'CREATE TABLE x (a INT)' }), /^ReadOnly: /);
      await client.close();
    }
  }
});

test('without access control, an agent with write access may insert and truncate', async (t) => {
  const server = await startTestServer();
  t.teardown(() => server.stop());
  await exec(server.url, 'CREATE TABLE x (a INT)');
  for (const [, connect] of WAYS) {
    const client = await connect(server.url, { mayWrite: true });
    t.like(await answer(client, 'execute', { sql: 'INSERT INTO x VALUES (1) RETURNING a' }), {
      rows: [[1]],
    });
    t.like(await answer(client, 'execute', { sql: 'TRUNCATE TABLE x' }), { rows_affected: 0 });
    await client.close();
  }
});

test('secrets are read from the environment or a file; invalid options are refused', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tidemark-mcp-'));
  t.teardown(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, 'password');
  await writeFile(file, 'one\ntwo\n');
  const wrong: (readonly [string, readonly string[], Record<string, string>?])[] = [
    ['expected a URL', ['--url', 'ftp://x']],
    ['--url must not contain a user or password', ['--url', 'http://u:p@127.0.0.1:1']],
    ['requires a password', ['--user', 'ann']],
    ['must contain one line', ['--user', 'ann', '--password-file', file]],
    ['cannot read', ['--token-file', join(folder, 'none')]],
    ['either a user', ['--user', 'ann'], { TIDEMARK_TOKEN: 'tdm_x' }],
    ['a password requires a user', [], { TIDEMARK_PASSWORD: 'x' }],
    ["Unknown option '--password'", ['--password', 'x']],
  ];
  for (const [message, args, environment = {}] of wrong) {
    const { process: child, err } = runCli(['mcp', ...args], { environment });
    t.is(await exitCode(child), 64, message);
    t.true(err().includes(message), err());
  }
});

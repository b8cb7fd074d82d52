/**
 * Tables that change after a client prepared and described a statement. Rows with different columns
 * are never returned. If the columns stay the same, the client does not notice the change.
 */
import { existsSync } from 'node:fs';

import test from 'ava';

import { run as runAsAdmin, startAccessServer } from '../access/harness.js';
import { startTestServer } from '../golden/server.js';
import { run } from '../scenario/statements.js';
import { clientMessage, RawClient, type ServerMessage } from './raw-client.js';

const addon = existsSync(new URL('../../../native/index.js', import.meta.url));
const real = addon ? test.serial : test.serial.skip;

/** The raw client does not support SCRAM. */
const PLAIN = ['cairo.commit.mode=nosync', 'pg.auth.method=cleartext'];

const zero = (): readonly [number] => [0];

const prepare = (name: string, query: string): readonly Buffer[] => [
  clientMessage('P', name, query, [0]),
  clientMessage('D', `S${name}`),
  clientMessage('S'),
];

/** Executes without Describe, as drivers do, with one format per column. */
const execute = (name: string, columns = 1): readonly Buffer[] => [
  clientMessage('B', '', name, [0], [0], [columns], ...Array.from({ length: columns }, zero)),
  clientMessage('E', '', 0),
  clientMessage('S'),
];

const typesOf = (messages: readonly ServerMessage[]): string =>
  messages.map(({ type }) => type).join('');

real('a prepared statement never returns columns that differ from its description', async (t) => {
  const server = await startTestServer({ set: PLAIN });
  const client = await RawClient.login(Number(server.pg.split(':')[1]));
  const query = async (messages: readonly Buffer[]): Promise<ServerMessage[]> => {
    client.send(...messages);
    return await client.until('Z');
  };
  try {
    await run(server, 'CREATE TABLE t AS (SELECT 1 AS a)');
    t.is(typesOf(await query(prepare('all', 'SELECT * FROM t'))), '1tTZ');
    t.is(typesOf(await query(prepare('one', 'SELECT a FROM t'))), '1tTZ');
    t.is(typesOf(await query(execute('all'))), '2DCZ');
    await run(server, 'ALTER TABLE t ADD COLUMN b INT');
    t.is(typesOf(await query(execute('one'))), '2DCZ');
    // Repeated attempts must fail in the same way.
    for (let run = 0; run < 3; run += 1) {
      const answer = await query(execute('all'));
      t.is(typesOf(answer), '2EZ');
      const fields = answer[1]?.body.toString().split('\0') ?? [];
      t.true(fields.includes('C0A000'), String(fields));
      t.true(fields.includes('Mcached plan must not change result type'));
      t.true(fields.includes('RRevalidateCachedQuery'));
    }
    t.is(typesOf(await query(execute('one'))), '2DCZ');
    // After another Describe, the statement can be executed again.
    await run(server, 'ALTER TABLE t DROP COLUMN b');
    t.is(typesOf(await query(execute('all'))), '2DCZ');
    await run(server, 'ALTER TABLE t ADD COLUMN c INT');
    t.is(
      typesOf(await query([clientMessage('C', 'Sall'), ...prepare('all', 'SELECT * FROM t')])),
      '31tTZ',
    );
    t.is(typesOf(await query(execute('all', 2))), '2DCZ');
  } finally {
    client.close();
    await server.stop();
  }
});

real('changed columns are detected even after a refused execution', async (t) => {
  const server = await startAccessServer(undefined, ...PLAIN);
  t.teardown(() => server.stop());
  await runAsAdmin(
    server,
    'CREATE TABLE t AS (SELECT 1 AS a)',
    "CREATE USER u WITH PASSWORD 'secret'",
    'GRANT PGWIRE TO u',
    'GRANT SELECT, INSERT ON t TO u',
  );
  const client = await RawClient.login(Number(server.pg.split(':')[1]), 'u', 'secret');
  t.teardown(() => client.close());
  const query = async (messages: readonly Buffer[]): Promise<ServerMessage[]> => {
    client.send(...messages);
    return await client.until('Z');
  };
  t.is(typesOf(await query(prepare('all', 'SELECT * FROM t'))), '1tTZ');
  t.is(typesOf(await query(execute('all'))), '2DCZ');
  await runAsAdmin(server, 'REVOKE SELECT ON t FROM u', 'ALTER TABLE t ADD COLUMN b INT');
  const refused = await query(execute('all'));
  t.true(
    refused.some(({ body }) => body.toString().includes('C42501')),
    typesOf(refused),
  );
  await runAsAdmin(server, 'GRANT SELECT ON t TO u');
  t.is(typesOf(await query(execute('all'))), '2EZ');
  await runAsAdmin(server, 'ALTER TABLE t DROP COLUMN b');
  t.is(typesOf(await query(execute('all'))), '2DCZ');
});

real('extracting literals does not change the error of a failing query', async (t) => {
  const server = await startTestServer({ set: PLAIN });
  const client = await RawClient.login(Number(server.pg.split(':')[1]));
  const query = async (messages: readonly Buffer[]): Promise<ServerMessage[]> => {
    client.send(...messages);
    return await client.until('Z');
  };
  try {
    await run(server, "CREATE TABLE t AS (SELECT 1 x, 'a' s)");
    t.is(
      typesOf(await query(prepare('cast', 'SELECT s::decimal(5,2) FROM t WHERE x = 1'))),
      '1tTZ',
    );
    // Repeated attempts must fail in the same way.
    for (let run = 0; run < 3; run += 1) {
      const answer = await query(execute('cast'));
      t.is(typesOf(answer), '2EZ');
      t.regex(answer[1]?.body.toString() ?? '', /\0C22P02\0Minconvertible value: `a`/);
    }
  } finally {
    client.close();
    await server.stop();
  }
});

/**
 * Tables that change under a statement which a client prepared and had described: rows of other
 * columns than it received never come; where the columns are the same it notices nothing.
 */
import { existsSync } from 'node:fs';

import test from 'ava';

import { startTestServer } from '../golden/server.js';
import { run } from '../scenario/statements.js';
import { clientMessage, RawClient, type ServerMessage } from './raw-client.js';

const addon = existsSync(new URL('../../../native/index.js', import.meta.url));
const real = addon ? test.serial : test.serial.skip;

/** Bare clients know no SCRAM. */
const PLAIN = ['cairo.commit.mode=nosync', 'pg.auth.method=cleartext'];

const prepare = (name: string, query: string): readonly Buffer[] => [
  clientMessage('P', name, query, [0]),
  clientMessage('D', `S${name}`),
  clientMessage('S'),
];

/** Runs without asking again what the rows are, as drivers do. */
const execute = (name: string): readonly Buffer[] => [
  clientMessage('B', '', name, [0], [0], [0]),
  clientMessage('E', '', 0),
  clientMessage('S'),
];

const typesOf = (messages: readonly ServerMessage[]): string =>
  messages.map(({ type }) => type).join('');

real(
  'a prepared statement never answers with other columns than it was described with',
  async (t) => {
    const server = await startTestServer({ set: PLAIN });
    const client = await RawClient.login(Number(server.pg.split(':')[1]));
    const ask = async (messages: readonly Buffer[]): Promise<ServerMessage[]> => {
      client.send(...messages);
      return await client.until('Z');
    };
    try {
      await run(server, 'CREATE TABLE t AS (SELECT 1 AS a)');
      t.is(typesOf(await ask(prepare('all', 'SELECT * FROM t'))), '1tTZ');
      t.is(typesOf(await ask(prepare('one', 'SELECT a FROM t'))), '1tTZ');
      t.is(typesOf(await ask(execute('all'))), '2DCZ');
      await run(server, 'ALTER TABLE t ADD COLUMN b INT');
      t.is(typesOf(await ask(execute('one'))), '2DCZ');
      // However often it is asked.
      for (let run = 0; run < 3; run += 1) {
        const answer = await ask(execute('all'));
        t.is(typesOf(answer), '2EZ');
        const fields = answer[1]?.body.toString().split('\0') ?? [];
        t.true(fields.includes('C0A000'), String(fields));
        t.true(fields.includes('Mcached plan must not change result type'));
        t.true(fields.includes('RRevalidateCachedQuery'));
      }
      t.is(typesOf(await ask(execute('one'))), '2DCZ');
      t.is(
        typesOf(await ask([clientMessage('C', 'Sall'), ...prepare('all', 'SELECT * FROM t')])),
        '31tTZ',
      );
      t.is(typesOf(await ask(execute('all'))), '2DCZ');
    } finally {
      client.close();
      await server.stop();
    }
  },
);

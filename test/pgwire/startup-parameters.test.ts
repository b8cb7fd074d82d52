/** Startup parameters: their effect, their values in SHOW, and ParameterStatus. */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { has, run, skip } from '../clients/tools.js';
import { pgClient } from '../pg-client.js';
import {
  clientMessage,
  errorFields,
  RawClient,
  type ServerMessage,
  startup,
} from './raw-client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['pg.auth.method=cleartext'] });
});

test.after.always(() => server.stop());

const port = (): number => Number(server.pg.split(':')[1]);

/** The parameters in ParameterStatus messages. */
function reported(messages: readonly ServerMessage[]): Map<string, string> {
  const status = messages.filter(({ type }) => type === 'S');
  return new Map(
    status.map(({ body }) => {
      const [name = '', value = ''] = body.toString().split('\0');
      return [name, value];
    }),
  );
}

/** Logs in with startup parameters; returns the client and the server's messages. */
async function login(...parameters: readonly string[]): Promise<[RawClient, ServerMessage[]]> {
  const client = await RawClient.open(port());
  client.send(startup('admin', 0, parameters), clientMessage('p', 'quest'));
  return [client, await client.until('Z')];
}

/** Returns the value of each setting, as text. */
async function values(client: RawClient, ...settings: readonly string[]): Promise<string[]> {
  client.send(clientMessage('Q', settings.map((setting) => `SHOW ${setting}`).join(';')));
  const rows = (await client.until('Z')).filter(({ type }) => type === 'D');
  return rows.map(({ body }) => body.subarray(6).toString());
}

test('startup parameters take effect and are shown and reported', async (t) => {
  const [client, messages] = await login(
    ...['application_name', 'größe', 'statement_timeout', '700ms', 'search_path', 'a, public'],
    ...['TimeZone', 'Europe/Berlin', 'DateStyle', 'German', 'work_mem', '1MB'],
    ...['options', String.raw`-c search_path=x -cclient_min_messages=error --jit=off -c a\ b=c -e`],
  );
  const status = reported(messages);
  t.is(status.get('application_name'), 'gr????e');
  t.is(status.get('default_transaction_read_only'), 'off');
  t.is(status.get('in_hot_standby'), 'off');
  // Times are always sent in UTC and in the ISO format.
  t.is(status.get('TimeZone'), 'UTC');
  t.is(status.get('DateStyle'), 'ISO, YMD');
  t.deepEqual(
    await values(client, 'application_name', 'statement_timeout', 'search_path', 'TIME ZONE'),
    ['gr????e', '700ms', 'a, public', 'UTC'],
  );
  t.deepEqual(await values(client, 'client_min_messages'), ['warning']);
  client.close();
});

test('a startup timeout stops a statement, and RESET returns to it', async (t) => {
  const [client] = await login('statement_timeout', '300');
  const long = 'SELECT count() FROM long_sequence(100000000000) a CROSS JOIN long_sequence(1000) b';
  for (const first of ['SELECT 1', 'SET statement_timeout = 0; RESET statement_timeout']) {
    client.send(clientMessage('Q', first), clientMessage('Q', long));
    await client.until('Z');
    const failed = (await client.until('Z')).find(({ type }) => type === 'E');
    t.is(errorFields(failed)['C'], '57014');
  }
  client.close();
});

test('an invalid startup parameter ends the connection', async (t) => {
  for (const [parameters, message] of [
    [['statement_timeout', 'soon'], 'invalid value for parameter "statement_timeout": "soon"'],
    [
      ['options', '-c default_transaction_read_only=maybe'],
      'parameter "default_transaction_read_only" requires a Boolean value',
    ],
  ] as const) {
    const [client, messages] = await login(...parameters);
    const fields = errorFields(messages.at(-1));
    t.deepEqual([fields['S'], fields['C'], fields['M']], ['FATAL', '22023', message]);
    t.is(await client.next(), null);
  }
});

test('a change of a reported setting sends ParameterStatus', async (t) => {
  const [client] = await login('application_name', 'first');
  const changes: readonly (readonly [sql: string, expected: Record<string, string>])[] = [
    ["SET application_name = 'second'", { application_name: 'second' }],
    ["SET application_name = 'second'", {}],
    ['SET default_transaction_read_only = on', { default_transaction_read_only: 'on' }],
    ["BEGIN; SET LOCAL application_name = 'third'", { application_name: 'third' }],
    ['COMMIT', { application_name: 'second' }],
    ['BEGIN; RESET application_name', { application_name: 'first' }],
    ['ROLLBACK', { application_name: 'second' }],
    ['DISCARD ALL', { application_name: 'first', default_transaction_read_only: 'off' }],
  ];
  for (const [sql, expected] of changes) {
    client.send(clientMessage('Q', sql));
    t.deepEqual(Object.fromEntries(reported(await client.until('Z'))), expected, sql);
  }
  client.close();
});

test('a prepared SHOW returns the current value', async (t) => {
  const client = pgClient(server.pg, { application_name: 'first', statement_timeout: 90_000 });
  await client.connect();
  const show = { name: 's', text: 'SHOW application_name' };
  t.deepEqual((await client.query(show)).rows, [{ application_name: 'first' }]);
  await client.query("SET application_name = 'it''s'");
  t.deepEqual((await client.query(show)).rows, [{ application_name: "it's" }]);
  const { rows } = await client.query('SHOW statement_timeout');
  t.deepEqual(rows, [{ statement_timeout: '90s' }]);
  await client.end();
});

test('psql passes PGOPTIONS', async (t) => {
  const env = {
    ...process.env,
    PGPASSWORD: 'quest',
    PGOPTIONS: '-c statement_timeout=5min -c default_transaction_read_only=on',
    PGAPPNAME: 'mine',
  };
  if (!(await has('psql', '--version'))) {
    skip(t, 'psql is not installed');
    return;
  }
  const settings = ['statement_timeout', 'application_name', 'transaction_read_only'];
  const commands = settings.flatMap((setting) => ['-c', `SHOW ${setting}`]);
  const connection = ['-h', '127.0.0.1', '-p', String(port()), '-U', 'admin', 'qdb'];
  const shown = await run('psql', ['-XAt', ...commands, ...connection], { env });
  t.is(shown.stdout, '5min\nmine\non\n');
});

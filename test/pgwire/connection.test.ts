import type { Socket } from 'node:net';

import test from 'ava';
import { pgClient } from '../pg-client.js';

import { until } from '../until.js';
import { start } from './harness.js';
import { clientMessage, errorFields, RawClient, startup } from './raw-client.js';

const sync = clientMessage('S');
const query = (text: string): Buffer => clientMessage('Q', text);
const parse = (name: string, text: string): Buffer => clientMessage('P', name, text, [0]);
const bind = (portal: string, name: string, value?: string): Buffer => {
  const values = value === undefined ? [] : [value.length, Buffer.from(value)];
  return clientMessage('B', portal, name, [0], [values.length / 2], ...values, [0]);
};
const execute = (portal: string, rows = 0): Buffer => clientMessage('E', portal, rows);
const describe = (what: string, name: string): Buffer =>
  clientMessage('D', Buffer.from(what), name);

test('a startup request gets the server parameters, and encryption is declined', async (t) => {
  const { port, server } = await start();
  const client = await RawClient.open(port);
  client.send(clientMessage('', 80_877_103));
  t.is(await client.byte(), 'N');
  client.send(clientMessage('', 80_877_104));
  t.is(await client.byte(), 'N');
  client.send(startup('admin', 0, ['application_name', 'me']));
  t.is((await client.next())?.body.toString('hex'), '00000003');
  client.send(clientMessage('p', 'quest'));
  const messages = await client.until('Z');
  t.is(messages.map(({ type }) => type).join(''), 'RSSSSSSSSSSSSSSKZ');
  const status = messages.filter(({ type }) => type === 'S').map(({ body }) => body.toString());
  t.true(status.includes('server_version\x0014.0\0'));
  t.true(status.includes('questdb_version\x009.3.4\0'));
  t.true(status.includes('application_name\0me\0'));
  t.true(status.includes('default_transaction_read_only\0off\0'));
  client.close();
  await server.close();
});

test('newer minor protocol versions are negotiated; other protocols are refused', async (t) => {
  const { port, server } = await start();
  const newer = await RawClient.open(port);
  newer.send(startup('admin', 2));
  t.is((await newer.next())?.type, 'v');
  t.is((await newer.next())?.type, 'R');
  newer.close();
  const older = await RawClient.open(port);
  older.send(clientMessage('', 131_072));
  t.is(errorFields((await older.until('-'))[0])['C'], '0A000');
  const smuggled = await RawClient.open(port);
  smuggled.send(clientMessage('', 80_877_103), startup('admin'));
  t.is(errorFields((await smuggled.until('-'))[0])['C'], '08P01');
  await server.close();
});

test('a wrong password, an unknown user and too many attempts are refused', async (t) => {
  const { port, server } = await start();
  const attempt = async (user: string, password: string): Promise<string | undefined> => {
    const client = await RawClient.open(port);
    client.send(startup(user), clientMessage('p', password));
    const messages = await client.until('-');
    return errorFields(messages.find(({ type }) => type === 'E'))['C'];
  };
  t.is(await attempt('admin', 'wrong'), '28P01');
  t.is(await attempt('Admin', 'quest'), '28P01');
  await Promise.all(Array.from({ length: 10 }, () => attempt('admin', 'wrong')));
  t.is(await attempt('admin', 'quest'), '28000');
  const reader = await RawClient.login(port, 'reader', 'pässword');
  reader.close();
  await server.close();
});

test('a simple query can contain zero or more statements and stops at an error', async (t) => {
  const { port, server } = await start();
  const client = await RawClient.login(port);
  client.send(query('rows 2; insert;'));
  t.is(await client.types(), 'TDDCCZ');
  client.send(query(' ; -- nothing'));
  t.is(await client.types(), 'IZ');
  client.send(query('insert; missing here; insert'));
  const messages = await client.until('Z');
  t.is(messages.map(({ type }) => type).join(''), 'CEZ');
  const fields = errorFields(messages[1]);
  t.is(fields['C'], '42P01');
  t.is(fields['P'], '9');
  client.close();
  await server.close();
});

test('extended queries allow pipelines and row limits; an error skips to Sync', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  client.send(
    parse('a', 'rows 7'),
    describe('S', 'a'),
    bind('p', 'a'),
    describe('P', 'p'),
    execute('p', 3),
    execute('p', 3),
    execute('p', 3),
    sync,
  );
  t.is(await client.types(), '1tT2TDDDsDDDsDCZ');
  client.send(parse('', 'missing'), bind('', ''), execute(''), sync, parse('', ''), sync);
  t.is(await client.types(), 'EZ');
  t.is(await client.types(), '1Z');
  client.send(bind('', 'nope'), sync);
  t.is(errorFields((await client.until('Z'))[0])['C'], '26000');
  client.send(parse('a', 'rows 1'), sync);
  t.is(errorFields((await client.until('Z'))[0])['C'], '42P05');
  client.send(clientMessage('C', Buffer.from('S'), 'a'), clientMessage('C', Buffer.from('P'), 'p'));
  client.send(sync);
  t.is(await client.types(), '33Z');
  client.send(parse('', 'rows 1; rows 2'), sync);
  t.is(errorFields((await client.until('Z'))[0])['C'], '42601');
  client.send(clientMessage('F', 1), sync);
  t.is(errorFields((await client.until('Z'))[0])['C'], '0A000');
  t.is(engine.journal.streamsOpen, 0);
  client.close();
  await server.close();
});

test('a row limit equal to the row count suspends the portal, as in PostgreSQL', async (t) => {
  const { port, server } = await start();
  const client = await RawClient.login(port);
  client.send(parse('', 'rows 3'), bind('', ''), execute('', 3), execute('', 3), sync);
  const messages = await client.until('Z');
  t.is(messages.map(({ type }) => type).join(''), '12DDDsCZ');
  t.is(messages.at(-2)?.body.toString(), 'SELECT 0\0');
  client.close();
  await server.close();
});

test('inserts before a Sync are committed as one batch but acknowledged one by one', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  const insert = (value: string, statement = 'i'): Buffer =>
    Buffer.concat([bind('', statement, value), execute('')]);
  const committed = (): string[] => engine.journal.committed.splice(0);
  client.send(parse('i', 'insert $1'), parse('j', 'insert $1 too'), sync);
  t.is(await client.types(), '11Z');
  client.send(insert('a'), insert('b'), bind('', 'i', 'c'), describe('P', ''), execute(''), sync);
  const answers = await client.until('Z');
  t.is(answers.map(({ type }) => type).join(''), '2C2C2nCZ');
  t.is(answers[1]?.body.toString(), 'INSERT 0 1\0');
  t.deepEqual(committed(), ['a;b;c']);
  // A different statement, Flush or Parse ends a batch. A single row is not a batch.
  client.send(insert('a'), insert('b'), insert('c', 'j'), clientMessage('H'), insert('d'));
  client.send(insert('e'), parse('', 'rows 1'), insert('f'), sync);
  t.is(await client.types(), '2C2C2C2C2C12CZ');
  t.deepEqual(committed(), ['a;b', 'c', 'd;e', 'f']);
  // One row cannot be stored. Earlier rows are stored, later rows are not.
  client.send(insert('a'), insert('b'), insert('bad'), insert('c'), sync, insert('d'), sync);
  t.is(await client.types(), '2C2C2EZ');
  t.is(await client.types(), '2CZ');
  t.deepEqual(committed(), ['a', 'b', 'd']);
  // There is no retry if the commit itself may have succeeded.
  client.send(insert('a'), insert('io'), insert('c'), sync);
  t.is(await client.types(), '2EZ');
  t.deepEqual(committed(), []);
  client.send(insert('a'), insert('b'), bind('', 'nope'), insert('c'), sync);
  t.is(await client.types(), '2C2CEZ');
  t.deepEqual(committed(), ['a;b']);
  client.close();
  await server.close();
});

test('pending inserts commit with their block, and errors arrive in order', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  const insert = (value: string): Buffer => Buffer.concat([bind('', 'i', value), execute('')]);
  // A pending insert's error is sent before the error of the message that ended the batch.
  client.send(parse('i', 'insert $1'), insert('bad'), bind('', 'nope'), sync);
  t.is(await client.types(), '12EZ');
  client.send(query('begin'), insert('a'), insert('b'), sync);
  t.is(await client.types(), 'CZ');
  t.is(await client.types(), '2C2CZ');
  t.deepEqual(engine.journal.committed, []);
  client.send(query('commit'), insert('z'), clientMessage('X'));
  t.is(await client.types(), 'CZ');
  t.is((await client.until('?')).map(({ type }) => type).join(''), '2C');
  t.deepEqual(engine.journal.committed, ['a;b', 'z']);
  await server.close();
});

test('an invalid UTF-8 value is refused, unless its message is skipped', async (t) => {
  const { port, server } = await start();
  const client = await RawClient.login(port);
  const spoiled = clientMessage('B', '', 'i', [0], [1], 1, Buffer.from([0xff]), [0]);
  client.send(parse('i', 'insert $1'), spoiled, execute(''), spoiled, sync);
  const answers = await client.until('Z');
  t.is(answers.map(({ type }) => type).join(''), '1EZ');
  t.is(errorFields(answers[1])['C'], '22021');
  client.send(bind('', 'nope'), spoiled, sync);
  t.is(await client.types(), 'EZ');
  client.close();
  await server.close();
});

test('portals end with their transaction block; outside blocks, at Sync or Close', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  client.send(query('BEGIN'));
  await client.until('Z');
  client.send(parse('a', 'rows 9'), bind('p', 'a'), execute('p', 2), sync);
  t.is(await client.types(), '12DDsZ');
  client.send(execute('p', 2), sync);
  t.is(await client.types(), 'DDsZ');
  t.is(engine.journal.streamsOpen, 1);
  client.send(query('COMMIT'));
  await client.until('Z');
  t.is(engine.journal.streamsOpen, 0);
  client.send(execute('p', 2), sync);
  t.is(errorFields((await client.until('Z'))[0])['C'], '34000');
  client.send(bind('', 'a'), execute('', 2), sync);
  t.is(await client.types(), '2DDsZ');
  t.is(engine.journal.streamsOpen, 0);
  client.close();
  await server.close();
});

test('too many prepared statements are refused', async (t) => {
  const { port, server } = await start({ statementsMax: 3 });
  const client = await RawClient.login(port);
  for (const name of ['a', 'b', 'c']) {
    client.send(parse(name, 'insert'), sync);
    t.is(await client.types(), '1Z');
  }
  client.send(parse('d', 'insert'), sync);
  t.is(errorFields((await client.until('Z'))[0])['C'], '53400');
  client.close();
  await server.close();
});

test('transaction blocks commit, roll back, and refuse statements after an error', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  const run = async (text: string): Promise<string> => {
    client.send(query(text));
    const messages = await client.until('Z');
    const tags = messages
      .filter(({ type }) => type === 'C')
      .map(({ body }) => body.toString().slice(0, -1));
    const errors = messages
      .filter(({ type }) => type === 'E')
      .map((message) => errorFields(message)['C'] ?? '');
    return [...tags, ...errors, messages.at(-1)?.body.toString()].join(' ');
  };
  t.is(await run('BEGIN'), 'BEGIN T');
  t.is(await run('insert 1'), 'INSERT 0 1 T');
  t.deepEqual(engine.journal.committed, []);
  t.is(await run('COMMIT'), 'COMMIT I');
  t.is(engine.journal.committed.length, 1);
  t.is(await run('begin; insert; missing'), 'BEGIN INSERT 0 1 42P01 E');
  t.is(await run('insert'), '25P02 E');
  t.is(await run('COMMIT'), 'ROLLBACK I');
  t.is(engine.journal.committed.length, 1);
  t.is(engine.journal.rolledBack, 1);
  t.is(await run('savepoint a'), '25P01 I');
  t.is(await run('SET application_name = x'), 'SET I');
  t.is(await run('begin; insert'), 'BEGIN INSERT 0 1 T');
  client.close();
  await until(() => engine.journal.rolledBack === 2, 'the open block is rolled back');
  t.is(engine.journal.rolledBack, 2);
  await server.close();
});

test('a cancel request cancels a statement only with the correct secret', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.open(port);
  client.send(startup('admin'), clientMessage('p', 'quest'));
  const key = (await client.until('Z')).find(({ type }) => type === 'K')?.body;
  t.truthy(key);
  if (key === undefined) {
    return;
  }
  client.send(query('slow'));
  await until(() => engine.activeQueries().length === 1, 'the query is running');
  const wrong = await RawClient.open(port);
  wrong.send(clientMessage('', 80_877_102, key.readInt32BE(0), key.readInt32BE(4) ^ 1));
  t.is(await wrong.next(), null);
  const right = await RawClient.open(port);
  right.send(clientMessage('', 80_877_102, key));
  t.is(await right.next(), null);
  const messages = await client.until('Z');
  t.is(errorFields(messages.find(({ type }) => type === 'E'))['C'], '57014');
  client.send(query('insert'));
  t.is(await client.types(), 'CZ');
  client.close();
  await server.close();
});

test('a cancel request does not affect other sessions that run the same SQL', async (t) => {
  const { port, server, engine } = await start();
  const sessions = [];
  for (let index = 0; index < 2; index += 1) {
    const client = await RawClient.open(port);
    client.send(startup('admin'), clientMessage('p', 'quest'));
    const key = (await client.until('Z')).find(({ type }) => type === 'K')?.body;
    client.send(query('slow'));
    sessions.push({ client, key: key ?? Buffer.alloc(0) });
  }
  const [first, second] = sessions;
  if (first === undefined || second === undefined) {
    t.fail();
    return;
  }
  await until(() => engine.activeQueries().length === 2, 'both queries are running');
  for (const [index, { client, key }] of [second, first].entries()) {
    const canceller = await RawClient.open(port);
    canceller.send(clientMessage('', 80_877_102, key));
    t.is(await canceller.next(), null);
    const error = (await client.until('Z')).find(({ type }) => type === 'E');
    t.is(errorFields(error)['C'], '57014');
    t.is(engine.activeQueries().length, 1 - index);
  }
  first.client.close();
  second.client.close();
  await server.close();
});

test('row production pauses for a slow client and ends when it disconnects', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  client.socket.pause();
  client.send(query('rows 20000000'));
  await new Promise((resolve) => setTimeout(resolve, 500));
  const encoded = engine.journal.rowsEncoded;
  await new Promise((resolve) => setTimeout(resolve, 300));
  t.is(engine.journal.rowsEncoded, encoded);
  t.true(encoded < 2_000_000, String(encoded));
  client.close();
  await until(() => engine.journal.streamsOpen === 0, 'the stream is closed');
  t.is(engine.journal.streamsOpen, 0);
  await server.close();
});

/** Whether the client's socket buffer makes no progress for half a second. */
async function isStuck(socket: Socket): Promise<boolean> {
  const before = socket.writableLength;
  await new Promise((resolve) => setTimeout(resolve, 500));
  return before > 0 && socket.writableLength === before;
}

// This test is serial, because the flood keeps this process busy and logins on other connections
// have a deadline.
test.serial('the server stops reading from a client that does not read responses', async (t) => {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  t.teardown(async () => {
    client.close();
    await server.close();
  });
  client.socket.pause();
  const flood = Buffer.concat(Array.from({ length: 20_000 }, () => query('missing')));
  let stuck = false;
  // The kernel's buffers first absorb some megabytes. A server that keeps reading never blocks the
  // client.
  for (let round = 0; round < 60 && !stuck; round += 1) {
    client.socket.write(flood);
    stuck = await isStuck(client.socket);
  }
  const other = await RawClient.login(port);
  other.send(query('insert'));
  t.is(await other.types(), 'CZ');
  t.is(engine.journal.committed.length, 1);
  other.close();
  t.true(stuck, 'the server stopped reading');
});

test('malformed frames close only their connection', async (t) => {
  const { port, server } = await start();
  const other = await RawClient.login(port);
  for (const bytes of [
    Buffer.from('5100000003', 'hex'),
    Buffer.from('51ffffffff', 'hex'),
    Buffer.from('007fffffff', 'hex'),
    clientMessage('z', 'what'),
    clientMessage('p', 'again'),
  ]) {
    const client = await RawClient.login(port);
    client.send(bytes);
    t.is(errorFields((await client.until('-'))[0])['C'], '08P01', bytes.toString('hex'));
  }
  other.send(query('insert'));
  t.is(await other.types(), 'CZ');
  other.close();
  await server.close();
});

test('connections over the limit are refused, and idle connections are closed', async (t) => {
  const { port, server } = await start({ connectionsMax: 1, idleMs: 300 });
  const first = await RawClient.login(port);
  const second = await RawClient.open(port);
  second.send(startup('admin'));
  t.is(errorFields((await second.until('-'))[0])['C'], '53300');
  t.is(errorFields((await first.until('-'))[0])['C'], '57P05');
  await server.close();
});

test('node-postgres logs in with SCRAM, binds parameters, streams and cancels', async (t) => {
  const { port, server } = await start({ method: 'scram' });
  const client = pgClient(`127.0.0.1:${port}`, { user: 'reader', password: 'pässword' });
  await client.connect();
  const rows = await client.query<{ n: string; s: string }>('rows 2500');
  t.is(rows.rowCount, 2_500);
  t.deepEqual(rows.rows.at(-1), { n: '2499', s: 'row 2499' });
  const echo = await client.query({ text: 'echo $1 $2 $3', values: ['a', null, 7], name: 'e' });
  t.deepEqual(echo.rows, [{ p1: 'a', p2: null, p3: '7' }]);
  const error = await t.throwsAsync(client.query('missing'));
  t.is((error as { code?: string }).code, '42P01');
  await client.end();
  const stranger = pgClient(`127.0.0.1:${port}`, { password: 'wrong' });
  await t.throwsAsync(stranger.connect(), { message: 'invalid username/password' });
  await server.close();
});

/** Savepoints and cursors, message by message. */
import test, { type ExecutionContext } from 'ava';

import type { FakeEngine } from './fake-engine.js';
import { start } from './harness.js';
import { clientMessage, errorFields, RawClient } from './raw-client.js';
import { ScrollRows } from '../../ts/pgwire/statements/scroll-rows.js';

interface Setting {
  readonly client: RawClient;
  readonly engine: FakeEngine;
  /** Returns the command tags, SQLSTATEs and transaction status after a simple query. */
  readonly run: (text: string) => Promise<string>;
}

async function open(t: ExecutionContext): Promise<Setting> {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  t.teardown(async () => {
    client.close();
    await server.close();
  });
  const run = async (text: string): Promise<string> => {
    client.send(clientMessage('Q', text));
    const tags: string[] = [];
    for (const message of await client.until('Z')) {
      if (message.type === 'C' || message.type === 'Z') {
        tags.push(message.body.toString().replace('\0', ''));
      } else if (message.type === 'E') {
        tags.push(errorFields(message)['C'] ?? '');
      }
    }
    return tags.join(' ');
  };
  return { client, engine, run };
}

test('a transaction block is usable again after rolling back to a savepoint', async (t) => {
  const { run, engine } = await open(t);
  t.is(await run('BEGIN; insert 1; SAVEPOINT "A b"'), 'BEGIN INSERT 0 1 SAVEPOINT T');
  t.is(await run('missing'), '42P01 E');
  t.is(await run('SAVEPOINT late'), '25P02 E');
  t.is(await run('ROLLBACK TO SAVEPOINT nowhere'), '3B001 E');
  t.is(await run('ROLLBACK TO SAVEPOINT "A b"'), 'ROLLBACK T');
  t.is(await run('rollback to "A b"; RELEASE SAVEPOINT "A b"'), 'ROLLBACK RELEASE T');
  t.is(await run('RELEASE "A b"'), '3B001 E');
  t.is(await run('rollback work'), 'ROLLBACK I');
  t.is(
    await run('BEGIN; SAVEPOINT a; insert 1; RELEASE a; COMMIT AND NO CHAIN').then((tags) =>
      tags.endsWith('RELEASE COMMIT I'),
    ),
    true,
  );
  t.is(engine.journal.committed.length, 1);
});

test('ROLLBACK TO undoes inserts after the savepoint and keeps earlier ones', async (t) => {
  const { run, engine } = await open(t);
  await run('BEGIN; SAVEPOINT a; insert 1; SAVEPOINT b; missing');
  t.is(await run('ROLLBACK TO a'), 'ROLLBACK T');
  t.is(engine.journal.rolledBack, 1);
  t.is(await run('ROLLBACK TO b'), '3B001 E');
  t.is(await run('ROLLBACK TO a; insert 2; COMMIT'), 'ROLLBACK INSERT 0 1 COMMIT I');
  t.is(engine.journal.committed.length, 1);
  await run('BEGIN; insert 1; SAVEPOINT a; insert 2; SAVEPOINT b; insert 3');
  t.is(await run('ROLLBACK TO a'), 'ROLLBACK T');
  t.is(await run('ROLLBACK TO b'), '3B001 E');
  t.is(await run('ROLLBACK TO a; COMMIT'), 'ROLLBACK COMMIT I');
  t.is(engine.journal.committed.length, 2);
});

test('ROLLBACK TO undoes pipelined inserts after the savepoint', async (t) => {
  const { client, run, engine } = await open(t);
  const insert = (value: string): Buffer =>
    Buffer.concat([
      clientMessage('B', '', 'i', [0], [1], value.length, Buffer.from(value), [0]),
      clientMessage('E', '', 0),
    ]);
  const sync = clientMessage('S');
  client.send(clientMessage('P', 'i', 'insert $1', [0]), sync);
  await client.until('Z');
  await run('BEGIN');
  client.send(insert('a'), insert('b'), sync);
  await client.until('Z');
  await run('SAVEPOINT s');
  client.send(insert('bad'), sync);
  t.is(await client.types(), '2EZ');
  t.is(await run('ROLLBACK TO s'), 'ROLLBACK T');
  client.send(insert('c'), insert('d'), sync);
  await client.until('Z');
  t.is(await run('ROLLBACK TO s; COMMIT'), 'ROLLBACK COMMIT I');
  t.deepEqual(engine.journal.committed, ['a;b']);
});

test('savepoints outside a block and unsupported statements are refused', async (t) => {
  const { run } = await open(t);
  t.is(await run('SAVEPOINT a'), '25P01 I');
  t.is(await run('RELEASE a'), '25P01 I');
  t.is(await run('ROLLBACK TO a'), '25P01 I');
  t.is(await run('SAVEPOINT'), '42601 I');
  t.is(await run("COMMIT PREPARED 'a'"), '0A000 I');
  t.is(await run("PREPARE TRANSACTION 'a'"), '0A000 I');
  t.is(await run('ROLLBACK AND CHAIN'), '0A000 I');
  t.is(await run('LISTEN "a b"; UNLISTEN a'), 'LISTEN UNLISTEN I');
  t.is(await run('LISTEN'), '42601 I');
  t.is(await run('UNLISTEN'), '42601 I');
  t.is(await run('NOTIFY a, x'), '42601 I');
  t.is(await run(`NOTIFY a, '${'x'.repeat(8_000)}'`), '22023 I');
  t.is(await run("NOTIFY a, 'x'"), 'NOTIFY I');
});

test('a cursor can be read forward in steps', async (t) => {
  const { client, run, engine } = await open(t);
  t.is(await run('BEGIN; DECLARE "C 1" NO SCROLL CURSOR FOR rows 7'), 'BEGIN DECLARE CURSOR T');
  t.is(engine.journal.rowsEncoded, 0);
  client.send(clientMessage('Q', 'FETCH 2 FROM "C 1"'));
  t.is(await client.types(), 'TDDCZ');
  t.is(await run('MOVE 1 IN "C 1"'), 'MOVE 1 T');
  client.send(clientMessage('Q', 'FETCH "C 1"'));
  const [, row] = await client.until('Z');
  t.is(row?.body.subarray(6, 7).toString(), '3');
  t.is(await run('FETCH FORWARD ALL FROM "C 1"'), 'FETCH 3 T');
  t.is(await run('FETCH FORWARD 9 FROM "C 1"'), 'FETCH 0 T');
  t.is(await run('FETCH PRIOR FROM "C 1"'), '55000 E');
  await run('ROLLBACK; BEGIN; DECLARE c CURSOR FOR rows 3; DECLARE d CURSOR FOR rows 3');
  t.is(await run('CLOSE c; FETCH c'), 'CLOSE CURSOR 34000 E');
  t.is(engine.journal.streamsOpen, 0);
  t.is(await run('ROLLBACK'), 'ROLLBACK I');
  t.is(await run('FETCH d'), '34000 I');
});

test('cursors end with their block or savepoint unless declared WITH HOLD', async (t) => {
  const { run, engine } = await open(t);
  t.is(await run('DECLARE c CURSOR FOR rows 3'), '25P01 I');
  await run('BEGIN; DECLARE c CURSOR WITH HOLD FOR rows 3; FETCH c; COMMIT');
  t.is(await run('FETCH ALL FROM c'), 'FETCH 2 I');
  await run('BEGIN; DECLARE d CURSOR WITH HOLD FOR rows 3; ROLLBACK');
  t.is(await run('FETCH d'), '34000 I');
  t.is(await run('MOVE ALL IN c; CLOSE ALL; FETCH c'), 'MOVE 0 CLOSE CURSOR ALL 34000 I');
  await run('BEGIN; DECLARE a CURSOR FOR rows 9; SAVEPOINT s; DECLARE b CURSOR FOR rows 9');
  t.is(await run('FETCH a; FETCH b; ROLLBACK TO s'), 'FETCH 1 FETCH 1 ROLLBACK T');
  t.is(await run('FETCH a; FETCH b'), 'FETCH 1 34000 E');
  await run('ROLLBACK');
  t.is(engine.journal.streamsOpen, 0);
  t.is(await run('BEGIN; DECLARE a CURSOR FOR insert'), 'BEGIN 42601 E');
  await run('ROLLBACK; BEGIN');
  t.is(await run('DECLARE a CURSOR FOR rows 1; FETCH ABSOLUTE 1 FROM a'), 'DECLARE CURSOR 55000 E');
});

test('a scrollable cursor moves in both directions, and its rows do not change', async (t) => {
  const { client, run, engine } = await open(t);
  await run('BEGIN; DECLARE c SCROLL CURSOR FOR rows 5');
  t.is(engine.journal.rowsEncoded, 0);
  /** Values of the rows that a FETCH returns. */
  const fetch = async (what: string): Promise<string> => {
    client.send(clientMessage('Q', `FETCH ${what} FROM c`));
    const messages = await client.until('Z');
    const rows = messages.filter(({ type }) => type === 'D');
    const tag = messages.find(({ type }) => type === 'C')?.body.toString('latin1', 0, 7);
    t.is(tag, `FETCH ${rows.length}`, what);
    return rows.map(({ body }) => body.subarray(6, 7).toString()).join(' ');
  };
  const steps: readonly (readonly [string, string])[] = [
    ['PRIOR', ''],
    ['0', ''],
    ['2', '0 1'],
    ['0', '1'],
    ['PRIOR', '0'],
    ['BACKWARD 3', ''],
    ['NEXT', '0'],
    ['LAST', '4'],
    ['BACKWARD 2', '3 2'],
    ['RELATIVE 2', '4'],
    ['RELATIVE 1', ''],
    ['RELATIVE 0', ''],
    ['BACKWARD ALL', '4 3 2 1 0'],
    ['ABSOLUTE 3', '2'],
    ['ABSOLUTE -4', '1'],
    ['ABSOLUTE -9', ''],
    ['FORWARD 2', '0 1'],
    ['ABSOLUTE 9', ''],
    ['PRIOR', '4'],
    ['ABSOLUTE 0', ''],
    ['ALL', '0 1 2 3 4'],
    ['-2', '4 3'],
    ['RELATIVE -2', '1'],
    ['FIRST', '0'],
    ['FORWARD ALL', '1 2 3 4'],
  ];
  for (const [what, values] of steps) {
    t.is(await fetch(what), values, what);
  }
  t.is(engine.journal.rowsEncoded, 5);
  t.is(await run('MOVE BACKWARD ALL IN c; MOVE 2 IN c'), 'MOVE 5 MOVE 2 T');
  t.is(await run('MOVE ABSOLUTE 9 IN c; MOVE LAST IN c'), 'MOVE 0 MOVE 1 T');
  await run('COMMIT; DECLARE h SCROLL CURSOR WITH HOLD FOR rows 5; FETCH 3 FROM h');
  t.is(await run('FETCH -5 FROM h; CLOSE h; FETCH h'), 'FETCH 2 CLOSE CURSOR 34000 I');
  t.is(engine.journal.streamsOpen, 0);
});

test('cursors support parameters, descriptions and binary rows', async (t) => {
  const { client, run } = await open(t);
  const sync = clientMessage('S');
  const parse = (text: string): Buffer => clientMessage('P', '', text, [0]);
  const bind = (codes: readonly number[], value?: string): Buffer => {
    const values = value === undefined ? [] : [value.length, Buffer.from(value)];
    const formats = codes.map((code): readonly [number] => [code]);
    return clientMessage(
      'B',
      '',
      '',
      [0],
      [values.length / 2],
      ...values,
      [codes.length],
      ...formats,
    );
  };
  const describe = (what: string, name: string): Buffer =>
    clientMessage('D', Buffer.from(what), name);
  const execute = clientMessage('E', '', 0);
  await run('BEGIN');
  client.send(
    parse('DECLARE c CURSOR FOR echo $1'),
    describe('S', ''),
    bind([], 'v'),
    execute,
    sync,
  );
  t.is(await client.types(), '1tn2CZ');
  client.send(describe('P', 'c'), sync);
  t.is(await client.types(), 'TZ');
  client.send(parse('FETCH ALL FROM c'), bind([]), describe('P', ''), execute, sync);
  t.is(await client.types(), '12TDCZ');
  await run('DECLARE d CURSOR FOR rows 3');
  client.send(parse('FETCH 1 FROM d'), bind([1]), describe('P', ''), execute, sync);
  const row = (await client.until('Z')).find(({ type }) => type === 'D');
  t.is(row?.body.readInt32BE(2), 8);
  t.is(await run('FETCH 1 FROM d'), '0A000 E');
  await run('ROLLBACK; BEGIN; DECLARE b BINARY CURSOR FOR rows 3');
  client.send(clientMessage('Q', 'FETCH b'));
  const [, binary] = await client.until('Z');
  t.is(binary?.body.readInt32BE(2), 8);
});

test('the memory of scrollable cursors is limited individually and in total', (t) => {
  const message = Buffer.alloc(1 + (1 << 20));
  message.writeUInt8('D'.charCodeAt(0));
  message.writeInt32BE(1 << 20, 1);
  const filled = (): ScrollRows => {
    const rows = new ScrollRows();
    t.throws(
      () => {
        for (;;) {
          rows.add(message);
        }
      },
      {
        message: /limited to (?:64|256) MiB/,
      },
    );
    return rows;
  };
  const all = Array.from({ length: 6 }, filled);
  t.deepEqual(
    all.map(({ count }) => count),
    [63, 63, 63, 63, 3, 0],
  );
  for (const rows of all) {
    rows.close();
  }
  const again = filled();
  t.is(again.count, 63);
  const [chunk, ...others] = again.chunks(63, 62);
  t.is(chunk?.length, message.length);
  t.is(others.length, 2);
  again.close();
});

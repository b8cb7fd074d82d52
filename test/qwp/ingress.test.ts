/** Rows over the columnar protocol: commits, acknowledgements, errors, permissions and limits. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import test from 'ava';

import { ADMIN, credentials, rows as rowsAs, run, startAccessServer } from '../access/harness.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { KIND, maskedFrame, Refused, WebSocketClient } from '../http/websocket-client.js';
import { columns, rows, SENDERS } from '../line/harness.js';
import { residentBytes } from '../torture/process.js';
import { until } from '../until.js';
import { answer, block, delta, FLAG, longs, message, row, STATUS, TYPE } from './messages.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});
test.after.always(() => server.stop());

function portOf({ url }: TestServer): number {
  return Number(new URL(url).port);
}

async function open(
  headers: Record<string, string> = {},
  target = server,
  path = '/write/v4',
): Promise<WebSocketClient> {
  return await WebSocketClient.open(portOf(target), path, { headers });
}

test('the handshake announces versions and limits at both ingestion URLs', async (t) => {
  for (const path of ['/write/v4', '/api/v4/write']) {
    const client = await open({ 'X-QWP-Max-Version': '5' }, server, path);
    t.regex(client.head, /X-QWP-Version: 1\r\n/);
    t.regex(client.head, /X-QWP-Max-Batch-Size: 2097138\r\n/);
    t.notRegex(client.head, /X-QWP-Durable-Ack/);
    client.socket.destroy();
  }
  const refused = await t.throwsAsync(open({ 'X-QWP-Max-Version': 'x' }), { instanceOf: Refused });
  t.is(refused.status, 400);
  const plain = await fetch(`${server.url}/write/v4`);
  t.is(plain.status, 426);
});

test('rows are visible once OK arrives, and OK lists tables and transactions', async (t) => {
  const client = await open();
  client.send(message(0, 2, row('one', 1), row('two', 2)));
  const first = await answer(client);
  t.is(first?.status, STATUS.ok);
  t.is(first?.sequence, 0);
  t.deepEqual(Object.keys(first?.tables ?? {}), ['one', 'two']);
  t.deepEqual(await rows(server, 'select x from one union all select x from two'), [[1], [2]]);
  client.send(message(0, 1, row('one', 3)));
  const second = await answer(client);
  t.is(second?.sequence, 1);
  t.true((second?.tables?.['one'] ?? 0) > (first?.tables?.['one'] ?? 0));
  t.deepEqual(await columns(server, 'one'), ['x LONG', 'timestamp TIMESTAMP']);
  client.send(Buffer.from([0x03, 0xe8]), KIND.close);
  t.is(await client.receiveClose(), 1000);
});

test('rows become visible when their group commits, and are otherwise discarded', async (t) => {
  const client = await open();
  // The dictionary arrives first, on its own, and is accepted immediately.
  client.send(message(FLAG.delta | FLAG.defer, 0, delta(0, ['a', 'b'])));
  t.like(await answer(client), { status: STATUS.ok, sequence: 0, tables: {} });
  const symbols = (start: number, entries: readonly string[], id: number): Buffer =>
    message(
      FLAG.delta | FLAG.defer,
      1,
      delta(start, entries),
      block('groups', 1, ['s', TYPE.symbol, Buffer.from([id])], ['', TYPE.timestamp, longs(id)]),
    );
  client.send(symbols(2, [], 1));
  client.send(symbols(2, ['c'], 2));
  client.send(message(FLAG.delta, 0, delta(3, [])));
  const committed = await answer(client);
  t.like(committed, { status: STATUS.ok, sequence: 3 });
  t.deepEqual(Object.keys(committed?.tables ?? {}), ['groups']);
  t.deepEqual(await rows(server, 'select s from groups'), [['b'], ['c']]);
  client.send(symbols(3, [], 0));
  client.send(Buffer.from([0x03, 0xe8]), KIND.close);
  t.is(await client.receiveClose(), 1000);
  t.deepEqual(await rows(server, 'select count() from groups'), [[2]]);
});

test('messages after an invalid message are not applied', async (t) => {
  const cases = [
    { bad: Buffer.from('QWP1'), status: STATUS.parseError, reason: /message header/ },
    {
      bad: message(FLAG.delta, 0, delta(7, [])),
      status: STATUS.dictionaryGap,
      reason: /has 0 entries, but the new entries start at 7/,
    },
    {
      bad: message(0, 1, block('wrong', 1, ['x', TYPE.symbol, Buffer.from([1, 1, 0x61, 0])])),
      status: STATUS.schemaMismatch,
      reason: /column 'x' of 'wrong' has type LONG and does not accept SYMBOL/,
    },
  ];
  let count = 0;
  for (const { bad, status, reason } of cases) {
    const client = await open();
    client.send(message(0, 1, row('wrong', 1)));
    client.send(message(FLAG.defer, 1, row('wrong', 2)));
    client.send(bad);
    client.send(message(0, 1, row('wrong', 3)));
    t.like(await answer(client), { status: STATUS.ok, sequence: 0 });
    const refusal = await answer(client);
    t.like(refusal, { status, sequence: 2 });
    t.regex(refusal?.reason ?? '', reason);
    t.is(await client.receiveClose(), 1011);
    count += 1;
    t.deepEqual(await rows(server, 'select count() from wrong'), [[count]]);
  }
});

test('queued messages are combined into few commits, and each gets an OK', async (t) => {
  const client = await open();
  client.send(message(0, 1, row('together', 0)));
  t.like(await answer(client), { status: STATUS.ok, sequence: 0 });
  const many = 300;
  client.socket.cork();
  for (let at = 1; at <= many; at += 1) {
    // One pair in the middle is a single commit to two tables, acknowledged with one OK.
    const isPair = at === 100;
    const tables = isPair ? ['together', 'aside'] : ['together'];
    client.send(
      message(isPair ? FLAG.defer : 0, tables.length, ...tables.map((table) => row(table, at))),
    );
  }
  client.socket.uncork();
  const transactions = new Set<number>();
  for (let at = 1; at <= many; at += 1) {
    if (at === 100) {
      continue;
    }
    const { status, sequence, tables = {} } = (await answer(client)) ?? {};
    t.deepEqual({ status, sequence }, { status: STATUS.ok, sequence: at });
    t.deepEqual(Object.keys(tables), at === 101 ? ['together', 'aside'] : ['together']);
    transactions.add(tables['together'] ?? 0);
  }
  t.true(transactions.size < many / 2, `${transactions.size} commits`);
  t.deepEqual(await rows(server, 'select count(), sum(x) from together'), [
    [many + 1, (many * (many + 1)) / 2],
  ]);
  t.deepEqual(await rows(server, 'select x from aside'), [[100]]);
  client.socket.destroy();
});

test('a failed message does not affect other queued messages', async (t) => {
  const cases = [
    // Messages whose errors are found at different points: in the message itself, in other rows of
    // the commit that change its table, or only when the rows are written.
    { bad: row('apart', 0).subarray(1), status: STATUS.parseError },
    {
      bad: block('apart', 1, ['x', TYPE.symbol, Buffer.from([1, 1, 0x61, 0])]),
      status: STATUS.schemaMismatch,
    },
    { bad: row('apart', 0, -1), status: STATUS.schemaMismatch, reason: /before 1970/ },
  ];
  let count = 0;
  for (const { bad, status, reason } of cases) {
    const client = await open();
    client.socket.cork();
    for (let at = 0; at < 20; at += 1) {
      client.send(message(0, 1, at === 12 ? bad : row('apart', at)));
    }
    client.socket.uncork();
    for (let at = 0; at < 12; at += 1) {
      t.like(await answer(client), { status: STATUS.ok, sequence: at });
    }
    const refusal = await answer(client);
    t.like(refusal, { status, sequence: 12 }, refusal?.reason);
    t.regex(refusal?.reason ?? '', reason ?? /./);
    t.is(await client.receiveClose(), 1011);
    count += 12;
    t.deepEqual(await rows(server, 'select count() from apart'), [[count]]);
  }
});

test('tables and columns created by a message are known to the next message', async (t) => {
  const client = await open();
  const symbol = Buffer.from([1, 1, 0x61, 0]);
  client.socket.cork();
  client.send(message(0, 1, block('grows', 1, ['s', TYPE.symbol, symbol])));
  client.send(message(0, 1, block('grows', 1, ['x', TYPE.long, longs(2)])));
  client.send(message(0, 1, block('grows', 1, ['x', TYPE.long, longs(3)])));
  client.send(message(0, 1, block('grows', 1, ['x', TYPE.symbol, symbol])));
  client.socket.uncork();
  for (const sequence of [0, 1, 2]) {
    t.like(await answer(client), { status: STATUS.ok, sequence });
  }
  t.like(await answer(client), { status: STATUS.schemaMismatch, sequence: 3 });
  t.deepEqual(await rows(server, 'select s, x from grows'), [
    ['a', null],
    [null, 2],
    [null, 3],
  ]);
});

test('a message may reach the size limit but not exceed it', async (t) => {
  const small = await startTestServer({ set: ['http.receive.buffer.size=4096'] });
  t.teardown(() => small.stop());
  const client = await open({}, small);
  t.regex(client.head, /X-QWP-Max-Batch-Size: 4082\r\n/);
  const values = longs(...Array.from({ length: 252 }, (_, at) => at));
  const rowsOf = (count: number): Buffer =>
    message(
      0,
      1,
      block(
        't',
        count,
        ['x', TYPE.long, values.subarray(0, 8 * count)],
        ['', TYPE.timestamp, values.subarray(0, 8 * count)],
      ),
    );
  t.true(rowsOf(252).length <= 4082 && rowsOf(252).length > 4000);
  client.send(rowsOf(252));
  t.like(await answer(client), { status: STATUS.ok });
  client.send(Buffer.alloc(4083));
  t.is(await client.receiveClose(), 1009);
});

test('rows are committed at the pending-row limit; durable commits are acknowledged', async (t) => {
  const set = ['qwp.max.uncommitted.rows=3'];
  const limited = await startTestServer({ set });
  t.teardown(() => limited.stop());
  const client = await open({ 'X-QWP-Request-Durable-Ack': 'TRUE' }, limited);
  t.regex(client.head, /X-QWP-Durable-Ack: enabled\r\n/);
  for (let at = 0; at < 3; at += 1) {
    client.send(message(FLAG.defer, 1, row('t', at)));
  }
  const committed = await answer(client);
  t.like(committed, { status: STATUS.ok, sequence: 2 });
  const durable = await answer(client);
  t.deepEqual(durable, { status: STATUS.durable, tables: committed?.tables ?? {} });
  t.true(limited.log().includes('commit_forced'));
  client.socket.destroy();
  const lazy = await startTestServer({ set: ['cairo.commit.mode=nosync'] });
  t.teardown(() => lazy.stop());
  const other = await open({ 'X-QWP-Request-Durable-Ack': 'true' }, lazy);
  t.notRegex(other.head, /X-QWP-Durable-Ack/);
  other.socket.destroy();
});

test('the total memory of all connections is limited', async (t) => {
  const limited = await startTestServer({ set: ['qwp.max.open.size=192K'] });
  t.teardown(() => limited.stop());
  const long = (from: number): string[] =>
    Array.from({ length: 1_000 }, (_, at) => `${from + at}`.padEnd(100, 'x'));
  const first = await open({}, limited);
  first.send(message(FLAG.delta, 0, delta(0, long(0))));
  t.like(await answer(first), { status: STATUS.ok });
  const second = await open({}, limited);
  second.send(message(FLAG.delta, 0, delta(0, long(0))));
  t.like(await answer(second), { status: STATUS.writeError });
  // Memory that one connection releases is available to others. Pending rows are committed.
  first.socket.destroy();
  const third = await open({}, limited);
  const isRetained = async (): Promise<boolean> => {
    const next = await open({}, limited);
    next.send(message(FLAG.delta, 0, delta(0, long(0))));
    const { status } = (await answer(next)) ?? {};
    next.socket.destroy();
    return status === STATUS.ok;
  };
  await until(isRetained, 'memory is available again');
  const values = Array.from({ length: 20_000 }, (_, at) => at);
  const many = ['x', TYPE.long, longs(...values)] as const;
  third.send(
    message(
      FLAG.defer,
      1,
      block('many', values.length, many, ['', TYPE.timestamp, longs(...values)]),
    ),
  );
  t.like(await answer(third), { status: STATUS.ok, sequence: 0 });
  t.true(limited.log().includes('commit_forced'));
  third.socket.destroy();
});

test('writing rows requires the same rights as over other protocols', async (t) => {
  const guarded = await startAccessServer();
  t.teardown(() => guarded.stop());
  await run(guarded, ...SENDERS);
  const refusedAs = async (headers: Record<string, string>): Promise<number> => {
    const refused = await t.throwsAsync(open(headers, guarded), { instanceOf: Refused });
    return refused.status;
  };
  t.is(await refusedAs({}), 401);
  t.is(await refusedAs(credentials('ann:wrong')), 401);
  t.is(await refusedAs(credentials('guest:g')), 403);
  const taken = await open(credentials('ann:a'), guarded);
  taken.send(message(0, 1, row('open', 1)));
  t.like(await answer(taken), { status: STATUS.ok });
  taken.socket.destroy();
  const wrongType = block('shut', 1, ['x', TYPE.symbol, Buffer.from([1, 1, 0x61, 0])]);
  const added = block('open', 1, ['new', TYPE.long, longs(1)]);
  for (const payload of [row('shut', 1), row('unknown', 1), wrongType, added]) {
    const client = await open(credentials('ann:a'), guarded);
    client.send(message(0, 1, payload));
    const refusal = await answer(client);
    t.is(refusal?.status, STATUS.securityError, refusal?.reason);
    t.notRegex(refusal?.reason ?? '', /LONG/);
    client.socket.destroy();
  }
  const mixed = await open(credentials('ann:a'), guarded);
  mixed.socket.cork();
  for (const table of ['open', 'open', 'shut', 'open']) {
    mixed.send(message(0, 1, row(table, 5)));
  }
  mixed.socket.uncork();
  t.like(await answer(mixed), { status: STATUS.ok, sequence: 0 });
  t.like(await answer(mixed), { status: STATUS.ok, sequence: 1 });
  t.like(await answer(mixed), { status: STATUS.securityError, sequence: 2 });
  t.is(await mixed.receiveClose(), 1011);
  const fives = await rowsAs(guarded, ADMIN, 'select count() from open where x = 5');
  t.deepEqual(fives, [[2]]);
  const maker = await open(credentials('maker:m'), guarded);
  maker.send(message(0, 1, row('made', 1)));
  t.like(await answer(maker), { status: STATUS.ok });
  maker.send(message(0, 1, block('made', 1, ['late', TYPE.long, longs(1)])));
  t.like(await answer(maker), { status: STATUS.ok });
  maker.socket.destroy();
  const copy = (): string => readFileSync(join(guarded.root, 'audit.jsonl'), 'utf8');
  await until(
    () => copy().includes("columnar protocol: columns of 'made': late"),
    'the audit log contains the record',
  );
  t.true(copy().includes("columnar protocol: table 'made'"));
});

const MANY = 1_000;

test('a thousand senders that stop mid-frame use at most 64 MiB', async (t) => {
  const limits = ['http.net.connection.limit=5000', 'http.net.connection.limit.per.address=5000'];
  const idle = await startTestServer({ set: limits });
  t.teardown(() => idle.stop());
  const begin = async (at: number): Promise<WebSocketClient> => {
    const client = await open({}, idle);
    client.send(message(0, 1, row('idle', at)));
    t.like(await answer(client), { status: STATUS.ok });
    client.socket.write(maskedFrame(KIND.binary, Buffer.alloc(1_000)).subarray(0, 500));
    return client;
  };
  (await begin(0)).socket.destroy();
  const before = residentBytes(idle);
  const clients: WebSocketClient[] = [];
  for (let at = 1; at <= MANY; at += 1) {
    clients.push(await begin(at));
  }
  const cost = residentBytes(idle) - before;
  t.log(`${(cost / 1024 ** 2).toFixed(1)} MiB`);
  t.true(cost <= 64 * 1024 ** 2, `${cost} bytes`);
  t.true(clients.every(({ socket }) => !socket.destroyed));
  for (const { socket } of clients) {
    socket.destroy();
  }
});

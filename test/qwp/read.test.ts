/**
 * Results over QWP, message by message: every type, credit, every way a query can end, permissions.
 */
import { inspect } from 'node:util';

import test from 'ava';

import { credentials, exec as execAs, run, startAccessServer } from '../access/harness.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { Refused, WebSocketClient } from '../http/websocket-client.js';
import { until } from '../until.js';
import { STATUS } from './messages.js';
import { ReadClient } from './read-client.js';
import { type Bind, given, int64, NULL, queryRequest, textBind } from './requests.js';

let server: TestServer;

function portOf({ url }: TestServer): number {
  return Number(new URL(url).port);
}

function open(headers: Readonly<Record<string, string>> = {}): Promise<ReadClient> {
  return ReadClient.open(portOf(server), headers);
}

async function exec(sql: string): Promise<void> {
  const response = await fetch(`${server.url}/exec?query=${encodeURIComponent(sql)}`);
  if (!response.ok) {
    throw new Error(`${sql}: ${await response.text()}`);
  }
}

/** Returns the number of running statements, as the server counts them. */
async function active(client: ReadClient, text: string): Promise<number> {
  const { rows } = await client.query(1, 'SELECT query FROM query_activity() WHERE query LIKE $1', {
    binds: [textBind(`%${text}%`)],
  });
  return rows.filter(([query]) => !String(query).includes('query_activity')).length;
}

test.before(async () => {
  server = await startTestServer();
  await exec(`CREATE TABLE every (
    b BOOLEAN, y BYTE, s SHORT, c CHAR, i INT, l LONG, f FLOAT, d DOUBLE, sym SYMBOL, v VARCHAR,
    st STRING, t TIMESTAMP, n TIMESTAMP_NS, dt DATE, u UUID, h LONG256, ip IPV4, g4 GEOHASH(4c),
    g7 GEOHASH(7b), bin BINARY, d18 DECIMAL(18,2), d38 DECIMAL(38,3), d76 DECIMAL(76,4),
    a DOUBLE[], a2 DOUBLE[][], ts TIMESTAMP) TIMESTAMP(ts) PARTITION BY DAY`);
  await exec(`INSERT INTO every SELECT true, 1, 2, 'x', 3, 4, 1.5, 2.5, 'sym', 'var', 'str',
    5, '1970-01-01T00:00:00.000000006Z', 7, '00112233-4455-6677-8899-aabbccddeeff', '0x0102',
    '1.2.3.4', 'u33d'::geohash(4c), ##1010101, '\\x6162', '12.34'::decimal(18,2),
    '-1.5'::decimal(38,3), '7.0'::decimal(76,4), ARRAY[1.5, null], ARRAY[[1.0],[2.0]], 8`);
  await exec('INSERT INTO every (ts) VALUES (9)');
});
test.after.always(() => server.stop());

/** An expression that fails at one row, long after the first. */
const FAILS_AT = 'CASE WHEN x = 900000 THEN 1000 ELSE 1 END::decimal(3,0) * 1000::decimal(4,0)';

const HEX = (text: string, digits: number): string => text.padStart(digits, '0');

test('values and nulls of every type are read', async (t) => {
  const client = await open();
  t.like(client.info, { kind: 'info', role: 0, capabilities: 10 });
  const { rows, messages } = await client.query(7, 'SELECT * FROM every');
  t.deepEqual(
    messages.map(({ kind }) => kind),
    ['batch', 'end'],
  );
  t.like(messages.at(-1), { id: 7n, sequence: 0, rows: 2 });
  const [first = [], second] = rows;
  t.deepEqual(first, [
    ...[true, 1, 2, 'x', 3, 4n, 1.5, 2.5, 'sym', 'var', 'str', 5n, 6n, 7n],
    ...['00112233445566778899aabbccddeeff', HEX('102', 64), '1.2.3.4'],
    ...['0d0c6c', '55', '6162', '1234e-2', '-1500e-3', '70000e-4'],
    { lengths: [2], values: [1.5, NaN] },
    { lengths: [2, 1], values: [1, 2] },
    8n,
  ]);
  t.deepEqual(second, [...[false, 0, 0, '\0', ...Array<null>(21).fill(null)], 9n]);
  const codes = client.decoder.columns.map(({ code }) => code);
  t.deepEqual(codes, [
    ...[0x01, 0x02, 0x03, 0x16, 0x04, 0x05, 0x06, 0x07, 0x09, 0x0f, 0x0f, 0x0a, 0x10, 0x0b],
    ...[0x0c, 0x0d, 0x18, 0x0e, 0x0e, 0x17, 0x13, 0x14, 0x15, 0x11, 0x11, 0x0a],
  ]);
  client.close();
});

test('values of types unknown to the protocol are sent as strings', async (t) => {
  const client = await open();
  const sql = "SELECT interval(0, 1000000), '1 day'::interval, null, current_schemas(false)";
  const { rows, last } = await client.query(1, sql);
  t.is(last.kind, 'end', inspect(last));
  t.deepEqual(rows, [
    ["('1970-01-01T00:00:00.000Z', '1970-01-01T00:00:01.000Z')", '1 day', null, '{public}'],
  ]);
  client.close();
});

test('column names may contain dots', async (t) => {
  const client = await open();
  const { last } = await client.query(1, 'SELECT 1 AS "a.b", 2 AS c');
  t.is(last.kind, 'end', inspect(last));
  t.deepEqual(
    client.decoder.columns.map(({ name }) => name),
    ['a.b', 'c'],
  );
  client.close();
  // HTTP's text formats contain the quotes that QuestDB writes.
  const text = async (path: string): Promise<string> => {
    const query = encodeURIComponent('SELECT 1 AS "a.b", 2 AS c');
    return await (await fetch(`${server.url}/${path}?query=${query}`)).text();
  };
  t.is(await text('exp'), '"""a.b""","c"\r\n1,2\r\n');
  t.regex(await text('exec'), /"name":"\\"a\.b\\""/);
});

test('an empty result has columns; a statement without rows has a row count', async (t) => {
  const client = await open();
  const { messages, rows } = await client.query(1, 'SELECT sym, ts FROM every WHERE i = 99');
  t.deepEqual(rows, []);
  t.like(messages.at(-1), { kind: 'end', sequence: 0, rows: 0 });
  t.deepEqual(client.decoder.columns, [
    { name: 'sym', code: 9 },
    { name: 'ts', code: 10 },
  ]);
  t.like((await client.query(2, 'CREATE TABLE few (x INT)')).last, { kind: 'done', rows: 0 });
  const insert = await client.query(3, 'INSERT INTO few SELECT x::int FROM long_sequence(5)');
  t.like(insert.last, { kind: 'done', id: 3n, rows: 5 });
  t.is(insert.messages.length, 1);
  t.like((await client.query(4, 'UPDATE few SET x = 1 WHERE x > 2')).last, { rows: 3 });
  t.like((await client.query(5, 'TRUNCATE TABLE few')).last, { kind: 'done' });
  client.close();
});

test('parameters of every type are accepted', async (t) => {
  const client = await open();
  const fixed = (code: number, hex: string): Bind => [code, given(Buffer.from(hex, 'hex'))];
  const binds: Bind[] = [
    ...[fixed(0x01, '01'), fixed(0x02, 'ff'), fixed(0x03, '0200'), fixed(0x04, '03000000')],
    [0x05, given(int64(42))],
    ...[fixed(0x06, '0000c03f'), fixed(0x07, '0000000000000440'), textBind('é')],
    ...[[0x0a, given(int64(5))] as Bind, [0x0b, given(int64(7))] as Bind],
    ...[fixed(0x0c, 'ffeeddccbbaa99887766554433221100'), fixed(0x0d, `0201${'00'.repeat(30)}`)],
    ...[fixed(0x0e, '146c0c0d'), [0x10, given(int64(6))] as Bind],
    fixed(0x11, '0102000000000000000000f83f000000000000f87f'),
    ...[fixed(0x13, '02d204000000000000'), fixed(0x14, `0324fa${'ff'.repeat(14)}`)],
    ...[fixed(0x16, '7800'), fixed(0x17, '00000000020000006162'), fixed(0x18, '04030201')],
    ...[[0x05, NULL] as Bind, [0x0f, NULL] as Bind],
  ];
  const sql = `SELECT ${binds.map((_, index) => `$${index + 1}`).join(', ')}`;
  const { rows, last } = await client.query(1, sql, { binds });
  t.is(last.kind, 'end', inspect(last));
  t.deepEqual(rows, [
    [
      ...[true, -1, 2, 3, 42n, 1.5, 2.5, 'é', 5n, 7n],
      ...['00112233445566778899aabbccddeeff', HEX('102', 64), '0d0c6c', 6n],
      { lengths: [2], values: [1.5, NaN] },
      ...['1234e-2', '-1500e-3', 'x', '6162', '1.2.3.4', null, null],
    ],
  ]);
  const filtered = 'SELECT d FROM every WHERE sym = $1 AND l = $2 AND ts < $3';
  const of = [textBind('sym'), [0x05, given(int64(4))], [0x0a, given(int64(9))]] as const;
  t.deepEqual((await client.query(2, filtered, { binds: of })).rows, [[2.5]]);
  t.like((await client.query(3, filtered, { binds: of.slice(0, 1) })).last, {
    kind: 'error',
    status: STATUS.parseError,
  });
  const wrong = await client.query(4, 'SELECT 1 WHERE 1 = $1', { binds: [[0x12, NULL]] });
  t.like(wrong.last, { status: STATUS.schemaMismatch });
  const deep = Buffer.alloc(21);
  deep.set([5]);
  deep.fill(0x7f, 1, 17);
  const empty = await client.query(8, 'SELECT $1', { binds: [[0x11, given(deep)]] });
  t.like(empty.last, { status: STATUS.schemaMismatch }, 'an array type that is nested too deeply');
  const other = await client.query(5, 'SELECT l FROM every WHERE ts = $1', {
    binds: [textBind('no time')],
  });
  t.is(other.last.kind, 'error');
  t.is((await client.query(6, 'SELECT 1')).last.kind, 'end', 'the connection remains usable');
  client.close();
});

test('symbol ids restart with each query', async (t) => {
  const client = await open();
  const sql = 'SELECT sym FROM every WHERE sym IS NOT NULL';
  const kinds = async (id: number, text: string, flags?: number): Promise<string[]> => {
    const { messages } = await client.query(id, text, flags === undefined ? {} : { flags });
    return messages.map(({ kind }) => kind);
  };
  t.deepEqual(await kinds(1, sql), ['batch', 'end']);
  t.deepEqual(await kinds(2, sql), ['reset', 'batch', 'end']);
  t.deepEqual(await kinds(3, 'SELECT 1'), ['reset', 'batch', 'end']);
  t.deepEqual(await kinds(4, 'SELECT 1'), ['batch', 'end'], 'no symbols are retained');
  t.deepEqual(await kinds(5, 'SELECT 1', 1), ['reset', 'batch', 'end'], 'the reset was requested');
  client.close();
});

test('a message may exceed the remaining credit', async (t) => {
  const client = await open();
  const sql = 'SELECT x FROM long_sequence(100000)';
  client.request(1, sql, { credit: 1 });
  const seen: number[] = [];
  let rows = 0;
  for (;;) {
    const message = await client.next();
    if (message?.kind !== 'batch') {
      t.like(message, { kind: 'end', rows: 100_000, sequence: seen.length - 1 });
      break;
    }
    rows += message.rows?.length ?? 0;
    seen.push(message.sequence);
    t.true(message.bytes < 32 * 1024, 'messages are small if the credit is small');
    client.grant(2, 1_000_000);
    client.grant(1, message.bytes);
  }
  t.is(rows, 100_000);
  t.deepEqual(seen, Array.from(seen.keys()));
  client.close();
});

test('a client can request compression and fewer rows per message', async (t) => {
  const client = await open({
    'X-QWP-Max-Batch-Rows': '7',
    'X-QWP-Accept-Encoding': 'br, zstd;level=3, raw',
  });
  t.regex(client.socket.head, /X-QWP-Version: 1\r/);
  t.regex(client.socket.head, /X-QWP-Content-Encoding: zstd\r/);
  const { messages } = await client.query(1, 'SELECT x FROM long_sequence(20)');
  t.deepEqual(
    messages.map(({ kind }) => kind),
    ['batch', 'batch', 'batch', 'end'],
  );
  t.true(messages.some((message) => message.kind === 'batch' && message.rows === null));
  client.close();
  const plain = await open({ 'X-QWP-Accept-Encoding': 'raw, zstd', 'X-QWP-Max-Version': '5' });
  t.notRegex(plain.socket.head, /X-QWP-Content-Encoding/);
  t.regex(plain.socket.head, /X-QWP-Version: 1\r/);
  plain.close();
  const refused = await t.throwsAsync(open({ 'X-QWP-Max-Version': '0' }), { instanceOf: Refused });
  t.is(refused.status, 400);
  const without = await fetch(`${server.url}/read/v1`);
  t.is(without.status, 426);
});

for (const credit of [0, 1]) {
  test(`a query can be cancelled with credit ${credit}`, async (t) => {
    // Each message has one row, so the client reads as fast as messages are produced.
    const [client, other] = await Promise.all([open({ 'X-QWP-Max-Batch-Rows': '1' }), open()]);
    client.request(5, 'SELECT x FROM long_sequence(9000000000)', { credit });
    t.is((await client.next())?.kind, 'batch');
    client.cancel(4);
    client.cancel(5);
    const { last } = await client.answer();
    t.like(last, { kind: 'error', id: 5n, status: STATUS.cancelled });
    client.cancel(5);
    t.deepEqual((await client.query(5, 'SELECT 1')).rows, [[1]], 'the query id is free again');
    await until(
      async () => (await active(other, 'long_sequence(9000000000)')) === 0,
      'the query has ended',
    );
    t.pass();
    client.close();
    other.close();
  });
}

test('a query can be cancelled before it returns rows', async (t) => {
  const client = await open();
  client.request(1, 'SELECT count() FROM long_sequence(900000000000) WHERE x % 7 = 3');
  client.cancel(1);
  t.like((await client.answer()).last, { kind: 'error', status: STATUS.cancelled });
  client.close();
});

test('a disconnected client cancels its running queries', async (t) => {
  const [client, other] = await Promise.all([open(), open()]);
  client.request(1, 'SELECT x + 1 FROM long_sequence(8000000000)', { credit: 1 });
  t.is((await client.next())?.kind, 'batch');
  t.is(await active(other, 'long_sequence(8000000000)'), 1);
  client.close();
  await until(
    async () => (await active(other, 'long_sequence(8000000000)')) === 0,
    'the query has ended',
  );
  t.pass();
  other.close();
});

test('a second concurrent query is refused', async (t) => {
  const client = await open();
  client.request(1, 'SELECT x FROM long_sequence(100000)', { credit: 1 });
  t.like(await client.next(), { kind: 'batch', id: 1n });
  client.request(2, 'SELECT 2');
  t.like(await client.next(), { kind: 'error', id: 2n, status: STATUS.limitExceeded });
  client.grant(1, 1_000_000_000);
  t.like((await client.answer()).last, { kind: 'end', id: 1n, rows: 100_000 });
  client.close();
});

test('an error after the first rows is reported', async (t) => {
  const client = await open();
  const { messages, last } = await client.query(
    1,
    `SELECT x, ${FAILS_AT}, x FROM long_sequence(1000000)`,
  );
  t.like(last, { kind: 'error', id: 1n }, inspect(last));
  t.true(messages.length >= 1);
  t.is((await client.query(2, 'SELECT 1')).last.kind, 'end');
  client.close();
});

test('statement errors have a status and a position', async (t) => {
  const client = await open();
  const error = async (sql: string): Promise<unknown> => (await client.query(1, sql)).last;
  t.like(await error('SELECT nothing FROM every'), {
    status: STATUS.parseError,
    text: 'Invalid column: nothing [position=7]',
  });
  t.like(await error(''), { kind: 'error', status: STATUS.parseError, text: 'empty query' });
  t.like(await error(`SELECT '${'x'.repeat(1024 * 1024)}'`), { status: STATUS.limitExceeded });
  const binds = Array.from({ length: 1025 }, () => [0x05, NULL] as const);
  t.like((await client.query(1, 'SELECT 1', { binds })).last, { status: STATUS.limitExceeded });
  const long = await client.query(1, `SELECT repeat('x', 16000000)`);
  t.like(long.last, { kind: 'error', status: STATUS.limitExceeded });
  const wide = await client.query(1, `SELECT repeat('x', 9000000) FROM long_sequence(3)`);
  t.is(wide.rows.length, 3);
  client.close();
});

test('an invalid message closes the connection', async (t) => {
  const request = queryRequest(3, 'SELECT 1');
  for (const bytes of [
    Buffer.from('QWP1'),
    Buffer.alloc(0),
    Buffer.from([0x14, 1]),
    request.subarray(0, 5),
  ]) {
    const client = await open();
    client.socket.send(bytes);
    t.like(await client.next(), { kind: 'error', id: -1n, status: STATUS.parseError });
    t.is(await client.socket.receiveClose(), 1002);
  }
  for (const bytes of [
    request.subarray(0, -1),
    Buffer.concat([request, Buffer.from([2])]),
    Buffer.concat([request, Buffer.from([0, 0])]),
    queryRequest(3, '', { binds: [[0x11, given(Buffer.from('02ffffff7fffffff7f', 'hex'))]] }),
  ]) {
    const client = await open();
    client.socket.send(bytes);
    t.like(await client.next(), { kind: 'error', id: 3n, status: STATUS.parseError });
    t.is((await client.query(3, 'SELECT 1')).last.kind, 'end');
    client.close();
  }
  const client = await open();
  client.socket.send(Buffer.alloc(3 * 1024 * 1024, 0x10));
  t.is(await client.socket.receiveClose(), 1009);
});

test('SQL rights are checked for each query', async (t) => {
  const guarded = await startAccessServer();
  try {
    await run(
      guarded,
      'CREATE TABLE secrets (open INT, hidden INT)',
      'INSERT INTO secrets VALUES (1, 2)',
      "CREATE USER reader WITH PASSWORD 'pass'",
      'GRANT HTTP TO reader',
      'GRANT SELECT ON secrets(open) TO reader',
    );
    const port = portOf(guarded);
    for (const headers of [{}, credentials('reader:wrong')]) {
      const refused = WebSocketClient.open(port, '/read/v1', { headers });
      t.is((await t.throwsAsync(refused, { instanceOf: Refused })).status, 401);
    }
    const client = await ReadClient.open(port, credentials('reader:pass'));
    t.deepEqual((await client.query(1, 'SELECT open FROM secrets')).rows, [[1]]);
    const hidden = await client.query(2, 'SELECT hidden FROM secrets');
    t.like(hidden.last, { kind: 'error', status: STATUS.securityError });
    const insert = await client.query(3, 'INSERT INTO secrets VALUES (3, 4)');
    t.like(insert.last, { kind: 'error', status: STATUS.securityError });
    await run(guarded, 'REVOKE SELECT ON secrets(open) FROM reader');
    const gone = await client.query(4, 'SELECT open FROM secrets');
    t.like(gone.last, { kind: 'error', status: STATUS.securityError });
    client.close();
    t.is((await execAs(guarded, 'reader:pass', 'SELECT 1')).status, 200);
  } finally {
    await guarded.stop();
  }
});

test('a query is aborted if its client grants no credit for too long', async (t) => {
  const own = await startTestServer({ set: ['http.send.timeout=200ms'] });
  try {
    const client = await ReadClient.open(portOf(own));
    client.request(1, 'SELECT x FROM long_sequence(9000000000)', { credit: 1 });
    t.is((await client.next())?.kind, 'batch');
    t.like(await client.next(), { kind: 'error', id: 1n, status: STATUS.limitExceeded });
    t.is((await client.query(2, 'SELECT 1')).last.kind, 'end');
    client.close();
  } finally {
    await own.stop();
  }
});

test('server shutdown aborts running queries', async (t) => {
  const own = await startTestServer();
  const client = await ReadClient.open(portOf(own));
  client.request(1, 'SELECT x FROM long_sequence(9000000000)', { credit: 1 });
  t.is((await client.next())?.kind, 'batch');
  const stopped = own.stop();
  let last = await client.next();
  while (last?.kind === 'batch') {
    last = await client.next();
  }
  t.true(last === null || last.kind === 'error');
  t.is(await stopped, 0);
});

/**
 * Values that clients bind in text and in binary format, for every type with a binary format. Both
 * formats store the same row, whether the INSERT is sent alone or in a pipeline. In a condition,
 * both formats match that row.
 */
import { existsSync } from 'node:fs';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { clientMessage, errorFields, RawClient } from './raw-client.js';

const addon = existsSync(new URL('../../../native/index.js', import.meta.url));
const real = addon ? test : test.skip;
const started: Promise<TestServer> | null = addon
  ? startTestServer({ set: ['pg.auth.method=cleartext'] })
  : null;

test.after.always(async () => {
  await (await started?.catch(() => null))?.stop();
});

async function connect(): Promise<RawClient> {
  const server = await started;
  return await RawClient.login(Number(server?.pg.split(':').at(-1)));
}

/** A column and one value: declared type, text, bytes, and displayed form. */
interface Value {
  readonly column: string;
  readonly oid: number;
  readonly text: string;
  readonly binary: string;
  readonly shown?: string;
}

const VALUES: readonly Value[] = [
  { column: 'BOOLEAN', oid: 16, text: 'on', binary: '01', shown: 't' },
  { column: 'BYTE', oid: 21, text: '-7', binary: 'fff9' },
  { column: 'SHORT', oid: 21, text: '258', binary: '0102' },
  { column: 'INT', oid: 23, text: '16909060', binary: '01020304' },
  { column: 'INT', oid: 20, text: '-2', binary: 'fffffffffffffffe' },
  { column: 'LONG', oid: 20, text: '-2', binary: 'fffffffffffffffe' },
  { column: 'LONG', oid: 23, text: '7', binary: '00000007' },
  { column: 'LONG', oid: 26, text: '4294967295', binary: 'ffffffff' },
  { column: 'FLOAT', oid: 700, text: '1.5', binary: '3fc00000' },
  { column: 'DOUBLE', oid: 701, text: '-2.25', binary: 'c002000000000000' },
  { column: 'DOUBLE', oid: 700, text: '1.5', binary: '3fc00000' },
  { column: 'DOUBLE', oid: 23, text: '3', binary: '00000003', shown: '3.0' },
  { column: 'DOUBLE', oid: 1700, text: '12.34', binary: '0002 0000 0000 0002 000c 0d48' },
  { column: 'DECIMAL(10,2)', oid: 1700, text: '12.34', binary: '0002 0000 0000 0002 000c 0d48' },
  { column: 'VARCHAR', oid: 1043, text: 'é, "b"', binary: 'c3a92c20226222' },
  { column: 'VARCHAR', oid: 3802, text: '{}', binary: '01 7b7d' },
  { column: 'VARCHAR', oid: 1083, text: '12:34:56', binary: '0000000a8bda1c00' },
  {
    column: 'VARCHAR',
    oid: 1114,
    text: '2000-01-01T00:00:00.000001Z',
    binary: '0000000000000001',
  },
  { column: 'VARCHAR', oid: 20, text: '-2', binary: 'fffffffffffffffe' },
  { column: 'VARCHAR', oid: 16, text: 'true', binary: '01' },
  { column: 'STRING', oid: 25, text: 'ab', binary: '6162' },
  { column: 'SYMBOL', oid: 1043, text: 'ab', binary: '6162' },
  { column: 'CHAR', oid: 1042, text: 'x', binary: '78' },
  { column: 'IPV4', oid: 869, text: '10.0.0.1', binary: '02 20 00 04 0a000001' },
  {
    column: 'UUID',
    oid: 2950,
    text: '11111111-2222-3333-4444-555555555555',
    binary: '11111111222233334444555555555555',
  },
  {
    column: 'TIMESTAMP',
    oid: 1114,
    text: '2000-01-01T00:00:00.000001Z',
    binary: '0000000000000001',
    shown: '2000-01-01 00:00:00.000001',
  },
  {
    column: 'TIMESTAMP_NS',
    oid: 1184,
    text: '2000-01-01T00:00:00.000001Z',
    binary: '0000000000000001',
    shown: '2000-01-01 00:00:00.000001',
  },
  {
    column: 'DATE',
    oid: 1082,
    text: '2000-01-02',
    binary: '00000001',
    shown: '2000-01-02 00:00:00.000',
  },
  {
    column: 'DOUBLE[]',
    oid: 1022,
    text: '{1.5,NULL}',
    binary: '00000001 00000001 000002bd 00000002 00000001 00000008 3ff8000000000000 ffffffff',
  },
];

const bytesOf = ({ text, binary }: Value, format: number): Buffer =>
  format === 0 ? Buffer.from(text) : Buffer.from(binary.replaceAll(' ', ''), 'hex');

/** Returns Bind and Execute for the unnamed statement, with its value in this format. */
function bound(value: Buffer, format: number): Buffer[] {
  return [
    clientMessage('B', '', '', [1], [format], [1], value.length, value, [0]),
    clientMessage('E', '', 0),
  ];
}

/** Returns the rows of a query in text format. */
async function rowsOf(client: RawClient, text: string): Promise<(string | null)[]> {
  client.send(clientMessage('Q', text));
  const rows = (await client.until('Z')).filter(({ type }) => type === 'D');
  return rows.map(({ body }) => (body.readInt32BE(2) < 0 ? null : body.toString('utf8', 6)));
}

async function check(
  t: ExecutionContext,
  client: RawClient,
  value: Value,
  at: number,
): Promise<void> {
  const { column, oid } = value;
  const label = `${column} as ${oid}`;
  const table = `bound${at}`;
  client.send(clientMessage('Q', `CREATE TABLE ${table} (v ${column})`));
  await client.until('Z');
  for (const format of [0, 1]) {
    const row = bound(bytesOf(value, format), format);
    for (const rows of [1, 20]) {
      client.send(
        clientMessage('P', '', `INSERT INTO ${table} VALUES ($1)`, [1], oid),
        ...Array.from({ length: rows }, () => row).flat(),
        clientMessage('S'),
      );
      const answers = await client.until('Z');
      t.is(answers.map(({ type }) => type).join(''), `1${'2C'.repeat(rows)}Z`, label);
    }
  }
  const shown = await rowsOf(client, `SELECT v FROM ${table}`);
  t.is(shown.length, 42, label);
  t.deepEqual([...new Set(shown)], [value.shown ?? value.text], label);
}

real('text and binary parameters store the same rows, alone and in pipelines', async (t) => {
  const client = await connect();
  for (const [at, value] of VALUES.entries()) {
    await check(t, client, value, at);
  }
  client.close();
});

real('conditions accept text and binary parameters', async (t) => {
  const client = await connect();
  client.send(clientMessage('Q', 'CREATE TABLE conditions AS (SELECT x FROM long_sequence(9))'));
  await client.until('Z');
  for (const [oid, hex] of [
    [21, '0004'],
    [23, '00000004'],
    [20, '0000000000000004'],
    [701, '4010000000000000'],
    [1700, '0001 0000 0000 0000 0004'],
  ] as const) {
    client.send(
      clientMessage('P', '', 'SELECT count() FROM conditions WHERE x > $1', [1], oid),
      ...bound(Buffer.from(hex.replaceAll(' ', ''), 'hex'), 1),
      ...bound(Buffer.from('4'), 0),
      clientMessage('S'),
    );
    const answers = await client.until('Z');
    const counts = answers
      .filter(({ type }) => type === 'D')
      .map(({ body }) => body.toString('utf8', 6));
    t.deepEqual(counts, ['5', '5'], `${oid}`);
  }
  client.close();
});

real('IN accepts an array parameter of any type as its list', async (t) => {
  const client = await connect();
  for (const text of [
    'CREATE TABLE lists (v VARCHAR, k SYMBOL, i INT, l LONG, b BOOLEAN, u UUID, t TIMESTAMP)',
    `INSERT INTO lists VALUES
      ('a','a',1,1,true,'11111111-2222-3333-4444-555555555555','2000-01-01'),
      ('b','b',2,2,false,'11111111-2222-3333-4444-555555555556','2000-01-02'),
      ('c','c',3,3,false,'11111111-2222-3333-4444-555555555557','2000-01-03')`,
  ]) {
    client.send(clientMessage('Q', text));
    await client.until('Z');
  }
  for (const [column, oid, list] of [
    ['v', 1009, '{a,b}'],
    ['v', 1015, '{a,b}'],
    ['k', 1009, '{a,b}'],
    ['i', 1007, '{1,2}'],
    ['i', 1005, '{1,2}'],
    ['i', 1016, '{1,2}'],
    ['l', 1016, '{1,2}'],
    ['u', 2951, '{11111111-2222-3333-4444-555555555555,11111111-2222-3333-4444-555555555556}'],
    ['t', 1115, '{2000-01-01,2000-01-02}'],
    ['t', 1182, '{2000-01-01,2000-01-02}'],
    ['t', 1185, '{2000-01-01 00:00:00+00,2000-01-02 00:00:00+00}'],
  ] as const) {
    for (const [condition, value, count] of [
      [`${column} IN $1`, list, '2'],
      [`${column} IN ($1)`, list, '2'],
      [`${column} = ANY($1)`, list, '2'],
      [`${column} NOT IN $1`, list, '1'],
      [`${column} IN $1`, '{}', '0'],
    ] as const) {
      client.send(
        clientMessage('P', '', `SELECT count() FROM lists WHERE ${condition}`, [1], oid),
        ...bound(Buffer.from(value), 0),
        clientMessage('S'),
      );
      const rows = (await client.until('Z')).filter(({ type }) => type === 'D');
      const counts = rows.map(({ body }) => body.toString('utf8', 6));
      t.deepEqual(counts, [count], `${condition}, ${oid}, ${value}`);
    }
  }
  client.close();
});

real('a malformed value in a pipeline is reported, and only earlier rows are kept', async (t) => {
  const client = await connect();
  client.send(clientMessage('Q', 'CREATE TABLE spoiled (v INT)'));
  await client.until('Z');
  const good = bound(Buffer.from([0, 0, 0, 7]), 1);
  for (const [value, state, oid] of [
    [Buffer.from([0, 7]), '22P03', 23],
    [Buffer.alloc(16), '0A000', 600],
  ] as const) {
    client.send(
      clientMessage('P', '', 'INSERT INTO spoiled VALUES ($1)', [1], oid),
      ...(oid === 23 ? [good, good].flat() : []),
      ...bound(value, 1),
      ...good,
      clientMessage('S'),
    );
    const answers = await client.until('Z');
    const error = answers.find(({ type }) => type === 'E');
    t.is(errorFields(error)['C'], state);
  }
  t.deepEqual(await rowsOf(client, 'SELECT v FROM spoiled'), ['7', '7']);
  const text = Buffer.from([0x61, 0xff]);
  client.send(
    clientMessage('P', '', 'SELECT $1', [1], 1043),
    ...bound(text, 0),
    clientMessage('S'),
  );
  const error = (await client.until('Z')).find(({ type }) => type === 'E');
  t.is(errorFields(error)['C'], '22021');
  client.close();
});

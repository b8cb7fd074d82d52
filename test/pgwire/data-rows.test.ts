/**
 * DataRow bytes for each type in both formats, with the RowDescription. The engine produces the
 * bytes; the expected bytes follow PostgreSQL's documentation.
 */
import { existsSync } from 'node:fs';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { clientMessage, RawClient, type ServerMessage } from './raw-client.js';

const addon = existsSync(new URL('../../../native/index.js', import.meta.url));
const real = addon ? test : test.skip;
const started: Promise<TestServer> | null = addon
  ? startTestServer({ set: ['pg.auth.method=cleartext'] })
  : null;

test.after.always(async () => {
  await (await started?.catch(() => null))?.stop();
});

/** A value: SQL, OID, type length or -1, text form, and binary form. */
interface Value {
  readonly sql: string;
  readonly oid: number;
  readonly size: number;
  readonly text: string;
  /** Hexadecimal digits; absent if the same as the text form. */
  readonly binary?: string;
}

const VALUES: readonly Value[] = [
  { sql: 'true', oid: 16, size: 1, text: 't', binary: '01' },
  { sql: 'cast(-7 AS BYTE)', oid: 21, size: 2, text: '-7', binary: 'fff9' },
  { sql: 'cast(258 AS SHORT)', oid: 21, size: 2, text: '258', binary: '0102' },
  { sql: "cast('x' AS CHAR)", oid: 1042, size: -1, text: 'x' },
  { sql: 'cast(16909060 AS INT)', oid: 23, size: 4, text: '16909060', binary: '01020304' },
  { sql: 'cast(-2 AS LONG)', oid: 20, size: 8, text: '-2', binary: 'fffffffffffffffe' },
  { sql: 'cast(1.5 AS FLOAT)', oid: 700, size: 4, text: '1.5', binary: '3fc00000' },
  { sql: 'cast(-2.25 AS DOUBLE)', oid: 701, size: 8, text: '-2.25', binary: 'c002000000000000' },
  {
    sql: "cast('2000-01-01T00:00:01.000002Z' AS TIMESTAMP)",
    oid: 1114,
    size: 8,
    text: '2000-01-01 00:00:01.000002',
    binary: '00000000000f4242',
  },
  {
    sql: "cast('2000-01-01T00:00:00.000001002Z' AS TIMESTAMP_NS)",
    oid: 1114,
    size: 8,
    text: '2000-01-01 00:00:00.000001',
    binary: '0000000000000001',
  },
  {
    sql: "cast('1999-12-31T23:59:59.999Z' AS DATE)",
    oid: 1114,
    size: 8,
    text: '1999-12-31 23:59:59.999',
    binary: 'fffffffffffffc18',
  },
  { sql: "cast('sé' AS SYMBOL)", oid: 1043, size: -1, text: 'sé' },
  { sql: "cast('' AS VARCHAR)", oid: 1043, size: -1, text: '' },
  {
    sql: "cast('11111111-2222-3333-4444-555555555555' AS UUID)",
    oid: 2950,
    size: 16,
    text: '11111111-2222-3333-4444-555555555555',
    binary: '11111111222233334444555555555555',
  },
  { sql: "cast('10.0.0.1' AS IPV4)", oid: 1043, size: -1, text: '10.0.0.1' },
  { sql: 'cast(#u33d AS GEOHASH(4c))', oid: 1043, size: -1, text: 'u33d' },
  {
    sql: 'cast(12.34m AS DECIMAL(10,3))',
    oid: 1700,
    size: -1,
    text: '12.340',
    // Two groups of four digits, weight 0; a sign; three digits after the point.
    binary: '0002 0000 0000 0003 000c 0d48',
  },
  {
    sql: 'ARRAY[1.5, null]',
    oid: 1022,
    size: -1,
    text: '{1.5,NULL}',
    // One dimension, has nulls, DOUBLE, two elements with lower bound 1: 1.5 and NULL.
    binary: '00000001 00000001 000002bd 00000002 00000001 00000008 3ff8000000000000 ffffffff',
  },
  {
    sql: "interval '1 mon -3 days 4 h'",
    oid: 1186,
    size: 16,
    text: '1 mon -3 days +04:00:00',
    binary: '000000035a4e9000 fffffffd 00000001',
  },
  { sql: 'cast(null AS INT)', oid: 23, size: 4, text: 'NULL' },
];

async function connect(): Promise<RawClient> {
  const server = await started;
  return RawClient.login(Number(server?.pg.split(':').at(-1)));
}

interface Column {
  readonly oid: number;
  readonly size: number;
  readonly format: number;
}

function columnsOf({ body }: ServerMessage): Column[] {
  const columns: Column[] = [];
  for (let at = 2; at < body.length; at += 18) {
    at = body.indexOf(0, at) + 1;
    const oid = body.readInt32BE(at + 6);
    columns.push({ oid, size: body.readInt16BE(at + 10), format: body.readInt16BE(at + 16) });
  }
  return columns;
}

/** A DataRow: the number of values, and each with its length. */
function dataRow(values: readonly (Buffer | null)[]): string {
  const parts = values.map((value) => {
    const length = (value?.length ?? -1) >>> 0;
    return length.toString(16).padStart(8, '0') + (value?.toString('hex') ?? '');
  });
  return values.length.toString(16).padStart(4, '0') + parts.join('');
}

const bytesOf = ({ text, binary }: Value, format: number): Buffer | null => {
  if (text === 'NULL') {
    return null;
  }
  return format === 1 && binary !== undefined
    ? Buffer.from(binary.replaceAll(' ', ''), 'hex')
    : Buffer.from(text);
};

const LIST = VALUES.map(({ sql }, index) => `${sql} AS c${index}`).join(', ');
const described = (format: number): Column[] =>
  VALUES.map(({ oid, size }) => ({ oid, size, format }));

real('a simple query returns every type as text', async (t) => {
  const client = await connect();
  client.send(clientMessage('Q', `SELECT ${LIST}`));
  const [description, row] = await client.until('Z');
  t.deepEqual(columnsOf(description ?? { type: '', body: Buffer.alloc(0) }), described(0));
  t.is(row?.body.toString('hex'), dataRow(VALUES.map((value) => bytesOf(value, 0))));
  client.close();
});

real('Bind can request every type in binary', async (t) => {
  const client = await connect();
  client.send(
    clientMessage('P', '', `SELECT ${LIST}`, [0]),
    clientMessage('B', '', '', [0], [0], [1], [1]),
    clientMessage('D', Buffer.from('P'), ''),
    clientMessage('E', '', 0),
    clientMessage('S'),
  );
  const answers = await client.until('Z');
  t.is(answers.map(({ type }) => type).join(''), '12TDCZ');
  t.deepEqual(columnsOf(answers[2] ?? { type: '', body: Buffer.alloc(0) }), described(1));
  t.is(answers[3]?.body.toString('hex'), dataRow(VALUES.map((value) => bytesOf(value, 1))));
  client.close();
});

real('nanosecond timestamps have six decimals unless the session requests nine', async (t) => {
  const client = await connect();
  const text = async (statement: string): Promise<string> => {
    client.send(clientMessage('Q', statement));
    const row = (await client.until('Z')).find(({ type }) => type === 'D');
    return row?.body.subarray(6).toString() ?? '';
  };
  const query = "SELECT cast('2000-01-01T00:00:00.000001999Z' AS TIMESTAMP_NS) ns";
  const [six, nine] = ['2000-01-01 00:00:00.000001', '2000-01-01 00:00:00.000001999'];
  t.is(await text(query), six);
  await text("SET timestamp_precision = 'ns'");
  t.is(await text(query), nine);
  await text('RESET timestamp_precision');
  t.is(await text(query), six);
  await text('SET timestamp_precision TO ns');
  t.is(await text(query), nine);
  await text('DISCARD ALL');
  t.is(await text(query), six);
  t.is(
    await text("SELECT cast('2000-01-01T00:00:00.000001999Z' AS TIMESTAMP_NS)::varchar"),
    '2000-01-01T00:00:00.000001999Z',
  );
  client.send(clientMessage('Q', `COPY (${query}) TO STDOUT`));
  const copied = (await client.until('Z')).find(({ type }) => type === 'd');
  t.is(copied?.body.toString(), `${nine}\n`);
  client.close();
});

real('BINARY values are always returned in binary format', async (t) => {
  const client = await connect();
  client.send(clientMessage('Q', 'CREATE TABLE bytes (i INT, b BINARY)'));
  await client.until('Z');
  const bytes = Buffer.from([0, 255, 92, 120]);
  client.send(
    clientMessage('P', '', 'INSERT INTO bytes VALUES ($1, $2)', [2], 23, 17),
    clientMessage('B', '', '', [1], [1], [2], 4, Buffer.from([0, 0, 0, 1]), 4, bytes, [0]),
    clientMessage('E', '', 0),
    clientMessage('S'),
  );
  t.is(await client.types(), '12CZ');
  const text = 'SELECT i, b FROM bytes';
  client.send(clientMessage('Q', text));
  const simple = await client.until('Z');
  for (const format of [0, 1]) {
    client.send(
      clientMessage('P', '', text, [0]),
      clientMessage('B', '', '', [0], [0], [1], [format]),
      clientMessage('D', Buffer.from('P'), ''),
      clientMessage('E', '', 0),
      clientMessage('S'),
    );
    const request = (await client.until('Z')).filter(({ type }) => type === 'T' || type === 'D');
    for (const [description, row] of format === 0 ? [simple, request] : [request]) {
      const formats = columnsOf(description ?? { type: '', body: Buffer.alloc(0) });
      t.deepEqual(
        formats.map((column) => column.format),
        [format, 1],
      );
      const one = format === 0 ? Buffer.from('1') : Buffer.from([0, 0, 0, 1]);
      t.is(row?.body.toString('hex'), dataRow([one, bytes]));
    }
  }
  client.close();
});

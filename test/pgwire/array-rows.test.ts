/**
 * Array parameters in binary format must return the same rows as in text format, for every item
 * type and regardless of the values in earlier executions of the prepared statement.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { clientMessage, errorFields, RawClient } from './raw-client.js';

let server: TestServer;
test.before(async () => {
  server = await startTestServer({ set: ['pg.auth.method=cleartext'] });
});
test.after.always(() => server.stop());

async function connect(): Promise<RawClient> {
  return await RawClient.login(Number(server.pg.split(':').at(-1)));
}

interface Items {
  /** The type's name in the statement. */
  readonly type: string;
  /** OID of the array and OID of its items. */
  readonly oids: readonly [number, number];
  /** Each item in text format and as hexadecimal digits; null stands for a null item. */
  readonly items: readonly (readonly [string, string] | null)[];
}

const NUMBERS: Items['items'] = [['1', '0001'], null, ['-7', 'fff9'], ['258', '0102']];
const wide = (items: Items['items'], digits: number): Items['items'] =>
  items.map((item) => {
    const fill = item?.[0].startsWith('-') === true ? 'f' : '0';
    return item === null ? null : [item[0], item[1].padStart(digits, fill)];
  });
const TEXTS: Items['items'] = [
  ['a', '61'],
  null,
  ['""', ''],
  ['"null"', '6e756c6c'],
  ['"é \\"b\\""', 'c3a920226222'],
];
const TIMES: Items['items'] = [
  ['2000-01-01T00:00:00.000001Z', '0000000000000001'],
  null,
  ['1999-12-31T23:59:59.999999Z', 'ffffffffffffffff'],
];

const KINDS: readonly Items[] = [
  { type: 'boolean', oids: [1000, 16], items: [['true', '01'], ['false', '00'], null] },
  { type: 'smallint', oids: [1005, 21], items: NUMBERS },
  { type: 'int', oids: [1005, 21], items: NUMBERS },
  { type: 'int', oids: [1007, 23], items: wide(NUMBERS, 8) },
  { type: 'bigint', oids: [1007, 23], items: wide(NUMBERS, 8) },
  { type: 'bigint', oids: [1016, 20], items: wide(NUMBERS, 16) },
  { type: 'double precision', oids: [1016, 20], items: wide(NUMBERS, 16) },
  { type: 'smallint', oids: [1016, 20], items: wide(NUMBERS, 16) },
  { type: 'varchar', oids: [1016, 20], items: wide(NUMBERS, 16) },
  {
    type: 'double precision',
    oids: [1021, 700],
    items: [['1.5', '3fc00000'], null, ['0.1', '3dcccccd']],
  },
  {
    type: 'double precision',
    oids: [1022, 701],
    items: [['1.5', '3ff8000000000000'], null, ['1e300', '7e37e43c8800759c']],
  },
  { type: 'varchar', oids: [1009, 25], items: TEXTS },
  { type: 'text', oids: [1015, 1043], items: TEXTS },
  { type: 'symbol', oids: [1015, 1043], items: TEXTS },
  { type: 'timestamp', oids: [1115, 1114], items: TIMES },
  { type: 'timestamp', oids: [1185, 1184], items: TIMES },
  { type: 'date', oids: [1182, 1082], items: [['2000-01-02', '00000001'], null] },
  {
    type: 'uuid',
    oids: [2951, 2950],
    items: [['11111111-2222-3333-4444-555555555555', '11111111222233334444555555555555'], null],
  },
];

function int(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function inBinary({ oids, items }: Items): Buffer {
  const head = items.length === 0 ? [0, 0, oids[1]] : [1, 1, oids[1], items.length, 1];
  const cells = items.flatMap((item) => {
    const bytes = Buffer.from(item?.[1] ?? '', 'hex');
    return item === null ? [int(-1)] : [int(bytes.length), bytes];
  });
  return Buffer.concat([...head.map(int), ...cells]);
}

function inText({ items }: Items): Buffer {
  return Buffer.from(`{${items.map((item) => item?.[0] ?? 'NULL').join(',')}}`);
}

/**
 * Returns the results of repeated executions of one statement, each with its values in one format.
 */
async function run(
  client: RawClient,
  text: string,
  oids: readonly number[],
  executions: readonly (readonly Buffer[])[],
  format: number,
): Promise<string[]> {
  const binds = executions.flatMap((values) => [
    clientMessage(
      'B',
      '',
      '',
      [values.length],
      ...values.map(() => [format] as const),
      [values.length],
      ...values.flatMap((value) => [value.length, value]),
      [0],
    ),
    clientMessage('E', '', 0),
  ]);
  const parse = clientMessage('P', '', text, [oids.length], ...oids);
  client.send(parse, ...binds, clientMessage('S'));
  return (await client.until('Z')).map((message) =>
    message.type === 'E'
      ? `E ${errorFields(message)['C'] ?? ''} ${errorFields(message)['M'] ?? ''}`
      : `${message.type} ${message.body.toString('latin1')}`,
  );
}

test('binary and text array parameters return the same rows on each execution', async (t) => {
  const client = await connect();
  for (const kind of KINDS) {
    const { oids, items, type } = kind;
    // Different values, fewer values, a single value, none, and then the first values again.
    const lists = [items, [...items].reverse(), items.slice(0, 1), [], items];
    const kinds = lists.map((list) => ({ ...kind, items: list }));
    for (const text of [
      `SELECT value FROM unnest($1::${type}[])`,
      'SELECT value FROM unnest($1)',
      `SELECT x, y FROM unnest($1::${type}[], $1::${type}[]) u(x, y)`,
      `SELECT count() FROM unnest($1::${type}[])`,
    ]) {
      const one = (list: Items, format: number): Buffer[] => [
        format === 0 ? inText(list) : inBinary(list),
      ];
      const [asText, asBinary] = [
        await run(
          client,
          text,
          [oids[0]],
          kinds.map((list) => one(list, 0)),
          0,
        ),
        await run(
          client,
          text,
          [oids[0]],
          kinds.map((list) => one(list, 1)),
          1,
        ),
      ];
      t.true(asText.length > 2, `${text}, ${oids[0]}`);
      t.deepEqual(asBinary, asText, `${text}, ${oids[0]}`);
    }
  }
  client.close();
});

test('an INSERT from array parameters stores the same rows on each execution', async (t) => {
  const client = await connect();
  const query = async (text: string): Promise<string[]> => {
    client.send(clientMessage('Q', text));
    const rows = (await client.until('Z')).filter(({ type }) => type === 'D');
    return rows.map(({ body }) => body.toString('latin1'));
  };
  const columns = '(ts TIMESTAMP, s SYMBOL, d DOUBLE, n LONG) TIMESTAMP(ts)';
  const rounds = [1, 2_000, 3, 70_000, 5].map((rows, round) => {
    const of = (item: (row: number) => readonly [string, string] | null): Items['items'] =>
      Array.from({ length: rows }, (_, row) => (row % 7 === 3 ? null : item(row)));
    const long = (value: number): [string, string] => {
      return [String(value), value.toString(16).padStart(16, '0')];
    };
    const bytes = Buffer.alloc(8);
    return [
      { type: '', oids: [1016, 20], items: Array.from({ length: rows }, (_, row) => long(row)) },
      {
        type: '',
        oids: [1009, 25],
        items: of((row) => {
          const text = `s${(row + round) % 9}`;
          return [text, Buffer.from(text).toString('hex')];
        }),
      },
      {
        type: '',
        oids: [1022, 701],
        items: of((row) => {
          bytes.writeDoubleBE(row / 4 + round);
          return [String(row / 4 + round), bytes.toString('hex')];
        }),
      },
      { type: '', oids: [1016, 20], items: of((row) => long(row * 1_000 + round)) },
    ] as const satisfies Items[];
  });
  for (const [name, format] of [
    ['by_text', 0],
    ['by_binary', 1],
  ] as const) {
    await query(`CREATE TABLE ${name} ${columns}`);
    const text = `INSERT INTO ${name} SELECT a::timestamp, b, c, d
      FROM unnest($1::bigint[], $2::text[], $3::float8[], $4::bigint[]) u(a, b, c, d)`;
    const values = rounds.map((lists) => lists.map(format === 0 ? inText : inBinary));
    const answers = await run(client, text, [1016, 1009, 1022, 1016], values, format);
    t.deepEqual(
      answers.filter((answer) => !/^[12Z]/.test(answer)),
      rounds.map(([first]) => `C INSERT 0 ${first.items.length}\0`),
    );
  }
  const [text, binary] = ['by_text', 'by_binary'].map(
    (name) => `SELECT ts, s, d, n FROM ${name} ORDER BY ts, n, d, s`,
  );
  const rows = await query(text ?? '');
  t.is(rows.length, 72_009);
  t.deepEqual(await query(binary ?? ''), rows);
  client.close();
});

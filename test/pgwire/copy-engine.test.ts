/**
 * COPY between a client and the engine: every type in both directions, malformed data, rows of 20
 * MB, blocks, and the memory that a long COPY uses.
 */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { type Database, openDatabase } from '../../ts/engine/index.js';
import { listenPgWire } from '../../ts/pgwire/server.js';
import { type Session, SessionHost } from '../../ts/session/index.js';
import { readStatement } from '../../ts/sql/index.js';
import { suiteSeed } from '../seed.js';
import { SILENT } from '../silent.js';
import { Random } from '../torture/harness.js';
import { clientMessage, errorFields, RawClient, type ServerMessage } from './raw-client.js';

let database: Database;
let session: Session;
let server: Awaited<ReturnType<typeof listenPgWire>>;
let root: string;

test.before(async () => {
  root = await mkdtemp(join(tmpdir(), 'tidemark-copy-'));
  database = await openDatabase({ root, commitMode: 'nosync' });
  const sessions = new SessionHost({ database, parse: readStatement });
  session = sessions.open({ name: 'admin', readOnly: false });
  server = await listenPgWire(
    {
      host: null,
      port: 0,
      accounts: [{ user: 'admin', password: 'quest', readOnly: false }],
      method: 'cleartext',
      readOnly: false,
      connectionsMax: 64,
      statementsMax: 10,
      messageBytesMax: 64 << 20,
      idleMs: 60_000,
      requireEncryption: false,
    },
    { sessions, logger: SILENT },
    null,
  );
});

test.after.always(async () => {
  await server.close();
  await database.close();
  await rm(root, { recursive: true, force: true });
});

async function run(text: string): Promise<unknown[][]> {
  const statement = await session.prepare(text);
  const { chunk } = await statement.execute([], { rows: { format: 'json' } });
  statement.close();
  return JSON.parse(`[${chunk?.bytes.toString() ?? ''}]`) as unknown[][];
}

const query = (text: string): Buffer => clientMessage('Q', text);
const data = (bytes: Buffer | string): Buffer => clientMessage('d', Buffer.from(bytes));

/**
 * Sends data in messages of a fixed size; returns the messages up to and including ReadyForQuery.
 */
async function copyIn(
  client: RawClient,
  statement: string,
  bytes: Buffer,
  chunk = 65_536,
): Promise<ServerMessage[]> {
  client.send(query(statement));
  const first = await client.until('G');
  if (first.at(-1)?.type !== 'G') {
    return first;
  }
  for (let at = 0; at < bytes.length; at += chunk) {
    client.send(data(bytes.subarray(at, at + chunk)));
  }
  client.send(clientMessage('c'));
  return await client.until('Z');
}

const tagOf = (messages: readonly ServerMessage[]): string =>
  messages.find(({ type }) => type === 'C')?.body.toString() ?? '';

const errorOf = (messages: readonly ServerMessage[]): Record<string, string> =>
  errorFields(messages.find(({ type }) => type === 'E'));

async function copyOut(client: RawClient, statement: string): Promise<Buffer> {
  client.send(query(statement));
  const messages = await client.until('Z');
  return Buffer.concat(messages.filter(({ type }) => type === 'd').map(({ body }) => body));
}

/** Types, each with SQL values. */
const TYPES: readonly (readonly [type: string, ...values: string[]])[] = [
  ['BOOLEAN', 'true', 'false'],
  ['BYTE', '1', '-128', '127'],
  ['SHORT', '2', '-32768', '32767'],
  ['CHAR', "'c'", "'é'", "'\\'", "','", "'\"'"],
  ['INT', '3', '-2147483647', '0'],
  ['LONG', '4', '-9223372036854775807', '9223372036854775807'],
  ['FLOAT', '5.5', '-0.1', '3.4e38'],
  ['DOUBLE', '6.25', '-1e300', '0.1', '1e-300'],
  ['DATE', "'2024-01-01'", "'1969-12-31T23:59:59.999Z'"],
  ['TIMESTAMP', "'2024-01-01T00:00:00.123456Z'", "'1969-12-31T00:00:00Z'"],
  ['TIMESTAMP_NS', "'2024-01-01T00:00:00.123456789Z'", "'1970-01-02T00:00:00Z'"],
  ['SYMBOL', "'one'", "'two words'", "''", "'\\N'", '\'a,"b"\'', "'a\tb\nc'"],
  ['STRING', "'text'", "''", "'\\N'", "'\\.'", "'a\tb\nc'"],
  ['VARCHAR', "'naïve text of some length'", "''", "'\\'", "'\r'", "'NULL'", "'\"'"],
  ['UUID', "'11111111-2222-3333-4444-555555555555'"],
  ['LONG256', "'0x1234'", "'0xff00000000000000000000000000000000'"],
  ['IPV4', "'10.0.0.1'", "'255.255.255.255'"],
  ['GEOHASH(1c)', '#u', '#0'],
  ['GEOHASH(12b)', '##010101010101', '##111111111111'],
  ['GEOHASH(4c)', '#u33d', '#zzzz'],
  ['GEOHASH(60b)', '#u33d8b12jjjj', '#000000000000'],
  ['BINARY', 'rnd_bin(4, 4, 0)', 'rnd_bin(1, 1, 0)'],
  ['DECIMAL(5,2)', '1.25m', "'-999.99'"],
  ['DECIMAL(18,3)', '2.125m', "'-0.001'"],
  ['DECIMAL(38,4)', '3.0625m', "'-1'"],
  ['DECIMAL(60,5)', '4.03125m', "'-1'"],
  ['DOUBLE[]', 'ARRAY[1.5, null, -2]', 'ARRAY[]'],
  ['DOUBLE[][]', 'ARRAY[[1.0, 2], [3, 4]]', 'ARRAY[[7.0]]'],
];

test('every type round-trips in every format', async (t) => {
  const client = await RawClient.login(server.port);
  for (const [index, [type, ...values]] of TYPES.entries()) {
    const name = `of_type_${index}`;
    await run(`CREATE TABLE ${name} (ts TIMESTAMP, v ${type}) TIMESTAMP(ts) PARTITION BY DAY`);
    const rows = [...values, 'NULL'].map((value, row) => `(${row}, ${value})`);
    for (const row of rows) {
      await run(`INSERT INTO ${name} VALUES ${row}`);
    }
    const expected = await run(`SELECT * FROM ${name}`);
    // The binary format has only microsecond precision.
    const formats = type === 'TIMESTAMP_NS' ? ['text', 'csv'] : ['text', 'csv', 'binary'];
    for (const format of formats) {
      const copied = await copyOut(client, `COPY ${name} TO STDOUT (FORMAT ${format})`);
      const again = `${name}_${format}`;
      await run(`CREATE TABLE ${again} (LIKE ${name})`);
      const answer = await copyIn(client, `COPY ${again} FROM STDIN (FORMAT ${format})`, copied, 7);
      t.is(tagOf(answer), `COPY ${rows.length}\0`, `${type} ${format} ${errorOf(answer)['M']}`);
      t.deepEqual(await run(`SELECT * FROM ${again}`), expected, `${type} ${format}`);
      const twice = await copyOut(client, `COPY ${again} TO STDOUT (FORMAT ${format})`);
      t.deepEqual(twice, copied, `${type} ${format}`);
    }
  }
  client.close();
});

test('COPY handles reordered columns, defaults and missing values', async (t) => {
  const client = await RawClient.login(server.port);
  await run(
    "CREATE TABLE shaped (ts TIMESTAMP, a INT NOT NULL, b VARCHAR DEFAULT 'none', c BOOLEAN)" +
      ' TIMESTAMP(ts) PARTITION BY DAY',
  );
  const from = 'COPY shaped (c, a, ts) FROM STDIN';
  const good = 'yes\t7\t2024-01-01\nN\t8\t2024-01-02T00:00:00Z\n\\N\t9\t2024-01-03\n';
  t.is(tagOf(await copyIn(client, from, Buffer.from(good))), 'COPY 3\0');
  t.deepEqual(await run('SELECT a, b, c FROM shaped'), [
    [7, 'none', true],
    [8, 'none', false],
    [9, 'none', false],
  ]);
  for (const [line, found] of [
    ['t\tx\t2024-01-01', /inconvertible value: `?x/],
    ['t\t\\N\t2024-01-01', /column 'a' is NOT NULL: expected a value/],
    ['t\t1\t\\N', /cannot be NULL/],
    ['t\t1\t', /cannot be NULL/],
    ['t\t1\t1969-01-01', /before 1970/],
    ['maybe\t1\t2024-01-01', /inconvertible value: `?maybe/],
  ] as const) {
    const bytes = Buffer.from(`${good}${line}\n${good}`);
    const { M, W } = errorOf(await copyIn(client, from, bytes));
    t.regex(M ?? '', found);
    t.is(W, 'COPY shaped, line 4', line);
  }
  t.deepEqual(await run('SELECT count() FROM shaped'), [[3]]);
  client.close();
});

test('a block sees its copied rows, and ROLLBACK TO removes rows copied later', async (t) => {
  const client = await RawClient.login(server.port);
  await run('CREATE TABLE blocked (ts TIMESTAMP, x LONG) TIMESTAMP(ts) PARTITION BY DAY');
  const rows = (from: number, count: number): Buffer =>
    Buffer.from(Array.from({ length: count }, (_, row) => `2024-01-01\t${from + row}\n`).join(''));
  const from = 'COPY blocked FROM STDIN';
  client.send(query('BEGIN'));
  await client.until('Z');
  t.is(tagOf(await copyIn(client, from, rows(0, 40_000))), 'COPY 40000\0');
  client.send(query('SAVEPOINT s'));
  await client.until('Z');
  const spoiled = Buffer.concat([rows(0, 100_000), Buffer.from('no\n')]);
  t.is(errorOf(await copyIn(client, from, spoiled))['W'], 'COPY blocked, line 100001');
  client.send(query('ROLLBACK TO s'), query('SELECT count() FROM blocked'));
  await client.until('Z');
  t.is((await client.until('Z'))[1]?.body.toString('latin1', 6), '40000');
  t.deepEqual(await run('SELECT count() FROM blocked'), [[0]]);
  client.send(query('COMMIT'));
  await client.until('Z');
  t.deepEqual(await run('SELECT count(), sum(x) FROM blocked'), [[40_000, 799_980_000]]);
  client.close();
});

test('a value of 20 MB is copied', async (t) => {
  const client = await RawClient.login(server.port);
  await run('CREATE TABLE wide (a VARCHAR, b LONG)');
  const value = 'x\\n,"'.repeat(4 << 20);
  const bytes = Buffer.from(`${value}\t7\n`);
  t.is(tagOf(await copyIn(client, 'COPY wide FROM STDIN', bytes, 1 << 20)), 'COPY 1\0');
  t.deepEqual(await run('SELECT length(a), b FROM wide'), [[16 << 20, 7]]);
  client.close();
});

test('malformed data is reported with its line, and nothing is written', async (t) => {
  const random = new Random(suiteSeed());
  const client = await RawClient.login(server.port);
  await run(
    'CREATE TABLE target (ts TIMESTAMP, s SYMBOL, x LONG, d DOUBLE) TIMESTAMP(ts) PARTITION BY DAY',
  );
  for (let row = 0; row < 50; row += 1) {
    await run(`INSERT INTO target VALUES (${row}, 's${row % 3}', ${row}, ${row / 4})`);
  }
  for (const format of ['text', 'csv', 'binary']) {
    const complete = await copyOut(client, `COPY target TO STDOUT (FORMAT ${format})`);
    await run(`CREATE TABLE spoiled_${format} (LIKE target)`);
    for (let round = 0; round < 150; round += 1) {
      const bytes = Buffer.from(complete);
      for (let change = random.between(0, 2); change >= 0; change -= 1) {
        bytes[random.between(0, bytes.length - 1)] = random.between(0, 255);
      }
      const cut = bytes.subarray(
        0,
        random.between(0, 3) === 0 ? random.between(0, bytes.length) : bytes.length,
      );
      const statement = `COPY spoiled_${format} FROM STDIN (FORMAT ${format})`;
      const answer = await copyIn(client, statement, cut, random.between(1, 999));
      const error = answer.find(({ type }) => type === 'E');
      const [[count]] = (await run(`SELECT count() FROM spoiled_${format}`)) as [[number]];
      if (error === undefined) {
        t.is(tagOf(answer), `COPY ${count}\0`);
      } else {
        const { C, W } = errorFields(error);
        t.regex(C ?? '', /^(?:22|54|42804)/, `${format} ${round}`);
        t.regex(W ?? '', new RegExp(`^COPY spoiled_${format}, line \\d+$`));
        t.is(count, 0);
      }
      await run(`TRUNCATE TABLE spoiled_${format}`);
    }
  }
  client.close();
});

test('COPY memory does not grow with the size of the data', async (t) => {
  t.timeout(300_000);
  const client = await RawClient.login(server.port);
  await run('CREATE TABLE long (ts TIMESTAMP, s SYMBOL, x LONG) TIMESTAMP(ts) PARTITION BY DAY');
  const block = (from: number): Buffer => {
    const lines = Array.from({ length: 10_000 }, (_, row) => {
      const at = new Date(1_704_067_200_000 + (from + row) * 10).toISOString();
      return `${at}\ts${row % 100}\t${from + row}\n`;
    });
    return data(lines.join(''));
  };
  const anonymous = async (): Promise<number> => {
    const status = await readFile('/proc/self/status', 'utf8');
    return Number(/^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) / 1024;
  };
  client.send(query('COPY long FROM STDIN'));
  await client.until('G');
  const seen: number[] = [];
  for (let from = 0; from < 5_000_000; from += 10_000) {
    const flushed = client.socket.write(block(from));
    if (!flushed) {
      await new Promise((resolve) => client.socket.once('drain', resolve));
    }
    seen.push(await anonymous());
  }
  client.send(clientMessage('c'));
  await client.until('Z');
  // 5 M rows are 220 MB of data; the first fifth fills all buffers.
  const early = Math.max(...seen.slice(0, 100));
  t.true(Math.max(...seen) < early + 160, `${early} MiB, then ${Math.max(...seen)}`);
  t.deepEqual(await run('SELECT count(), sum(x) FROM long'), [[5_000_000, 12_499_997_500_000]]);
  client.close();
});

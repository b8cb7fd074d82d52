/** COPY over the connection: syntax, formats in both directions, and messages. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';

import { type Database, openDatabase } from '../../ts/engine/index.js';
import { CopyIn } from '../../ts/pgwire/copy/copy-in.js';
import { type CopyOptions, copyOptions } from '../../ts/pgwire/copy/copy-options.js';
import { CopyRows } from '../../ts/pgwire/copy/copy-rows.js';
import { errorReport } from '../../ts/pgwire/protocol/failure.js';
import { ProtocolError } from '../../ts/pgwire/protocol/protocol-error.js';
import { type CopyStream, type Session, SessionHost } from '../../ts/session/index.js';
import { readStatement } from '../../ts/sql/index.js';
import { sessionOf } from '../fake-statement.js';
import { until } from '../until.js';
import { dataRow, type FakeEngine } from './fake-engine.js';
import { start } from './harness.js';
import { clientMessage, errorFields, RawClient } from './raw-client.js';

type Row = readonly (string | null)[];

function copyOf(text: string): CopyStream | null {
  const statement = sessionOf(text);
  return statement?.kind === 'CopyIn' || statement?.kind === 'CopyOut' ? statement : null;
}

function optionsOf(written: string): CopyOptions {
  return copyOptions(copyOf(`COPY t FROM STDIN ${written}`)?.options ?? {});
}

/** An engine session with a table whose columns are strings. */
let session: Session;
let database: Database;
let root: string;

test.before(async () => {
  root = await mkdtemp(join(tmpdir(), 'tidemark-copy-'));
  database = await openDatabase({ root, commitMode: 'nosync' });
  const host = new SessionHost({ database, parse: readStatement });
  session = host.open({ name: 'admin', readOnly: false }, true);
  const created = await session.prepare('CREATE TABLE t (a VARCHAR, b VARCHAR, c VARCHAR)');
  await created.execute([], { rows: { format: 'json' } });
});

test.after.always(async () => {
  await database.close();
  await rm(root, { recursive: true, force: true });
});

/** Ensures that only one block runs at a time. */
let round: Promise<unknown> = Promise.resolve();

/** Reads rows from data that arrives in chunks, inside a block that is then rolled back. */
function read(
  written: string,
  data: Buffer,
  chunkSize = data.length + 1,
  count = 2,
): Promise<Row[]> {
  const mine = round.then(() => readNow(written, data, chunkSize, count));
  round = mine.catch(() => undefined);
  return mine;
}

async function readNow(
  written: string,
  data: Buffer,
  chunkSize: number,
  count: number,
): Promise<Row[]> {
  const columns = ['a', 'b', 'c'].slice(0, count).join(', ');
  const command = copyOf(`COPY t (${columns}) FROM STDIN ${written}`);
  if (command?.kind !== 'CopyIn') {
    throw new Error(`no COPY: ${written}`);
  }
  session.transaction = database.begin();
  try {
    const copy = await CopyIn.open(command, {
      tableMetadata: (name) => database.tableMetadata(name),
      prepare: (text, types) => session.prepare(text, types),
    });
    try {
      for (let at = 0; at < data.length; at += chunkSize) {
        await copy.feed(data.subarray(at, at + chunkSize));
      }
      await copy.finish();
    } catch (error) {
      await copy.abandon();
      throw error;
    }
    const query = await session.prepare(`SELECT ${columns} FROM t`);
    const { chunk } = await query.execute([], { rows: { format: 'json' } });
    query.close();
    return JSON.parse(`[${chunk?.bytes.toString() ?? ''}]`) as Row[];
  } finally {
    session.transaction.rollback();
    session.transaction = null;
  }
}

const readText = (written: string, text: string, count = 2): Promise<Row[]> =>
  read(written, Buffer.from(text), undefined, count);

/** Returns the error message and position for malformed data. */
async function wrong(
  t: ExecutionContext,
  reading: Promise<unknown>,
): Promise<Record<string, unknown>> {
  const error = await t.throwsAsync(reading);
  const report = errorReport(error as Parameters<typeof errorReport>[0]);
  const { C, M, W } = errorFields({ type: 'E', body: report.subarray(5) });
  return { C, M, W };
}

/** Returns the data of CopyData messages. */
function written(options: CopyOptions, rows: readonly Row[]): Buffer {
  const column = (name: string): { name: string; type: string; dimensions: number } => ({
    name,
    type: 'VARCHAR',
    dimensions: 0,
  });
  const out = new CopyRows([column('a'), column('b')], options);
  const cells = rows.map((row) =>
    dataRow(row.map((value) => (value === null ? null : Buffer.from(value)))),
  );
  const messages = Buffer.concat([out.head(), out.rows(Buffer.concat(cells)), out.tail()]);
  const data: Buffer[] = [];
  for (let at = 0; at < messages.length; at += 1 + messages.readInt32BE(at + 1)) {
    data.push(messages.subarray(at + 5, at + 1 + messages.readInt32BE(at + 1)));
  }
  return Buffer.concat(data);
}

test('encodings other than UTF-8 are converted', async (t) => {
  const latin = Buffer.from('é\t\u00df\n', 'latin1');
  t.deepEqual(await read("WITH (ENCODING 'LATIN1')", latin, 1), [['é', 'ß']]);
  const japanese = Buffer.from([0x83, 0x65, 0x09, 0x61, 0x0a]);
  t.deepEqual(await read("ENCODING 'SJIS'", japanese, 1), [['テ', 'a']]);
  const spoiled = Buffer.from([0x61, 0x09, 0x61, 0x0a, 0x61, 0x09, 0x83, 0xff, 0x0a]);
  t.deepEqual(await wrong(t, read("ENCODING 'SJIS'", spoiled)), {
    C: '22021',
    M: 'invalid byte sequence for encoding "shift_jis"',
    W: 'COPY t, line 2',
  });
  const little = Buffer.from('\ufeffé\tb\n', 'utf16le');
  t.deepEqual(await read("ENCODING 'utf-16le'", little, 1), [['é', 'b']]);
  t.deepEqual(await readText('', '\ufeffé\tb\n'), [['é', 'b']]);
  await t.throwsAsync(read("ENCODING 'UTF8'", latin), { message: /encoding "UTF8"/ });
  t.throws(() => optionsOf("ENCODING 'klingon'"), { message: /valid encoding name/ });
});

test('COPY accepts the current and the old syntax', (t) => {
  const parsed = (text: string): unknown => {
    const copy = copyOf(text);
    return copy === null ? null : { ...copy, options: copyOptions(copy.options) };
  };
  t.like(parsed('copy public."T 1" (a, "B") from stdin'), {
    kind: 'CopyIn',
    table: 'T 1',
    columns: ['a', 'B'],
    options: { format: 'text', delimiter: '\t', nullText: '\\N', header: false },
  });
  t.like(parsed("COPY t FROM STDIN WITH (FORMAT csv, HEADER MATCH, NULL 'x', QUOTE '''')"), {
    options: { format: 'csv', delimiter: ',', nullText: 'x', header: 'match', quote: "'" },
  });
  t.like(parsed("COPY t FROM STDIN WITH DELIMITER AS E'\\x7c' NULL AS E'\\\\N' CSV HEADER"), {
    options: { format: 'csv', delimiter: '|', nullText: '\\N', header: true },
  });
  t.like(parsed("copy t from stdin csv quote as '~' escape '\\' force not null a, b"), {
    options: { quote: '~', escape: '\\', forceNotNull: ['a', 'b'] },
  });
  t.like(parsed('COPY (select ")", 1 from (x)) TO STDOUT WITH BINARY'), {
    kind: 'CopyOut',
    source: { text: 'select ")", 1 from (x)', start: 6 },
    options: { format: 'binary' },
  });
  t.like(parsed('COPY t (a) TO STDOUT (FORMAT csv, FORCE_QUOTE *, FREEZE)'), {
    source: { table: 't', columns: ['a'] },
    options: { forceQuote: ['*'] },
  });
  t.like(parsed('COPY BINARY t FROM STDIN'), { options: { format: 'binary' } });
  // PHP's PDO writes STDIN instead of STDOUT.
  t.like(parsed("COPY t TO STDIN WITH DELIMITER E'\\t' NULL AS E'\\\\N'"), {
    kind: 'CopyOut',
    options: { delimiter: '\t', nullText: '\\N' },
  });
  t.like(parsed('COPY t FROM STDOUT'), { kind: 'CopyIn' });
  t.is(parsed("COPY t FROM 'stdin'"), null);
  t.is(parsed("COPY t TO 'file' WITH FORMAT PARQUET"), null);
  t.is(parsed('select stdin'), null);
});

test('invalid options are refused', (t) => {
  const refused = (options: string): string | undefined => {
    const error = t.throws(() => optionsOf(options));
    return error instanceof ProtocolError ? error.sqlState : '42601';
  };
  t.is(refused('(FORMAT nope)'), '22023');
  t.is(refused('(NOPE 1)'), '42601');
  t.is(refused("(DELIMITER 'ab')"), '22023');
  t.is(refused("(DELIMITER 'é')"), '22023');
  t.is(refused("(DELIMITER 'a')"), '22023');
  t.is(refused("(QUOTE '~')"), '0A000');
  t.is(refused('(FORMAT binary, HEADER)'), '0A000');
  t.is(refused("(FORMAT binary, NULL '')"), '42601');
  t.is(refused(`(FORMAT csv, DELIMITER '"')`), '22023');
  t.is(refused("(FORMAT csv, NULL 'a,b')"), '22023');
  t.is(refused("(ENCODING 'klingon')"), '22023');
  t.is(refused('(HEADER maybe)'), '42601');
  t.is(refused('WHERE a > 1'), '0A000');
  t.is(refused('(FORMAT csv'), '42601');
});

test('the text format handles escapes, nulls, line ends and end-of-data', async (t) => {
  t.deepEqual(await readText('', 'a\tb\r\n\\N\t\n\\.\nnever read'), [
    ['a', 'b'],
    [null, ''],
  ]);
  t.deepEqual(await readText('', '\\t\\\\\\N\t\\x41\\101\\q\\\nx\n'), [['\t\\N', 'AAq\nx']]);
  t.deepEqual(await readText('', '\\xc3\\251é\t\\\\\r\n'), [['éé', '\\']]);
  t.deepEqual(await readText("(DELIMITER '|', NULL '')", '|a\\|b'), [[null, 'a|b']]);
  t.deepEqual(await readText('', '\n', 1), [['']]);
  t.deepEqual(await wrong(t, readText('', 'a\n')), {
    C: '22P04',
    M: 'missing data for column "b"',
    W: 'COPY t, line 1',
  });
  t.deepEqual(await wrong(t, readText('', 'a\\\nb\tc\na\tb\tc\n')), {
    C: '22P04',
    M: 'extra data after last expected column',
    W: 'COPY t, line 3',
  });
  t.like(await wrong(t, readText('', 'a\tb\n\\xff\tb\n')), { C: '22021', W: 'COPY t, line 2' });
  t.like(await wrong(t, readText('', 'a\t\\000\n')), { C: '22021', W: 'COPY t, line 1' });
  t.like(await wrong(t, read('', Buffer.from([0x61, 0xff, 9, 0x61, 10]))), { C: '22021' });
});

test('the CSV format handles quotes, forced nulls and headers', async (t) => {
  t.deepEqual(await readText('CSV', 'a,"b ""c""\r\nd"\r\n,""\n'), [
    ['a', 'b "c"\r\nd'],
    [null, ''],
  ]);
  const escaped = await readText("(FORMAT csv, ESCAPE '\\')", '"a\\"b",c"d"e\n');
  t.deepEqual(escaped, [['a"b', 'cde']]);
  const forced = '(FORMAT csv, FORCE_NOT_NULL (a), FORCE_NULL (b))';
  t.deepEqual(await readText(forced, ',""\n'), [['', null]]);
  t.deepEqual(await readText('(FORMAT csv, HEADER)', 'x,y\n1,2\n'), [['1', '2']]);
  t.deepEqual(await readText('(FORMAT csv, HEADER MATCH)', 'A,b\n1,2\n'), [['1', '2']]);
  t.deepEqual(await wrong(t, readText('(FORMAT csv, HEADER MATCH)', 'a,x\n')), {
    C: '22P04',
    M: 'column 2 of the header: got "x", expected "b"',
    W: 'COPY t, line 1',
  });
  t.deepEqual(await wrong(t, readText('CSV', 'a,"\n\n"\n"a,b\n')), {
    C: '22P04',
    M: 'unterminated CSV quoted field',
    W: 'COPY t, line 4',
  });
});

test('malformed binary data is refused', async (t) => {
  const good = written(optionsOf('BINARY'), [
    ['x', null],
    ['', 'y'],
  ]);
  const rows = [
    ['x', null],
    ['', 'y'],
  ];
  for (const chunkSize of [1, 3, 1_000]) {
    t.deepEqual(await read('BINARY', good, chunkSize), rows);
  }
  t.deepEqual(await read('BINARY', good.subarray(0, -2)), rows);
  const message = async (data: Buffer): Promise<unknown> =>
    (await wrong(t, read('BINARY', data)))['M'];
  t.is(await message(good.subarray(0, -3)), 'unexpected EOF in COPY data');
  t.is(await message(Buffer.alloc(30)), 'COPY file signature not recognized');
  t.is(await message(Buffer.alloc(3)), 'unexpected EOF in COPY data');
  t.is(await message(Buffer.concat([good, good])), 'received copy data after EOF marker');
  const seven = Buffer.concat([good.subarray(0, 19), Buffer.from([0, 7])]);
  t.is(await message(seven), 'row field count is 7, expected 2');
  const negative = Buffer.from([0, 2, 0xff, 0, 0, 0]);
  t.is(await message(Buffer.concat([good.subarray(0, 19), negative])), 'invalid field size');
});

test('copied data can be read back however its bytes are split', async (t) => {
  const awkward = fc.constantFrom('', '\\N', '\\.', '"', '\\', 'NULL', ',', '\n', '\r', '\t', "é'");
  const value = fc.option(
    fc.oneof(
      fc.string({ unit: 'grapheme' }),
      awkward,
      fc.array(awkward).map((all) => all.join('')),
    ),
  );
  const rows = fc.array(fc.tuple(value, value), { maxLength: 8 });
  const options = fc.constantFrom(
    '',
    // As in PostgreSQL, a string that equals the null marker of the text format is read as null.
    "(DELIMITER '|', NULL '~nothing~')",
    'CSV',
    "(FORMAT csv, QUOTE '''', ESCAPE '\\', DELIMITER ';', NULL 'NULL')",
    '(FORMAT csv, FORCE_QUOTE *, HEADER)',
    '(FORMAT text, HEADER)',
    'BINARY',
  );
  await fc.assert(
    fc.asyncProperty(
      rows,
      options,
      fc.integer({ min: 1, max: 64 }),
      async (all, text, chunkSize) => {
        const clean = all.map((row) => row.map((cell) => cell?.replaceAll('\0', '') ?? null));
        const chosen = optionsOf(text);
        t.deepEqual(await read(text, written(chosen, clean), chunkSize), clean);
      },
    ),
    { numRuns: 500 },
  );
});

test('BINARY values are copied as hexadecimal strings', (t) => {
  const column = { name: 'a', type: 'BINARY', dimensions: 0 };
  const row = (): Buffer => dataRow([Buffer.from([0, 255])]);
  t.is(new CopyRows([column], optionsOf('')).rows(row()).toString().slice(5), '\\\\x00ff\n');
  t.is(new CopyRows([column], optionsOf('CSV')).rows(row()).toString().slice(5), '\\x00ff\n');
});

// ---- messages ----

interface Setting {
  readonly client: RawClient;
  readonly engine: FakeEngine;
}

async function open(t: ExecutionContext): Promise<Setting> {
  const { port, server, engine } = await start();
  const client = await RawClient.login(port);
  t.teardown(async () => {
    client.close();
    await server.close();
  });
  return { client, engine };
}

const query = (text: string): Buffer => clientMessage('Q', text);
const data = (text: string): Buffer => clientMessage('d', Buffer.from(text));
const done = clientMessage('c');
const sync = clientMessage('S');
const executed = (text: string): Buffer =>
  Buffer.concat([
    clientMessage('P', '', text, [0]),
    clientMessage('B', '', '', [0], [0], [0]),
    clientMessage('D', Buffer.from('P'), ''),
    clientMessage('E', '', 0),
  ]);

test('COPY FROM STDIN works between other statements of a simple query', async (t) => {
  const { client, engine } = await open(t);
  client.send(query('insert; COPY t FROM STDIN; rows 1; COPY t (b) FROM STDIN; insert'));
  t.is((await client.until('G')).map(({ type }) => type).join(''), 'CG');
  client.send(data('1\t'), data('2\n3\t4\n'), sync, done);
  const middle = await client.until('G');
  t.is(middle.map(({ type }) => type).join(''), 'CTDCG');
  t.is(middle[0]?.body.toString(), 'COPY 2\0');
  t.is(middle.at(-1)?.body.toString('hex'), '0000010000');
  client.send(data('5'), done);
  t.is(await client.types(), 'CCZ');
  t.deepEqual(engine.journal.committed, ['', '1,2;3,4', '5', '']);
});

test('a failed COPY writes nothing and skips its remaining data', async (t) => {
  const { client, engine } = await open(t);
  const fails = async (...messages: Buffer[]): Promise<Record<string, string>> => {
    client.send(query('COPY t FROM STDIN; insert'));
    await client.until('G');
    client.send(...messages);
    const answer = await client.until('Z');
    t.is(answer.map(({ type }) => type).join(''), 'EZ');
    t.is(answer[1]?.body.toString(), 'I');
    return errorFields(answer[0]);
  };
  const many = Array.from({ length: 9_000 }, (_, line) => `a\t${line === 4_999 ? 'bad' : 'b'}\n`);
  t.like(await fails(data(many.join('')), data('x\ty\n'), done), {
    C: '22P02',
    W: 'COPY t, line 5000',
  });
  t.like(await fails(data('1\t2\n3\n'), done), { C: '22P04', W: 'COPY t, line 2' });
  // The first error is reported, wherever it is.
  t.like(await fails(data('1\tbad\n3\n'), done), { C: '22P02', W: 'COPY t, line 1' });
  t.like(await fails(clientMessage('f', 'enough')), { C: '57014' });
  t.like(await fails(query('rows 1')), { C: '08P01' });
  client.send(query('COPY missing FROM STDIN'), data('x'), done);
  t.is(await client.types(), 'EZ');
  t.deepEqual(engine.journal.committed, []);
  client.send(query('insert'));
  t.is(await client.types(), 'CZ');
});

test('extended-protocol COPY accepts an early Sync, and an error skips to Sync', async (t) => {
  const { client, engine } = await open(t);
  client.send(executed('COPY t FROM STDIN'), sync);
  t.is((await client.until('G')).map(({ type }) => type).join(''), '12nG');
  client.send(data('1\t2\n'), done, sync);
  t.is(await client.types(), 'CZ');
  client.send(executed('COPY t FROM STDIN'), sync);
  await client.until('G');
  client.send(data('1\n'), done, executed('rows 1'), sync);
  t.is(await client.types(), 'EZ');
  client.send(executed('COPY (rows 2) TO STDOUT'), sync);
  t.is(await client.types(), '12nHddcCZ');
  t.deepEqual(engine.journal.committed, ['1,2']);
});

test('COPY in a transaction block commits and rolls back with the block', async (t) => {
  const { client, engine } = await open(t);
  const copies = async (text: string): Promise<string> => {
    client.send(query('COPY t FROM STDIN'), data(text), done);
    return client.types();
  };
  client.send(query('BEGIN; SAVEPOINT a'));
  await client.until('Z');
  t.is(await copies('1\t2\n'), 'GCZ');
  t.deepEqual(engine.journal.committed, []);
  t.is(await copies('1\t2\n3\n'), 'GEZ');
  t.is(await copies('1\t2\n'), 'EZ');
  client.send(query('ROLLBACK TO a'));
  t.is(await client.types(), 'CZ');
  t.is(await copies('5\t6\n'), 'GCZ');
  client.send(query('COMMIT'));
  t.is((await client.until('Z')).at(-1)?.body.toString(), 'I');
  t.deepEqual(engine.journal.committed, ['5,6']);
});

test('a client that disconnects during COPY leaves no rows', async (t) => {
  const { client, engine } = await open(t);
  client.send(query('COPY t FROM STDIN'), data('1\t2\n'.repeat(20_000)));
  await client.until('G');
  await new Promise((resolve) => setTimeout(resolve, 200));
  client.close();
  await until(() => engine.journal.abandoned === 1, 'the COPY is aborted');
  t.deepEqual(engine.journal.committed, []);
});

test('COPY TO STDOUT sends one message per row, with the binary header first', async (t) => {
  const { client } = await open(t);
  client.send(query('COPY (rows 2) TO STDOUT (FORMAT csv, HEADER)'));
  const csv = await client.until('Z');
  const texts = csv.filter(({ type }) => type === 'd').map(({ body }) => body.toString());
  t.deepEqual(texts, ['n,s\n', '0,row 0\n', '1,row 1\n']);
  t.is(csv.at(-2)?.body.toString(), 'COPY 2\0');
  client.send(query('COPY (rows 1) TO STDOUT BINARY'));
  const binary = await client.until('Z');
  t.is(binary.map(({ type }) => type).join(''), 'HddcCZ');
  t.is(binary[0]?.body.toString('hex'), '01000200010001');
  const first = binary[1]?.body ?? Buffer.alloc(0);
  t.is(first.subarray(0, 11).toString('latin1'), 'PGCOPY\n\xff\r\n\0');
  t.is(first.readInt16BE(19), 2);
  t.is(binary[2]?.body.toString('hex'), 'ffff');
  client.send(query('COPY (rows 0) TO STDOUT BINARY'));
  t.is(await client.types(), 'HdcCZ');
  client.send(query('COPY (insert) TO STDOUT'));
  t.is(errorFields((await client.until('Z'))[0])['C'], '42601');
  client.send(query('COPY (missing) TO STDOUT'));
  t.is(errorFields((await client.until('Z'))[0])['P'], '7');
  client.send(query('COPY (rows 50000) TO STDOUT'));
  t.is((await client.until('Z')).length, 50_004);
});

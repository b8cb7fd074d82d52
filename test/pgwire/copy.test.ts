/** COPY over the connection: its words, its formats both ways, and its messages. */
import test, { type ExecutionContext } from 'ava';
import fc from 'fast-check';

import { Block } from '../../ts/pgwire/statements/block.js';
import { CopyIn } from '../../ts/pgwire/copy/copy-in.js';
import { type CopyOptions, copyOptions } from '../../ts/pgwire/copy/copy-options.js';
import { type CopiedRow, copyReader } from '../../ts/pgwire/copy/copy-reader.js';
import { CopyRows } from '../../ts/pgwire/copy/copy-rows.js';
import { ProtocolError } from '../../ts/pgwire/protocol/protocol-error.js';
import { type CopyStream, SessionHost } from '../../ts/session/index.js';
import { fakeOrSession, sessionOf } from '../fake-statement.js';
import { until } from '../until.js';
import { dataRow, type FakeEngine, fakeEngine } from './fake-engine.js';
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

/** Rows read from data that arrives in pieces of so many bytes. */
function read(options: CopyOptions, data: Buffer, piece = data.length + 1, count = 2): Row[] {
  const columns = ['a', 'b', 'c'].slice(0, count).map((name) => ({ name }));
  const reader = copyReader(columns, options);
  const rows: Row[] = [];
  const take = ({ values }: CopiedRow): void => {
    rows.push(values.map((value) => value?.toString() ?? null));
  };
  for (let at = 0; at < data.length; at += piece) {
    reader.push(data.subarray(at, at + piece), take);
  }
  reader.end(take);
  return rows;
}

const readText = (written: string, text: string, count = 2): Row[] =>
  read(optionsOf(written), Buffer.from(text), undefined, count);

/** The data of CopyData messages. */
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

test('texts in other encodings than UTF-8', (t) => {
  const latin = Buffer.from('é\t\u00df\n', 'latin1');
  t.deepEqual(read(optionsOf("WITH (ENCODING 'LATIN1')"), latin, 1), [['é', 'ß']]);
  const japanese = Buffer.from([0x83, 0x65, 0x09, 0x61, 0x0a]);
  t.deepEqual(read(optionsOf("ENCODING 'SJIS'"), japanese, 1), [['テ', 'a']]);
  t.throws(() => read(optionsOf("ENCODING 'UTF8'"), latin), { message: /encoding "UTF8"/ });
  t.throws(() => optionsOf("ENCODING 'klingon'"), { message: /valid encoding name/ });
});

test('the words of COPY, new and old', (t) => {
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
  // PDO of PHP writes the other word.
  t.like(parsed("COPY t TO STDIN WITH DELIMITER E'\\t' NULL AS E'\\\\N'"), {
    kind: 'CopyOut',
    options: { delimiter: '\t', nullText: '\\N' },
  });
  t.like(parsed('COPY t FROM STDOUT'), { kind: 'CopyIn' });
  t.is(parsed("COPY t FROM 'stdin'"), null);
  t.is(parsed("COPY t TO 'file' WITH FORMAT PARQUET"), null);
  t.is(parsed('select stdin'), null);
});

test('options that mean nothing are refused', (t) => {
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

test('the text format: escapes, nulls, ends of lines, the end of the data', (t) => {
  t.deepEqual(readText('', 'a\tb\r\n\\N\t\n\\.\nnever read'), [
    ['a', 'b'],
    [null, ''],
  ]);
  t.deepEqual(readText('', '\\t\\\\\\N\t\\x41\\101\\q\\\nx\n'), [['\t\\N', 'AAq\nx']]);
  t.deepEqual(readText('', '\\xc3\\251é\t\\\\\r\n'), [['éé', '\\']]);
  t.deepEqual(readText("(DELIMITER '|', NULL '')", '|a\\|b'), [[null, 'a|b']]);
  t.deepEqual(readText('', '\n', 1), [['']]);
  t.is(t.throws(() => readText('', 'a\n')).message, 'missing data for column "b"');
  t.is(t.throws(() => readText('', 'a\tb\tc\n')).message, 'extra data after last expected column');
  t.like(
    t.throws(() => readText('', '\\xff\tb\n')),
    { sqlState: '22021' },
  );
  t.like(
    t.throws(() => read(optionsOf(''), Buffer.from([0x61, 0xff, 9, 0x61, 10]))),
    { sqlState: '22021' },
  );
});

test('the CSV format: quotes, forced nulls, headers', (t) => {
  t.deepEqual(readText('CSV', 'a,"b ""c""\r\nd"\r\n,""\n'), [
    ['a', 'b "c"\r\nd'],
    [null, ''],
  ]);
  t.deepEqual(readText("(FORMAT csv, ESCAPE '\\')", '"a\\"b",c"d"e\n'), [['a"b', 'cde']]);
  t.deepEqual(readText('(FORMAT csv, FORCE_NOT_NULL (a), FORCE_NULL (b))', ',""\n'), [['', null]]);
  t.deepEqual(readText('(FORMAT csv, HEADER)', 'x,y\n1,2\n'), [['1', '2']]);
  t.deepEqual(readText('(FORMAT csv, HEADER MATCH)', 'A,b\n1,2\n'), [['1', '2']]);
  t.regex(
    t.throws(() => readText('(FORMAT csv, HEADER MATCH)', 'a,x\n')).message,
    /column 2 of the header is "x", expected "b"/,
  );
  t.is(t.throws(() => readText('CSV', '"a,b\n')).message, 'unterminated CSV quoted field');
});

test('binary data is checked', (t) => {
  const options = optionsOf('BINARY');
  const good = written(options, [
    ['x', null],
    ['', 'y'],
  ]);
  for (const piece of [1, 3, 1_000]) {
    t.deepEqual(read(options, good, piece), [
      ['x', null],
      ['', 'y'],
    ]);
  }
  t.deepEqual(read(options, good.subarray(0, -2)), [
    ['x', null],
    ['', 'y'],
  ]);
  const message = (data: Buffer): string => t.throws(() => read(options, data)).message;
  t.is(message(good.subarray(0, -3)), 'unexpected EOF in COPY data');
  t.is(message(Buffer.alloc(30)), 'COPY file signature not recognized');
  t.is(message(Buffer.alloc(3)), 'unexpected EOF in COPY data');
  t.is(message(Buffer.concat([good, good])), 'received copy data after EOF marker');
  t.regex(message(Buffer.concat([good.subarray(0, 19), Buffer.from([0, 7])])), /count is 7/);
  const negative = Buffer.from([0, 2, 0xff, 0, 0, 0]);
  t.is(message(Buffer.concat([good.subarray(0, 19), negative])), 'invalid field size');
});

test('what is copied out is read back, in any pieces', (t) => {
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
    // As in PostgreSQL, a text that is equal to the null of the text format is null.
    "(DELIMITER '|', NULL '~nothing~')",
    'CSV',
    "(FORMAT csv, QUOTE '''', ESCAPE '\\', DELIMITER ';', NULL 'NULL')",
    '(FORMAT csv, FORCE_QUOTE *, HEADER)',
    '(FORMAT text, HEADER)',
    'BINARY',
  );
  fc.assert(
    fc.property(rows, options, fc.integer({ min: 1, max: 64 }), (all, text, piece) => {
      const clean = all.map((row) => row.map((cell) => cell?.replaceAll('\0', '') ?? null));
      const chosen = optionsOf(text);
      t.deepEqual(read(chosen, written(chosen, clean), piece), clean);
    }),
    { numRuns: 1_000 },
  );
});

test('BINARY values are hexadecimal text', (t) => {
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

test('COPY FROM STDIN in a simple query, between other statements', async (t) => {
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

test('a COPY that fails leaves nothing, and the rest of its data is passed over', async (t) => {
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
  // The first mistake is reported, wherever it is found.
  t.like(await fails(data('1\tbad\n3\n'), done), { C: '22P02', W: 'COPY t, line 1' });
  t.like(await fails(clientMessage('f', 'enough')), { C: '57014' });
  t.like(await fails(query('rows 1')), { C: '08P01' });
  client.send(query('COPY missing FROM STDIN'), data('x'), done);
  t.is(await client.types(), 'EZ');
  t.deepEqual(engine.journal.committed, []);
  client.send(query('insert'));
  t.is(await client.types(), 'CZ');
});

test('COPY over the extended protocol: Sync comes early, errors skip to the next', async (t) => {
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

test('COPY inside a block belongs to it', async (t) => {
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

test('a client that goes in the middle of a COPY leaves nothing', async (t) => {
  const { client, engine } = await open(t);
  client.send(query('COPY t FROM STDIN'), data('1\t2\n'.repeat(20_000)));
  await client.until('G');
  await new Promise((resolve) => setTimeout(resolve, 200));
  client.close();
  await until(() => engine.journal.rolledBack === 1, 'it is rolled back');
  t.deepEqual(engine.journal.committed, []);
  t.is(engine.journal.rolledBack, 1);
});

test('data that memory cannot hold is refused', async (t) => {
  const engine = fakeEngine();
  const session = new SessionHost({ database: engine, parse: fakeOrSession }).open({
    name: 'admin',
    readOnly: false,
  });
  const command = copyOf('COPY t FROM STDIN');
  if (command?.kind !== 'CopyIn') {
    t.fail();
    return;
  }
  const copy = await CopyIn.open(command, {
    block: new Block(session),
    copyBytesMax: 10,
    tableMetadata: (name) => engine.tableMetadata(name),
    prepare: (text, types) => session.prepare(text, types),
  });
  await copy.feed(Buffer.from('1\t2\n3\t4\n'));
  await t.throwsAsync(copy.feed(Buffer.from('5\t6\n')), {
    message: 'the data of COPY is too large [limit=10]: copy it in parts',
  });
  copy.abandon();
  t.deepEqual(engine.journal.committed, []);
});

test('COPY TO STDOUT: one message for each row, the binary head with the first', async (t) => {
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

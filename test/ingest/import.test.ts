/** Import behaviour that the golden cases do not cover. */
import test from 'ava';

import { importCsv, readImportParameters } from '../../ts/ingest/index.js';
import type { ImportPart } from '../../ts/ingest/index.js';
import { FakeDatabase } from './fake-database.js';
import { importText, send, type TestPart } from './requests.js';

interface Column {
  readonly name: string;
  readonly type: string;
}

function typesOf(answer: Record<string, unknown>): string[] {
  return (answer['columns'] as readonly Column[]).map(({ type }) => type);
}

test('strings longer than one character are never truncated to CHAR', async (t) => {
  const database = new FakeDatabase();
  const answer = await importText(database, 'a,b\n1,""\n2,\n3,zzz\n');
  t.is(answer['header'], true);
  t.deepEqual(typesOf(answer), ['INT', 'VARCHAR']);
});

test('type inference ignores nulls and keeps leading zeros as strings', async (t) => {
  for (const [content, type] of [
    ['x,y\n007,a1\n008,b1\n', 'VARCHAR'],
    ['x,y\nnull,a1\n1,b1\n', 'INT'],
    ['x,y\nnull,a1\nnull,b1\n', 'VARCHAR'],
    ['x,y\n1.2.3.4,a1\n5,b1\n', 'VARCHAR'],
    ['x,y\n1.2.3.4,a1\n5.6.7.8,b1\n', 'IPv4'],
    ['x,y\n5L,a1\n1,b1\n', 'LONG'],
  ] as const) {
    const answer = await importText(new FakeDatabase(), content, { forceHeader: 'true' });
    t.is(typesOf(answer)[0], type, content);
  }
});

test('only the requested number of lines is sampled', async (t) => {
  const content = 'x,y\n1,2\n3,4\n5,6\n7.5,text\n';
  const import_ = (analysedLines?: number): Promise<Record<string, unknown>> =>
    importText(
      new FakeDatabase(),
      content,
      {},
      analysedLines === undefined ? {} : { analysedLines },
    );
  t.deepEqual(typesOf(await import_()), ['DOUBLE', 'VARCHAR']);
  t.deepEqual(typesOf(await import_(4)), ['INT', 'INT']);
  t.deepEqual(typesOf(await import_(5)), ['DOUBLE', 'VARCHAR']);
  const uneven = 'a\n1,2,3,4,5\n1\n1,2,3\n';
  const answer = await importText(new FakeDatabase(), uneven, {}, { analysedLines: 3 });
  t.regex(String(answer['status']), /lineCountLimit=3, lineCount=3\]/);
});

test('a date-like column becomes TIMESTAMP when it is designated', async (t) => {
  for (const [text, pattern] of [
    ['2024-01-05', undefined],
    ['2024-01-05 10:11:12', undefined],
    ['2024-01-05T10:11:12', undefined],
    ['2024-01-05T10:11:12Z', undefined],
    ['2024-01-05 10:11:12.123456', undefined],
    ['25/01/2024', 'dd/MM/yyyy'],
    ['01/25/2024', 'MM/dd/yyyy'],
  ] as const) {
    const database = new FakeDatabase();
    const content = `a|ts\n1|${text}\n2|${text}\n`;
    const answer = await importText(database, content, { timestamp: 'ts', delimiter: '|' });
    t.is(answer['timestamp'], 'ts', text);
    const column = database.specs[0]?.csv.columns[1];
    t.deepEqual([column?.type, column?.pattern], ['TIMESTAMP', pattern]);
  }
});

test('columns of other types cannot be designated', async (t) => {
  const database = new FakeDatabase();
  const text = 'a,b\n1,x1\n9999999999,y1\n';
  const ofLong = await importText(database, text, { timestamp: 'a' });
  const ofText = await importText(database, text, { timestamp: 'b' });
  t.deepEqual(
    [ofLong, ofText],
    [{ status: "not a timestamp 'a'" }, { status: "not a timestamp 'b'" }],
  );
  t.is(database.specs.length, 0);
});

test('illegal characters are removed from table names; the result must be valid', async (t) => {
  for (const [given, name] of [
    ['a/b', 'ab'],
    ['.a', 'a'],
    ['a.b', 'a.b'],
    ['a..b', 'ab'],
    ["it's", 'its'],
    ['a b', 'a b'],
    ['x_y-z', 'x_y-z'],
  ] as const) {
    const answer = await importText(new FakeDatabase(), 'a,b\n1,2\n3,4\n', { name: given });
    t.is(answer['location'], name);
  }
  const long = 'n'.repeat(200);
  const answer = await importText(new FakeDatabase(), 'a,b\n1,2\n3,4\n', { name: long });
  t.deepEqual(answer, { status: `invalid table name [table=${long}]` });
});

test('status messages are valid JSON, whatever their content', async (t) => {
  const answer = await importText(new FakeDatabase(), 'a,b\n1,2\n3,4\n', { name: '\\"?' });
  t.deepEqual(answer, { status: 'invalid table name [table=\\"?]' });
});

test('a file with too few lines gets a clear status', async (t) => {
  const import_ = (text: string, parameters = {}): Promise<Record<string, unknown>> =>
    importText(new FakeDatabase(), text, parameters);
  t.deepEqual(await import_(''), { status: 'not enough lines [table=t]' });
  t.deepEqual(await import_('1,2'), { status: 'not enough lines [table=t]' });
  t.deepEqual(await import_('', { delimiter: ',' }), {
    status: 'cannot determine text structure [table=t]',
  });
  t.is((await import_('1,2', { delimiter: ',' }))['rowsImported'], 1);
  t.is((await import_('a,b\n1,2'))['rowsImported'], 2);
});

test('text without any delimiter becomes one column', async (t) => {
  const answer = await importText(new FakeDatabase(), 'price\n1.5\n22.75\n');
  t.deepEqual([answer['header'], typesOf(answer)], [true, ['DOUBLE']]);
});

test('delimiters inside quotes are ignored', async (t) => {
  const database = new FakeDatabase();
  await importText(database, 'a;b\n1;"x,y,z"\n2;"p,""q"""\n3;"line\nend"\n');
  t.is(database.specs[0]?.csv.delimiter, ';');
  t.is(database.tables.get('t')?.rows.length, 3);
});

test('lags accept units; row counts must be integers', async (t) => {
  for (const [given, micros] of [
    ['5000', 5000],
    ['10s', 10_000_000],
    ['2m', 120_000_000],
    ['7us', 7],
  ] as const) {
    const database = new FakeDatabase();
    await importText(database, 'a,b\n1,2\n3,4\n', { o3MaxLag: given, maxUncommittedRows: '10' });
    t.is(database.specs[0]?.o3MaxLagMicros, micros);
    t.is(database.specs[0]?.maxUncommittedRows, 10);
  }
  const answer = await importText(new FakeDatabase(), 'a,b\n1,2\n', { o3MaxLag: 'ten' });
  t.deepEqual(answer, { status: 'invalid o3MaxLag value, must be a long' });
});

test('partitioning requires a designated timestamp', async (t) => {
  const answer = await importText(new FakeDatabase(), 'a,b\n1,2\n3,4\n', { partitionBy: 'DAY' });
  t.deepEqual(answer, {
    status: 'when specifying partitionBy you must also specify timestamp',
  });
});

test('errors in the schema section are reported', async (t) => {
  const data = { name: 'data', filename: 'x', content: 'a,b\n1,2\n3,4\n' };
  for (const [schema, status] of [
    ['{}', 'Unexpected object'],
    ['[', 'Unterminated array'],
    ['[{"name":"a"', 'Unterminated object'],
    ['not json', 'Unexpected symbol'],
    ['[1]', 'Unexpected symbol'],
    ['[{"name":"a","type":"TIMESTAMP_NS"}]', 'TIMESTAMP format pattern is required'],
    ['[{"name":"a","type":"BINARY"}]', 'no adapter for type [id=18, name=BINARY]'],
    ['[{"name":"a","type":"GEOHASH(99c)"}]', 'Invalid type'],
  ] as const) {
    const parts = [{ name: 'schema', content: schema }, data];
    const answer = await send(new FakeDatabase(), [['fmt', 'json']], parts);
    t.deepEqual(JSON.parse(answer.body), { status });
  }
});

test('file columns that do not exist in the table are skipped', async (t) => {
  const database = new FakeDatabase();
  await importText(database, 'a,b,c\n1,2,3\n4,5,6\n');
  const answer = await importText(database, 'c,zz\n7,8\n9,10\n');
  t.is(answer['rowsImported'], 2);
  t.deepEqual(database.tables.get('t')?.rows.at(-1), ['', '', '9']);
  // The lines have more values than there are mapped columns.
  t.true(database.specs[1]?.csv.skipExtraValues);
  const none = await importText(database, 'x,zz\n7,8\n9,10\n');
  t.deepEqual(none, { status: 'no column of the text exists in the table [table=t]' });
});

test('an import aborted by its sender leaves no rows', async (t) => {
  const database = new FakeDatabase();
  const part: ImportPart = {
    name: 'data',
    filename: 'x.csv',
    content: (async function* () {
      yield await Promise.resolve(Buffer.from('a,b\n1,2\n'.repeat(2000)));
      throw new Error('connection closed');
    })(),
  };
  const parts = (async function* () {
    yield await Promise.resolve(part);
  })();
  const parameters = readImportParameters(new URLSearchParams({ name: 't' }));
  await t.throwsAsync(importCsv(database, parameters, parts), { message: 'connection closed' });
  t.is(database.aborted, 1);
  t.is(database.tables.size, 0);
});

test('a missing right is reported before any row is read', async (t) => {
  const database = new FakeDatabase();
  const parts = (async function* () {
    const content = (async function* () {
      yield await Promise.resolve(Buffer.from('a,b\n1,2\n'));
    })();
    yield await Promise.resolve({ name: 'data', filename: 'x.csv', content });
  })();
  const parameters = readImportParameters(new URLSearchParams({ name: 't', overwrite: 'true' }));
  const refuse = (access: unknown): void => {
    t.deepEqual(access, { table: 't', creates: true, overwrites: false });
    throw new Error('Access denied');
  };
  const importing = importCsv(database, parameters, parts, { authorise: refuse });
  await t.throwsAsync(importing, { message: 'Access denied' });
  t.is(database.specs.length, 0);
});

test("an aborted import returns the parser's message", async (t) => {
  const database = new FakeDatabase();
  const parts = [
    { name: 'schema', content: '[{"name":"a","type":"INT"}]' },
    { name: 'data', filename: 'x', content: 'a,b\n1,1\nx,2\n3,3\n' },
  ];
  const query = { fmt: 'json', name: 't', atomicity: 'ABORT' };
  const answer = await send(database, Object.entries(query), parts);
  t.regex(answer.body, /^\{"status":"bad syntax \[line=\d+, col=0\]"\}$/);
  t.is(database.tables.size, 0);
});

const part = (content: string): TestPart => ({ name: 'data', filename: 'x.csv', content });
const NAMED = [
  ['name', 't'],
  ['fmt', 'json'],
] as const;

test('several files are imported in one commit, each with its own format', async (t) => {
  const database = new FakeDatabase();
  const parts = [part('a,b\n1,x1\n2,y1\n'), part('b|a\nz1|3\nw1|4\n'), part('a,b\n5,v1\n6,u1\n')];
  const answer = JSON.parse((await send(database, NAMED, parts)).body) as Record<string, unknown>;
  t.is(answer['rowsImported'], 2, 'the response describes the first file');
  t.is(database.specs.length, 1);
  t.deepEqual(
    database.tables.get('t')?.rows,
    [1, 2, 3, 4, 5, 6].map((a, at) => [String(a), `${'xyzwvu'[at] ?? ''}1`]),
  );
});

test('if one file does not fit the table, all files are rolled back', async (t) => {
  for (const last of ['p,q\n1,2\n3,4\n', 'a,b,c\n1,2,3\n4,5,6\n', '']) {
    const database = new FakeDatabase();
    const parts = [part('a,b\n1,x1\n2,y1\n'), part('a,b\n3,z1\n4,w1\n'), part(last)];
    const answer = JSON.parse((await send(database, NAMED, parts)).body) as { status: string };
    t.not(answer.status, 'OK', last);
    t.is(database.aborted, 1);
    t.is(database.tables.size, 0);
  }
  const database = new FakeDatabase();
  const stray = { name: 'other', filename: 'x', content: 'y' };
  await send(database, NAMED, [part('a,b\n1,x1\n2,y1\n'), stray]);
  t.is(database.tables.size, 0, 'a part with a different name is not written');
});

test('an invalid parameter is reported with its name', async (t) => {
  const content = 'a,b\n1,x1\n2,y1\n';
  for (const [name, value, status] of [
    ['forceHeader', 'yes', "invalid forceHeader 'yes': expected true or false"],
    ['overwrite', '2', "invalid overwrite '2': expected true or false"],
    ['create', 'no', "invalid create 'no': expected true or false"],
    ['skipLev', 'on', "invalid skipLev 'on': expected true or false"],
    ['partitionBy', 'foo', 'invalid partitionBy'],
    ['timestamp', 'nope', "invalid timestamp column 'nope'"],
    ['o3MaxLag', 'soon', 'invalid o3MaxLag value, must be a long'],
    ['maxUncommittedRows', 'abc', 'invalid maxUncommittedRows, must be an int'],
    ['name', '???', 'invalid table name [table=???]'],
  ] as const) {
    const database = new FakeDatabase();
    t.deepEqual(await importText(database, content, { [name]: value }), { status }, name);
    t.is(database.tables.size, 0);
  }
  // Recorded from QuestDB: an unknown keyword means the default.
  for (const [name, value] of [
    ['atomicity', 'foo'],
    ['fmt', 'JSON'],
    ['delimiter', '||'],
    ['create', '1'],
  ] as const) {
    const answer = await importText(new FakeDatabase(), content, { [name]: value });
    t.is(answer['status'], 'OK', name);
  }
});

/** Type detection on ambiguous files, against the real database. */
import { existsSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rows, run } from '../scenario/statements.js';

const addon = existsSync(new URL('../../../native/index.js', import.meta.url));
const real = addon ? test.serial : test.serial.skip;

interface Answer {
  readonly status: string;
  readonly header: boolean;
  readonly rowsImported: number;
  readonly rowsRejected: number;
  readonly warnings?: readonly string[];
  readonly columns: readonly {
    readonly name: string;
    readonly type: string;
    readonly errors: number;
  }[];
}

let server: TestServer;

test.before(async () => {
  if (addon) {
    server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
  }
});

test.after.always(async () => {
  if (addon) {
    await server.stop();
  }
});

interface More {
  readonly schema?: object;
  readonly name?: string;
}

async function send(query: string, data: string | Buffer, more: More = {}): Promise<Answer> {
  const form = new FormData();
  if (more.schema !== undefined) {
    form.append('schema', JSON.stringify(more.schema));
  }
  form.append('data', new Blob([new Uint8Array(Buffer.from(data))]), more.name ?? 'data.csv');
  const reply = await fetch(`${server.url}/imp?fmt=json&${query}`, { method: 'POST', body: form });
  return (await reply.json()) as Answer;
}

const typesOf = ({ columns }: Answer): string[] => columns.map(({ type }) => type);
const errorsOf = ({ columns }: Answer): number[] => columns.map(({ errors }) => errors);

/** Returns a column of 2,000 numbers followed by other values. */
function after(values: readonly string[]): string {
  const lines = Array.from({ length: 2000 }, (_, at) => `${at},x${at}`);
  return ['v,w', ...lines, ...values.map((value) => `${value},y`), ''].join('\n');
}

real('a detected type that does not fit later values is widened without loss', async (t) => {
  for (const [values, type, last, because] of [
    [['7', '-1'], 'INT', -1, undefined],
    [['9999999999', '3'], 'LONG', 3, "LONG instead of INT, because of '9999999999' in line 2002"],
    [['5', '1.5'], 'DOUBLE', 1.5, "DOUBLE instead of INT, because of '1.5' in line 2003"],
    [['1.5', 'n/a'], 'VARCHAR', 'n/a', "VARCHAR instead of INT, because of 'n/a' in line 2003"],
    [['1.5', '007'], 'VARCHAR', '007', "VARCHAR instead of INT, because of '007' in line 2003"],
    [['NULL', '5', ''], 'INT', null, undefined],
  ] as const) {
    const answer = await send('name=widened&overwrite=true', after(values));
    t.is(answer.rowsImported, 2000 + values.length);
    t.deepEqual([typesOf(answer)[0], errorsOf(answer)], [type, [0, 0]], values.join());
    const warning = because === undefined ? undefined : [`column 'v': ${because}`];
    t.deepEqual(answer.warnings, warning);
    const found = await rows(server, 'SELECT count(), last(v) FROM widened');
    t.deepEqual(found, [[2000 + values.length, last]]);
  }
});

real('integers beyond LONG keep all of their digits', async (t) => {
  const tooLarge = '18446744073709551615';
  const text = async (): Promise<unknown> =>
    rows(server, 'SELECT cast(max(v) AS VARCHAR) FROM beyond');
  for (const [data, type] of [
    [`v,w\n${tooLarge},x\n-1,y\n`, 'DECIMAL(38,0)'],
    [`v,w\n9223372036854775808,x\n${tooLarge},y\n`, 'DECIMAL(38,0)'],
    [`v,w\n${tooLarge},x\n${'9'.repeat(40)},y\n`, 'DECIMAL(76,0)'],
    [`v,w\n${tooLarge},x\n${'9'.repeat(77)},y\n`, 'VARCHAR'],
    [`v,w\n${tooLarge},x\n1.5,y\n`, 'VARCHAR'],
    ['v,w\n100000000000000000000,x\n1.5,y\n', 'DOUBLE'],
    [after([tooLarge]), 'DECIMAL(38,0)'],
    [after(['1.5', tooLarge]), 'VARCHAR'],
  ] as const) {
    const answer = await send('name=beyond&overwrite=true', data);
    t.deepEqual([typesOf(answer)[0], errorsOf(answer)[0]], [type, 0], data.slice(-60));
    if (type === 'DECIMAL(38,0)') {
      t.deepEqual(await text(), [[tooLarge]], data.slice(-60));
    }
  }
});

real('a column becomes VARCHAR if the wider type cannot parse earlier values', async (t) => {
  const lines = Array.from({ length: 2000 }, (_, at) => `${at}L,x${at}`);
  const answer = await send('name=suffixes', ['v,w', ...lines, '1.5,y', ''].join('\n'));
  t.deepEqual([typesOf(answer)[0], errorsOf(answer)], ['VARCHAR', [0, 0]]);
  t.is(answer.warnings?.length, 2);
  t.deepEqual(await rows(server, 'SELECT first(v), last(v) FROM suffixes'), [['0L', '1.5']]);
});

real('an explicit atomicity, a schema or an existing table prevents widening', async (t) => {
  const skipped = await send('name=said&overwrite=true&atomicity=skipCol', after(['1.5']));
  t.deepEqual([typesOf(skipped)[0], errorsOf(skipped)], ['INT', [1, 0]]);
  const schema = [{ name: 'v', type: 'INT' }];
  const declared = await send('name=said&overwrite=true', after(['1.5']), { schema });
  t.deepEqual([typesOf(declared)[0], errorsOf(declared)], ['INT', [1, 0]]);
  const existing = await send('name=said', after(['1.5']));
  t.deepEqual([typesOf(existing)[0], errorsOf(existing)], ['INT', [1, 0]]);
});

real('a file larger than the buffer is read a second time to widen a column', async (t) => {
  const filler = 'z'.repeat(1000);
  const lines = Array.from({ length: 40_000 }, (_, at) => `${at},${at % 10}.5,${filler}`);
  const text = `a,b,c\n${lines.join('\n')}\nlast,1,${filler}\n`;
  t.true(text.length > 32 * 1024 * 1024);
  const answer = await send('name=long_text', text);
  t.deepEqual(typesOf(answer), ['VARCHAR', 'DOUBLE', 'VARCHAR']);
  t.deepEqual(await rows(server, 'SELECT count(), sum(b), sum(length(c)) FROM long_text'), [
    [40_001, 200_001, 40_001_000],
  ]);
  t.deepEqual(await rows(server, "SELECT count() FROM long_text WHERE a = '39999'"), [[1]]);
});

real('a type widened by the first file of a request also applies to the next file', async (t) => {
  const form = new FormData();
  for (const text of [after(['1.5']), 'v,w\n2.5,a1\n3.5,b1\n']) {
    form.append('data', new Blob([text]), 'data.csv');
  }
  const target = `${server.url}/imp?fmt=json&name=both`;
  const answer = (await (await fetch(target, { method: 'POST', body: form })).json()) as Answer;
  t.deepEqual([typesOf(answer)[0], answer.rowsImported], ['DOUBLE', 2001]);
  t.deepEqual(await rows(server, 'SELECT count(), last(v) FROM both'), [[2003, 3.5]]);
});

real('phone numbers and values with leading zeros are strings', async (t) => {
  const answer = await send('name=codes', 'zip,phone,n\n01234,+4912345678,0\n98765,+15551234,-1\n');
  t.deepEqual([answer.header, typesOf(answer)], [true, ['VARCHAR', 'VARCHAR', 'INT']]);
  t.regex(answer.warnings?.[0] ?? '', /^column 'zip': kept as text, because of '01234'$/);
  t.deepEqual(await rows(server, 'SELECT * FROM codes'), [
    ['01234', '+4912345678', 0],
    ['98765', '+15551234', -1],
  ]);
});

real('a header may omit the first column name or end with a delimiter', async (t) => {
  const pandas = await send('name=pandas', ',a,b\n0,1,2.5\n1,3,4.5\n');
  t.deepEqual([pandas.header, typesOf(pandas)], [true, ['INT', 'INT', 'DOUBLE']]);
  const ended = await send(
    'name=ended&timestamp=ts&partitionBy=DAY',
    'ts,v,\n2026-01-01T00:00:00.000000Z,2.5,\n2026-01-02T00:00:00.000000Z,3.5,\n',
  );
  t.deepEqual([ended.header, typesOf(ended)], [true, ['TIMESTAMP', 'DOUBLE', 'VARCHAR']]);
  const dates = await send('name=dates', 'who,born\nAnn,Feb 15 1990\nBob,Mar 16 1991\n');
  t.true(dates.header);
});

real('dates in many formats can become the designated timestamp', async (t) => {
  const at = '2026-02-15T00:00:00.000000Z';
  const clock = '2026-02-15T10:20:30.000000Z';
  for (const [text, expected] of [
    ['Feb 15, 2026', at],
    ['15 February 2026', at],
    ['15.02.2026', at],
    ['01.02.2026', '2026-02-01T00:00:00.000000Z'],
    ['2/15/2026', at],
    ['20260215', at],
    ['15-Feb-26', at],
    ['2026-2-15', at],
    ['2026/02/15 10:20:30', clock],
    ['15/Feb/2026:11:20:30 +0100', clock],
    ['Sun, 15 Feb 2026 10:20:30 GMT', clock],
    ['2/15/2026 10:20:30 AM', clock],
    ['20260215102030', clock],
    ['2026-02-15 11:20:30 CET', clock],
    ['1771150830', clock],
    ['1771150830.000', clock],
    ['1771150830000', clock],
    ['1771150830000000', clock],
    ['1771150830000000000', '2026-02-15T10:20:30.000000000Z'],
  ] as const) {
    const query = 'name=forms&overwrite=true&timestamp=d&partitionBy=DAY';
    const answer = await send(query, `d|v\n${`${text}|1\n`.repeat(3)}`);
    t.is(answer.status, 'OK', text);
    t.is(answer.warnings?.length, 1, text);
    t.deepEqual(await rows(server, 'SELECT DISTINCT d FROM forms'), [[expected]], text);
  }
});

real('ambiguous or implausible dates cannot become the designated timestamp', async (t) => {
  for (const text of ['1/2/2026', '01-02-2026', '3/4/26', '01/02/2026 10:00', '1', '99999999999']) {
    const { status } = await send('name=no_order&timestamp=d', `d|v\n${`${text}|1\n`.repeat(3)}`);
    t.regex(status, /^(?:ambiguous dates|not a timestamp)/, text);
  }
  const answer = await send('name=undesignated', 'd,v\n01/02/2026,1\n03/04/2026,2\n');
  t.deepEqual(typesOf(answer), ['DATE', 'INT']);
  t.regex(
    answer.warnings?.[0] ?? '',
    /^column 'd': read as dd\/MM\/yyyy, but could also be MM\/dd/,
  );
});

real('epoch values use the unit from the schema, or else the detected unit', async (t) => {
  const create = 'CREATE TABLE there (ts TIMESTAMP, v INT) TIMESTAMP(ts) PARTITION BY DAY';
  await run(server, create);
  const seconds = await send('name=there', 'ts,v\n1771150830,1\n1771150831,2\n');
  t.deepEqual(seconds.warnings, ["column 'ts': read as seconds since 1970"]);
  const micros = await send('name=there', 'ts,v\n1771150832000000,3\n1771150833000000,4\n');
  t.is(micros.warnings, undefined);
  const schema = [{ name: 'ts', type: 'TIMESTAMP', pattern: 'epoch_ms' }];
  await send('name=there', 'ts,v\n5,5\n6,6\n', { schema });
  t.deepEqual(await rows(server, 'SELECT ts FROM there WHERE v IN (1, 4, 5)'), [
    ['1970-01-01T00:00:00.005000Z'],
    ['2026-02-15T10:20:30.000000Z'],
    ['2026-02-15T10:20:33.000000Z'],
  ]);
});

real('decimal commas and digit groups are detected or set by a parameter', async (t) => {
  const answer = await send('name=marks', 'a;b;c\n1.234,5;1,234;1.5\n2,25;2,345;2.5\n');
  t.deepEqual(typesOf(answer), ['DOUBLE', 'VARCHAR', 'DOUBLE']);
  t.regex(answer.warnings?.join() ?? '', /'a': read as .*',' as decimal.*'b': kept as text/);
  t.deepEqual(await rows(server, 'SELECT * FROM marks'), [
    [1234.5, '1,234', 1.5],
    [2.25, '2,345', 2.5],
  ]);
  const named = await send('name=named&decimal=.', 'a;b\n"1,234";1\n"2,345,678";2\n');
  t.deepEqual(typesOf(named), ['INT', 'INT']);
  t.deepEqual(await rows(server, 'SELECT sum(a) FROM named'), [[2_346_912]]);
  const comma = await send('name=comma&decimal=,', 'a;b\n1,234;1\n2,345;2\n');
  t.deepEqual(await rows(server, 'SELECT a FROM comma'), [[1.234], [2.345]]);
  t.deepEqual([typesOf(comma), comma.warnings], [['DOUBLE', 'INT'], undefined]);
  const schema = [{ name: 'a', type: 'DECIMAL(10,2)', pattern: ',' }];
  await send('name=declared', 'a;b\n1.234,50;1\nx;2\n', { schema });
  t.deepEqual(await rows(server, 'SELECT a FROM declared'), [['1234.50'], [null]]);
  const wrong = await send('name=wrong&decimal=x', 'a;b\n1;1\n2;2\n');
  t.is(wrong.status, "invalid decimal 'x': expected , or .");
});

const LINES = [
  '{"at":"2026-01-01T00:00:00.000000Z","n":1,"id":12345678901234567890,' +
    '"tag":"007","more":{"a":[1]}}',
  '{"at":"2026-01-02T00:00:00.000000Z","n":2.5,"tag":"say \\"hi\\", a\\nb","flag":true}',
];

real('JSON lines, JSON arrays and rows without names are imported', async (t) => {
  const expected = [
    ['2026-01-01T00:00:00.000000Z', 1, '007', '{"a":[1]}', false],
    ['2026-01-02T00:00:00.000000Z', 2.5, 'say "hi", a\nb', null, true],
  ];
  for (const text of [LINES.join('\n'), `[\n${LINES.join(',\n')}\n]`, LINES.join('')]) {
    const answer = await send('name=json&overwrite=true&timestamp=at&partitionBy=DAY', text);
    t.deepEqual([answer.status, answer.rowsImported, answer.header], ['OK', 2, true]);
    t.deepEqual(await rows(server, 'SELECT at, n, tag, more, flag FROM json'), expected);
  }
  const exact = '{"id":1234567890123456789}\n{"id":1234567890123456788}\n';
  await send('name=exact', exact);
  t.deepEqual(await rows(server, 'SELECT id::varchar FROM exact'), [
    ['1234567890123456789'],
    ['1234567890123456788'],
  ]);
  const klines = await send(
    'name=klines&timestamp=f0',
    '[[1767225600000,"0.5",3],[1767225600001,"1.5",4]]',
  );
  t.deepEqual([klines.header, typesOf(klines)], [false, ['TIMESTAMP', 'VARCHAR', 'INT']]);
  const many = Array.from({ length: 1500 }, (_, at) => `{"a":${at}}`);
  const late = await send('name=late', [...many, '{"a":1.5,"b":2}'].join('\n'));
  t.deepEqual(typesOf(late), ['DOUBLE']);
  t.regex(late.warnings?.join() ?? '', /these keys: 'b'.*DOUBLE instead of INT/);
});

real('a damaged JSON file imports nothing', async (t) => {
  const keys = Array.from({ length: 10_001 }, (_, at) => [`k${at}`, at]);
  for (const [text, status] of [
    ['{"a":1}\n{"a":2', /ends within row 2/],
    ['[{"a":1},{"a":2}', /ends within row 3, or its array is not closed/],
    ['{"a":1}\n{"a":x}\n', /row 2 of the JSON input/],
    ['{"a":1} oops {"a":2}', /'oops' between the rows/],
    ['{"a":1}\n[1]\n', /objects and arrays/],
    ['[[]]', /no columns/],
    [`[${JSON.stringify(Object.fromEntries(keys))}]`, /more than 10000 columns/],
  ] as const) {
    t.regex((await send('name=broken_json', text)).status, status, text);
  }
  t.deepEqual(await rows(server, "SELECT count() FROM tables() WHERE table_name = 'broken_json'"), [
    [0],
  ]);
});

real('gzip data is recognized regardless of its content and file name', async (t) => {
  const text = after(['1.5']);
  for (const [name, data] of [
    ['zipped', gzipSync(text)],
    ['zipped_json', gzipSync(LINES.join('\n'))],
    ['zipped16', gzipSync(Buffer.from(`\ufeff${text}`, 'utf16le'))],
  ] as const) {
    const answer = await send(`name=${name}`, data, { name: 'data.csv.gz' });
    t.is(answer.status, 'OK', name);
    t.true(answer.rowsImported === 2001 || name === 'zipped_json');
  }
  const cut = await send('name=cut', gzipSync(after(['3'])).subarray(0, 2000));
  t.regex(cut.status, /^the gzip data is damaged/);
  const bomb = await send('name=bomb', gzipSync(Buffer.alloc(100 * 1024 * 1024, '1,2\n')));
  t.is(bomb.status, 'the decompressed gzip data is too large');
});

real('a file can be sent as the request body without multipart', async (t) => {
  const import_ = (query: string, init: RequestInit): Promise<Response> =>
    fetch(`${server.url}/imp?fmt=json&${query}`, init);
  for (const [method, type] of [
    ['PUT', undefined],
    ['POST', 'application/x-www-form-urlencoded'],
    ['POST', 'text/csv'],
  ] as const) {
    const headers = type === undefined ? {} : { 'Content-Type': type };
    const body = Buffer.from(after(['1.5']));
    const reply = await import_('name=raw&overwrite=true', { method, headers, body });
    const answer = (await reply.json()) as Answer;
    t.deepEqual([answer.status, answer.rowsImported], ['OK', 2001]);
    t.deepEqual(await rows(server, 'SELECT count(), last(v) FROM raw'), [[2001, 1.5]]);
  }
  const types = encodeURIComponent('[{"name":"a","type":"SYMBOL"}]');
  const typed = await import_(`name=raw_types&schema=${types}`, {
    method: 'PUT',
    body: 'a,b\n1,2\n3,4\n',
  });
  t.deepEqual(typesOf((await typed.json()) as Answer), ['SYMBOL', 'INT']);
  const late = await import_('name=raw_late&atomicity=abort', {
    method: 'PUT',
    body: `a,b\n${'1,2\n'.repeat(1000)}x,y\n${'1,2\n'.repeat(8_000_000)}`,
  });
  t.deepEqual(await late.json(), { status: 'bad syntax [line=1000, col=0]' });
  const nameless = await import_('', { method: 'PUT', body: 'a,b\n1,2\n' });
  t.is(nameless.status, 400);
  t.regex(await nameless.text(), /^Non-multipart POST not supported: specify the table/);
});

real('arrays exported by /exp are imported unchanged', async (t) => {
  await run(server, 'CREATE TABLE arrays (a DOUBLE[], b DOUBLE[][], v INT)');
  await run(
    server,
    'INSERT INTO arrays VALUES (ARRAY[1.5, null, -2], ARRAY[[1.0,2],[3,4]], 1), (null, null, 2)',
  );
  const reply = await fetch(`${server.url}/exp?query=arrays`);
  const text = await reply.text();
  const created = await send('name=arrays_new', text);
  t.deepEqual(typesOf(created), ['DOUBLE[]', 'DOUBLE[][]', 'INT']);
  await run(server, 'CREATE TABLE arrays_there (a DOUBLE[], b DOUBLE[][], v INT)');
  t.deepEqual(errorsOf(await send('name=arrays_there', text)), [0, 0, 0]);
  const expected = await rows(server, 'SELECT * FROM arrays');
  t.deepEqual(await rows(server, 'SELECT * FROM arrays_new'), expected);
  t.deepEqual(await rows(server, 'SELECT * FROM arrays_there'), expected);
});

real('refusals name the malformed line, and comment lines are skipped', async (t) => {
  for (const [text, status] of [
    ['a,b\n1,2\n3,4,5,6\n7,8\n', /^min deviation.*: line 3 has 4 fields, most lines have 2/],
    ['a,b\n1,"xy\n2,zz\n', /^not enough lines.*: a quote that opens in line 2 is not closed$/],
    [`a,b\n${'x'.repeat(20 * 1024 * 1024)},1\n`, /: line 2 does not end within \d+ characters/],
  ] as const) {
    t.regex((await send('name=refused', text)).status, status);
  }
  const commented = await send('name=commented', '# made by hand\n#\na,b\n1,2\n3,4\n');
  t.deepEqual([commented.header, typesOf(commented)], [true, ['INT', 'INT']]);
  t.deepEqual(commented.warnings, ['comment lines skipped at the beginning: 2']);
});

real('the text response includes the warnings', async (t) => {
  const form = new FormData();
  form.append('data', new Blob(['zip,v\n01234,1\n05678,2\n']), 'data.csv');
  const reply = await fetch(`${server.url}/imp?name=shown`, { method: 'POST', body: form });
  const lines = (await reply.text()).split('\r\n');
  t.is(lines.at(-2), "Warning: column 'zip': kept as text, because of '01234'");
  t.regex(lines.at(-3) ?? '', /^\+-+\+$/);
});

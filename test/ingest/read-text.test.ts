/**
 * read_csv and read_json: files in the import directory as tables, with the same types as when
 * imported.
 */
import { appendFile, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { exec, rows, run } from '../scenario/statements.js';
import { pgClient } from '../pg-client.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({ set: ['cairo.commit.mode=nosync', 'log.level=error'] });
});

test.after.always(() => server.stop());

async function put(name: string, content: string | Buffer): Promise<void> {
  const path = join(server.root, 'import', name);
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, content);
}

interface Result {
  readonly columns?: readonly { readonly name: string; readonly type: string }[];
  readonly dataset?: readonly (readonly unknown[])[];
  readonly error?: string;
  readonly position?: number;
}

async function read(query: string): Promise<Result> {
  return (await exec(server, query)) as Result;
}

async function refused(query: string): Promise<string> {
  const { error } = await read(query);
  return error ?? 'no error';
}

const TRADES = 'ts,symbol,price,size\n';
const trade = (at: number): string =>
  `2026-01-01T00:00:${String(at % 60).padStart(2, '0')}.000000Z,S${at % 3},${at}.5,${at}\n`;

test('a file can be queried like a table', async (t) => {
  await put('trades.csv', TRADES + Array.from({ length: 9 }, (_, at) => trade(at)).join(''));
  const all = await read("SELECT * FROM read_csv('trades.csv')");
  t.deepEqual(
    all.columns?.map(({ name, type }) => `${name} ${type}`),
    ['ts TIMESTAMP', 'symbol VARCHAR', 'price DOUBLE', 'size INT'],
  );
  t.deepEqual(all.dataset?.[1], ['2026-01-01T00:00:01.000000Z', 'S1', 1.5, 1]);
  t.deepEqual(await rows(server, "SELECT count() FROM read_csv('trades.csv')"), [[9]]);
  t.deepEqual(
    await rows(
      server,
      `SELECT symbol, sum(size) s FROM read_csv('trades.csv') WHERE price > 2 ORDER BY symbol`,
    ),
    [
      ['S0', 9],
      ['S1', 11],
      ['S2', 15],
    ],
  );
  t.deepEqual(
    await rows(
      server,
      "WITH f AS (SELECT size FROM read_csv('trades.csv')) SELECT max(size) FROM f",
    ),
    [[8]],
  );
  t.deepEqual(
    await rows(
      server,
      `SELECT a.size FROM read_csv('trades.csv') a JOIN read_csv('trades.csv') b
       ON a.size = b.size + 7 ORDER BY a.size`,
    ),
    [[7], [8]],
  );
  t.deepEqual(
    await rows(server, `SELECT count() FROM (read_csv('trades.csv') TIMESTAMP(ts)) SAMPLE BY 3s`),
    [[3], [3], [3]],
  );
  const plan = await rows(server, "EXPLAIN SELECT price FROM read_csv('trades.csv') LIMIT 2");
  t.regex(plan.flat().join('\n'), /TextScanExec: files=1 columns=\[price\] limit=2/);
});

test('rows of files can be inserted into tables, and views can read files', async (t) => {
  await put('into.csv', TRADES + trade(1) + trade(2));
  await run(
    server,
    `CREATE TABLE into_new AS (SELECT * FROM read_csv('into.csv')) TIMESTAMP(ts)
     PARTITION BY DAY`,
    "INSERT INTO into_new SELECT * FROM read_csv('into.csv')",
    "CREATE VIEW into_view AS SELECT size FROM read_csv('into.csv')",
  );
  t.deepEqual(await rows(server, 'SELECT count(), sum(size) FROM into_new'), [[4, 6]]);
  t.deepEqual(await rows(server, 'SELECT * FROM into_view'), [[1], [2]]);
  await put('into.csv', TRADES + trade(7) + trade(8));
  t.deepEqual(await rows(server, 'SELECT * FROM into_view'), [[7], [8]]);
});

const after = (values: readonly string[]): string => {
  const lines = Array.from({ length: 2000 }, (_, at) => `${at},x${at}`);
  return ['v,w', ...lines, ...values.map((value) => `${value},y`), ''].join('\n');
};
const utf16 = Buffer.from('\ufeffk,v\nä,1\nö€,2\n', 'utf16le');
const LINES = '{"a":1,"b":"007","c":{"x":[1]}}\n{"a":2.5,"b":"say \\"hi\\", é\\n","d":true}\n';

/** Name, content, query string of `/imp`, options of `read_csv`. */
const SAMPLES: readonly (readonly [string, string | Buffer, string?, string?])[] = [
  ['semicolons', 'a;b;c\n1;2,5;x\n2;3,5;y\n3;4,5;z\n'],
  ['tabs', 'a\tb\n1\t2\n3\t4\n'],
  ['pipes', 'a|b\n"1|2"|"say ""hi"""\n3|"x\ny"\n'],
  ['headless', '1,x1,2.5\n2,x2,3.5\n3,x3,4.5\n'],
  ['pandas', ',a,b\n0,1,2.5\n1,3,4.5\n'],
  ['ended', 'ts,v,\n2026-01-01T00:00:00.000000Z,2.5,\n2026-01-02T00:00:00.000000Z,3.5,\n'],
  ['codes', 'zip,phone,n\n01234,+4912345678,0\n98765,+15551234,-1\n'],
  ['marks', 'a;b;c\n1.234,5;1,234;1.5\n2,25;2,345;2.5\n'],
  ['point', 'a;b\n"1,234";1\n"2,345,678";2\n', 'decimal=.', "decimal = '.'"],
  ['dates', 'd,v\n01/02/2026,1\n03/14/2026,2\n'],
  ['times', 'd,n,t\n2026-01-01,2026-01-01T00:00:00.000000001Z,2026-01-01 10:00:00\n,,\nx,,\n'],
  ['kinds', 'u,i,b,l\n123e4567-e89b-12d3-a456-426614174000,10.0.0.1,true,0x1f\n,,,\n'],
  ['nulls', 'a,b\n1,x1\n,\nNULL,null\n4,x4\n'],
  ['short', `a,b,c\n${'1,2,3\n'.repeat(200)}4,5\n6,7,8\n`],
  ['arrays', 'a,v\n"[1.5,null,-2]",1\n"[2,3]",2\n'],
  ['comment', '# made by hand\n#\na,b\n1,2\n3,4\n'],
  ['mark', '\ufeffa,b\n1,2\n3,4\n'],
  ['returns', 'a,b\r\n1,x1\r\n\r\n2,y2'],
  ['utf16', utf16],
  [
    'windows',
    Buffer.from('k,v\nä,1\nö\u0080,2\n', 'latin1'),
    'encoding=windows-1252',
    "encoding = 'windows-1252'",
  ],
  ['zipped', gzipSync('a,b\n1,2\n3,4\n')],
  ['zipped16', gzipSync(utf16)],
  ['long', after(['9999999999', '3'])],
  ['double', after(['5', '1.5'])],
  ['text', after(['1.5', '007'])],
  ['suffix', after(['5L', '1.5'])],
  ['names', 'a b,1st,x.y\n1,2,3\n4,5,6\n'],
  [
    'schema',
    'a,b\n1,2\n3,4\n',
    'schema=[{"name":"a","type":"SYMBOL"}]',
    `schema = '[{"name":"a","type":"SYMBOL"}]'`,
  ],
];

for (const [name, content, query, options] of SAMPLES) {
  test(`read_csv and /imp return the same rows: ${name}`, async (t) => {
    const form = new FormData();
    form.append('data', new Blob([new Uint8Array(Buffer.from(content))]), 'data.csv');
    const more = query === undefined ? '' : `&${query}`;
    const reply = await fetch(`${server.url}/imp?fmt=json&name=imp_${name}${more}`, {
      method: 'POST',
      body: form,
    });
    const { status } = (await reply.json()) as { status: string };
    t.is(status, 'OK');
    await put(`samples/${name}.csv`, content);
    const said = options === undefined ? '' : `, ${options}`;
    const found = await read(`SELECT * FROM read_csv('samples/${name}.csv'${said})`);
    const { columns, dataset } = await read(`imp_${name}`);
    t.deepEqual([found.error, found.columns, found.dataset], [undefined, columns, dataset]);
  });
}

test('JSON lines, arrays, rows without names and gzip are read', async (t) => {
  for (const [name, content] of [
    ['lines', LINES],
    ['array', `[${LINES.trim().replaceAll('\n', ',')}]`],
    ['gzip', gzipSync(LINES)],
    ['rows', '[[1767225600000,"0.5",3],[1767225600001,"1.5",4]]'],
    ['late', `${'{"a":1}\n'.repeat(1500)}{"a":1.5}\n`],
    ['exact', '{"id":1234567890123456789}\n{"id":1234567890123456788}\n'],
  ] as const) {
    const reply = await fetch(`${server.url}/imp?fmt=json&name=json_${name}`, {
      method: 'PUT',
      body: new Uint8Array(Buffer.from(content)),
    });
    t.is(((await reply.json()) as { status: string }).status, 'OK');
    await put(`json/${name}.json`, content);
    const found = await read(`SELECT * FROM read_json('json/${name}.json')`);
    const { columns, dataset } = await read(`json_${name}`);
    t.deepEqual([found.error, found.columns, found.dataset], [undefined, columns, dataset], name);
    const same = await rows(server, `SELECT count() FROM read_ndjson('json/${name}.json')`);
    t.deepEqual(same, [[dataset?.length]]);
  }
  await put('json/broken.json', '{"a":1}\n{"a":x}\n');
  t.regex(await refused("SELECT * FROM read_json('json/broken.json')"), /row 2 of the JSON input/);
  await put('json/keys.json', `${'{"a":1}\n'.repeat(1500)}{"a":2,"b":3}\n`);
  const keys = "read_json('json/keys.json'";
  t.regex(
    await refused(`SELECT * FROM ${keys})`),
    /the key 'b' does not occur in the first 1000 objects/,
  );
  const counted = await rows(server, `SELECT sum(a) FROM ${keys}, ignore_errors => true)`);
  t.deepEqual(counted, [[1502]]);
  await put('json/none.json', 'a,b\n1,2\n');
  t.regex(
    await refused("SELECT * FROM read_json('json/none.json')"),
    /invalid JSON: expected objects/,
  );
});

test('several files form one table, with columns matched by name', async (t) => {
  await put('many/a.csv', 'a,b\n1,x\n2,y\n');
  await put('many/b.csv', 'b;a;c\nz;2,5;7\nw;3,5;8\n');
  await put('many/c.csv', 'A\n2026\n2027\n');
  await put('many/d/e.csv', 'a,b\nnone,v\nsome,u\n');
  const expected = [
    [1, 'x', null],
    [2, 'y', null],
    [2.5, 'z', 7],
    [3.5, 'w', 8],
    [2026, '', null],
    [2027, '', null],
  ];
  const query = "SELECT * FROM read_csv('many/*.csv')";
  const found = await read(query);
  t.deepEqual(found.dataset, expected);
  t.deepEqual(
    found.columns?.map(({ name, type }) => `${name} ${type}`),
    ['a DOUBLE', 'b CHAR', 'c INT'],
  );
  const list = "SELECT a FROM read_csv('many/a.csv', 'many/d/e.csv', header => true)";
  t.deepEqual(await rows(server, list), [['1'], ['2'], ['none'], ['some']]);
  const array = "SELECT count() FROM read_csv(ARRAY['many/a.csv', 'many/**/e.csv'], header = true)";
  t.deepEqual(await rows(server, array), [[4]]);
  t.regex(await refused("SELECT * FROM read_csv('many/*.txt')"), /no file matches/);
});

test('the schema of a changed file is detected again', async (t) => {
  const query = "SELECT * FROM read_csv('changes.csv')";
  await put('changes.csv', 'a,b\n1,2\n3,4\n');
  t.deepEqual(await rows(server, query), [
    [1, 2],
    [3, 4],
  ]);
  await put('changes.csv', 'x;y;z\n1;2;3,5\n4;5;6,5\n');
  t.deepEqual(await rows(server, query), [
    [1, 2, 3.5],
    [4, 5, 6.5],
  ]);
  await put('changes.csv', gzipSync('q\n1\n2\n'));
  t.deepEqual(await rows(server, query), [[1], [2]]);
  t.deepEqual(await rows(server, query), [[1], [2]]);
});

test('unreadable lines are errors, or are skipped if requested', async (t) => {
  await put('ragged.csv', `a,b\n${'1,2\n'.repeat(2000)}3,4,5\n6,7\n`);
  const query = (more = ''): string => `SELECT * FROM read_csv('ragged.csv'${more})`;
  t.is(await refused(query()), "cannot read 'ragged.csv', line 2002: 3 fields, expected 2");
  t.is((await rows(server, query(', ignore_errors = true'))).length, 2001);
  await put('latin.csv', Buffer.from('k,v\nä,1\nb,2\n', 'latin1'));
  const latin = "SELECT * FROM read_csv('latin.csv', header = true";
  t.regex(await refused(`${latin})`), /'latin.csv', line 2, field 1: not UTF-8/);
  t.deepEqual(await rows(server, `${latin}, ignore_errors = true)`), [
    [null, 1],
    ['b', 2],
  ]);
  t.deepEqual(await rows(server, `${latin}, encoding => 'latin1')`), [
    ['ä', 1],
    ['b', 2],
  ]);
});

test('a mismatched value near the end of a large file is reported with its line', async (t) => {
  const line = `12345,${'z'.repeat(990)}\n`;
  await put('large.csv', `a,b\n${line.repeat(70_000)}1.5,last\n${line}`);
  const query = (what: string, more = ''): string =>
    `SELECT ${what} FROM read_csv('large.csv'${more})`;
  t.is((await rows(server, `${query('a')} LIMIT 10`)).length, 10);
  t.deepEqual(await rows(server, query('count()')), [[70_002]]);
  t.is(
    await refused(query('sum(a)')),
    "cannot read 'large.csv', line 70002, column 'a': '1.5' is not INT, the detected type",
  );
  t.deepEqual(await rows(server, query('sum(a)', ', sample_size = -1')), [[70_001 * 12345 + 1.5]]);
});

test('invalid options and paths are refused with the reason', async (t) => {
  await put('some.csv', 'a,b\n1,2\n3,4\n');
  await put('empty.csv', '');
  await put('binary.csv', Buffer.from([0, 1, 2, 255, 254, 0, 0, 10, 7, 0, 200, 10]));
  await symlink('/etc/passwd', join(server.root, 'import', 'passwd.csv'));
  for (const [call, message] of [
    ["read_csv('some.csv', depth = 1)", /^unknown option 'depth', expected delimiter, header/],
    ["read_json('some.csv', delimiter = ';')", /^unknown option 'delimiter', expected encoding/],
    ["read_csv('some.csv', header = true, header = true)", /^duplicate option 'header'/],
    ["read_csv('some.csv', header = 'maybe')", /^invalid header 'maybe': expected true or false/],
    ["read_csv('some.csv', delim = ';;')", /^invalid delimiter ';;': expected one ASCII/],
    ["read_csv('some.csv', encoding = 'klingon')", /unknown encoding 'klingon'/],
    ["read_csv('some.csv', schema = '[{')", /Unterminated/],
    ["read_csv('some.csv', sample_size = 5)", /^invalid sample_size '5': expected -1/],
    ["read_csv('some.csv', header = a)", /^Invalid column: a/],
    ['read_csv()', /^file name expected/],
    ['read_csv($1)', /^file name expected/],
    ['read_csv(header = true)', /^file name expected/],
    ["read_csv('none.csv')", /^could not open, file: none.csv/],
    ["read_csv('many')", /^could not open, file: many/],
    ["read_csv('passwd.csv')", /^could not open, file: passwd.csv/],
    ["read_csv('../conf/server.conf')", /^path is outside the import directory/],
    ["read_csv('/etc/passwd')", /^path is outside the import directory/],
    ["read_csv('empty.csv')", /^cannot read 'empty.csv': not enough lines \[file=empty.csv\]/],
    ["read_csv('binary.csv')", /^cannot read 'binary.csv'/],
  ] as const) {
    t.regex(await refused(`SELECT * FROM ${call}`), message, call);
  }
  const { position } = await read("SELECT * FROM read_csv('empty.csv')");
  t.is(position, 23);
});

test.serial(
  'a converted file is cached, and converted again when the cache is deleted',
  async (t) => {
    await put('converted.csv', gzipSync('a,b\n1,2\n3,4\n'));
    await rows(server, "SELECT * FROM read_csv('converted.csv')");
    const texts = join(server.root, 'tmp', 'texts');
    const before = await readdir(texts);
    await rows(server, "SELECT count() FROM read_csv('converted.csv')");
    t.deepEqual(await readdir(texts), before);
    await rm(texts, { recursive: true });
    t.deepEqual(await rows(server, "SELECT sum(a) FROM read_csv('converted.csv')"), [[4]]);
    await appendFile(join(server.root, 'import', 'converted.csv'), gzipSync('5,6\n'));
    t.deepEqual(await rows(server, "SELECT sum(a) FROM read_csv('converted.csv')"), [[9]]);
  },
);

test('a view over an unreadable file does not hide other views', async (t) => {
  await put('viewed.csv', 'a,b\n1,x1\n2,y1\n');
  await run(server, "CREATE VIEW viewed AS (SELECT a FROM read_csv('viewed.csv'))");
  const status = "SELECT view_status FROM views() WHERE view_name = 'viewed'";
  t.deepEqual(await rows(server, status), [['valid']]);
  const columns = `SELECT column_name FROM information_schema.columns
    WHERE table_name IN ('viewed', 'viewed_beside')`;
  await run(server, 'CREATE TABLE viewed_beside (z INT)');
  t.deepEqual((await rows(server, columns)).flat().sort(), ['a', 'z']);
  await put('viewed.csv', '');
  t.deepEqual(await rows(server, status), [['invalid']]);
  t.deepEqual(await rows(server, columns), [['z']]);
  const { error, position } = await read('SELECT * FROM viewed');
  t.regex(error ?? '', /^view 'viewed' is invalid: cannot read 'viewed.csv': not enough lines/);
  t.is(position, 14);
  await run(server, 'DROP VIEW viewed');
});

test('a prepared statement keeps its columns when its file changes', async (t) => {
  await put('prepared.csv', 'a,b\n1,x1\n2,y1\n');
  const client = pgClient(server.pg);
  await client.connect();
  try {
    const text = "SELECT a FROM read_csv('prepared.csv') WHERE a >= $1";
    const query = async (): Promise<unknown[]> =>
      (await client.query<{ a: unknown }>({ name: 'kept', text, values: [2] })).rows.map(
        ({ a }) => a,
      );
    t.deepEqual(await query(), [2]);
    await put('prepared.csv', 'b;a\nx;7\ny;1\nz;8\n');
    t.deepEqual(await query(), [7, 8]);
    await put('prepared.csv', 'b;a\nx;7,5\ny;1,5\nz;8,5\n');
    await t.throwsAsync(query(), { message: 'cached plan must not change result type' });
  } finally {
    await client.end();
  }
});

test('rows appended to a file while it is read are seen in full or not at all', async (t) => {
  const path = join(server.root, 'import', 'growing.csv');
  await put('growing.csv', 'a,b\n1,2\n1,2\n');
  const write = async (): Promise<void> => {
    for (let at = 0; at < 500; at += 1) {
      await appendFile(path, '1,2\n1,2\n');
    }
  };
  const look = async (): Promise<void> => {
    let last = 0;
    while (last < 1002) {
      const query = "SELECT count(), sum(a) FROM read_csv('growing.csv')";
      const [[count, sum] = []] = await rows(server, query);
      t.is(count, sum);
      t.true(Number(count) >= last);
      last = Number(count);
    }
  };
  await Promise.all([write(), look()]);
});

test('adversarial files are read correctly or refused with an error', async (t) => {
  const wide = Array.from({ length: 3000 }, (_, at) => `c${at}`).join();
  const line = `${Array.from({ length: 3000 }, (_, at) => at).join()}\n`;
  await put('wide.csv', `${wide}\n${line.repeat(200)}`);
  const sum = await rows(server, "SELECT sum(c2999), count(c0) FROM read_csv('wide.csv')");
  t.deepEqual(sum, [[200 * 2999, 200]]);
  t.is((await read("SELECT * FROM read_csv('wide.csv') LIMIT 1")).columns?.length, 3000);
  await put('endless.csv', `a,b\n1,2\n3,4\n${'x'.repeat(20 * 1024 * 1024)}`);
  t.regex(
    await refused("SELECT * FROM read_csv('endless.csv')"),
    /^cannot read 'endless.csv', line is longer than \d+ bytes/,
  );
  await put('bomb.csv', gzipSync(Buffer.alloc(100 * 1024 * 1024, '1,2\n')));
  t.regex(
    await refused("SELECT * FROM read_csv('bomb.csv')"),
    /decompressed gzip data is too large/,
  );
  await put('cut.csv', gzipSync(after(['1'])).subarray(0, 2000));
  t.regex(await refused("SELECT * FROM read_csv('cut.csv')"), /gzip data is damaged/);
  await put('twice.csv', 'a,A\n1,2\n3,4\n');
  t.regex(await refused("SELECT * FROM read_csv('twice.csv')"), /duplicate column name/);
  for (const [name, text] of [
    ['deep.json', `[{"a":${'['.repeat(500_000)}${']'.repeat(500_000)}}]`],
    ['deep.ndjson', `{"a":1}\n{"a":${'{"b":'.repeat(200_000)}1${'}'.repeat(200_000)}}\n`],
  ] as const) {
    await put(name, text);
    t.regex(await refused(`SELECT * FROM read_json('${name}')`), /nested too deeply$/);
  }
  await put('slow.csv', gzipSync(`a,b\n${'1,2\n'.repeat(3_000_000)}`));
  const reply = await fetch(
    `${server.url}/exec?query=${encodeURIComponent("SELECT sum(a) FROM read_csv('slow.csv')")}`,
    { headers: { 'Statement-Timeout': '5' } },
  );
  t.regex(((await reply.json()) as Result).error ?? '', /^timeout, query aborted/);
});

test('ISO 8601 times without a fraction are timestamps', async (t) => {
  await put('iso.csv', 'at,v\n2024-01-01T00:00:00Z,1\n2024-01-01T01:30:00Z,2\n,3\n');
  const all = await read("SELECT * FROM read_csv('iso.csv')");
  t.deepEqual(
    all.columns?.map(({ type }) => type),
    ['TIMESTAMP', 'INT'],
  );
  t.deepEqual(all.dataset?.at(-1), [null, 3]);
  const declared = `[{"name": "at", "type": "TIMESTAMP_NS"}]`;
  t.deepEqual(
    await rows(server, `SELECT max(at) FROM read_csv('iso.csv', schema => '${declared}')`),
    [['2024-01-01T01:30:00.000000000Z']],
  );
  await put('series.csv', 'at,v\n2024-01-01T00:00:00Z,1\n2024-01-01T01:30:00Z,2\n');
  t.deepEqual(
    await rows(server, "SELECT sum(v) FROM (read_csv('series.csv') TIMESTAMP(at)) SAMPLE BY 1h"),
    [[1], [2]],
  );
});

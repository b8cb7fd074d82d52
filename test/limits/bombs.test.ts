/**
 * Gate S7: small inputs that would expand enormously or run forever. Each is refused or completed,
 * and the server survives within bounded memory.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { suiteSeed } from '../seed.js';
import { rowsOf } from './client.js';

const MEGABYTE = 1024 * 1024;
/**
 * Allowance on top of the server's base memory for queries, syntax trees of 10 MB statements, and
 * JavaScript garbage that has not been collected yet.
 */
const MORE_MEGABYTES = 512;

let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: ['query.memory.pool=512M', 'query.memory.limit=256M', 'shared.query.worker.count=2'],
  });
  await mkdir(join(server.root, 'import'), { recursive: true });
  await rowsOf(server, 'create table t (i int, v varchar, s symbol)');
  await rowsOf(
    server,
    "insert into t select x, 'abababababababababab', 'k' from long_sequence(1000)",
  );
});

test.after.always(async () => {
  await server.stop();
});

/** Returns the process's peak memory in MiB. */
async function peakMegabytes(): Promise<number> {
  const status = await readFile(`/proc/${server.process.pid ?? 0}/status`, 'utf8');
  return Math.round(Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1024);
}

async function assertGrewLittle(t: ExecutionContext, before: number): Promise<void> {
  const grown = (await peakMegabytes()) - before;
  t.true(grown < MORE_MEGABYTES, `${grown} MiB more at the peak`);
}

async function exec(query: string): Promise<string> {
  const body = new URLSearchParams({ query, limit: '5' });
  const headers = { 'Statement-Timeout': '4000' };
  const response = await fetch(`${server.url}/exec`, { method: 'POST', body, headers });
  return `${response.status} ${await response.text()}`;
}

async function post(path: string, body: Buffer | FormData, headers = {}): Promise<string> {
  const response = await fetch(server.url + path, {
    method: 'POST',
    body: body instanceof Buffer ? new Uint8Array(body) : body,
    headers,
  });
  return `${response.status} ${await response.text()}`;
}

function imported(name: string, data: Buffer, headers = {}): Promise<string> {
  const head = 'Content-Disposition: form-data; name="data"; filename="d"';
  const body = Buffer.concat([
    Buffer.from(`--b\r\n${head}\r\n\r\n`),
    data,
    Buffer.from('\r\n--b--\r\n'),
  ]);
  const isZipped = 'Content-Encoding' in headers;
  return post(`/imp?name=${name}&fmt=json`, isZipped ? gzipSync(body) : body, {
    'Content-Type': 'multipart/form-data; boundary=b',
    ...headers,
  });
}

const many = (count: number, text: string | ((at: number) => string)): string =>
  Array.from({ length: count }, (_, at) => (typeof text === 'string' ? text : text(at))).join('');

/** A CTE that reads the previous CTE twice. */
const doubled = (at: number): string =>
  `, c${at + 1} as (select a.i from c${at} a cross join c${at} b)`;

/** Statements that are deeply nested, long, or both. */
const STATEMENTS: readonly string[] = [
  `select ${'('.repeat(100_000)}1${')'.repeat(100_000)}`,
  `select ${'-'.repeat(1)}${many(50_000, '- ')}1`,
  `select ${many(50_000, 'not ')}true`,
  `select ${many(20_000, 'abs(')}1${')'.repeat(20_000)}`,
  `select ${many(20_000, 'case when true then ')}1${many(20_000, ' end')}`,
  `select 1${many(100_000, ' + 1')}`,
  `select ''${many(100_000, " || 'a'")}`,
  `select * from t where i = 1${many(100_000, ' or i = 1')}`,
  `select * from t where ${many(50_000, 'i = 1 and ')}true`,
  `select * from t where i in (${many(300_000, (at) => `${at},`)}0)`,
  `${many(3_000, 'select * from (')}select 1${')'.repeat(3_000)}`,
  `select 1${many(5_000, ' union all select 1')}`,
  `with c0 as (select * from t)${many(24, doubled)} select count() from c24`,
  `select * from t${many(200, (at) => ` cross join t u${at}`)}`,
  `create table wider (${many(50_000, (at) => `c${at} int,`)}z int)`,
  `select * from t${many(40, (at) => ` cross join t t${at}`)}`,
  `with ${many(2_000, (at) => `c${at + 1} as (select * from c${at}), `)}z as (select 1) select 1`,
  `select ${many(20_000, (at) => `1 a${at},`)}1`,
  `select 1::int${many(20_000, '::int')}`,
  `select ${'['.repeat(5_000)}1${']'.repeat(5_000)}`,
  `select ${many(2_000, 'array[')}1.0${']'.repeat(2_000)}`,
  `select '${'x'.repeat(10 * MEGABYTE)}'`,
  `select /*${'x'.repeat(3 * MEGABYTE)}*/ 1`,
  `select ${'9'.repeat(200_000)}`,
  `select 1e${'9'.repeat(10_000)}`,
  `select "${'x'.repeat(200_000)}" from t`,
  `create table ${'x'.repeat(100_000)} (i int)`,
  `create table wide (${many(5_000, (at) => `c${at} int,`)}z int)`,
  `insert into t values ${many(100_000, "(1, 'a', 'b'),")}(1, 'a', 'b')`,
  `declare ${many(5_000, (at) => `@v${at} := 1,`)}@z := 1 select @z`,
  `explain ${many(5_000, 'explain ')}select 1`,
  `select * from t where v ~ '(a+)+$'`,
  `select * from t where v ~ '((((a{1,100}){1,100}){1,100}){1,100}){1,100}'`,
  `select * from t where v ~ 'a{100000}'`,
  `select * from t where v ~ '${'('.repeat(10_000)}a${')'.repeat(10_000)}'`,
  `select * from t where v ~ '${'a|'.repeat(100_000)}b'`,
  `select * from t where v ~ '(.*)(.*)(.*)(.*)(.*)[^a]$'`,
  `select * from t where v ~ '\\pL{1000}{1000}'`,
  `select * from t where v like '${'%a'.repeat(20_000)}'`,
  `select * from t where v like '${'%_'.repeat(20_000)}%'`,
  `select regexp_replace(v, '(a*)*b', '$1$1$1$1') from t`,
  `select lpad('a', 2000000000)`,
  `select rpad('a', 2000000000, 'b')`,
  `select count() from long_sequence(9223372036854775807)`,
  `select * from long_sequence(1000000000000) order by x desc`,
  `select distinct x from long_sequence(1000000000000)`,
  `select count() from long_sequence(10000000) a cross join long_sequence(10000000) b`,
  `select x, count() from long_sequence(1000000000) group by x`,
  `select * from generate_series(1, 9000000000000000000)`,
  `select * from generate_series('1970-01-01'::timestamp, '2200-01-01', '1u')`,
  `select string_agg(v, ',') from (select t.v from t cross join t b cross join t c)`,
  `select array_agg(x) from long_sequence(10000000000)`,
  `select sum(x) over (order by x rows between 1000000000 preceding and current row)
    from long_sequence(100000000)`,
  `with recursive r as (select 1 n union all select n + 1 from r) select count() from r`,
  `with recursive r as (select 1 n union all select n from r, t) select count() from r`,
  `select * from (select timestamp_sequence(0, 1) ts from long_sequence(2)) timestamp(ts)
    sample by 1u from '1970-01-01' to '2200-01-01' fill(null)`,
  `select '2026-[${many(5_000, (at) => `${at % 12},`)}1]'::timestamp`,
  `select * from t where '2026-01-01'::timestamp in
    '[1970..2200]-[01..12]-[01..28]T[00..23]:[00..59]'`,
];

test.serial('statements that expand enormously do not exhaust memory', async (t) => {
  const before = await peakMegabytes();
  for (const statement of STATEMENTS) {
    const answer = await exec(statement);
    t.regex(answer, /^(?:200|4\d\d|503|507) /, statement.slice(0, 80));
  }
  await assertGrewLittle(t, before);
  t.deepEqual(await rowsOf(server, 'select 1'), [[1]]);
});

test.serial('uploads that expand enormously do not exhaust memory', async (t) => {
  const before = await peakMegabytes();
  const gzip = { 'Content-Encoding': 'gzip' };
  const answers = [
    await imported('columns', Buffer.from(`${many(100_000, (at) => `c${at},`)}z\n`)),
    await imported('values', Buffer.from(`a\n${'1,'.repeat(MEGABYTE)}\n`)),
    await imported('line', Buffer.from(`a,b\n"${'x'.repeat(40 * MEGABYTE)}`)),
    await imported('quotes', Buffer.from(`a,b\n${'"'.repeat(5 * MEGABYTE)}`)),
    await imported('ends', Buffer.alloc(5 * MEGABYTE, '\n')),
    await imported('zeros', Buffer.alloc(5 * MEGABYTE)),
    await imported('zipped', Buffer.alloc(100 * MEGABYTE, 'x'), gzip),
    await imported('rows', Buffer.alloc(20 * MEGABYTE, '1\n'), gzip),
    await post('/imp?name=x', gzipSync(gzipSync(Buffer.alloc(50 * MEGABYTE))), {
      ...gzip,
      'Content-Type': 'multipart/form-data; boundary=b',
    }),
    await post('/imp?name=x', Buffer.from(many(20_000, '--b\r\n\r\n\r\n')), {
      'Content-Type': 'multipart/form-data; boundary=b',
    }),
    await post('/imp?name=x', Buffer.from(`--b\r\n${many(20_000, 'X: y\r\n')}\r\n\r\n--b--`), {
      'Content-Type': 'multipart/form-data; boundary=b',
    }),
    await post('/imp?name=x', Buffer.from(`--${'b'.repeat(5000)}--`), {
      'Content-Type': `multipart/form-data; boundary=${'b'.repeat(5000)}`,
    }),
    await withSchema('['.repeat(500_000)),
    await withSchema(`[${many(100_000, '{"name":"a","type":"INT"},')}{}]`),
    await withSchema(`[{"name":"a","type":"DATE","pattern":"${'y'.repeat(100_000)}"}]`),
  ];
  for (const [index, answer] of answers.entries()) {
    t.regex(answer, /^(?:200|4\d\d|507) /, `${index}`);
  }
  await assertGrewLittle(t, before);
  t.deepEqual(await rowsOf(server, 'select 1'), [[1]]);
});

function withSchema(schema: string): Promise<string> {
  const form = new FormData();
  form.set('schema', schema);
  form.set('data', new Blob(['a\n1\n']), 'd.csv');
  return post('/imp?name=schema&fmt=json', form);
}

/**
 * Alters sizes, counts and offsets in the file. Since any byte may be part of a length, any byte
 * may be altered.
 */
test.serial('Parquet files with false lengths do not exhaust memory', async (t) => {
  const before = await peakMegabytes();
  const address = `${server.url}/exp?fmt=parquet&query=${encodeURIComponent('select * from t')}`;
  const file = Buffer.from(await (await fetch(address)).arrayBuffer());
  const footer = file.readUInt32LE(file.length - 8);
  const begin = file.length - 8 - footer;
  let state = suiteSeed() >>> 0;
  const pick = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
  const path = join(server.root, 'import', 'bomb.parquet');
  for (let round = 0; round < 60; round += 1) {
    const spoiled = Buffer.from(file);
    for (let byte = 0; byte < 1 + (round % 4); byte += 1) {
      const at = round % 2 === 0 ? begin + pick(footer) : 4 + pick(60);
      // One of the extreme bytes of a varint, or a random byte.
      spoiled[at] = [0xff, 0x7f, 0x80, pick(256)][pick(4)] ?? 0;
    }
    if (round % 10 === 9) {
      spoiled.writeUInt32LE(pick(0xffff_ffff), spoiled.length - 8);
    }
    await writeFile(path, spoiled);
    const answer = await exec("select * from read_parquet('bomb.parquet')");
    t.regex(answer, /^(?:200|400|503) /, `round ${round}`);
  }
  await assertGrewLittle(t, before);
  t.deepEqual(await rowsOf(server, 'select 1'), [[1]]);
});

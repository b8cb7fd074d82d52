/** Lines over HTTP: created tables and columns, casts, atomic commits, refusals, limits. */
import { setImmediate } from 'node:timers/promises';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { bytes, columns, rows, write } from './harness.js';

let server: TestServer;

test.before(async () => {
  server = await startTestServer();
});
test.after.always(() => server.stop());

const TIME = '1700000000000000000';

test('lines create tables, and add columns to existing tables', async (t) => {
  const sent = await write(
    server,
    `made,sym=a f=1.5,i=42i,l=0x12abi,d=1.50d,b=t,v="x",m=1t,n=2n ${TIME}\n` +
      `made,sym=b f=2.5 ${TIME}`,
  );
  t.deepEqual([sent.status, sent.text], [204, '']);
  t.deepEqual(await columns(server, 'made'), [
    'sym SYMBOL',
    'f DOUBLE',
    'i LONG',
    'l LONG256',
    'd DECIMAL(18,3)',
    'b BOOLEAN',
    'v VARCHAR',
    'm TIMESTAMP',
    'n TIMESTAMP_NS',
    'timestamp TIMESTAMP',
  ]);
  t.deepEqual(
    await rows(server, 'select sym, f, i, l, d, b, v, m, n, timestamp from made order by sym'),
    [
      [
        'a',
        1.5,
        42,
        '0x12ab',
        '1.500',
        true,
        'x',
        '1970-01-01T00:00:00.000001Z',
        '1970-01-01T00:00:00.000000002Z',
        '2023-11-14T22:13:20.000000Z',
      ],
      ['b', 2.5, null, '', null, false, null, null, null, '2023-11-14T22:13:20.000000Z'],
    ],
  );
  t.is((await write(server, `MADE,sym=c more="m" ${TIME}`)).status, 204);
  t.deepEqual(await rows(server, 'select sym, more from made where more is not null'), [
    ['c', 'm'],
  ]);
  const [table] = await rows(
    server,
    "select designatedTimestamp, partitionBy, walEnabled from tables() where table_name = 'made'",
  );
  t.deepEqual(table, ['timestamp', 'DAY', true]);
});

test('a symbol without a value is the empty string', async (t) => {
  const sent = await write(
    server,
    `hollow,s=,r=x v=1 ${TIME}\nhollow,r=,s= v=2 ${TIME}\nhollow v=3`,
  );
  t.is(sent.status, 204);
  const found = await rows(server, 'select s, r, v, s is null from hollow order by v');
  t.deepEqual(found, [
    ['', 'x', 1, false],
    ['', '', 2, false],
    [null, null, 3, true],
  ]);
});

test('binary values may contain bytes that would end a text line', async (t) => {
  const body = bytes(
    'binary,s=a f==',
    [16],
    1.5,
    ',a==',
    [14, 10, 2, 2, 0, 0, 0, 2, 0, 0, 0],
    1.5,
    2.5,
    3.5,
    4.5,
    ',d==',
    [23, 2, 2, 0x30, 0x39],
    ',e==',
    [14, 10, 1, 0, 0, 0, 0],
    ` ${TIME}\nbinary,s=b f==`,
    [16, 0x0a, 0x20, 0x2c, 0x22, 0x5c, 0x0a, 0xf8, 0x3f],
    ',a==',
    [14, 33],
    ` ${TIME}\n`,
  );
  t.is((await write(server, body)).status, 204);
  t.deepEqual(await rows(server, 'select s, f > 1.5, a, d, e from binary order by s'), [
    [
      'a',
      false,
      [
        [1.5, 2.5],
        [3.5, 4.5],
      ],
      '123.450',
      [],
    ],
    ['b', true, null, null, null],
  ]);
});

test('a request commits all of its tables or none', async (t) => {
  await rows(server, 'create table kept (x int, ts timestamp) timestamp(ts) partition by day');
  const good = `kept x=1i ${TIME}\nfresh y=1i ${TIME}\n`;
  const bad = await write(server, `${good}kept x=1i,z="new" ${TIME}\nkept x=3000000000i ${TIME}\n`);
  t.is(bad.status, 400);
  t.is(bad.code, 'invalid');
  t.is(bad.line, 4);
  t.regex(
    bad.message ?? '',
    /error in line 4: column 'x' of type INT cannot hold value '3000000000i'/,
  );
  t.deepEqual(await rows(server, 'select count() from kept'), [[0]]);
  t.deepEqual(await columns(server, 'kept'), ['x INT', 'ts TIMESTAMP']);
  t.deepEqual(await rows(server, "select count() from tables() where table_name = 'fresh'"), [[0]]);
  t.is((await write(server, good)).status, 204);
  t.deepEqual(await rows(server, 'select count() from kept'), [[1]]);
  t.deepEqual(await rows(server, 'select count() from fresh'), [[1]]);
});

test('many rows for new tables are committed together', async (t) => {
  const many = Array.from({ length: 70_000 }, (_, at) => `many,s=x${at % 9} x=${at}i ${at}`);
  const lines = [...many, `few x=1i ${TIME}`, ''].join('\n');
  const refused = await write(server, `${lines}few x="text" ${TIME}\n`);
  t.deepEqual([refused.status, refused.line], [400, many.length + 2]);
  await t.throwsAsync(rows(server, 'many'), { message: /table does not exist/ });
  t.is((await write(server, lines)).status, 204);
  const query =
    'select count(), sum(x), count_distinct(s) from many union all select 1, x, 0 from few';
  t.deepEqual(await rows(server, query), [
    [many.length, (many.length * (many.length - 1)) / 2, 9],
    [1, 1, 0],
  ]);
  // Sends the lines again, now into the existing table.
  t.is((await write(server, lines)).status, 204);
  t.deepEqual(await rows(server, 'select count() from many'), [[2 * many.length]]);
});

test('the error id of a refused request appears in the log', async (t) => {
  const { status, errorId, message } = await write(server, 'logged x=oops');
  t.is(status, 400);
  await until(() => server.log().includes(errorId ?? 'none'), 'the log contains the id');
  t.true(server.log().includes('lines_refused'));
  t.regex(message ?? '', /oops/);
});

test('rows without a timestamp get distinct server timestamps', async (t) => {
  const before = Date.now();
  t.is((await write(server, 'timed x=1i\ntimed x=2i\n')).status, 204);
  const [range] = await rows(server, 'select min(timestamp), max(timestamp), count() from timed');
  t.true(Date.parse(String(range?.[0])) >= before - 1);
  t.true(Date.parse(String(range?.[1])) <= Date.now() + 1);
  t.is(range?.[2], 2);
});

test('each precision is accepted, as are timestamps with their own unit', async (t) => {
  const times = {
    ns: TIME,
    us: '1700000000000000',
    ms: '1700000000000',
    s: '1700000000',
    m: '28333333',
    h: '472222',
    n: '1700000000000000t',
  };
  for (const [unit, time] of Object.entries(times)) {
    const { status } = await write(
      server,
      `units,u=${unit} x=1i ${time}`,
      {},
      `/api/v2/write?precision=${unit}&bucket=b&org=o`,
    );
    t.is(status, 204, unit);
  }
  const found = await rows(server, 'select u, timestamp from units order by u');
  t.deepEqual(
    found.filter(([u]) => u !== 'm' && u !== 'h').map(([, time]) => time),
    Array(5).fill('2023-11-14T22:13:20.000000Z'),
  );
  t.deepEqual(found.find(([u]) => u === 'h')?.[1], '2023-11-14T22:00:00.000000Z');
  t.is((await write(server, 'units x=1i', {}, '/write?precision=d')).status, 400);
});

test('a nanosecond suffix creates a nanosecond table', async (t) => {
  t.is((await write(server, `nanos x=1i ${TIME.slice(0, -1)}7n`)).status, 204);
  t.deepEqual(await rows(server, 'select timestamp from nanos'), [
    ['2023-11-14T22:13:20.000000007Z'],
  ]);
});

test('resending a batch changes nothing in a table with DEDUP keys', async (t) => {
  const keys = 'timestamp(ts) partition by day wal dedup upsert keys(ts, s)';
  await rows(server, `create table once (s symbol, x long, ts timestamp) ${keys}`);
  const batch = `once,s=a x=1i ${TIME}\nonce,s=b x=2i ${TIME}\n`;
  for (const body of [batch, batch, batch.replace('x=2i', 'x=3i')]) {
    t.is((await write(server, body)).status, 204);
  }
  t.deepEqual(await rows(server, 'select s, x from once order by s'), [
    ['a', 1],
    ['b', 3],
  ]);
});

test('gzip bodies are read; truncated and endless bodies are refused', async (t) => {
  const zipped = { 'content-encoding': 'gzip' };
  const lines = `zipped x=1i ${TIME}\n`.repeat(1000);
  t.is((await write(server, gzipSync(lines), zipped)).status, 204);
  t.deepEqual(await rows(server, 'select count() from zipped'), [[1000]]);
  const cut = await write(server, gzipSync(lines).subarray(0, 40), zipped);
  t.deepEqual([cut.status, cut.code], [400, 'invalid']);
  t.is((await write(server, 'zipped x=1i', zipped)).status, 400);
  t.is((await write(server, lines, { 'content-encoding': 'br' })).status, 415);
  const bomb = await write(server, gzipSync(Buffer.alloc(300 << 20, '\n')), zipped);
  t.is(bomb.status, 413);
  t.deepEqual(await rows(server, 'select count() from zipped'), [[1000]]);
});

test('a body may arrive in chunks of any size', async (t) => {
  const lines = Buffer.from(`pieces,s=a v="two\\\nlines",x=1i ${TIME}\npieces,s=b x=2i ${TIME}`);
  for (let size = 1; size <= lines.length; size += 7) {
    let at = 0;
    const stream = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (at >= lines.length) {
          controller.close();
        } else {
          controller.enqueue(lines.subarray(at, (at += size)));
        }
      },
    });
    t.is((await write(server, stream)).status, 204);
  }
  const [count] = await rows(server, 'select count(), count_distinct(v) from pieces');
  t.deepEqual(count, [2 * Math.ceil(lines.length / 7), 1]);
});

test('concurrent senders that create the same tables and columns all succeed', async (t) => {
  const senders = Array.from({ length: 16 }, async (_, sender) => {
    for (let batch = 0; batch < 8; batch += 1) {
      const value = `${sender}i ${TIME}`;
      const lines = `race,s=s${sender} c${batch}=${value}\nrace${batch} x=${value}\n`;
      const { status, text } = await write(server, lines);
      if (status !== 204) {
        throw new Error(text);
      }
    }
  });
  await Promise.all(senders);
  t.deepEqual(await rows(server, 'select count() from race'), [[128]]);
  for (let batch = 0; batch < 8; batch += 1) {
    t.deepEqual(await rows(server, `select count(), count(c${batch}) from race`), [[128, 16]]);
    t.deepEqual(await rows(server, `select count() from race${batch}`), [[16]]);
  }
});

test('columns are added and dropped by ALTER while rows are written', async (t) => {
  t.is((await write(server, `altered x=1i ${TIME}\n`)).status, 204);
  const done = { is: false };
  const alter = (async () => {
    try {
      for (let round = 0; round < 20; round += 1) {
        await rows(server, `alter table altered add column y${round} int`);
        await rows(server, `alter table altered drop column y${round}`);
      }
    } finally {
      // Stops the writer even if a check failed.
      done.is = true;
    }
  })();
  let count = 1;
  while (!done.is) {
    const { status, text } = await write(server, `altered x=1i ${TIME}\n`);
    t.is(status, 204, text);
    count += 1;
  }
  await alter;
  t.deepEqual(await rows(server, 'select count() from altered'), [[count]]);
});

test('lines to views and catalog tables are refused; tables need no timestamp', async (t) => {
  await rows(server, 'create view looked as (select 1 x)');
  t.regex((await write(server, 'looked x=1i')).message ?? '', /cannot write to view 'looked'/);
  t.is((await write(server, 'pg_class x=1i')).status, 400);
  await rows(server, 'create table timeless (x long)');
  t.is((await write(server, 'timeless x=1i')).status, 204);
  t.regex((await write(server, 'timeless x=1i 5')).message ?? '', /no designated timestamp/);
});

test('defaults and NOT NULL apply to lines', async (t) => {
  await rows(
    server,
    'create table ruled (x long not null, d boolean default true, n int default 7, ts timestamp)' +
      ' timestamp(ts) partition by day',
  );
  const lines = `ruled x=1i,d=f ${TIME}\nruled x=2i,n=3i ${TIME}\nruled x=3i ${TIME}\n`;
  t.is((await write(server, lines)).status, 204);
  t.deepEqual(await rows(server, 'select x, d, n from ruled order by x'), [
    [1, false, 7],
    [2, true, 3],
    [3, true, 7],
  ]);
  const { message } = await write(server, `ruled d=t ${TIME}`);
  t.regex(message ?? '', /column 'x' is NOT NULL: expected a value/);
});

test('a client that expects 100 Continue receives it', async (t) => {
  const body = `waited x=1i ${TIME}\n`;
  const [host = '', port = ''] = server.url.replace('http://', '').split(':');
  const socket = connect(Number(port), host);
  let heard = '';
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.toString();
  });
  socket.write(
    `POST /write HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\n` +
      `Content-Length: ${body.length}\r\n\r\n`,
  );
  await until(() => heard.includes('100 Continue'), '100 Continue');
  socket.write(body);
  await until(() => heard.includes(' 204 '), '204');
  socket.destroy();
  t.deepEqual(await rows(server, 'select count() from waited'), [[1]]);
});

test('a connection aborted mid-body leaves no rows', async (t) => {
  const [host = '', port = ''] = server.url.replace('http://', '').split(':');
  const lines = `cut x=1i ${TIME}\n`.repeat(20_000);
  for (const framing of [`Content-Length: ${lines.length + 1}`, 'Transfer-Encoding: chunked']) {
    const socket = connect(Number(port), host);
    socket.write(`POST /write HTTP/1.1\r\nHost: ${host}\r\n${framing}\r\n\r\n`);
    const body = framing.startsWith('C') ? lines : `${lines.length.toString(16)}\r\n${lines}\r\n`;
    await new Promise((resolve) => socket.write(body, resolve));
    socket.destroy();
  }
  t.is((await write(server, `cut_other x=1i ${TIME}`)).status, 204);
  t.deepEqual(await rows(server, "select count() from tables() where table_name = 'cut'"), [[0]]);
});

test('a killed server keeps all acknowledged rows and no partial request', async (t) => {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-lines-'));
  const first = await startTestServer({ root });
  let acknowledged = 0;
  const sending = (async () => {
    for (let batch = 0; ; batch += 1) {
      const lines = `kept,b=b${batch} x=1i ${TIME}\nalso,b=b${batch} x=1i ${TIME}\n`.repeat(50);
      const { status } = await write(first, lines);
      acknowledged += status === 204 ? 1 : 0;
    }
  })().catch(() => undefined);
  await until(() => acknowledged >= 20, '20 batches');
  first.process.kill('SIGKILL');
  await sending;
  const second = await startTestServer({ root });
  for (const table of ['kept', 'also']) {
    const query = `select count_distinct(b), count(), min(n), max(n) from
      (select b, count() n from ${table})`;
    const [found] = await rows(second, query.replaceAll('\n', ' '));
    const batches = Number(found?.[0]);
    // The batch in flight may have been written.
    t.true(batches === acknowledged || batches === acknowledged + 1, String(found));
    t.deepEqual(found?.slice(1), [batches, 50, 50]);
  }
  await second.stop();
  await rm(root, { recursive: true, force: true });
});

test('ping and settings describe the protocol', async (t) => {
  for (const method of ['GET', 'HEAD']) {
    const response = await fetch(`${server.url}/ping`, { method });
    t.is(response.status, 204);
    t.is(response.headers.get('x-influxdb-version'), 'v2.7.4');
  }
  const settings = (await (await fetch(`${server.url}/settings`)).json()) as {
    config: Record<string, unknown>;
  };
  t.deepEqual(settings.config['line.proto.support.versions'], [1, 2, 3]);
  t.deepEqual(settings.config['cairo.max.file.name.length'], 127);
});

test('empty requests, comments and empty lines are not rows', async (t) => {
  for (const body of ['', '\n\n', '# comment\n']) {
    t.is((await write(server, body)).status, 204);
  }
});

test('random bytes are refused with a line number, and the server survives', async (t) => {
  for (let round = 0; round < 50; round += 1) {
    const { status, line } = await write(server, randomBytes(2000));
    t.is(status, 400);
    t.true(line !== undefined && line >= 1);
  }
});

test('size limits, defaults and schema settings apply to lines', async (t) => {
  const set = [
    'line.http.max.body.size=64k',
    'line.http.max.measurement.size=1k',
    'line.auto.create.new.columns=false',
    'line.default.partition.by=MONTH',
    'line.log.message.on.error=false',
  ];
  const small = await startTestServer({ set });
  t.is((await write(small, `limited x=1i ${TIME}`)).status, 204);
  t.deepEqual(await rows(small, 'select partitionBy from tables()'), [['MONTH']]);
  const column = await write(small, `limited y=1i ${TIME}`);
  t.regex(column.message ?? '', /no column 'y'/);
  const large = await write(small, `limited x=1i ${TIME}\n`.repeat(4000));
  t.deepEqual([large.status, large.code], [413, 'request too large']);
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      // Yields to the event loop. Otherwise the client would not see its response or the end of the
      // connection.
      await setImmediate();
      controller.enqueue(Buffer.from(`limited x=1i ${TIME}\n`.repeat(100)));
    },
  });
  const endless = await write(small, stream).catch(() => null);
  t.true(endless === null || endless.status === 413);
  const long = await write(small, `limited x=1i,v="${'v'.repeat(2000)}`);
  t.regex(long.message ?? '', /a string has no closing quote|longer than 1024 bytes/);
  t.deepEqual(await rows(small, 'select count() from limited'), [[1]]);
  t.false(small.log().includes("no column 'y'"));
  await small.stop();
  const closed = await startTestServer({ set: ['line.auto.create.new.tables=false'] });
  t.regex((await write(closed, 'absent x=1i')).message ?? '', /'absent' does not exist/);
  await closed.stop();
  const off = await startTestServer({ set: ['line.http.enabled=false'] });
  t.is((await write(off, 'absent x=1i')).status, 404);
  await off.stop();
  const readOnly = await startTestServer({ set: ['http.security.readonly=true'] });
  const refused = await write(readOnly, 'absent x=1i');
  t.deepEqual([refused.status, refused.code], [503, 'unavailable']);
  await readOnly.stop();
});

test('a time before 1970 is refused with its line number', async (t) => {
  for (const early of ['early a=2i -5', 'early a=2i,timestamp=-5t', 'early a=2i,timestamp=-5i']) {
    const sent = await write(server, `early a=1i,timestamp=1t\n${early}`);
    t.is(sent.status, 400, early);
    t.like(JSON.parse(sent.text), { line: 2 }, early);
    t.regex(sent.text, /designated timestamp before 1970-01-01 is not allowed/, early);
  }
  t.deepEqual(await rows(server, "select count() from tables() where table_name = 'early'"), [[0]]);
});

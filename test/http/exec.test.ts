/** /exec over a fake database: keys and their order, limits, errors, streaming, cancellation. */
import { connect } from 'node:net';
import * as zlib from 'node:zlib';

import test from 'ava';

import { chooseColumns } from '../../ts/http/routes/exec.js';
import { until } from '../until.js';
import { type Harness, sendRaw, startHarness } from './harness.js';

let harness: Harness;
test.before(async () => {
  harness = await startHarness();
});
test.after.always(() => harness.server.close());

async function get(query: string, init: RequestInit = {}): Promise<[number, string]> {
  const response = await fetch(`${harness.url}/exec?${query}`, init);
  return [response.status, await response.text()];
}

const HEAD = '{"query":"rows 5","columns":[{"name":"x","type":"LONG"}],"timestamp":-1,';

test('response keys are in the order that clients expect', async (t) => {
  t.deepEqual(await get('query=rows+5'), [
    200,
    `${HEAD}"dataset":[[1],[2],[3],[4],[5]],"count":5}`,
  ]);
});

const LIMITS: readonly (readonly [limit: string, rows: readonly number[], count: number])[] = [
  ['2', [1, 2], 2],
  ['2,4', [2, 3, 4], 4],
  ['3,3', [3], 3],
  ['4,2', [4], 4],
  ['2,-1', [2], 2],
  ['0,2', [1, 2], 2],
  ['0', [1], 1],
  ['-2', [1], 1],
  ['-3,-1', [1], 1],
  ['5,100', [5], 5],
  ['10,20', [], 0],
  ['', [1, 2, 3, 4, 5], 5],
  ['abc', [1, 2, 3, 4, 5], 5],
  ['1,', [1, 2, 3, 4, 5], 5],
  [',2', [1, 2, 3, 4, 5], 5],
  ['1,b', [1, 2, 3, 4, 5], 5],
  ['1,2,3', [1, 2, 3, 4, 5], 5],
  ['99999999999999999999', [1, 2, 3, 4, 5], 5],
];

for (const [limit, rows, count] of LIMITS) {
  test(`limit=${limit} returns rows [${rows.join()}]`, async (t) => {
    const [, body] = await get(`query=rows+5&nm=true&limit=${limit}`);
    const dataset = rows.map((row) => `[${row}]`).join(',');
    t.is(body, `{"dataset":[${dataset}],"count":${count}}`);
  });
}

test('count=true returns the total for any limit', async (t) => {
  const [, body] = await get('query=rows+5&nm=true&limit=2&count=true');
  t.is(body, '{"dataset":[[1],[2]],"count":5}');
});

test('timings and explain follow the count in the response', async (t) => {
  const [, body] = await get('query=rows+1&nm=true&timings=true&explain=true');
  const timings = '"timings":{"authentication":0,"compiler":0,"execute":0,"count":0}';
  const explain = '"explain":{"jitCompiled":false}';
  const zeroed = body.replace(/("(?:authentication|compiler|execute)":)\d+/g, '$10');
  t.is(zeroed, `{"dataset":[[1]],"count":1,${timings},${explain}}`);
});

const NAMED = ['a', 'A', 'b', 'two words', 'x,y', 'say "so"'].map((name) => ({
  name,
  type: 'LONG',
  dimensions: 0,
}));
const COLUMNS: readonly (readonly [cols: string, chosen: readonly number[] | null])[] = [
  ['', null],
  [' , ,', null],
  ['b', [2]],
  ['b,a', [2, 0]],
  ['a,a', [0, 0]],
  ['A', [1]],
  ['B', [2]],
  [' b , two words ', [2, 3]],
  ['"x,y",b', [4, 2]],
  ['"say ""so"""', [5]],
];
for (const [cols, chosen] of COLUMNS) {
  test(`cols=${cols} selects columns [${chosen?.join() ?? 'all'}]`, (t) => {
    t.deepEqual(chooseColumns(NAMED, cols), chosen);
  });
}

test('an unknown name in cols is refused', (t) => {
  for (const [cols, name] of [
    ['b,nothing,a', 'nothing'],
    ['x,y', 'x'],
  ] as const) {
    t.throws(() => chooseColumns(NAMED, cols), { message: `column not found: '${name}'` });
  }
});

test('the error for an unknown column in cols has no position', async (t) => {
  t.deepEqual(await get('query=rows+1&cols=zz'), [
    400,
    '{"query":"rows 1","error":"column not found: \'zz\'"}',
  ]);
});

test('the last value of a repeated parameter wins, and + means a space', async (t) => {
  const [, body] = await get('query=rows+1&query=rows+2&nm=true');
  t.is(body, '{"dataset":[[1],[2]],"count":2}');
});

test('an empty query gets the response that clients expect', async (t) => {
  for (const query of ['', 'query', 'query=', 'foo=bar']) {
    const expected = '{"error":"empty query","query":"","position":"0"}';
    t.deepEqual(await get(query), [200, expected]);
  }
});

test('each kind of statement returns its result keyword', async (t) => {
  t.deepEqual(await get('query=insert+3'), [200, '{"dml":"OK","inserted":3}']);
  t.deepEqual(await get('query=update+2'), [200, '{"ddl":"OK","dml":"OK","updated":2}']);
  t.deepEqual(await get('query=create'), [200, '{"ddl":"OK"}']);
});

test('errors include the SQL and the position', async (t) => {
  t.deepEqual(await get('query=rows+!'), [
    400,
    '{"query":"rows !","error":"unexpected token [!]","position":5}',
  ]);
  t.deepEqual(await get('query=missing'), [
    400,
    '{"query":"missing","error":"table does not exist [table=missing]","position":0}',
  ]);
});

test('invalid UTF-8 is refused', async (t) => {
  const [status, body] = await get('query=select%20%27%FF%27');
  t.is(status, 400);
  t.regex(body, /"error":"Bad UTF8 encoding in query text","position":0\}$/);
});

test('parameters are also read from a form body', async (t) => {
  const body = new URLSearchParams({ query: 'rows 2', nm: 'true' });
  t.deepEqual(await get('', { method: 'POST', body }), [200, '{"dataset":[[1],[2]],"count":2}']);
  const form = new FormData();
  form.set('query', 'rows 1');
  form.set('nm', 'true');
  t.deepEqual(await get('', { method: 'POST', body: form }), [200, '{"dataset":[[1]],"count":1}']);
});

test('request bodies other than forms are refused', async (t) => {
  const headers = { 'Content-Type': 'text/plain' };
  const [status] = await get('', { method: 'POST', body: 'rows 1', headers });
  t.is(status, 415);
});

test('many rows are streamed completely, with and without compression', async (t) => {
  for (const encoding of ['identity', 'gzip', 'br']) {
    const response = await fetch(`${harness.url}/exec?query=rows+5000&nm=true`, {
      headers: { 'Accept-Encoding': encoding },
    });
    const body = (await response.json()) as { dataset: number[][]; count: number };
    t.is(body.dataset.length, 5000);
    t.is(body.count, 5000);
    t.is(response.headers.get('content-encoding'), encoding === 'identity' ? null : encoding);
  }
});

test('zstd is used only if it is the sole accepted encoding and Node supports it', async (t) => {
  const { zstdDecompressSync } = zlib as { zstdDecompressSync?: (bytes: Buffer) => Buffer };
  const answer = await sendRaw(
    harness.port,
    'GET /exec?query=rows+5000&nm=true HTTP/1.0\r\nHost: localhost\r\n' +
      'Accept-Encoding: zstd\r\n\r\n',
  );
  const end = answer.indexOf('\r\n\r\n');
  const body = Buffer.from(answer.slice(end + 4), 'latin1');
  t.is(/^Content-Encoding: zstd$/m.test(answer.slice(0, end)), zstdDecompressSync !== undefined);
  const plain = zstdDecompressSync?.(body) ?? body;
  t.is((JSON.parse(plain.toString()) as { count: number }).count, 5000);
});

test('responses with rows announce the keep-alive timeout', async (t) => {
  const kept = await startHarness({
    set: ['http.keep-alive.timeout=7s', 'http.keep-alive.max=11'],
  });
  const { headers } = await fetch(`${kept.url}/exec?query=rows+1`);
  t.is(headers.get('keep-alive'), 'timeout=7, max=11');
  await kept.server.close();
});

test('a statement with a NUL character is refused with its position', async (t) => {
  t.deepEqual(await get('query=rows+1%00'), [
    400,
    '{"query":"rows 1\\u0000","error":"a statement cannot contain a NUL character","position":6}',
  ]);
});

test('connections are closed when keep-alive is off', async (t) => {
  const closing = await startHarness({ set: ['http.server.keep.alive=false'] });
  for (const target of ['/exec?query=rows+1', '/exec?query=rows+5000', '/nowhere']) {
    const answer = await sendRaw(closing.port, `GET ${target} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    t.regex(answer, /\r\nConnection: close\r\n/, target);
    t.false(answer.includes('Keep-Alive:'), target);
  }
  await closing.server.close();
});

test('a response is compressed only if that saves bytes', async (t) => {
  for (const [rows, coding] of [
    [3, null],
    [900, 'gzip'],
  ] as const) {
    const response = await fetch(`${harness.url}/exec?query=rows+${rows}&nm=true`, {
      headers: { 'Accept-Encoding': 'gzip, br' },
    });
    t.is(response.headers.get('content-encoding'), coding);
    t.is(((await response.json()) as { count: number }).count, rows);
  }
});

test('a statement is prepared one more time if its tables changed', async (t) => {
  const [status] = await get('query=replan');
  t.is(status, 200);
});

test('an error after the first rows ends the JSON, and the final chunk is not sent', async (t) => {
  const answer = await sendRaw(
    harness.port,
    'GET /exec?query=breaks+9999&nm=true HTTP/1.1\r\nHost: localhost\r\n\r\n',
  );
  t.true(answer.includes('HTTP/1.1 200 OK'));
  t.true(answer.includes('],"error":"it broke","position":0}'));
  t.false(answer.endsWith('0\r\n\r\n'));
});

test.serial('a disconnected client cancels its statement', async (t) => {
  const before = harness.database.journal.cancelled;
  const socket = connect(harness.port, '127.0.0.1');
  socket.write('GET /exec?query=wait HTTP/1.1\r\nHost: localhost\r\n\r\n');
  const { journal } = harness.database;
  await until(() => journal.executed.at(-1) === 'wait', 'the query is running');
  socket.destroy();
  await until(() => journal.cancelled === before + 1, 'it is cancelled');
  t.is(journal.cancelled, before + 1);
});

test('HEAD executes nothing', async (t) => {
  const before = harness.database.journal.executed.length;
  const response = await fetch(`${harness.url}/exec?query=insert+1`, { method: 'HEAD' });
  t.is(response.status, 200);
  t.is(await response.text(), '');
  t.false(harness.database.journal.executed.slice(before).includes('insert 1'));
});

test('pipelined requests are answered in order', async (t) => {
  const one = (n: number, more: string): string =>
    `GET /exec?query=rows+${n}&nm=true HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`;
  const answer = await sendRaw(harness.port, one(1, '') + one(2, 'Connection: close\r\n'));
  t.regex(
    answer,
    /\{"dataset":\[\[1\]\],"count":1\}[\s\S]*\{"dataset":\[\[1\],\[2\]\],"count":2\}$/,
  );
});

test('a body sent together with its head is read, even with an Expect header', async (t) => {
  const body = 'query=rows+1&nm=true';
  const answer = await sendRaw(
    harness.port,
    'POST /exec HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nConnection: close\r\n' +
      `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n` +
      body,
  );
  t.true(answer.startsWith('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK'));
});

for (const name of ['count', 'nm', 'timings', 'explain', 'quoteLargeNum', 'session']) {
  test(`${name} must be true or false`, async (t) => {
    for (const value of ['yes', '2', 'tru', 'true,true']) {
      const response = await fetch(`${harness.url}/exec?query=rows+1&${name}=${value}`);
      t.is(response.status, 400);
      const error = `invalid ${name} '${value}': expected true or false`;
      t.deepEqual(await response.json(), { query: 'rows 1', error, position: 0 });
    }
    for (const value of ['TRUE', 'False', '', '1', '0']) {
      const response = await fetch(`${harness.url}/exec?query=rows+1&${name}=${value}`);
      t.is(response.status, 200, value);
      await response.arrayBuffer();
    }
  });
}

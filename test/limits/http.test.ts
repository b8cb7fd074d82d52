/**
 * The request and connection limits, each tested once: the refused request, and the limit that the
 * refusal names.
 */
import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { rowsOf } from './client.js';

const WAIT_MS = 20_000;
const KIBIBYTE = 1024;

let server: TestServer;
/** A server with few connections, listening on every address. */
let small: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: [
      'http.request.header.buffer.size=4K',
      'http.net.connection.timeout=1s',
      'http.header.timeout=2s',
      'http.body.timeout=2s',
      'http.send.timeout=2s',
    ],
  });
  small = await startTestServer({
    set: [
      'http.bind.to=0.0.0.0:0',
      'security.insecure.public=true',
      'http.net.connection.limit=4',
      'http.net.connection.limit.per.address=2',
    ],
  });
});

test.after.always(() => Promise.all([server.stop(), small.stop()]));

async function connect(to: TestServer, host = '127.0.0.1'): Promise<Socket> {
  const socket = createConnection({ host, port: Number(new URL(to.url).port) });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Opens a connection that has already sent a request, so it is not closed to free a slot. */
async function member(to: TestServer, host?: string): Promise<Socket> {
  const socket = await connect(to, host);
  socket.write('GET /exec?query=select+1 HTTP/1.1\r\nHost: localhost\r\n\r\n');
  await once(socket, 'data');
  return socket;
}

/** Sends `text` and reads until the server closes the connection. */
async function closing(socket: Socket, text: string): Promise<string> {
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    answer += chunk;
  });
  const late = setTimeout(() => socket.destroy(), WAIT_MS);
  socket.write(text);
  await once(socket, 'close');
  clearTimeout(late);
  return answer;
}

async function post(
  path: string,
  body: string | FormData,
  type?: string,
): Promise<[number, string]> {
  const headers = type === undefined ? {} : { 'Content-Type': type };
  const response = await fetch(server.url + path, { method: 'POST', body, headers });
  return [response.status, await response.text()];
}

const HEAD = 'GET /ping HTTP/1.1\r\nHost: localhost\r\n';

test('a request head that is too large is refused', async (t) => {
  const fits = `${HEAD}X-Long: ${'x'.repeat(3 * KIBIBYTE)}\r\nConnection: close\r\n\r\n`;
  t.regex(await closing(await connect(server), fits), /^HTTP\/1\.1 204 /);
  const large = `${HEAD}X-Long: ${'x'.repeat(5 * KIBIBYTE)}\r\n\r\n`;
  t.regex(await closing(await connect(server), large), /^HTTP\/1\.1 431 [^]*Connection: close/);
});

test('an incomplete request head times out', async (t) => {
  const started = performance.now();
  const answer = await closing(await connect(server), HEAD);
  t.regex(answer, /^HTTP\/1\.1 408 /);
  t.true(performance.now() - started < WAIT_MS);
});

test('a request with too many headers is refused', async (t) => {
  const some = (count: number): string => {
    const lines = Array.from({ length: count }, (_, index) => `X${index}: a\r\n`);
    return `${HEAD}Connection: close\r\n${lines.join('')}\r\n`;
  };
  t.regex(await closing(await connect(server), some(198)), /^HTTP\/1\.1 204 /);
  const answer = await closing(await connect(server), some(199));
  t.regex(answer, /^HTTP\/1\.1 431 [^]*\[limit=200\]\r\n$/);
});

const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n';
const UPLOAD =
  'Content-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000\r\n\r\n' +
  '--b\r\nContent-Disposition: form-data; name="data"; filename="x.csv"\r\n\r\na,b\n1,2\n';

for (const [path, rest] of [
  ['/exec', `${FORM}Content-Length: 100\r\n\r\nquery=`],
  ['/exec', `${FORM}Transfer-Encoding: chunked\r\n\r\n6\r\nquery=\r\n`],
  ['/exp', `${FORM}Content-Length: 100\r\n\r\n`],
  ['/settings?version=0', 'Content-Length: 10\r\n\r\n{'],
  ['/imp?name=stalled', UPLOAD],
] as const) {
  test(`an incomplete body times out: ${path} ${rest.length}`, async (t) => {
    const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\n`;
    const answer = await closing(await connect(server), head + rest);
    t.regex(answer, /^HTTP\/1\.1 408 [^]*Connection: close/);
    const message = 'the request body stalled or was too slow [limit=2000 ms]';
    const isText = path.startsWith('/imp');
    t.true(answer.endsWith(isText ? `${message}\r\n` : JSON.stringify({ error: message })), answer);
  });
}

test('a query is cancelled if its client never reads the response', async (t) => {
  const socket = await connect(server);
  socket.pause();
  const query = 'select x as untaken from long_sequence(100000000)';
  socket.write(`GET /exec?query=${encodeURIComponent(query)} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  const running = async (): Promise<number> => {
    const activity = "select count() from query_activity() where query like '%as untaken%'";
    const [row] = await rowsOf(server, `${activity} and query not like '%activity%'`);
    return Number(row?.[0]);
  };
  const started = performance.now();
  while ((await running()) === 0 && performance.now() - started < WAIT_MS) {
    await sleep(20);
  }
  t.is(await running(), 1, 'the query is waiting for its client');
  while ((await running()) === 1 && performance.now() - started < WAIT_MS) {
    await sleep(100);
  }
  t.is(await running(), 0, 'the query is cancelled');
  socket.destroy();
});

test('an idle connection is closed', async (t) => {
  const answer = await closing(await connect(server), `${HEAD}\r\n`);
  t.regex(answer, /^HTTP\/1\.1 204 [^]*Keep-Alive: timeout=1/);
});

test('a form that is too large is refused', async (t) => {
  const body = `query=${'x'.repeat(17 * KIBIBYTE * KIBIBYTE)}`;
  const type = 'application/x-www-form-urlencoded';
  t.deepEqual(await post('/exec', body, type), [
    413,
    `{"error":"request body is too large [limit=${17 * KIBIBYTE * KIBIBYTE}]"}`,
  ]);
});

test('a statement that is too long is refused', async (t) => {
  const type = 'application/x-www-form-urlencoded';
  const limit = 16 * KIBIBYTE * KIBIBYTE;
  const [status, text] = await post('/exec', `query=${' '.repeat(limit - 7)}select+1`, type);
  t.is(status, 400);
  t.true(
    text.endsWith(
      `"error":"statement is too long [length=${limit + 1}, limit=${limit}]","position":0}`,
    ),
  );
});

test('preferences that are too large are refused', async (t) => {
  const body = JSON.stringify({ text: 'x'.repeat(64 * KIBIBYTE) });
  t.deepEqual(await post('/settings?version=0', body), [
    413,
    `{"error":"request body is too large [limit=${64 * KIBIBYTE}]"}`,
  ]);
});

function upload(parts: readonly (readonly [name: string, content: string])[]): FormData {
  const form = new FormData();
  for (const [name, content] of parts) {
    form.append(name, new Blob([content]), 'x.csv');
  }
  return form;
}

test('an upload with too many parts is refused', async (t) => {
  const parts = Array.from({ length: 9 }, () => ['data', 'a,b\n1,2\n'] as const);
  const [status, text] = await post('/imp?name=parts', upload(parts));
  t.is(status, 400);
  t.is(text, 'too many parts [limit=8]\r\n');
});

test('part headers that are too large are refused', async (t) => {
  const part = (bytes: number): string =>
    `--b\r\nContent-Disposition: form-data; name="data"; filename="x.csv"\r\n` +
    `X-Long: ${'x'.repeat(bytes)}\r\n\r\na,b\n1,2\n\r\n--b--\r\n`;
  const type = 'multipart/form-data; boundary=b';
  const [status] = await post('/imp?name=headed&fmt=json', part(8 * KIBIBYTE), type);
  t.is(status, 200);
  t.deepEqual(await post('/imp?name=headed', part(17 * KIBIBYTE), type), [
    400,
    'malformed multipart body: Malformed part header\r\n',
  ]);
});

test('a schema that is too large is refused', async (t) => {
  const schema = `[${' '.repeat(1024 * KIBIBYTE)}]`;
  const [status, text] = await post(
    '/imp?name=s&fmt=json',
    upload([
      ['schema', schema],
      ['data', 'a,b\n1,2\n'],
    ]),
  );
  const limit = 1024 * KIBIBYTE;
  t.deepEqual([status, text], [200, `{"status":"schema is too long, limit is ${limit} bytes"}`]);
});

test('a boundary that is too long is refused', async (t) => {
  const boundary = 'b'.repeat(71);
  const [status, text] = await post('/imp', 'x', `multipart/form-data; boundary=${boundary}`);
  t.deepEqual(
    [status, text],
    [400, 'malformed multipart body: the boundary is missing or too long\r\n'],
  );
});

test.serial('connections over the limit are refused; open connections continue', async (t) => {
  const open: Socket[] = [];
  for (let index = 0; index < 4; index += 1) {
    open.push(await member(small));
  }
  const refused = await closing(await connect(small), `${HEAD}\r\n`);
  t.regex(refused, /^HTTP\/1\.1 503 [^]*Retry-After: 1\r\n[^]*too many connections \[limit=4\]/);
  for (const socket of open) {
    const answer = await closing(socket, `${HEAD}Connection: close\r\n\r\n`);
    t.regex(answer, /^HTTP\/1\.1 204 /);
  }
  const again = await closing(await connect(small), `${HEAD}Connection: close\r\n\r\n`);
  t.regex(again, /^HTTP\/1\.1 204 /);
});

test.serial('one remote machine gets only a fraction of the connections', async (t) => {
  const address = Object.values(networkInterfaces())
    .flat()
    .find((found) => found?.internal === false && found.family === 'IPv4')?.address;
  if (address === undefined) {
    t.log('this machine has only a loopback address');
    t.pass();
    return;
  }
  const open = [await member(small, address), await member(small, address)];
  const refused = await closing(await connect(small, address), `${HEAD}\r\n`);
  t.true(refused.startsWith('HTTP/1.1 503 '));
  t.true(refused.includes(`\r\ntoo many connections from ${address} [limit=2]\r\n`), refused);
  const local = await closing(await connect(small), `${HEAD}Connection: close\r\n\r\n`);
  t.regex(local, /^HTTP\/1\.1 204 /, 'local connections have their own limit');
  for (const socket of open) {
    socket.destroy();
  }
});

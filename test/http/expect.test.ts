/**
 * Clients that wait for `100 Continue` before sending a body (`Expect: 100-continue`). The server
 * sends `100 Continue` when it starts reading the body. If the response does not depend on the
 * body, the server sends only the response.
 */
import { once } from 'node:events';
import { connect } from 'node:tls';

import test, { type ExecutionContext } from 'ava';

import { createRoutes } from '../../ts/http/routes/index.js';
import { startTestServer, type TestServer } from '../golden/server.js';
import { CertificateFolder } from '../tls/certificates.js';
import { fakeDatabase } from './fake-database.js';
import { fakeServices } from './harness.js';
import { get, handOff, Repeater, run } from './repeating.js';

const LOGIN = 'Authorization: Basic ' + Buffer.from('ann:secret').toString('base64');
const WRONG = 'Authorization: Basic ' + Buffer.from('ann:guess').toString('base64');
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';
const LINE = 'held x=1i 1700000000000000000\n';
/** Larger than any allowed body. */
const ENDLESS = 'Content-Length: 900000000000000';

const ROUTES = createRoutes(fakeServices({}, fakeDatabase())).flatMap(({ path, methods, access }) =>
  methods.filter((one) => one !== 'GET').map((method) => ({ path, method, access })),
);

const folder = new CertificateFolder();
let server: TestServer;
let encrypted: TestServer;

test.before(async () => {
  folder.make('server');
  const set = ['http.user=ann', 'http.password=secret', 'metrics.enabled=true'];
  [server, encrypted] = await Promise.all([
    startTestServer({ set }),
    startTestServer({ set: [...set, ...folder.settings('server')] }),
  ]);
});
test.after.always(async () => {
  await Promise.all([server, encrypted].map((one) => one.stop()));
  folder.remove();
});

interface Request {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: readonly string[];
}

/** The head of a request whose body has not been sent yet. */
function head({ method = 'POST', path = '/write', headers = [] }: Request): Buffer {
  const all = headers.some((line) => /^(?:content-length|transfer-encoding)/i.test(line))
    ? headers
    : [...headers, `Content-Length: ${LINE.length}`];
  const expects = all.some((line) => /^expect/i.test(line)) ? [] : ['Expect: 100-continue'];
  const lines = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1', ...expects, ...all, '', ''];
  return Buffer.from(lines.join('\r\n'));
}

async function open(t: ExecutionContext, at = server): Promise<Repeater> {
  if (at === server) {
    const client = await Repeater.open(at);
    t.teardown(() => {
      client.close();
    });
    return client;
  }
  const { port } = new URL(at.url);
  const socket = connect({ port: Number(port), host: '127.0.0.1', rejectUnauthorized: false });
  t.teardown(() => socket.destroy());
  await once(socket, 'secureConnect');
  return new Repeater(socket);
}

/** Checks that 100 Continue is sent, the response follows, and the connection stays open. */
async function assertContinued(
  t: ExecutionContext,
  client: Repeater,
  path = '/write',
): Promise<void> {
  t.is(await client.exchange(head({ path, headers: [LOGIN] })), CONTINUE, path);
  const answer = (await client.exchange(Buffer.from(LINE))) ?? '';
  t.regex(answer, /^HTTP\/1\.1 204 /);
  t.regex(answer, /^Connection: keep-alive\r$/m);
}

/**
 * Checks that the refusal is the only response, and that the connection is closed without reading a
 * body.
 */
async function assertRefused(
  t: ExecutionContext,
  request: Request,
  status: number,
  at = server,
): Promise<void> {
  const client = await open(t, at);
  const what = `${request.method ?? 'POST'} ${request.path ?? '/write'}`;
  const answer = (await client.exchange(head(request))) ?? '';
  t.is(answer.slice(9, 12), `${status}`, what);
  t.regex(answer, /^Connection: close\r$/m, what);
  t.notRegex(answer, /^Keep-Alive:/im, what);
  t.is(await client.answer(), null, `${what}: nothing follows`);
}

test('each ILP request on a connection gets 100 Continue and a response', async (t) => {
  for (const at of [server, encrypted]) {
    const client = await open(t, at);
    for (const path of ['/write', '/api/v2/write', '/write']) {
      await assertContinued(t, client, path);
    }
    t.regex(
      (await client.exchange(get('SELECT 1', { headers: [LOGIN] }))) ?? '',
      /^HTTP\/1\.1 200 /,
    );
  }
});

test('a handed-off connection gets 100 Continue like any other', async (t) => {
  const client = await open(t);
  const headers = [LOGIN];
  await handOff(client, server, () => get('SELECT 1', { headers }), {
    Authorization: LOGIN.slice(15),
  });
  await assertContinued(t, client);
});

test('chunked bodies, long bodies and bodies sent without waiting are read', async (t) => {
  const rows = LINE.repeat(100_000);
  const many = Buffer.from(rows);
  const client = await open(t);
  const length = `Content-Length: ${many.length}`;
  t.is(await client.exchange(head({ headers: [LOGIN, length] })), CONTINUE);
  t.regex((await client.exchange(many)) ?? '', /^HTTP\/1\.1 204 /);
  const chunked = 'Transfer-Encoding: chunked';
  t.is(
    await client.exchange(head({ headers: [LOGIN, chunked, 'Expect: 100-Continue'] })),
    CONTINUE,
  );
  const chunk = Buffer.from(`${LINE.length.toString(16)}\r\n${LINE}\r\n0\r\n\r\n`);
  t.regex((await client.exchange(chunk)) ?? '', /^HTTP\/1\.1 204 /);
  client.send(head({ headers: [LOGIN, length] }), many);
  const first = await client.answer();
  const answer = first === CONTINUE ? await client.answer() : first;
  t.regex(answer ?? '', /^HTTP\/1\.1 204 /);
  const body = 'query=SELECT+1';
  const form = [
    'Content-Type: application/x-www-form-urlencoded',
    `Content-Length: ${body.length}`,
  ];
  client.send(head({ path: '/exec', headers: [LOGIN, ...form] }), Buffer.from(body));
  t.is(await client.answer(), CONTINUE);
  t.regex((await client.answer()) ?? '', /^HTTP\/1\.1 200 [\s\S]*^Connection: keep-alive\r$/m);
  client.send(head({ headers: [WRONG, length] }), many);
  const refused = await client.answer();
  t.regex((refused === CONTINUE ? await client.answer() : refused) ?? '', /^HTTP\/1\.1 401 /);
});

test('on each route with a body, a refusal before the body is the only response', async (t) => {
  t.true(ROUTES.length > 10);
  // The requests run concurrently, because each connection waits a while for the missing body.
  const refusals = [
    ...ROUTES.filter(({ access }) => access === 'data').map(({ path, method }) =>
      assertRefused(t, { method, path }, 401),
    ),
    // Too many failed logins cause an address to be throttled.
    assertRefused(t, { headers: [WRONG] }, 401),
    assertRefused(t, { headers: [WRONG] }, 401, encrypted),
    assertRefused(t, { path: '/nothing', headers: [LOGIN] }, 404),
    assertRefused(t, { method: 'PUT', headers: [LOGIN] }, 405),
    assertRefused(t, { method: 'GET', path: '/read/v1', headers: [LOGIN] }, 426),
    assertRefused(t, { path: '/write?precision=days', headers: [LOGIN] }, 400),
    ...['/write', '/api/v2/write', '/exec'].map((path) =>
      assertRefused(t, { path, headers: [LOGIN, ENDLESS] }, 413),
    ),
  ];
  await Promise.all(refusals);
});

test('routes that read a body send 100 Continue; others respond immediately', async (t) => {
  for (const { path, method } of ROUTES) {
    const client = await open(t);
    const first = (await client.exchange(head({ method, path, headers: [LOGIN] }))) ?? '';
    if (first === CONTINUE) {
      const answer = (await client.exchange(Buffer.from(LINE))) ?? '';
      t.regex(answer, /^HTTP\/1\.1 [24]/, `${method} ${path}`);
    } else {
      t.regex(first, /^HTTP\/1\.1 [24][\s\S]*^Connection: close\r$/m, `${method} ${path}`);
    }
  }
});

test('Expect headers other than 100-continue are refused', async (t) => {
  for (const expects of ['200-ok', '100-continued', 'tea']) {
    await assertRefused(t, { headers: [LOGIN, `Expect: ${expects}`] }, 417);
  }
});

test('a request with an empty body gets 100 Continue and its response', async (t) => {
  const client = await open(t);
  for (let count = 0; count < 2; count += 1) {
    const request = await client.exchange(
      get('SELECT 1', { headers: [LOGIN, 'Expect: 100-continue', 'Content-Length: 0'] }),
    );
    t.is(request, CONTINUE);
    t.regex((await client.answer()) ?? '', /^HTTP\/1\.1 200 [\s\S]*^Connection: keep-alive\r$/m);
  }
  t.deepEqual(await run(server, 'SELECT 1', { Authorization: LOGIN.slice(15) }), [[1]]);
});

test('uploads and statement bodies get 100 Continue', async (t) => {
  const form = 'Content-Type: application/x-www-form-urlencoded';
  const client = await open(t);
  const cases = [
    { path: '/imp?name=held', body: 'a,b\n1,2\n3,4\n', headers: ['Content-Type: text/csv'] },
    { path: '/exec', body: 'query=SELECT+1', headers: [form] },
    { path: '/exp', body: 'query=SELECT+1', headers: [form] },
    { path: '/api/v1/sql/validate', body: 'query=SELECT+1', headers: [form] },
  ];
  for (const { path, body, headers } of cases) {
    const length = `Content-Length: ${body.length}`;
    t.is(
      await client.exchange(head({ path, headers: [LOGIN, length, ...headers] })),
      CONTINUE,
      path,
    );
    t.regex((await client.exchange(Buffer.from(body))) ?? '', /^HTTP\/1\.1 200 /, path);
  }
});

/**
 * `/exec` bypasses Koa, whereas `//exec`, which is the same path, passes through Koa. Both must
 * give the same bytes for every request.
 */
import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { type Harness, sendRaw, startHarness } from './harness.js';

let open: Harness;
let listed: Harness;
let login: Harness;
let closing: Harness;
let real: TestServer;
test.before(async () => {
  open = await startHarness();
  listed = await startHarness({ set: ['http.cors.origins=https://ok.example'] });
  login = await startHarness({ set: ['http.user=joe', 'http.password=secret'] });
  closing = await startHarness({
    set: ['http.server.keep.alive=false', 'http.security.readonly=true'],
  });
  real = await startTestServer();
});
test.after.always(async () => {
  await Promise.all([open, listed, login, closing].map(({ server }) => server.close()));
  await real.stop();
});

const HOST = 'Host: localhost:9000';
const CLOSE = 'Connection: close';
const GOOD = 'Authorization: Basic am9lOnNlY3JldA==';

/** Removes whatever may differ between two runs of the same request. */
function settled(answer: string): string {
  // Timings also differ in length.
  const length = answer.includes('"timings"') ? /^(Content-Length: )\d+/m : /^$/;
  return answer
    .replace(length, '$10')
    .replace(/^Date: .*$/gm, 'Date: then')
    .replace(/(qdb_session=)[\w-]{20,}/g, '$1token')
    .replace(/("(?:authentication|compiler|execute)":)\d+/g, '$10');
}

/**
 * Returns the response to a request. If the connection stays open, `/ping` is then requested over
 * it.
 */
async function send(port: number, line: string, lines: readonly string[], body: string) {
  const length = body === '' ? [] : [`Content-Length: ${body.length}`];
  const head = [line, ...lines, ...length].join('\r\n');
  const isLast = line.endsWith('1.0') || lines.includes(CLOSE);
  const ping = isLast ? '' : `GET /ping HTTP/1.1\r\n${HOST}\r\n${CLOSE}\r\n\r\n`;
  return settled(await sendRaw(port, `${head}\r\n\r\n${body}${ping}`));
}

interface BypassRequest {
  readonly status: number;
  readonly method?: string;
  /** The URL after `/exec`. */
  readonly query?: string;
  readonly version?: string;
  readonly lines?: readonly string[];
  readonly body?: string;
}

const FORM = 'Content-Type: application/x-www-form-urlencoded';
const MULTIPART = 'Content-Type: multipart/form-data; boundary=b';
const PART = '--b\r\nContent-Disposition: form-data; name="query"\r\n\r\nrows 2\r\n--b--\r\n';

const OPEN: readonly BypassRequest[] = [
  { status: 200, query: '?query=rows+3' },
  { status: 200, query: '?query=rows%203&limit=2&count=true&nm=true&unknown=1' },
  { status: 200, query: '?query=rows+3&timings=true&explain=true&src=con' },
  { status: 200, query: '?query=rows+3&cols=x,x' },
  { status: 400, query: '?query=rows+3&cols=y' },
  { status: 400, query: '?query=rows+3&count=perhaps' },
  { status: 200, query: '?query=rows+900' },
  { status: 200, query: '?query=rows+5000' },
  { status: 200, query: '?query=rows+900', lines: [HOST, 'Accept-Encoding: gzip'] },
  { status: 200, query: '?query=rows+900', lines: [HOST, 'Accept-Encoding: br'] },
  { status: 200, query: '?query=rows+900', version: '1.0' },
  { status: 200, query: '?query=rows+1', lines: [HOST, CLOSE] },
  { status: 200, query: '?query=rows+1', lines: [HOST, 'Statement-Timeout: 5000'] },
  { status: 200, query: '?query=insert+3' },
  { status: 200, query: '?query=update+3' },
  { status: 200, query: '?query=create' },
  { status: 200, query: '?query=--' },
  { status: 200, query: '' },
  { status: 200, query: '?query=' },
  { status: 400, query: '?query=rows+!' },
  { status: 400, query: '?query=missing' },
  { status: 400, query: '?query=%FF' },
  { status: 400, query: '?query=%zz' },
  { status: 400, query: '?query=a%00b' },
  { status: 200, method: 'HEAD', query: '?query=rows+3' },
  { status: 400, method: 'HEAD', query: '?query=missing' },
  { status: 204, method: 'OPTIONS' },
  { status: 405, method: 'DELETE', query: '?query=rows+1' },
  { status: 200, method: 'POST', lines: [HOST, FORM], body: 'query=rows+2&nm=true' },
  { status: 200, method: 'POST', lines: [HOST, MULTIPART], body: PART },
  { status: 415, method: 'POST', lines: [HOST, 'Content-Type: text/plain'], body: 'rows 1' },
  { status: 400, method: 'POST', lines: [HOST, MULTIPART], body: '--b\r\nnonsense' },
  { status: 421, query: '?query=rows+1', lines: ['Host: evil.example'] },
  { status: 421, query: '?query=rows+1', lines: [] },
  { status: 421, query: '?query=rows+1', lines: [HOST, HOST] },
  { status: 403, query: '?query=insert+1', lines: [HOST, 'Origin: https://evil.example'] },
  { status: 403, query: '?query=insert+1', lines: [HOST, 'Sec-Fetch-Site: cross-site'] },
  { status: 403, query: '?query=insert+1', lines: [HOST, 'Referer: https://evil.example/'] },
  { status: 400, query: '?query=rows+1', lines: [HOST, GOOD, GOOD] },
  {
    status: 431,
    query: '?query=rows+1',
    lines: [HOST, ...Array.from({ length: 200 }, (_, index) => `X-${index}: x`)],
  },
];

const ORIGINS: readonly BypassRequest[] = [
  { status: 200, query: '?query=rows+1' },
  { status: 200, query: '?query=rows+1', lines: [HOST, 'Origin: https://ok.example'] },
  {
    status: 200,
    query: '?query=rows+900',
    lines: [HOST, 'Origin: https://ok.example', 'Accept-Encoding: gzip'],
  },
  {
    status: 200,
    query: '?query=rows+5000',
    lines: [HOST, 'Origin: https://ok.example', 'Accept-Encoding: gzip'],
  },
  { status: 204, method: 'OPTIONS', lines: [HOST, 'Origin: https://ok.example'] },
  { status: 403, method: 'OPTIONS', lines: [HOST, 'Origin: https://evil.example'] },
  { status: 400, query: '?query=missing', lines: [HOST, 'Origin: https://ok.example'] },
];

const LOGINS: readonly BypassRequest[] = [
  { status: 401, query: '?query=rows+1' },
  { status: 401, query: '?query=rows+1', lines: [HOST, 'Accept: text/html'] },
  { status: 401, method: 'DELETE' },
  { status: 401, query: '?query=rows+1', lines: [HOST, 'Authorization: Basic !!!'] },
  { status: 401, query: '?query=rows+1', lines: [HOST, 'Authorization: Bearer abc'] },
  { status: 401, query: '?query=rows+1', lines: [HOST, 'Cookie: qdb_session=nobody'] },
  { status: 400, query: '?query=rows+1', lines: [HOST, GOOD, GOOD] },
  { status: 200, query: '?query=rows+1', lines: [HOST, GOOD] },
  { status: 200, query: '?query=rows+1&session=true', lines: [HOST, GOOD] },
  {
    status: 200,
    query: '?query=rows+1&session=false',
    lines: [HOST, GOOD, 'Cookie: qdb_session=x'],
  },
  { status: 405, method: 'DELETE', lines: [HOST, GOOD] },
];

const CLOSING: readonly BypassRequest[] = [
  { status: 200, query: '?query=rows+1' },
  { status: 403, query: '?query=insert+1' },
];

for (const [name, request, port] of [
  ['no login', OPEN, () => open.port],
  ['listed origins', ORIGINS, () => listed.port],
  ['with a login', LOGINS, () => login.port],
  ['read-only, one request for a connection', CLOSING, () => closing.port],
] as const) {
  for (const [index, { status, method = 'GET', query = '', ...rest }] of request.entries()) {
    const { version = '1.1', lines = [HOST], body = '' } = rest;
    const title = `${name}, ${index}: ${method} /exec${query} ${lines.slice(0, 3).join(', ')}`;
    test(title, async (t) => {
      const [short, complete] = await Promise.all(
        ['/exec', '//exec'].map((path) =>
          send(port(), `${method} ${path}${query} HTTP/${version}`, lines, body),
        ),
      );
      t.is(Number(short?.slice(9, 12)), status, short);
      t.is(short, complete);
    });
  }
}

test('wrong passwords are counted on both the fast and the regular path', async (t) => {
  const wrong = 'Authorization: Basic amltOndyb25n';
  for (let round = 0; round < 5; round += 1) {
    for (const path of ['/exec', '//exec']) {
      const answer = await send(login.port, `GET ${path} HTTP/1.1`, [HOST, wrong], '');
      t.regex(answer, /^HTTP\/1\.1 401 /);
    }
  }
  for (const path of ['/exec', '//exec']) {
    t.regex(await send(login.port, `GET ${path} HTTP/1.1`, [HOST, wrong], ''), /^HTTP\/1\.1 429 /);
  }
});

const REAL: readonly BypassRequest[] = [
  { status: 200, query: '?query=select+1' },
  { status: 200, query: "?query=select+'%C3%A4',+'%F0%9F%99%82'+b,+null" },
  { status: 200, query: '?query=select+x,+x*2+y+from+long_sequence(3)&limit=2,3&count=true' },
  {
    status: 200,
    query: '?query=select+x+from+long_sequence(2000)',
    lines: [HOST, 'Accept-Encoding: gzip'],
  },
  { status: 200, query: '?query=select+x+from+long_sequence(200000)' },
  { status: 400, query: '?query=select+nothing' },
  { status: 400, query: '?query=select+$1' },
  { status: 400, query: '?query=select+?' },
  { status: 200, query: '?query=show+parameters', lines: [HOST, 'Accept-Encoding: br'] },
  {
    status: 400,
    query:
      '?query=select+count()+from+long_sequence(1000000)+a+cross+join+long_sequence(1000000)+b',
    lines: [HOST, 'Statement-Timeout: 50'],
  },
];

for (const { status, query = '', lines = [HOST] } of REAL) {
  test(`the fast and regular paths agree: ${query} ${lines.slice(1).join()}`, async (t) => {
    const { port } = new URL(real.url);
    const [short, complete] = await Promise.all(
      ['/exec', '//exec'].map((path) =>
        send(Number(port), `GET ${path}${query} HTTP/1.1`, lines, ''),
      ),
    );
    t.is(Number(short?.slice(9, 12)), status, short?.slice(0, 400));
    t.true(short === complete, `${short?.slice(0, 400)}\n----\n${complete?.slice(0, 400)}`);
  });
}

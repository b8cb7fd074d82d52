/**
 * Access to the server: hosts, cross-site requests, logins, methods, paths and malformed requests.
 */
import test from 'ava';

import { type Harness, sendRaw, startHarness } from './harness.js';

let harness: Harness;
let login: Harness;
test.before(async () => {
  harness = await startHarness({ set: ['http.cors.origins=https://ok.example'] });
  login = await startHarness({ set: ['http.user=joe', 'http.password=secret'] });
});
test.after.always(() => Promise.all([harness.server.close(), login.server.close()]));

type Lines = readonly string[];

async function status(target: string, lines: Lines, method = 'GET', port = harness.port) {
  const head = [`${method} ${target} HTTP/1.1`, ...lines, 'Connection: close', 'Content-Length: 0'];
  const answer = await sendRaw(port, `${head.join('\r\n')}\r\n\r\n`);
  return Number(answer.slice(9, 12));
}

const HOSTS: readonly (readonly [status: number, lines: Lines])[] = [
  [200, ['Host: localhost']],
  [200, ['Host: LOCALHOST:9000']],
  [200, ['Host: localhost.']],
  [200, ['Host: 127.0.0.1:1']],
  [200, ['Host: [::1]:9000']],
  [421, []],
  [421, ['Host: ']],
  [421, ['Host: evil.example']],
  [421, ['Host: localhost.evil.example']],
  [421, ['Host: evil@localhost']],
  [421, ['Host: localhost:99999']],
  [421, ['Host: 2130706433']],
  [421, ['Host: 0x7f.1']],
  [421, ['Host: localhost/']],
];
for (const [expected, lines] of HOSTS) {
  test(`${lines.join() || 'no Host'} gets status ${expected}`, async (t) => {
    t.is(await status('/exec?query=rows+1', lines), expected);
    t.is(await status('/nowhere', lines), expected === 200 ? 404 : expected);
  });
}

test('two Host headers are refused', async (t) => {
  const code = await status('/ping', ['Host: localhost', 'Host: localhost']);
  t.true(code === 400 || code === 421);
});

const DATA_ROUTES = [
  ['GET', '/exec?query=insert+77'],
  ['POST', '/exec?query=insert+77'],
  ['GET', '/exp?query=rows+77'],
  ['POST', '/imp?name=x'],
  ['PUT', '/imp?name=x'],
  ['GET', '/chk?j=x'],
  ['PUT', '/settings?version=0'],
  ['GET', '/status'],
] as const;

const FOREIGN: readonly Lines[] = [
  ['Origin: http://evil.example'],
  ['Origin: null'],
  ['Origin: http://localhost:1'],
  ['Origin: https://localhost:9000'].map((line) => line.replace(':9000', ':9001')),
  ['Origin: http://localhost:9000.evil.example'],
  ['Sec-Fetch-Site: cross-site'],
  ['Sec-Fetch-Site: same-site'],
  ['Referer: http://evil.example/localhost:9000'],
  ['Origin: http://ok.example'],
];

for (const [method, target] of DATA_ROUTES) {
  test(`${method} ${target} refuses cross-site requests`, async (t) => {
    for (const lines of FOREIGN) {
      t.is(await status(target, ['Host: localhost:9000', ...lines], method), 403, lines.join());
    }
    t.false(harness.database.journal.executed.some((text) => text.includes('77')));
  });
}

test('requests from this server’s pages and from listed origins are accepted', async (t) => {
  const own: readonly Lines[] = [
    ['Origin: http://localhost:9000', 'Sec-Fetch-Site: same-origin'],
    ['Sec-Fetch-Site: none'],
    ['Referer: http://localhost:9000/index.html'],
    ['Origin: https://ok.example', 'Sec-Fetch-Site: cross-site'],
  ];
  for (const lines of own) {
    t.is(await status('/exec?query=rows+1', ['Host: localhost:9000', ...lines]), 200);
  }
});

test('preflight requests succeed only for listed origins', async (t) => {
  const preflight = (origin: string): Promise<Response> =>
    fetch(`${harness.url}/exec`, { method: 'OPTIONS', headers: { Origin: origin } });
  const listed = await preflight('https://ok.example');
  t.is(listed.headers.get('access-control-allow-origin'), 'https://ok.example');
  t.is(listed.headers.get('access-control-allow-methods'), 'GET, HEAD, POST, PUT');
  t.regex(listed.headers.get('access-control-expose-headers') ?? '', /Content-Disposition/);
  const other = await preflight('https://evil.example');
  t.is(other.headers.get('access-control-allow-origin'), null);
});

test('data responses carry the security headers', async (t) => {
  const { headers } = await fetch(`${harness.url}/exec?query=rows+1`);
  t.is(headers.get('x-content-type-options'), 'nosniff');
  t.is(headers.get('referrer-policy'), 'no-referrer');
  t.is(headers.get('cross-origin-resource-policy'), 'same-origin');
  t.is(headers.get('cache-control'), 'no-store');
  t.is(headers.get('access-control-allow-origin'), null);
});

test('methods and paths are matched exactly', async (t) => {
  const host = ['Host: localhost'];
  t.is(await status('/exec', host, 'DELETE'), 405);
  t.is(await status('/imp', host), 405);
  t.is(await status('/nowhere', host, 'DELETE'), 404);
  t.is(await status('/exec/', host), 404);
  t.is(await status('/EXEC', host), 404);
  t.is(await status('//exec?query=rows+1', host), 200);
  t.is(await status('/exec', host, 'OPTIONS'), 204);
  t.is(await status('/exec?query=rows+1', host, 'HEAD'), 200);
  t.is(await status('http://localhost/exec?query=rows+1', host), 404);
  const response = await fetch(`${harness.url}/exec`, { method: 'DELETE' });
  t.is(await response.text(), 'Method DELETE not supported\r\n');
  t.is(response.headers.get('allow'), 'GET, POST, HEAD, OPTIONS');
});

test('a program gets an authentication challenge; a browser does not', async (t) => {
  const challenge = async (...lines: string[]): Promise<boolean> => {
    const head = ['GET /exec HTTP/1.1', 'Host: localhost', 'Connection: close', ...lines];
    return /^WWW-Authenticate: Basic /im.test(
      await sendRaw(login.port, `${head.join('\r\n')}\r\n\r\n`),
    );
  };
  t.true(await challenge());
  t.false(await challenge('Accept: text/html,*/*'));
  t.false(await challenge('Sec-Fetch-Mode: cors', 'Sec-Fetch-Site: same-origin'));
});

test('password guessing is throttled only for the guessed name', async (t) => {
  const guarded = await startHarness({ set: ['http.user=joe', 'http.password=secret'] });
  const attempt = (user: string, password: string): Promise<number> => {
    const basic = btoa(`${user}:${password}`);
    return status(
      '/exec?query=rows+1',
      ['Host: x', `Authorization: Basic ${basic}`],
      'GET',
      guarded.port,
    );
  };
  for (let round = 0; round < 10; round += 1) {
    t.is(await attempt('joe', 'guess'), 401);
  }
  t.is(await attempt('joe', 'secret'), 429);
  t.is(await attempt('jim', 'guess'), 401);
  await guarded.server.close();
});

test('the login is checked after the path and before the method', async (t) => {
  const { port } = login;
  const good = 'Authorization: Basic am9lOnNlY3JldA==';
  const host = 'Host: any.example';
  const code = (target: string, ...lines: string[]): Promise<number> =>
    status(target, [host, ...lines], 'GET', port);
  t.is(await code('/exec?query=rows+1'), 401);
  t.is(await code('/exec?query=rows+1', good), 200);
  t.is(await code('/exec?query=rows+1', good.replace('Basic', 'basic')), 200);
  t.is(await code('/exec?query=rows+1', 'Authorization: Bearer abc'), 401);
  t.is(await code('/exec?query=rows+1', 'Authorization: Basic !!!'), 401);
  t.is(await code('/exec?query=rows+1', good, good), 400);
  t.is(await code('/imp'), 401);
  t.is(await code('/ping'), 204);
  t.is(await code('/warnings'), 200);
  t.is(await code('/nowhere'), 404);
  const response = await fetch(`${login.url}/exec?query=rows+1`);
  t.is(await response.text(), 'Unauthorized\r\n');
  t.is(response.headers.get('www-authenticate'), null);
});

const BROKEN: readonly (readonly [status: number, head: string])[] = [
  [431, `GET /exec?query=${'x'.repeat(70_000)} HTTP/1.1\r\nHost: localhost\r\n\r\n`],
  [
    400,
    'POST /exec HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n' +
      'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
  ],
  [400, 'POST /exec HTTP/1.1\r\nHost: localhost\r\nContent-Length: +5\r\n\r\nabcde'],
  [400, 'GET /exec HTTP/1.1\r\nHost : localhost\r\n\r\n'],
  [400, 'GET /ex\u0000ec HTTP/1.1\r\nHost: localhost\r\n\r\n'],
  [400, 'nonsense\r\n\r\n'],
];
for (const [index, [expected, head]] of BROKEN.entries()) {
  test(`malformed request ${index} gets one response, with status ${expected}`, async (t) => {
    const answer = await sendRaw(harness.port, head);
    t.is(Number(answer.slice(9, 12)), expected);
    t.is(answer.split('HTTP/1.1 ').length, 2);
  });
}

test('an unknown method is reported; CONNECT is refused', async (t) => {
  for (const method of ['FOO', 'get', 'M-SEARCH!']) {
    const answer = await sendRaw(
      harness.port,
      `${method} /exec HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    );
    t.regex(answer, /^HTTP\/1\.1 405 Method Not Allowed\r\n/);
    t.true(answer.endsWith(`\r\n\r\nMethod ${method} not supported\r\n`), answer);
  }
  const tunnel = await sendRaw(harness.port, 'CONNECT x:80 HTTP/1.1\r\nHost: x:80\r\n\r\n');
  t.regex(tunnel, /^HTTP\/1\.1 405 [^]*Method CONNECT not supported/);
});

test('saving preferences requires the current version', async (t) => {
  const save = async (method: string, version: number, body: string): Promise<string> => {
    const target = `${harness.url}/settings?version=${version}`;
    return await (await fetch(target, { method, body })).text();
  };
  t.is(await save('PUT', 0, '{"instance_name":"a"}'), '{"status":"OK"}\r\n');
  t.is(
    await save('PUT', 0, '{}'),
    '{"error":"preferences view is out of date [currentVersion=1, expectedVersion=0]"}',
  );
  t.is(await save('POST', 1, '{"instance_type":"b"}'), '{"status":"OK"}\r\n');
  const settings = (await (await fetch(`${harness.url}/settings`)).json()) as {
    preferences: object;
  };
  t.deepEqual(settings.preferences, { instance_name: 'a', instance_type: 'b' });
  t.regex(await save('PUT', 2, 'nonsense'), /Malformed preferences/);
  for (const version of ['', 'abc', '-1', '1.5']) {
    const target = `${harness.url}/settings?version=${version}`;
    const response = await fetch(target, { method: 'PUT', body: '{}' });
    t.is(response.status, 400, version);
    t.regex(await response.text(), new RegExp(`invalid version '${version}': expected`));
  }
});

test('preferences cannot be changed when changes are disabled', async (t) => {
  for (const key of ['http.settings.readonly', 'http.security.readonly']) {
    const guarded = await startHarness({ set: [`${key}=true`] });
    const body = '{"instance_name":"x"}';
    const saved = await fetch(`${guarded.url}/settings?version=0`, { method: 'PUT', body });
    t.is(saved.status, 403, key);
    const settings = (await (await fetch(`${guarded.url}/settings`)).json()) as {
      config: Record<string, unknown>;
      preferences: object;
    };
    t.is(settings.config['http.settings.readonly'], true);
    t.deepEqual(settings.preferences, {});
    await guarded.server.close();
  }
});

test('line protocol errors are reported in the line protocol format', async (t) => {
  for (const path of ['/write', '/api/v2/write']) {
    const response = await fetch(harness.url + path, { method: 'POST', body: 'm,a=b c=1i' });
    t.is(response.status, 500);
    const answer = (await response.json()) as { code: string; errorId: string };
    t.is(answer.code, 'internal error');
    t.regex(answer.errorId, /^[0-9a-f]{12}-[0-9]+$/);
    t.is((await fetch(harness.url + path)).status, 405);
  }
});

test('short responses have the expected text', async (t) => {
  const text = async (target: string): Promise<string> =>
    await (await fetch(harness.url + target)).text();
  t.is(await text('/chk?j=there'), 'Exists\r\n');
  t.is(await text('/chk?j=nope'), 'Does not exist\r\n');
  t.is(await text('/chk'), 'table name missing\r\n');
  t.is(await text('/chk?f=json&j=there'), '{"status":"Exists"}');
  t.is(await text('/chk?f=json'), '{"status":"Does not exist"}');
  t.true(Array.isArray(JSON.parse(await text('/warnings'))));
  t.is(await text('/status'), 'Status: Healthy');
  t.is(await text('/imp?x').then((body) => body), 'Method GET not supported\r\n');
});

/** The console's files: content types, ETag, ranges, compression, content policy. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { loadStaticFiles } from '../../ts/http/index.js';
import { type Harness, sendRaw, startHarness } from './harness.js';

const SCRIPT = `const text = '${'0123456789'.repeat(300)}';`;
let harness: Harness;
test.before(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-console-'));
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), '<!doctype html>');
  writeFileSync(join(folder, 'assets', 'main-Ab12Cd34.js'), SCRIPT);
  writeFileSync(join(folder, 'secret.txt'), 'x');
  harness = await startHarness({ files: loadStaticFiles(folder) });
});
test.after.always(() => harness.server.close());

function get(path: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(harness.url + path, { headers: { 'Accept-Encoding': 'identity', ...headers } });
}

test('the page is served at / and /index.html, with its content security policy', async (t) => {
  for (const path of ['/', '/index.html']) {
    const response = await get(path);
    t.is(response.status, 200);
    t.is(response.headers.get('content-type'), 'text/html');
    t.is(response.headers.get('cache-control'), 'no-cache');
    t.is(await response.text(), '<!doctype html>');
    const policy = response.headers.get('content-security-policy') ?? '';
    t.true(policy.startsWith("default-src 'none'; script-src 'self'; style-src 'self';"));
    t.false(policy.includes('unsafe'));
  }
});

test('an unchanged file is not sent again', async (t) => {
  const first = await get('/assets/main-Ab12Cd34.js');
  t.is(first.headers.get('cache-control'), 'public, max-age=31536000, immutable');
  t.is(first.headers.get('content-length'), String(SCRIPT.length));
  const etag = first.headers.get('etag') ?? '';
  t.regex(etag, /^"[\w-]+"$/);
  t.is((await get('/assets/main-Ab12Cd34.js', { 'If-None-Match': etag })).status, 304);
  t.is((await get('/assets/main-Ab12Cd34.js', { 'If-None-Match': '"other"' })).status, 200);
});

test('byte ranges include both ends', async (t) => {
  const range = async (value: string): Promise<[number, string, string | null]> => {
    const response = await get('/assets/main-Ab12Cd34.js', { Range: value });
    const { headers, status } = response;
    return [status, await response.text(), headers.get('content-range')];
  };
  const { length } = SCRIPT;
  t.deepEqual(await range('bytes=0-4'), [206, 'const', `bytes 0-4/${length}`]);
  t.deepEqual(await range('bytes=-2'), [206, "';", `bytes ${length - 2}-${length - 1}/${length}`]);
  t.is((await range(`bytes=${length}-`))[0], 416);
  t.is((await range('lines=1-2'))[0], 200);
});

test('files are compressed if requested', async (t) => {
  const response = await get('/assets/main-Ab12Cd34.js', { 'Accept-Encoding': 'gzip' });
  t.is(response.headers.get('content-encoding'), 'gzip');
  t.is(await response.text(), SCRIPT);
  for (const coding of ['br', 'gzip']) {
    const other = await get('/assets/main-Ab12Cd34.js', { 'Accept-Encoding': coding });
    t.is(other.headers.get('content-encoding'), coding);
    t.is(await other.text(), SCRIPT);
    const etag = other.headers.get('etag') ?? '';
    t.true(etag.endsWith(`-${coding}"`));
    const again = await get('/assets/main-Ab12Cd34.js', { 'If-None-Match': etag });
    t.is(again.status, 304);
    const part = { Range: 'bytes=0-4', 'If-Range': etag };
    t.is(
      (await get('/assets/main-Ab12Cd34.js', part)).status,
      200,
      'a range of a different representation is ignored',
    );
  }
  const plain = await get('/assets/main-Ab12Cd34.js');
  const part = { Range: 'bytes=0-4', 'If-Range': plain.headers.get('etag') ?? '' };
  t.is((await get('/assets/main-Ab12Cd34.js', part)).status, 206);
  const refused = await get('/assets/main-Ab12Cd34.js', { 'Accept-Encoding': 'gzip;q=0' });
  t.is(refused.headers.get('content-encoding'), null);
});

test('no request can escape the folder', async (t) => {
  for (const path of ['/../secret.tx', '/assets/../index.html', '/%2e%2e/x', '/assets/']) {
    const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`;
    t.true((await sendRaw(harness.port, request)).startsWith('HTTP/1.1 404 '), path);
  }
});

/** HEAD returns the headers of GET without the body. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import test from 'ava';

import { loadStaticFiles } from '../../ts/http/index.js';
import { type Harness, sendRaw, startHarness } from './harness.js';

let harness: Harness;
test.before(async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-head-'));
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), '<!doctype html>');
  writeFileSync(join(folder, 'assets', 'main-Ab12Cd34.js'), 'let x = 1;\n'.repeat(200));
  harness = await startHarness({ files: loadStaticFiles(folder), set: ['metrics.enabled=true'] });
});
test.after.always(() => harness.server.close());

async function send(method: string, target: string, more: string): Promise<[string, string]> {
  const head = `${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${more}`;
  const answer = await sendRaw(harness.port, `${head}\r\n`);
  const end = answer.indexOf('\r\n\r\n') + 4;
  return [answer.slice(0, end).replace(/^Date: .*$/m, ''), answer.slice(end)];
}

for (const [target, more] of [
  ['/chk?j=there', ''],
  ['/chk?j=there&f=json', ''],
  ['/settings', ''],
  ['/warnings', ''],
  ['/ping', ''],
  ['/status', ''],
  ['/health', ''],
  ['/metrics', ''],
  ['/api/v1/sql/validate?query=rows+1', ''],
  ['/', ''],
  ['/assets/main-Ab12Cd34.js', ''],
  ['/assets/main-Ab12Cd34.js', 'Accept-Encoding: gzip\r\n'],
  ['/assets/main-Ab12Cd34.js', 'Range: bytes=0-9\r\n'],
  ['/nowhere', ''],
  ['/exec?query=missing', ''],
  ['/exp?query=missing', ''],
] as const) {
  test(`HEAD ${target} ${more.trim()} returns the same headers as GET`, async (t) => {
    const [got, body] = await send('GET', target, more);
    const [head, nothing] = await send('HEAD', target, more);
    // Counters may gain a digit between the two requests.
    const lasting = (text: string): string =>
      target === '/metrics' ? text.replace(/^Content-Length: \d+/m, 'Content-Length') : text;
    t.is(lasting(head), lasting(got));
    t.is(nothing, '');
    t.is(body === '', target === '/ping');
  });
}

test('HEAD of a route without GET is refused', async (t) => {
  t.regex(
    (await send('HEAD', '/imp', ''))[0],
    /^HTTP\/1\.1 405 .*\r\n(?:.*\r\n)*Allow: POST, PUT, OPTIONS\r\n/,
  );
});

test('HEAD of a query returns the content type and executes nothing', async (t) => {
  const before = harness.database.journal.executed.length;
  for (const [target, type] of [
    ['/exec?query=rows+1', 'application/json'],
    ['/exp?query=rows+1', 'text/csv'],
    ['/exp?query=rows+1&fmt=parquet', 'application/vnd.apache.parquet'],
  ] as const) {
    const [head, body] = await send('HEAD', target, '');
    t.regex(head, new RegExp(`^HTTP/1.1 200 OK[^]*Content-Type: ${type}`));
    t.is(body, '');
  }
  t.is(harness.database.journal.executed.length, before);
});

/** Forms: which fields take precedence, which limits apply, and that no file is written. */
import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';

import test from 'ava';

import { createRoutes } from '../../ts/http/routes/index.js';
import { fakeDatabase } from './fake-database.js';
import { fakeServices, type Harness, sendRaw, startHarness } from './harness.js';

const LIMIT = 17 * 1024 * 1024;

let harness: Harness;
test.before(async () => {
  harness = await startHarness();
});
test.after.always(() => harness.server.close());

const HEAD = 'POST /exec?nm=true HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n';
const FORM = 'Content-Type: application/x-www-form-urlencoded\r\n';
const MULTIPART = 'Content-Type: multipart/form-data; boundary=b\r\n';

async function post(type: string, body: string): Promise<string> {
  return await sendRaw(harness.port, `${HEAD}${type}Content-Length: ${body.length}\r\n\r\n${body}`);
}

function part(name: string, value: string, traits = ''): string {
  return `--b\r\nContent-Disposition: form-data; name="${name}"${traits}\r\n\r\n${value}\r\n`;
}

test('the last value of a repeated field wins; a form overrides the URL', async (t) => {
  const form = await post(FORM, 'query=rows+1&query=rows+2&nm=false&nm=true');
  t.true(form.endsWith('{"dataset":[[1],[2]],"count":2}'), form);
  const parts = part('query', 'rows 1') + part('query', 'rows 2');
  t.true((await post(MULTIPART, `${parts}--b--\r\n`)).endsWith('[[1],[2]],"count":2}'));
});

test('field names are plain data: no prototype access, no nesting', async (t) => {
  const form = await post(FORM, '__proto__=x&constructor[prototype]=y&a.b=z&query=rows+1');
  t.true(form.endsWith('{"dataset":[[1]],"count":1}'), form);
  const parts = part('__proto__', 'x') + part('constructor', 'y') + part('query', 'rows 1');
  t.true((await post(MULTIPART, `${parts}--b--\r\n`)).endsWith('[[1]],"count":1}'));
});

test('form bytes that are not UTF-8 are refused', async (t) => {
  t.regex(await post(FORM, 'query=%FF'), /Bad UTF8 encoding in query text/);
});

test('a file in a form is skipped and not stored', async (t) => {
  // Returns files whose names look like those that the parser would choose.
  const files = (): string[] => readdirSync(tmpdir()).filter((name) => /^[a-z0-9]{25}$/.test(name));
  const before = files();
  const file = part('query', 'rows 3', '; filename="q.sql"\r\nContent-Type: text/plain');
  const typed = part('query', 'rows 1', '\r\nContent-Type: text/plain; charset=utf-8');
  const answer = await post(MULTIPART, `${typed}${file}--b--\r\n`);
  t.true(answer.endsWith('{"dataset":[[1]],"count":1}'), answer);
  t.deepEqual(files(), before);
});

test('a form whose declared size is too large is refused before its body is read', async (t) => {
  for (const type of [FORM, MULTIPART]) {
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(harness.port, '127.0.0.1');
      socket.write(`${HEAD}${type}Content-Length: ${LIMIT + 1}\r\n\r\n`);
      socket.setEncoding('latin1').once('data', (text: string) => {
        socket.destroy();
        resolve(text);
      });
      socket.once('error', reject);
    });
    t.regex(answer, /^HTTP\/1\.1 413 /);
  }
});

test('each route refuses an oversized body in its own error format', async (t) => {
  const routes = createRoutes(fakeServices({}, fakeDatabase())).filter(({ body }) => body);
  t.true(routes.length > 5);
  for (const { path, methods, body, errors } of routes) {
    const method = methods.find((one) => one === 'POST' || one === 'PUT');
    const length = (body?.limitBytes ?? 0) + 1;
    const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n`;
    const answer = await sendRaw(harness.port, `${head}Content-Length: ${length}\r\n\r\n`);
    t.regex(answer, /^HTTP\/1\.1 413 /, path);
    const type = errors === 'json' ? 'application/json' : 'text/plain';
    t.true(answer.includes(`\r\nContent-Type: ${type}; charset=utf-8\r\n`), `${path}: ${answer}`);
  }
});

test('a form without a declared size is refused once it is too large', async (t) => {
  const piece = 'x'.repeat(1024 * 1024);
  const chunk = `${piece.length.toString(16)}\r\n${piece}\r\n`;
  const rest = `${chunk.repeat(18)}0\r\n\r\n`;
  const start = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  const begins: readonly (readonly [string, string])[] = [
    [FORM, 'query='],
    [MULTIPART, '--b\r\nContent-Disposition: form-data; name="query"\r\n\r\n'],
    [MULTIPART, '--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'],
  ];
  for (const [type, begin] of begins) {
    const head = `${HEAD}${type}Transfer-Encoding: chunked\r\n\r\n`;
    const answer = await sendRaw(harness.port, head + start(begin) + rest);
    t.regex(answer, /^HTTP\/1\.1 413 /, begin);
    t.true(answer.endsWith(`{"error":"request body is too large [limit=${LIMIT}]"}`), answer);
  }
});

test("form errors use this server's own messages", async (t) => {
  const cases: readonly (readonly [type: string, body: string, answer: RegExp])[] = [
    ['', 'rows 1', /^HTTP\/1\.1 415 [^]*expected application\/x-www-form-urlencoded or /],
    ['', '', /^HTTP\/1\.1 200 [^]*"empty query"/],
    [`${FORM}Content-Encoding: gzip\r\n`, 'query=x', /^HTTP\/1\.1 415 [^]*unsupported content/],
    [MULTIPART, part('query', 'rows 1'), /^HTTP\/1\.1 400 [^]*malformed multipart body: /],
    [
      'Content-Type: multipart/form-data\r\n',
      'x',
      /^HTTP\/1\.1 400 [^]*malformed multipart body: /,
    ],
  ];
  for (const [type, body, answer] of cases) {
    t.regex(await post(type, body), answer, `${type}${body}`);
  }
});

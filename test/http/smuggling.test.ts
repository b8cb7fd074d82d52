/**
 * Ambiguous requests that two parsers would read differently, sent over raw sockets. Each is
 * refused with one response and the connection is closed, so none of its bytes are parsed as
 * another request.
 */
import test from 'ava';

import { type Harness, sendRaw, startHarness } from './harness.js';

let harness: Harness;
test.before(async () => {
  harness = await startHarness();
});
test.after.always(() => harness.server.close());

const HIDDEN = 'GET /exec?query=insert+666 HTTP/1.1\r\nHost: localhost\r\n\r\n';
const POST = 'POST /exec?query=rows+1 HTTP/1.1\r\nHost: localhost\r\n';

const REFUSED: Readonly<Record<string, string>> = {
  'length and chunked': `${POST}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  'chunked and length': `${POST}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n`,
  'two lengths': `${POST}Content-Length: 0\r\nContent-Length: ${HIDDEN.length}\r\n\r\n`,
  'two equal lengths': `${POST}Content-Length: 0\r\nContent-Length: 0\r\n\r\n`,
  'a list of lengths': `${POST}Content-Length: 0, 0\r\n\r\n`,
  'a signed length': `${POST}Content-Length: +0\r\n\r\n`,
  'a negative length': `${POST}Content-Length: -1\r\n\r\n`,
  'a hexadecimal length': `${POST}Content-Length: 0x0\r\n\r\n`,
  'a length that is too large': `${POST}Content-Length: 99999999999999999999999\r\n\r\n`,
  'an empty length': `${POST}Content-Length: \r\n\r\n`,
  'a space before the colon': `${POST}Content-Length : 0\r\n\r\n`,
  'a coding that is not the last': `${POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n`,
  'an unknown coding': `${POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`,
  'a coding after a control character': `${POST}Transfer-Encoding: \u000bchunked\r\n\r\n0\r\n\r\n`,
  'a coding before chunked': `${POST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
  'no coding before chunked': `${POST}Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n`,
  'chunked twice': `${POST}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`,
  'two Transfer-Encoding headers':
    `${POST}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n` + '\r\n0\r\n\r\n',
  'a coding with a parameter': `${POST}Transfer-Encoding: x;a=b, chunked\r\n\r\n0\r\n\r\n`,
  'an empty coding before chunked': `${POST}Transfer-Encoding: ,chunked\r\n\r\n0\r\n\r\n`,
  'a non-numeric chunk size': `${POST}Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n0\r\n\r\n`,
  'a negative chunk size': `${POST}Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n0\r\n\r\n`,
  'an excessive chunk size': `${POST}Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n`,
  'a chunk without its end': `${POST}Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n`,
  'a folded header': `${POST}X-Long: a\r\n Content-Length: 4\r\n\r\n`,
  'a header without a name': `${POST}: x\r\n\r\n`,
  'a NUL in a header': `${POST}X-Nul: a\u0000b\r\n\r\n`,
  'a bare CR in a header': `${POST}X-Cr: a\rContent-Length: 4\r\n\r\n`,
  'a control character in a name': `${POST}X\u0001: a\r\n\r\n`,
  'a space in the target': 'GET /exec?query=rows 1 HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'an unknown version': 'GET /exec?query=rows+1 HTTP/9.9\r\nHost: localhost\r\n\r\n',
  'another protocol': 'GET /exec?query=rows+1 SPDY/1.1\r\nHost: localhost\r\n\r\n',
  'an HTTP/2 preface': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'a TLS handshake': '\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003',
  'a lower-case method': 'get /exec?query=rows+1 HTTP/1.1\r\nHost: localhost\r\n\r\n',
  'no target': 'GET HTTP/1.1\r\nHost: localhost\r\n\r\n',
};

for (const [name, request] of Object.entries(REFUSED)) {
  test(`${name} is refused, and nothing after it is read`, async (t) => {
    const before = harness.database.journal.executed.filter((text) => text.includes('666')).length;
    const answer = await sendRaw(harness.port, request + HIDDEN);
    t.regex(answer, /^HTTP\/1\.1 4\d\d /);
    t.is(answer.split('HTTP/1.1 ').length, 2, 'exactly one response');
    const after = harness.database.journal.executed.filter((text) => text.includes('666')).length;
    t.is(after, before, 'the hidden request was not executed');
  });
}

test('a body is never parsed as the next request', async (t) => {
  const size = HIDDEN.length.toString(16);
  const bodies = [
    `Content-Length: ${HIDDEN.length}\r\n\r\n${HIDDEN}`,
    `Transfer-Encoding: chunked\r\n\r\n${size}\r\n${HIDDEN}\r\n0\r\n\r\n`,
    `Transfer-Encoding: chunked\r\n\r\n${size};x=y\r\n${HIDDEN}\r\n0\r\nT: x\r\n\r\n`,
  ];
  const before = harness.database.journal.executed.filter((text) => text.includes('666')).length;
  for (const path of [
    '/exec',
    '/nowhere',
    '/chk',
    '/imp',
    '/settings',
    '/write',
    '/exec?query=!',
  ]) {
    for (const body of bodies) {
      const head = `POST ${path} HTTP/1.1\r\nHost: localhost\r\n`;
      const last = 'GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
      const answer = await sendRaw(harness.port, `${head}${body}${last}`);
      t.regex(answer, /^HTTP\/1\.1 [2-5]\d\d /, path);
      t.true(answer.split('HTTP/1.1 ').length <= 3, `${path}: ${answer}`);
    }
  }
  const after = harness.database.journal.executed.filter((text) => text.includes('666')).length;
  t.is(after, before);
});

test('a GET may have a body, and the next request is parsed after it', async (t) => {
  const head =
    'GET /exec?query=rows+1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nabcde';
  const last = 'GET /ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
  const answer = await sendRaw(harness.port, head + last);
  t.deepEqual(
    [...answer.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status),
    ['200', '204'],
  );
});

test('a request may arrive byte by byte', async (t) => {
  const { connect } = await import('node:net');
  const request =
    'POST /exec HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' +
    'Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 14\r\n\r\nquery=rows+777';
  const socket = connect(harness.port, '127.0.0.1').setNoDelay(true);
  let answer = '';
  const end = new Promise((resolve) => socket.once('close', resolve));
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text;
  });
  for (const byte of request) {
    await new Promise((resolve) => socket.write(byte, resolve));
  }
  await end;
  t.regex(answer, /^HTTP\/1\.1 200 OK/);
  t.true(answer.includes('"count":777'));
});

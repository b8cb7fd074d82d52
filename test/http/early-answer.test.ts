/** Responses sent before the request body has ended. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

import test from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';

const CHUNK = Buffer.alloc(64 * 1024, 'x');
const CHUNKS = 40;

let server: TestServer;
test.before(async () => {
  server = await startTestServer();
});
test.after.always(async () => {
  await server.stop();
});

/** An upload whose first part is invalid, with `later` more bytes to come. */
function refusedUpload(later: number): string {
  const part =
    '--b\r\nContent-Disposition: form-data; name="data"; filename="' + `${'x'.repeat(90_000)}"\r\n`;
  return (
    'POST /imp?fmt=json HTTP/1.1\r\nHost: localhost\r\n' +
    'Content-Type: multipart/form-data; boundary=b\r\n' +
    `Content-Length: ${part.length + later}\r\n\r\n${part}`
  );
}

test('a refused upload is drained so that the client receives the response', async (t) => {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  let answer = '';
  let problem: Error | null = null;
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text;
  });
  socket.on('error', (error) => {
    problem = error;
  });
  const closed = once(socket, 'close');
  socket.write(refusedUpload(CHUNKS * CHUNK.length));
  while (!answer.includes('\r\n\r\n')) {
    await sleep(5);
  }
  t.regex(answer, /^HTTP\/1\.1 400 /);
  t.regex(answer, /\r\nconnection: close\r\n/i);
  for (let sent = 0; sent < CHUNKS; sent += 1) {
    socket.write(CHUNK);
    await sleep(2);
  }
  await closed;
  t.is(problem, null);
  t.is(socket.bytesWritten, refusedUpload(CHUNKS * CHUNK.length).length + CHUNKS * CHUNK.length);
  t.regex(answer, /malformed multipart body/);
});

test('a client that stops mid-upload gets a response and is disconnected', async (t) => {
  const { hostname, port } = new URL(server.url);
  const socket = connect(Number(port), hostname);
  let answer = '';
  socket.setEncoding('latin1').on('data', (text: string) => {
    answer += text;
  });
  socket.on('error', () => undefined);
  socket.write(refusedUpload(CHUNK.length));
  await once(socket, 'close');
  t.regex(answer, /^HTTP\/1\.1 400 .*malformed multipart body.*\r\n$/s);
});

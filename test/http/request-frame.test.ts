/** Recognizing the fixed bytes around the query in a request. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';

import test from 'ava';

import { frameOf, splitAddress } from '../../ts/http/handoffs/request-frame.js';

/** Returns the frames of the requests in a sequence of byte fragments. */
async function frames(...chunks: readonly string[]): Promise<(readonly string[] | null)[]> {
  const found: (readonly string[] | null)[] = [];
  const server = createServer((request, response) => {
    const frame = frameOf(request);
    found.push(frame === null ? null : [frame.before, frame.after]);
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  socket.setNoDelay(true);
  socket.on('data', () => undefined);
  for (const chunk of chunks) {
    socket.write(Buffer.from(chunk, 'latin1'));
    await new Promise((resolve) => setTimeout(resolve, 30));
  }
  socket.destroy();
  server.close();
  await once(server, 'close');
  return found;
}

const COMPLETE = 'GET /exec?query=SELECT+1&limit=5 HTTP/1.1\r\nHost: h\r\nX:y \r\n\r\n';
const FRAME = ['GET /exec?query=', '&limit=5 HTTP/1.1\r\nHost: h\r\nX:y \r\n\r\n'];

test('a complete request that arrives alone is recognized', async (t) => {
  t.deepEqual(await frames(COMPLETE), [FRAME]);
  t.deepEqual(await frames(COMPLETE, COMPLETE), [FRAME, FRAME]);
});

test('partial and pipelined requests are not recognized', async (t) => {
  t.deepEqual(await frames(COMPLETE.slice(0, 20), COMPLETE.slice(20)), [null]);
  t.deepEqual(await frames(COMPLETE + COMPLETE), [null, null]);
  t.deepEqual(await frames(COMPLETE + COMPLETE.slice(0, 20), COMPLETE.slice(20), COMPLETE), [
    null,
    null,
    FRAME,
  ]);
  // This header value looks like a complete request.
  const begin = COMPLETE.replace('\r\n\r\n', '\r\nX-Begin: ');
  t.deepEqual(await frames(begin, COMPLETE), [null]);
});

test('ambiguous requests and requests with a body are not recognized', async (t) => {
  for (const [from, to] of [
    ['GET', 'HEAD'],
    ['HTTP/1.1', 'HTTP/1.0'],
    ['Host: h', 'Host: h\r\nContent-Length: 0'],
    ['Host: h', 'Host: h\r\nConnection: close'],
    ['Host: h', 'Host: h\r\nConnection: keep-alive, upgrade'],
    ['Host: h', 'Host: h\r\nUpgrade: x'],
    ['Host: h', 'Host: h\r\nX: \u00ff'],
    ['query=', 'other='],
    ['query=', 'query=2&query='],
    ['limit', 'timings'],
    ['limit', 'session'],
    ['limit', 'lim%69t'],
    ['limit', '%71uery'],
  ] as const) {
    t.deepEqual(await frames(COMPLETE.replace(from, to)), [null], to);
  }
});

test('the URL is split around the query parameter', (t) => {
  t.deepEqual(splitAddress('/exec?query='), ['/exec?query=', '']);
  t.deepEqual(splitAddress('/exec?limit=3&query=a=b&nm=true'), [
    '/exec?limit=3&query=',
    '&nm=true',
  ]);
  for (const url of ['/exec', '/exec?Query=1', '/exec?xquery=1', '/exec?query=1&x', '/query=1']) {
    t.is(splitAddress(url), null, url);
  }
});

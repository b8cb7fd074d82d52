/** WebSockets: the upgrade, messages in both directions, and every way a connection can end. */
import { request } from 'node:http';

import test from 'ava';

import { startHttp } from '../../ts/http/index.js';
import type { WebSocketRoute } from '../../ts/http/websocket/route.js';
import { until } from '../until.js';
import { fakeDatabase } from './fake-database.js';
import { fakeServices, type HarnessOptions, sendRaw } from './harness.js';
import { KIND, maskedFrame, Refused, WebSocketClient } from './websocket-client.js';

const LIMIT = 300_000;

interface Echo {
  readonly port: number;
  /** Messages that connections received, and how the connections ended. */
  readonly heard: string[];
  readonly server: Awaited<ReturnType<typeof startHttp>>;
}

/** Starts a server whose `/echo` returns each message, and fails on the message `fail`. */
async function startEcho(options: HarnessOptions = {}): Promise<Echo> {
  const heard: string[] = [];
  const route: WebSocketRoute = {
    path: '/echo',
    about: null,
    accept: (context) => {
      context.set('X-Echo', context.state.identity?.name ?? 'nobody');
      return {
        maxMessageBytes: LIMIT,
        run: async (connection) => {
          connection.ended.addEventListener('abort', () => heard.push('ended'));
          for await (const message of connection.messages()) {
            const text = message.toString('latin1', 0, 20);
            heard.push(text);
            if (text === 'fail') {
              throw new Error('failed as asked');
            }
            await connection.send(message);
          }
          heard.push('over');
        },
      };
    },
  };
  const server = await startHttp(fakeServices(options, fakeDatabase()), null, [route]);
  return { port: server.port, heard, server };
}

async function refusal(port: number, path: string, headers = {}): Promise<Refused> {
  try {
    await WebSocketClient.open(port, path, { headers });
  } catch (error) {
    if (error instanceof Refused) {
      return error;
    }
    throw error;
  }
  throw new Error('granted');
}

test('messages of every length are echoed, and pings and closes are answered', async (t) => {
  const { port, server, heard } = await startEcho();
  const first = maskedFrame(KIND.binary, Buffer.from('with the request'));
  const client = await WebSocketClient.open(port, '/echo', { behind: first });
  t.true(client.head.includes('X-Echo: admin') && client.head.includes('nosniff'));
  t.is((await client.receive())?.payload.toString(), 'with the request');
  for (const length of [0, 1, 125, 126, 65_535, 65_536, LIMIT]) {
    const message = Buffer.alloc(length, `${length},`);
    client.send(message);
    const answer = await client.receive();
    t.is(answer?.kind, KIND.binary);
    t.true(answer?.payload.equals(message));
  }
  client.socket.write(maskedFrame(KIND.binary, Buffer.from('in '), false));
  client.send(Buffer.from('are you there'), KIND.ping);
  client.socket.write(maskedFrame(0, Buffer.from('parts')));
  t.deepEqual(await client.receive(), { kind: KIND.pong, payload: Buffer.from('are you there') });
  t.is((await client.receive())?.payload.toString(), 'in parts');
  client.send(Buffer.from([0x03, 0xe8]), KIND.close);
  t.is(await client.receiveClose(), 1000);
  await until(() => heard.includes('over'), 'the end of the connection is reported');
  await server.close();
});

test('messages are queued for a busy handler, and all of them arrive', async (t) => {
  const { port, server } = await startEcho();
  const client = await WebSocketClient.open(port, '/echo');
  const count = 200;
  for (let at = 0; at < count; at += 1) {
    client.send(Buffer.alloc(50_000, at));
  }
  for (let at = 0; at < count; at += 1) {
    const answer = await client.receive();
    t.true(answer?.payload.equals(Buffer.alloc(50_000, at)), `${at}`);
  }
  client.socket.destroy();
  await server.close();
});

test('protocol violations close the connection with their code', async (t) => {
  const { port, server, heard } = await startEcho();
  const large = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0xff, 0, 0, 0, 1, 2, 3, 4]);
  const cases: readonly [Buffer, number][] = [
    [large, 1009],
    [maskedFrame(KIND.text, Buffer.from('text')), 1003],
    [Buffer.from([0x82, 1, 0]), 1002],
    [maskedFrame(KIND.binary, Buffer.from('fail')), 1011],
  ];
  for (const [bytes, code] of cases) {
    const client = await WebSocketClient.open(port, '/echo');
    client.socket.write(bytes);
    t.is(await client.receiveClose(), code);
  }
  heard.length = 0;
  const gone = await WebSocketClient.open(port, '/echo');
  gone.socket.resetAndDestroy();
  await until(() => heard.includes('over'), 'the connection has ended');
  const half = await WebSocketClient.open(port, '/echo');
  half.socket.end();
  t.is(await half.receiveClose(), null);
  await server.close();
});

test('an upgrade undergoes the same checks as a request', async (t) => {
  const user = ['http.user=ann', 'http.password=secret'];
  const { port, server } = await startEcho({ set: user });
  const login = (text: string): Record<string, string> => ({
    Authorization: `Basic ${Buffer.from(text).toString('base64')}`,
  });
  const right = login('ann:secret');
  const client = await WebSocketClient.open(port, '/echo', { headers: right });
  t.true(client.head.includes('X-Echo: ann'));
  client.socket.destroy();
  const missing = await refusal(port, '/echo');
  t.is(missing.status, 401);
  t.true(missing.head.includes('WWW-Authenticate: Basic'));
  t.is((await refusal(port, '/echo', login('ann:wrong'))).status, 401);
  const foreign = { ...right, Origin: 'http://elsewhere.example' };
  t.is((await refusal(port, '/echo', foreign)).status, 403);
  t.is((await refusal(port, '/nowhere', right)).status, 404);
  t.is((await refusal(port, '/echo', { ...right, 'Sec-WebSocket-Version': '8' })).status, 426);
  t.is((await refusal(port, '/echo', { ...right, 'Sec-WebSocket-Key': 'short' })).status, 400);
  const plain = await sendRaw(
    port,
    `GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n` +
      `Authorization: ${right['Authorization'] ?? ''}\r\n\r\n`,
  );
  t.regex(plain, /^HTTP\/1\.1 426 [^]*Upgrade: websocket/);
  await server.close();
  const open = await startEcho();
  t.is((await refusal(open.port, '/echo', { Host: 'elsewhere.example' })).status, 421);
  await open.server.close();
});

test('an upgrade header on an ordinary request is ignored', async (t) => {
  const { port, server } = await startEcho();
  const body = 'name=value';
  for (const headers of [{ Upgrade: 'h2c' }, { Upgrade: 'websocket' }]) {
    const status = await new Promise<number | undefined>((resolve, reject) => {
      const sent = request(
        {
          port,
          path: '/nowhere',
          method: 'POST',
          headers: { ...headers, Connection: 'Upgrade', 'Content-Length': body.length },
        },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        },
      );
      sent.on('error', reject);
      sent.end(body);
    });
    t.is(status, 404);
  }
  await server.close();
});

test('connections over the limit are refused with a response', async (t) => {
  const { port, server } = await startEcho({ set: ['http.net.connection.limit=2'] });
  const clients = [
    await WebSocketClient.open(port, '/echo'),
    await WebSocketClient.open(port, '/echo'),
  ];
  t.is((await refusal(port, '/echo')).status, 503);
  for (const { socket } of clients) {
    socket.destroy();
  }
  await server.close();
});

test('server shutdown notifies each connection and waits for running work', async (t) => {
  const { port, server, heard } = await startEcho();
  const client = await WebSocketClient.open(port, '/echo');
  client.send(Buffer.from('before'));
  t.is((await client.receive())?.payload.toString(), 'before');
  const drained = server.drain();
  t.is(await client.receiveClose(), 1001);
  await drained;
  t.is((await refusal(port, '/echo')).status, 503);
  t.deepEqual(heard.slice(0, 2), ['before', 'over']);
  await server.close();
});

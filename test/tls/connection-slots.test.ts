/**
 * Encrypted ports before login. Clients that stop before, during or after the handshake, and never
 * close the connection themselves, do not block other clients and hold no more slots than allowed.
 */
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { connect as connectSecurely, type TLSSocket } from 'node:tls';

import test, { type ExecutionContext } from 'ava';

import { startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { CertificateFolder } from './certificates.js';
import { pgClient } from '../pg-client.js';

const LIMIT = 12;
const MANY = 2 * LIMIT;
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
/** The beginning of a ClientHello that is never completed. */
const HELLO = Buffer.from([0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);

const folder = new CertificateFolder();
let server: TestServer;

test.before(async () => {
  folder.make('server');
  server = await startTestServer({
    set: [
      'tls.enabled=true',
      `tls.cert.path=${folder.file('server.crt')}`,
      `tls.private.key.path=${folder.file('server.key')}`,
      'http.user=ann',
      'http.password=secret',
      'http.header.timeout=2s',
      `http.net.connection.limit=${LIMIT}`,
      `pg.net.connection.limit=${LIMIT}`,
    ],
  });
});

test.after.always(async () => {
  await server.stop();
  folder.remove();
});

type Port = 'http' | 'pg';

async function plain(t: ExecutionContext, port: Port): Promise<Socket> {
  const number = Number(port === 'http' ? new URL(server.url).port : server.pg.split(':')[1]);
  const socket = connect({ host: '127.0.0.1', port: number, allowHalfOpen: true });
  socket.on('error', () => undefined);
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

async function secure(t: ExecutionContext, port: Port): Promise<TLSSocket> {
  const socket = await plain(t, port);
  if (port === 'pg') {
    socket.write(SSL_REQUEST);
    await once(socket, 'data');
  }
  const encrypted = connectSecurely({ socket, rejectUnauthorized: false });
  encrypted.on('error', () => undefined);
  t.teardown(() => encrypted.destroy());
  await Promise.race([once(encrypted, 'secureConnect'), once(socket, 'close')]);
  return encrypted;
}

const CLIENTS: readonly (readonly [string, Port, (t: ExecutionContext) => Promise<unknown>])[] = [
  ['silent', 'http', (t) => plain(t, 'http')],
  ['in the middle of the handshake', 'http', async (t) => (await plain(t, 'http')).write(HELLO)],
  ['silent after the handshake', 'http', (t) => secure(t, 'http')],
  [
    'within the request head',
    'http',
    async (t) => (await secure(t, 'http')).write('GET / HTTP/1.1\r\nX'),
  ],
  ['refused', 'http', async (t) => (await secure(t, 'http')).write('nonsense\r\n\r\n')],
  ['in plain text', 'http', async (t) => (await plain(t, 'http')).write('GET / HTTP/1.1\r\n\r\n')],
  ['in the middle of the handshake', 'pg', async (t) => (await plain(t, 'pg')).write(HELLO)],
  ['silent after the handshake', 'pg', (t) => secure(t, 'pg')],
  ['refused', 'pg', async (t) => (await secure(t, 'pg')).write('nonsense'.repeat(9))],
];

async function wireLogin(): Promise<void> {
  const ssl = { rejectUnauthorized: false };
  const client = pgClient(server.pg, { ssl });
  await client.connect();
  await client.end();
}

async function httpLogin(t: ExecutionContext): Promise<string> {
  const socket = await secure(t, 'http');
  const authorization = `Basic ${Buffer.from('ann:secret').toString('base64')}`;
  socket.write(
    'GET /exec?query=SELECT+1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n' +
      `Authorization: ${authorization}\r\n\r\n`,
  );
  const [answer] = (await once(socket, 'data')) as [Buffer];
  return answer.toString('latin1');
}

/** Returns the server's number of open sockets. */
function openDescriptors(): number {
  const descriptors = `/proc/${server.process.pid ?? 0}/fd`;
  const isSocket = (name: string): boolean => {
    try {
      return readlinkSync(`${descriptors}/${name}`).startsWith('socket:');
    } catch {
      return false;
    }
  };
  return readdirSync(descriptors).filter(isSocket).length;
}

for (const [what, port, begin] of CLIENTS) {
  test.serial(
    `${MANY} stalled clients (${what}, ${port}) do not block others and are closed`,
    async (t) => {
      for (let index = 0; index < MANY; index += 1) {
        await begin(t);
      }
      await wireLogin();
      t.regex(await httpLogin(t), /^HTTP\/1\.1 200 /);
      if (process.platform === 'linux') {
        await until(() => openDescriptors() <= 8, 'the connections are closed');
      }
    },
  );
}

/**
 * Clients that have not logged in and are silent, slow, half-closed or not reading. On either port
 * they hold no more slots than allowed and do not block other clients. These clients never close
 * the connection themselves.
 */
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

import test, { type ExecutionContext } from 'ava';
import type pg from 'pg';

import { startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { pgClient } from '../pg-client.js';

const LIMIT = 16;
const MANY = 3 * LIMIT;
const HEAD = 'GET / HTTP/1.1\r\nHost: localhost\r\n';

let server: TestServer;

test.before(async () => {
  server = await startTestServer({
    set: [
      'http.user=ann',
      'http.password=secret',
      'http.header.timeout=2s',
      'http.body.timeout=2s',
      'http.send.timeout=2s',
      'http.net.connection.timeout=2s',
      `http.net.connection.limit=${2 * LIMIT}`,
      `pg.net.connection.limit=${LIMIT}`,
    ],
  });
});

test.after.always(() => server.stop());

type Port = 'http' | 'pg';

function portOf(port: Port): number {
  return Number(port === 'http' ? new URL(server.url).port : server.pg.split(':')[1]);
}

async function open(t: ExecutionContext, port: Port, host = '127.0.0.1'): Promise<Socket> {
  const socket = connect({ host, port: portOf(port), allowHalfOpen: true });
  socket.on('error', () => undefined);
  t.teardown(() => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

async function wireLogin(): Promise<void> {
  const client = pgClient(server.pg);
  await client.connect();
  await client.query('SELECT 1');
  await client.end();
}

async function httpLogin(): Promise<number> {
  const authorization = `Basic ${Buffer.from('ann:secret').toString('base64')}`;
  const answer = await fetch(`${server.url}/exec?query=SELECT+1`, {
    headers: { authorization, connection: 'close' },
  });
  await answer.text();
  return answer.status;
}

/** Returns the server's number of open sockets. */
function openDescriptors(): number {
  const folder = `/proc/${server.process.pid ?? 0}/fd`;
  const link = (name: string): string => {
    try {
      return readlinkSync(`${folder}/${name}`);
    } catch {
      return '';
    }
  };
  return readdirSync(folder).filter((name) => link(name).startsWith('socket:')).length;
}

/** Keeps sending one byte of a message that never ends. */
function dribble(t: ExecutionContext, socket: Socket, first: string | Buffer): void {
  socket.write(first);
  const timer = setInterval(() => socket.write('x'), 300);
  t.teardown(() => {
    clearInterval(timer);
  });
}

const LENGTH = 'Content-Length: 1000000\r\n\r\n';
const STARTUP_HEAD = Buffer.from([0, 0, 1, 0, 0, 3, 0, 0]);
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47]);
const STARTUP = Buffer.from('\0\0\0\x13\0\x03\0\0user\0admin\0\0', 'latin1');

/** Client behaviours, by port. */
const CLIENTS: readonly (readonly [string, Port, (t: ExecutionContext, s: Socket) => void])[] = [
  ['silent', 'http', () => undefined],
  ['silent', 'pg', () => undefined],
  ['slow while they send the head', 'http', (t, socket) => dribble(t, socket, `${HEAD}X: `)],
  ['slow during startup', 'pg', (t, socket) => dribble(t, socket, STARTUP_HEAD)],
  ['slow after startup', 'pg', (t, socket) => dribble(t, socket, STARTUP)],
  ['silent after an SSLRequest', 'pg', (_t, socket) => socket.write(SSL_REQUEST)],
  ['half closed', 'http', (_t, socket) => socket.end(`${HEAD}X`)],
  ['half closed', 'pg', (_t, socket) => socket.end(STARTUP_HEAD)],
  ['refused for invalid bytes', 'http', (_t, socket) => socket.write('nonsense\r\n\r\n')],
  ['refused for invalid bytes', 'pg', (_t, socket) => socket.write('nonsense'.repeat(9))],
  ['requesting a tunnel', 'http', (_t, socket) => socket.write('CONNECT a:1 HTTP/1.1\r\n\r\n')],
  [
    'refused, and slow to send the body',
    'http',
    (t, socket) => dribble(t, socket, `POST /exec HTTP/1.1\r\nHost: localhost\r\n${LENGTH}`),
  ],
  [
    'refused, and do not send the body',
    'http',
    (_t, socket) => socket.write(`POST /imp?name=x HTTP/1.1\r\nHost: localhost\r\n${LENGTH}`),
  ],
  [
    'reading nothing',
    'http',
    (_t, socket) => {
      socket.pause();
      socket.write(`${HEAD}\r\n`.repeat(500));
    },
  ],
];

for (const [what, port, behave] of CLIENTS) {
  test.serial(
    `${MANY} clients that are ${what} (${port}) do not block others and are disconnected`,
    async (t) => {
      for (let index = 0; index < MANY; index += 1) {
        behave(t, await open(t, port));
      }
      await wireLogin();
      t.is(await httpLogin(), 200);
      if (process.platform === 'linux') {
        const started = performance.now();
        await until(
          () => openDescriptors() <= 8,
          `the connections are closed: ${openDescriptors()}`,
        );
        // A wire protocol login may take 10 s; the machine may be busy.
        t.true(performance.now() - started < 40_000);
      }
    },
  );
}

test.serial('unauthenticated connections do not displace logged-in ones', async (t) => {
  const client = pgClient(server.pg);
  await client.connect();
  for (let index = 0; index < MANY; index += 1) {
    await open(t, 'pg');
  }
  await sleep(1_500);
  t.is((await client.query<{ one: number }>('SELECT 1 one')).rows[0]?.one, 1);
  await client.end();
});

test.serial(
  'one remote machine gets only a fraction of the wire protocol connections',
  async (t) => {
    const addresses = Object.values(networkInterfaces()).flat();
    const other = addresses.find((one) => one?.family === 'IPv4' && !one.internal);
    if (other === undefined) {
      t.pass('this machine has only a loopback address');
      return;
    }
    const wide = await startTestServer({
      set: [
        'pg.net.bind.to=0.0.0.0:0',
        'pg.password=other',
        'pg.net.connection.limit.per.address=2',
      ],
    });
    t.teardown(() => wide.stop());
    const clientAt = (host: string): pg.Client => pgClient(wide.pg, { host, password: 'other' });
    const clients = [clientAt(other.address), clientAt(other.address)];
    for (const client of clients) {
      await client.connect();
    }
    const third = clientAt(other.address);
    const error = await t.throwsAsync<pg.DatabaseError>(third.connect());
    t.is(error.code, '53300');
    t.regex(error.message, /too many connections from .* \[limit=2\]/);
    const local = clientAt('127.0.0.1');
    await local.connect();
    for (const client of [...clients, local]) {
      await client.end();
    }
  },
);

test.serial('a connection stays open after a refusal if the request body arrived', async (t) => {
  const socket = await open(t, 'http');
  const request = 'POST /exec HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n';
  let answers = 0;
  socket.setEncoding('latin1').on('data', (text: string) => {
    answers += text.split('HTTP/1.1 401 ').length - 1;
  });
  socket.write(`${request}abcd`);
  await until(() => answers === 1, 'the request is answered');
  socket.write(request);
  await until(() => answers === 2, 'the next request is answered before its body');
  socket.write('abcd');
  // Idle connections to this server end after 2 s. The requests continue for longer than the server
  // may spend reading the remainder of a body.
  for (let round = 3; round < 15; round += 1) {
    await sleep(1_000);
    socket.write(`${request}abcd`);
    await until(() => answers === round || socket.destroyed, `answer ${round}`);
  }
  t.false(socket.destroyed);
  t.is(answers, 14);
});

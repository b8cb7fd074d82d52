/**
 * One shutdown under load. Clients of both protocols are active when SIGTERM arrives. Each client
 * either gets its response or sees the response end with an error in its protocol. The process
 * exits within the time limit with code 0 and leaves no temporary files.
 */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import pg from 'pg';

import { exitCode, startTestServer, type TestServer } from '../golden/server.js';
import { until } from '../until.js';
import { clientMessage, RawClient, startup } from '../pgwire/raw-client.js';
import { exec } from './client.js';
import { pgClient } from '../pg-client.js';

/** Number of clients that report once rows have arrived. */
const STREAMS = 3;
const STOP_MS = 4_000;

/** A query whose filter rejects every row, and which takes longer than any shutdown. */
const HEAVY =
  'SELECT count() FROM long_sequence(1000000) a CROSS JOIN long_sequence(1000000) b ' +
  'WHERE a.x * b.x % 7 = 9';
const PAIRS = HEAVY.replace('count()', 'a.x');
const INSERT = `INSERT INTO t SELECT x::timestamp, x, 'heavy' FROM (${PAIRS})`;
const LONG = 'SELECT x, x * 2 y FROM long_sequence(1000000000)';
const STOPPING = 'the server is shutting down';

/** Resolves on success, or rejects with the problem. `begun` is called once rows have arrived. */
type Client = (server: TestServer, stopped: () => boolean, begun: () => void) => Promise<void>;

class Wrong extends Error {}

class NoAnswer extends Error {
  readonly code: string;
  readonly isReused: boolean;

  constructor(code: string, isReused: boolean) {
    super(`no answer: ${code}`);
    this.code = code;
    this.isReused = isReused;
  }
}

interface HttpEnd {
  readonly status: number;
  readonly text: string;
  readonly complete: boolean;
}

/** Reads a response to its end; only the last characters of a long response are stored. */
function sendHttp(
  server: TestServer,
  path: string,
  send?: (write: (text: string) => Promise<void>) => Promise<void>,
  agent?: Agent,
  begun: () => void = () => undefined,
): Promise<HttpEnd> {
  return new Promise((resolve, reject) => {
    const form = { 'Content-Type': 'multipart/form-data; boundary=b' };
    const sent = request(`${server.url}${path}`, {
      ...(agent === undefined ? {} : { agent }),
      ...(send === undefined ? {} : { method: 'POST', headers: form }),
    });
    sent.once('error', (error: NodeJS.ErrnoException) => {
      reject(new NoAnswer(error.code ?? error.message, sent.reusedSocket));
    });
    sent.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text = (text + chunk).slice(-4_000);
        begun();
      });
      response.once('error', () => undefined);
      response.once('close', () => {
        resolve({ status: response.statusCode ?? 0, text, complete: response.complete });
      });
    });
    if (send === undefined) {
      sent.end();
    } else {
      void send(async (chunk) => {
        if (!sent.write(chunk)) {
          await Promise.race([once(sent, 'drain'), once(sent, 'close')]);
        }
      });
    }
  });
}

const statement = (query: string): string => `/exec?query=${encodeURIComponent(query)}`;

function require(isRight: boolean, what: string): void {
  if (!isRight) {
    throw new Wrong(what);
  }
}

function requireRefusal({ status, text }: HttpEnd): void {
  require(status === 503 && text.includes(STOPPING), `${status} ${text.slice(-300)}`);
}

const heavyOverHttp: Client = async (server) => {
  requireRefusal(await sendHttp(server, statement(HEAVY)));
};

const insertOverHttp: Client = async (server) => {
  requireRefusal(await sendHttp(server, statement(INSERT)));
};

const streamOverHttp: Client = async (server, _stopped, begun) => {
  const path = statement(LONG);
  const { status, text, complete } = await sendHttp(server, path, undefined, undefined, begun);
  require(status === 200 && !complete, `${status}, complete: ${complete}`);
  require(text.endsWith(`],"error":"${STOPPING}","position":0}`), text.slice(-300));
};

const exportOverHttp: Client = async (server, _stopped, begun) => {
  const path = `/exp?query=${encodeURIComponent(LONG)}`;
  const { status, complete } = await sendHttp(server, path, undefined, undefined, begun);
  require(status === 200 && !complete, `${status}, complete: ${complete}`);
};

/** A client that never reads. It cannot be notified, and nothing may wait for it. */
function unread(portOf: (server: TestServer) => number, first: readonly Buffer[]): Client {
  return async (server) => {
    const socket = connect(portOf(server), '127.0.0.1');
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.pause();
    socket.write(Buffer.concat(first));
    socket.unref();
  };
}

const importOverHttp: Client = async (server, stopped) => {
  const path = '/imp?name=imported&timestamp=ts&partitionBy=DAY&forceHeader=true';
  let continues = true;
  const answer = sendHttp(server, path, async (write) => {
    await write('--b\r\nContent-Disposition: form-data; name="data"; filename="x"\r\n\r\nts,v\n');
    for (let row = 0; continues; row += 1) {
      await write(
        `2024-01-01T00:00:00.${String(row % 1000).padStart(3, '0')}Z,${row}\n`.repeat(50),
      );
      await sleep(5);
    }
  });
  const end = await answer.finally(() => {
    continues = false;
  });
  require(stopped(), 'the client ended before the stop');
  requireRefusal(end);
};

/** Sends queries short enough to complete before a shutdown cancels running statements. */
const shortOverHttp: Client = async (server) => {
  for (;;) {
    const query = 'SELECT sum(sqrt(x)) FROM long_sequence(20000000)';
    const { status, text } = await sendHttp(server, statement(query)).catch(disconnected);
    if (status !== 200) {
      require(status === 0 || text.includes(STOPPING), `${status} ${text}`);
      return;
    }
  }
};

/** Sends small queries until the server is closed. */
function small(agent: Agent): Client {
  return async (server) => {
    for (;;) {
      const { status, text } = await sendHttp(
        server,
        statement('SELECT 1'),
        undefined,
        agent,
      ).catch(disconnected);
      require([0, 200].includes(status) || text.includes(STOPPING), `${status} ${text}`);
      if (status === 0) {
        return;
      }
    }
  };
}

/**
 * The server is closed. The operating system resets a client that connects at this moment; a client
 * that was already connected gets a response.
 */
function disconnected(error: unknown): HttpEnd {
  const isRefused = error instanceof NoAnswer && REFUSALS.has(error.code) && !error.isReused;
  require(isRefused, String(error));
  return { status: 0, text: '', complete: true };
}

const REFUSALS: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ECONNRESET']);

function clientOf(server: TestServer): pg.Client {
  const client = pgClient(server.pg);
  client.on('error', () => undefined);
  return client;
}

function wire(query: string): Client {
  return async (server) => {
    const client = clientOf(server);
    await client.connect();
    const code = await client.query(query).then(
      () => 'done',
      (error: unknown) => (error instanceof pg.DatabaseError ? error.code : String(error)),
    );
    require(code === '57P01', `${query.slice(0, 40)}: ${String(code)}`);
  };
}

/** Reads rows until the connection ends. */
const streamOverWire: Client = async (server, _stopped, begun) => {
  const client = await rawLogin(server);
  client.send(clientMessage('Q', LONG.replace('1000000000', '100000000')));
  let last: string | null = null;
  for (let message = await client.next(); message !== null; message = await client.next()) {
    last = message.type === 'E' ? message.body.toString('latin1') : last;
    begun();
  }
  require(last?.includes('57P01') === true, `stream: ${last ?? 'no error'}`);
};

const copyOverWire: Client = async (server, stopped) => {
  const client = await rawLogin(server);
  client.send(clientMessage('Q', 'COPY t FROM STDIN'));
  await client.until('G');
  const ended = client.until('none');
  while (!stopped()) {
    client.send(clientMessage('d', Buffer.from('2024-01-01T00:00:00Z\t1\tcopy\n')));
    await sleep(10);
  }
  const messages = await ended;
  const text = messages.at(-1)?.body.toString('latin1') ?? '';
  require(text.includes('57P01'), `copy: ${text}`);
};

const idleOverWire: Client = async (server) => {
  const client = await rawLogin(server);
  client.send(clientMessage('Q', 'BEGIN'), clientMessage('Q', "INSERT INTO t VALUES (0, 1, 'b')"));
  const messages = await client.until('none');
  const text = messages.at(-1)?.body.toString('latin1') ?? '';
  require(text.includes('57P01'), `idle: ${text}`);
};

/** Logs in repeatedly. */
const loginsOverWire: Client = async (server) => {
  for (;;) {
    const client = clientOf(server);
    let failure: unknown = null;
    client.once('error', (error) => {
      failure = error;
    });
    try {
      await client.connect();
      await client.query('SELECT 1');
      await client.end();
    } catch (thrown) {
      // An error that arrives between two client messages is emitted as an event.
      const error = failure ?? thrown;
      const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
      require(REFUSALS.has(code) || ['57P01', '57P03'].includes(code), `login: ${code}`);
      if (REFUSALS.has(code)) {
        return;
      }
    }
  }
};

function httpPort({ url }: TestServer): number {
  return Number(new URL(url).port);
}

function wirePort(server: TestServer): number {
  return Number(server.pg.split(':')[1]);
}

async function rawLogin(server: TestServer): Promise<RawClient> {
  const client = await RawClient.open(wirePort(server));
  client.send(startup('admin'), clientMessage('p', 'quest'));
  await client.until('Z');
  return client;
}

const CLIENTS: Readonly<Record<string, Client>> = {
  'a heavy query over HTTP': heavyOverHttp,
  'INSERT SELECT over HTTP': insertOverHttp,
  'rows over HTTP': streamOverHttp,
  'a file over HTTP': exportOverHttp,
  'unread rows over HTTP': unread(httpPort, [
    Buffer.from(`GET ${statement(LONG)} HTTP/1.1\r\nHost: localhost\r\n\r\n`),
  ]),
  'unread rows over the wire': unread(wirePort, [
    startup('admin'),
    clientMessage('p', 'quest'),
    clientMessage('Q', LONG),
  ]),
  'an import over HTTP': importOverHttp,
  'short queries over HTTP': shortOverHttp,
  'small queries on separate connections': small(new Agent({ keepAlive: false })),
  'small queries over one connection': small(new Agent({ keepAlive: true, maxSockets: 1 })),
  'a heavy query over the wire': wire(HEAVY),
  'INSERT SELECT over the wire': wire(INSERT),
  'rows over the wire': streamOverWire,
  'COPY over the wire': copyOverWire,
  'an idle block': idleOverWire,
  'logins over the wire': loginsOverWire,
};

/** Returns the problems; empty if there are none. */
export async function stopRound(pauseMs: number): Promise<readonly string[]> {
  const server = await startTestServer({
    set: [`shutdown.timeout=${STOP_MS}ms`, 'pg.auth.method=cleartext', 'query.concurrency=16'],
  });
  const problems: string[] = [];
  await exec(server, 'CREATE TABLE t (ts TIMESTAMP, v LONG, n VARCHAR) TIMESTAMP(ts)');
  let isStopped = false;
  const begun = new Set<string>();
  const ends = Object.entries(CLIENTS).map(async ([name, client]) => {
    try {
      await client(
        server,
        () => isStopped,
        () => begun.add(name),
      );
    } catch (error) {
      problems.push(`${name}: ${error instanceof Wrong ? error.message : String(error)}`);
    }
  });
  await sleep(1_000 + pauseMs);
  await until(() => begun.size === STREAMS || problems.length > 0, 'rows have arrived');
  isStopped = true;
  const started = performance.now();
  server.process.kill('SIGTERM');
  const code = await exitCode(server.process);
  const took = performance.now() - started;
  const late = sleep(5_000, 'late', { ref: false });
  if ((await Promise.race([Promise.all(ends), late])) === 'late') {
    problems.push('a client still waits');
  }
  if (code !== 0) {
    problems.push(`exit code ${code ?? 'none'}: ${server.log().slice(-300)}`);
  }
  if (took > STOP_MS) {
    problems.push(`it took ${Math.round(took)} ms`);
  }
  const left = readdirSync(join(server.root, 'tmp'));
  if (left.length > 0) {
    problems.push(`left below tmp: ${left.join(', ')}`);
  }
  await server.stop();
  return problems;
}

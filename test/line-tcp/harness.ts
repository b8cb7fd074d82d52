/** Clients that send lines over plain TCP sockets. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import type { ExecutionContext } from 'ava';

import type { TestServer } from '../golden/server.js';
import { rows } from '../line/harness.js';
import { until } from '../until.js';

export class Sender {
  readonly socket: Socket;
  /** The system error that closed the connection; '' for a normal close. */
  readonly closed: Promise<string>;
  #isClosed = false;

  constructor(socket: Socket) {
    this.socket = socket;
    let reason = '';
    socket.on('error', (error: NodeJS.ErrnoException) => {
      reason = error.code ?? error.message;
    });
    socket.resume();
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#isClosed = true;
        resolve(reason);
      });
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Resolves when the operating system has accepted the bytes. */
  async send(bytes: string | Uint8Array): Promise<void> {
    await new Promise<void>((resolve) => {
      this.socket.write(bytes, () => {
        // A broken socket calls back synchronously. Yielding lets a sending loop notice the error.
        setImmediate(resolve);
      });
    });
  }

  /** Half-closes the connection; resolves once the server has also closed it. */
  async end(): Promise<void> {
    this.socket.end();
    await this.closed;
  }
}

export function portOf(server: TestServer): number {
  return Number(server.line().split(':').at(-1));
}

export async function open(server: TestServer, t?: ExecutionContext): Promise<Sender> {
  const socket = connect({ host: '127.0.0.1', port: portOf(server) });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  t?.teardown(() => socket.destroy());
  return new Sender(socket);
}

/** Sends everything over a separate connection, and waits until the server has processed it. */
export async function sendAll(
  server: TestServer,
  ...parts: (string | Uint8Array)[]
): Promise<void> {
  const sender = await open(server);
  for (const part of parts) {
    await sender.send(part);
  }
  await sender.end();
}

/** Resolves when a query returns `expected`. A missing table counts as returning nothing. */
export async function shows(
  server: TestServer,
  query: string,
  expected: readonly (readonly unknown[])[],
  headers: Record<string, string> = {},
): Promise<void> {
  let seen = '';
  await until(
    async () => {
      seen = await rows(server, query, headers).then(JSON.stringify, String);
      return seen === JSON.stringify(expected);
    },
    `${query} answers ${JSON.stringify(expected)}`,
  ).catch((error: unknown) => {
    throw new Error(`${String(error)}, but ${seen}`, { cause: error });
  });
}

/** Returns the events with this name from the server log. */
export function events(server: TestServer, name: string): readonly Record<string, unknown>[] {
  return server
    .log()
    .split('\n')
    .filter((line) => line.includes(`"event":"${name}"`))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

/**
 * Counts connections and refuses requests on those over a limit: politely, because a client that
 * is told to come again does, and one whose connection is dropped reports a broken server.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

import { isLoopback } from '../config/index.js';

/** What answers requests; resolves when the answer is out. */
export type Application = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

export interface ConnectionLimits {
  readonly all: number;
  /** Of one address that is not this machine's. */
  readonly perAddress: number;
}

/** So many over the limit are told so; beyond them connections are dropped. */
const REFUSED_AT_ONCE = 64;

export class ConnectionGate {
  readonly #application: Application;
  readonly #limits: () => ConnectionLimits;
  /** By the client's end: an encrypted connection has two sockets here. */
  readonly #refusals = new Map<string, string>();
  readonly #byAddress = new Map<string, number>();
  readonly #open = new Set<Socket>();

  /** `limits` as they are configured now. */
  constructor(application: Application, limits: () => ConnectionLimits) {
    this.#application = application;
    this.#limits = limits;
  }

  /** Connections that are accepted, be it to refuse them. */
  get most(): number {
    return this.#limits().all + REFUSED_AT_ONCE;
  }

  readonly opened = (socket: Socket): void => {
    const client = endOf(socket);
    // A socket of both families tells IPv4 addresses in the longer form.
    const address = (socket.remoteAddress ?? '').replace(/^::ffff:/, '');
    this.#open.add(socket);
    this.#count(address, 1);
    const refusal = this.#refusal(address);
    if (refusal !== null) {
      this.#refusals.set(client, refusal);
    }
    socket.setNoDelay(true);
    socket.once('close', () => {
      this.#refusals.delete(client);
      this.#open.delete(socket);
      this.#count(address, -1);
    });
  };

  /** Ends every connection, whatever it is in the middle of. */
  cutAll(): void {
    for (const socket of this.#open) {
      socket.destroy();
    }
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    const refusal = this.#refusals.size > 0 ? this.#refusals.get(endOf(request.socket)) : undefined;
    if (refusal === undefined) {
      void this.#application(request, response);
      return;
    }
    const body = `${refusal}\r\n`;
    response.writeHead(503, {
      'Content-Type': 'text/plain; charset=utf-8',
      'Content-Length': Buffer.byteLength(body),
      'Retry-After': '1',
      Connection: 'close',
    });
    response.end(body);
  };

  #refusal(address: string): string | null {
    const { all, perAddress } = this.#limits();
    if (this.#open.size > all) {
      return `too many connections [limit=${all}]`;
    }
    const isOver = (this.#byAddress.get(address) ?? 0) > perAddress && !isLoopback(address);
    return isOver ? `too many connections from ${address} [limit=${perAddress}]` : null;
  }

  #count(address: string, change: number): void {
    const count = (this.#byAddress.get(address) ?? 0) + change;
    if (count > 0) {
      this.#byAddress.set(address, count);
    } else {
      this.#byAddress.delete(address);
    }
  }
}

function endOf(socket: Socket): string {
  return `${socket.remoteAddress ?? ''} ${socket.remotePort ?? 0}`;
}

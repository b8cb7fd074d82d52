/**
 * Entry point for requests. While the server is stopping, or if a connection exceeds a limit,
 * requests are refused with a reply. The client can then retry, whereas a dropped connection would
 * look like a broken server.
 */
import { type IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import { type Slot, slotOf, Slots, type SlotLimits } from '../sockets/index.js';
import { ambiguity, type ParserError, type Refusal, refuseMalformed } from './request/malformed.js';
import { announcesBody, PlainRequest } from './request/plain-request.js';
import { watchBody } from './request/request-body.js';
import type { WebSocketConnection } from './websocket/connection.js';
import { attach } from './websocket/upgrade.js';

/** Handles accepted requests. */
export interface Application {
  /** Resolves when the reply has been sent. */
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Handles a WebSocket upgrade request; resolves when the WebSocket has ended. */
  upgrade(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** The open WebSockets. */
  readonly webSockets: ReadonlySet<WebSocketConnection>;
}

/** Maximum pause in the remaining request body, after the reply was sent. */
const REMAINING_BODY_IDLE_MS = 2_000;
/** Maximum time for the remaining request body to arrive, for clients without a login. */
const REMAINING_BODY_MS = 10_000;

const STOPPING = 'the server is shutting down';

export class ConnectionGate {
  readonly #application: Application;
  readonly #slots: Slots;
  /** Responses not yet sent. */
  readonly #running = new Set<ServerResponse>();
  /** Connections that will close because their last reply has been sent. */
  readonly #ending = new WeakSet<object>();
  #isStopping = false;
  #idle: (() => void) | null = null;

  /** `limits` returns the current configuration. */
  constructor(application: Application, limits: () => SlotLimits) {
    this.#application = application;
    this.#slots = new Slots(limits);
  }

  /** Number of open connections. */
  get connections(): number {
    return this.#slots.size;
  }

  readonly opened = (socket: Socket): void => {
    this.#slots.admit(socket);
  };

  readonly encrypted = (socket: Socket): void => {
    this.#slots.carry(socket);
  };

  /**
   * Handles input that the parser rejects. On a connection that is about to close, this input is
   * the remainder of a refused request.
   */
  readonly malformed = (error: ParserError, socket: Duplex): void => {
    if (this.#ending.has(socket)) {
      socket.end();
    } else {
      refuseMalformed(error, socket);
    }
  };

  /** Cancels running statements; their clients receive an error. */
  interrupt(): void {
    this.#slots.interrupt();
  }

  /** Closes every connection immediately. */
  cutAll(): void {
    this.#slots.cutAll();
  }

  /** Refuses new requests from now on. Resolves when the running requests are answered. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const response of this.#running) {
      response.shouldKeepAlive = false;
    }
    for (const connection of this.#application.webSockets) {
      connection.stop();
    }
    await this.#slots.revokeHandoffs();
    if (this.#running.size > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve;
      });
    }
  }

  readonly handle = (request: IncomingMessage, response: ServerResponse): void => {
    if (this.#ending.has(request.socket)) {
      // The request arrived in the same packet as a request that ended the connection.
      return;
    }
    const slot = slotOf(request.socket);
    const refusal = ambiguity(request) ?? this.#refusal(slot);
    if (refusal === null) {
      void this.#answer(request, response, slot);
    } else {
      this.#refuse(request, response, refusal);
    }
  };

  /** Handles a request whose client waits for `100 Continue` before sending the body. */
  readonly holding = (request: IncomingMessage, response: ServerResponse): void => {
    if (request instanceof PlainRequest && announcesBody(request)) {
      request.inviteWhenRead(response);
    } else {
      response.writeContinue();
    }
    this.handle(request, response);
  };

  /** Handles a request with any other Expect header. */
  readonly unexpected = (request: IncomingMessage, response: ServerResponse): void => {
    if (!this.#ending.has(request.socket)) {
      const message = 'Expectation Failed: only 100-continue is supported';
      this.#refuse(request, response, ambiguity(request) ?? { status: 417, message });
    }
  };

  /** Handles a request to upgrade to a WebSocket. Node has already released its socket. */
  readonly upgraded = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    socket.on('error', () => undefined);
    if (this.#ending.has(socket)) {
      return;
    }
    if (head.length > 0) {
      socket.unshift(head);
    }
    const slot = slotOf(socket);
    const response = new ServerResponse(request);
    attach(response, socket);
    const refusal = ambiguity(request) ?? this.#refusal(slot);
    if (refusal === null) {
      void this.#upgrade(request, response, slot);
    } else {
      refuse(request, response, refusal);
    }
  };

  async #upgrade(
    request: IncomingMessage,
    response: ServerResponse,
    slot: Slot | undefined,
  ): Promise<void> {
    this.#running.add(response);
    const serve = (): Promise<void> => this.#application.upgrade(request, response);
    await (slot === undefined ? serve() : slot.during(serve));
    this.#answered(response);
  }

  #refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal): void {
    this.#ending.add(request.socket);
    refuse(request, response, refusal);
  }

  #refusal(slot: Slot | undefined): Refusal | null {
    const message = this.#isStopping ? STOPPING : (slot?.refusal ?? null);
    return message === null ? null : { status: 503, message };
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    slot: Slot | undefined,
  ): Promise<void> {
    this.#running.add(response);
    if (slot === undefined || slot.hasEntered) {
      await this.#application.answer(request, response);
    } else {
      await slot.during(() => this.#application.answer(request, response));
    }
    if (!request.complete && !request.destroyed) {
      watchRemainingBody(request, response, slot);
    }
    if (response.writableEnded || response.destroyed) {
      this.#answered(response);
    } else {
      response.once('close', () => {
        this.#answered(response);
      });
    }
  }

  #answered(response: ServerResponse): void {
    this.#running.delete(response);
    if (this.#running.size === 0) {
      this.#idle?.();
    }
  }
}

function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  { status, message }: Refusal,
): void {
  const body = `${message}\r\n`;
  response.writeHead(status, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
    ...(status === 503 ? { 'Retry-After': '1' } : {}),
    Connection: 'close',
  });
  response.end(body);
  request.resume();
}

/**
 * Lets the client finish sending a body that no handler reads, but limits the time that the
 * connection stays open for this.
 */
function watchRemainingBody(
  request: IncomingMessage,
  response: ServerResponse,
  slot: Slot | undefined,
): void {
  const watch = (): void => {
    if (request.complete) {
      return;
    }
    const cut = (): void => {
      // The connection may already be processing another request.
      if (!request.complete) {
        request.socket.destroy();
      }
    };
    const stop = watchBody(request, REMAINING_BODY_IDLE_MS, cut);
    const late =
      slot?.hasEntered === false ? setTimeout(cut, REMAINING_BODY_MS).unref() : undefined;
    request.once('close', () => {
      stop();
      clearTimeout(late);
    });
  };
  if (response.writableFinished) {
    watch();
  } else {
    response.once('finish', watch);
  }
}

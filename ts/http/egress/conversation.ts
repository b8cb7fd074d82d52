/**
 * The message exchange on a query connection: runs one statement after another, and processes
 * credit and cancel messages while a statement is running.
 */
import {
  asDatabaseError,
  type DurationObserver,
  type SessionHost,
  errorMeaning,
} from '../../session/index.js';
import type { Logger } from '../../observability/index.js';
import { ClientDisconnected } from '../response/body-writer.js';
import { type QueryRequest, readClientMessage, type RequestLimits } from './client-messages.js';
import { STATUS } from '../qwp-status.js';
import type { LastingLogin } from '../websocket/lasting-login.js';
import { failureOf, MalformedMessage, requestFailure } from './failure.js';
import { type BatchOptions, type Outlet, Query } from './query.js';
import * as reply from './server-messages.js';

/** The connection interface used here. */
export interface Peer {
  messages(): AsyncIterable<Buffer>;
  send(...buffers: readonly Buffer[]): Promise<void>;
  close(code: number, reason?: string): void;
  /** Aborted once no client is waiting for a reply. */
  readonly ended: AbortSignal;
  readonly isStopping: boolean;
}

/** Records statement durations. */
interface ConversationOptions {
  readonly peer: Peer;
  readonly sessions: SessionHost;
  readonly login: LastingLogin;
  /** Records the duration of statements. */
  readonly seconds?: DurationObserver;
  readonly limits: RequestLimits;
  /** Returns the current options; called when a statement starts. */
  readonly batches: () => BatchOptions;
  readonly logger: Logger;
}

/** Close code for a protocol violation. */
const CLOSE_PROTOCOL_ERROR = 1002;
const NO_QUERY = -1n;

export class Conversation implements Outlet {
  readonly #options: ConversationOptions;
  #query: Query | null = null;
  #running: Promise<void> = Promise.resolve();
  /** Whether the client may still have symbols from an earlier query. */
  #hasSymbols = false;

  constructor(options: ConversationOptions) {
    this.#options = options;
  }

  /** Resolves when the conversation ends. */
  async run(): Promise<void> {
    const { peer } = this.#options;
    const onClose = (): void => this.#query?.stop();
    peer.ended.addEventListener('abort', onClose);
    try {
      await peer.send(reply.serverInfo());
      for await (const bytes of peer.messages()) {
        if (!(await this.#handle(bytes))) {
          break;
        }
      }
      if (!peer.isStopping) {
        onClose();
      }
      await this.#running;
    } finally {
      onClose();
      peer.ended.removeEventListener('abort', onClose);
    }
  }

  send(...buffers: readonly Buffer[]): Promise<void> {
    return this.#options.peer.send(...buffers);
  }

  async beginSymbols(resets: boolean, hasSymbols: boolean): Promise<void> {
    if (resets || this.#hasSymbols) {
      await this.send(reply.cacheReset());
    }
    this.#hasSymbols = hasSymbols;
  }

  /** Returns false if the connection must close. */
  async #handle(bytes: Buffer): Promise<boolean> {
    let message;
    try {
      message = readClientMessage(bytes, this.#options.limits);
    } catch (error) {
      return this.#refuse(error);
    }
    switch (message.kind) {
      case 'query':
        await this.#begin(message);
        break;
      case 'cancel':
        if (message.id === this.#query?.id) {
          this.#query.stop();
        }
        break;
      case 'credit':
        if (message.id === this.#query?.id) {
          this.#query.grant(message.bytes);
        }
        break;
    }
    return true;
  }

  async #refuse(error: unknown): Promise<boolean> {
    if (!(error instanceof MalformedMessage)) {
      throw error;
    }
    const failure = requestFailure(error);
    if (error.id !== null && error.id !== this.#query?.id) {
      await this.send(reply.queryError(error.id, failure));
      return true;
    }
    this.#query?.stop();
    await this.#running;
    await this.send(reply.queryError(NO_QUERY, failure));
    this.#options.peer.close(CLOSE_PROTOCOL_ERROR, failure.message);
    return false;
  }

  async #begin(request: QueryRequest): Promise<void> {
    if (this.#query !== null) {
      const message = `a query is already running on this connection [id=${this.#query.id}]`;
      if (request.id === this.#query.id) {
        // The running query has the same id, so an error reply with this id would make the client
        // end that query.
        await this.#refuse(new MalformedMessage(message));
        return;
      }
      const failure = { status: STATUS.limitExceeded, message };
      await this.send(reply.queryError(request.id, failure));
      return;
    }
    const { sessions, login, batches, seconds } = this.#options;
    const limits = { ...batches(), timeoutMs: sessions.timeoutMs(request.timeoutMs) };
    const query = new Query(request, sessions.open(login, false, seconds), limits, this);
    this.#query = query;
    this.#running = this.#finish(query);
  }

  /** Runs the query to its end; never rejects. */
  async #finish(query: Query): Promise<void> {
    const { login, peer, logger } = this.#options;
    let last: Buffer | null = null;
    try {
      const refusal = await login.refusal();
      if (refusal === null) {
        await query.run();
      } else {
        last = reply.queryError(query.id, failureOf(refusal));
      }
    } catch (error) {
      if (!(error instanceof ClientDisconnected)) {
        const failure = asDatabaseError(error);
        const { logLevel } = errorMeaning(failure.code);
        const { code, message, cause } = failure;
        const why = cause === undefined ? {} : { cause };
        logger.log(logLevel, 'query_failed', { path: 'qwp', code, message, ...why });
        last = reply.queryError(query.id, failureOf(failure, query.hasOwnTime));
      }
    }
    this.#query = null;
    if (last !== null && !peer.ended.aborted) {
      await this.send(last).catch(() => undefined);
    }
  }
}

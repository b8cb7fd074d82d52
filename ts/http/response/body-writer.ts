/**
 * Writes an answer of unknown length: one chunk at a time, each only when the socket took the
 * one before. A client that goes away, or stops reading, ends the answer.
 */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';

import { DatabaseError } from '../../session/index.js';
import { slotOf } from '../../sockets/index.js';
import { type Compressor, createCompressor } from './compression.js';
import type { Coding } from '../request/negotiation.js';

/** How often it is looked whether the client takes anything. */
const STALL_CHECKS = 12;

/**
 * Between the last bytes of a broken answer and the end of its connection. A browser that learns
 * of both at once forgets what its page has not read yet, the reason among it.
 */
const LAST_WORDS_MS = 250;

/** The client closed its connection; nothing is left to answer. */
export class ClientGone extends Error {
  override readonly name = 'ClientGone';

  constructor() {
    super('the client closed its connection');
  }
}

export class BodyWriter {
  readonly #response: ServerResponse;
  readonly #compressor: Compressor | null;
  readonly #sink: Writable;
  readonly #stallMs: number;

  /**
   * The head must be set before; a `coding` adds `Content-Encoding`. A client that takes nothing
   * for `stallMs` is gone.
   */
  constructor(response: ServerResponse, coding: Coding | null, stallMs: number) {
    this.#response = response;
    this.#stallMs = stallMs;
    if (coding === null) {
      this.#compressor = null;
    } else {
      response.setHeader('Content-Encoding', coding);
      response.appendHeader('Vary', 'Accept-Encoding');
      this.#compressor = createCompressor(coding);
      this.#compressor.pipe(response);
    }
    this.#sink = this.#compressor ?? response;
  }

  /** Resolves when more may come; rejects with `ClientGone`, or `Closed` when the server stops. */
  async write(bytes: Buffer | string): Promise<void> {
    if (this.#response.destroyed) {
      throw new ClientGone();
    }
    if (!this.#sink.write(bytes)) {
      await this.#drained();
    }
  }

  end(bytes: Buffer | string): void {
    this.#sink.end(bytes);
  }

  /** Sends `bytes`, then closes without the chunk that would say "complete". */
  async cut(bytes: string): Promise<void> {
    const closing = once(this.#response, 'close');
    this.#sink.write(bytes, () => {
      const destroy = (): void => {
        setTimeout(() => this.#response.socket?.destroySoon(), LAST_WORDS_MS);
      };
      if (this.#compressor === null) {
        destroy();
      } else {
        this.#compressor.flush(destroy);
      }
    });
    await closing;
  }

  async #drained(): Promise<void> {
    const watch = new AbortController();
    const gone = (): void => {
      watch.abort();
    };
    const stall = watchStall(this.#response, this.#stallMs, gone);
    const { socket } = this.#response;
    const stopping = socket === null ? undefined : slotOf(socket)?.stopping;
    this.#response.once('close', gone);
    stopping?.addEventListener('abort', gone);
    try {
      await once(this.#sink, 'drain', { signal: watch.signal });
    } catch {
      if (stopping?.aborted === true && !this.#response.destroyed) {
        throw new DatabaseError({ code: 'Closed', message: 'the server is shutting down' });
      }
      throw new ClientGone();
    } finally {
      clearInterval(stall);
      this.#response.off('close', gone);
      stopping?.removeEventListener('abort', gone);
    }
  }
}

/** Destroys a response whose socket takes no byte for `stallMs`. */
function watchStall(response: ServerResponse, stallMs: number, gone: () => void): NodeJS.Timeout {
  let waiting = response.socket?.writableLength ?? 0;
  let since = performance.now();
  return setInterval(() => {
    const now = response.socket?.writableLength ?? 0;
    if (now !== waiting) {
      waiting = now;
      since = performance.now();
    } else if (performance.now() - since >= stallMs) {
      response.destroy();
      gone();
    }
  }, stallMs / STALL_CHECKS).unref();
}

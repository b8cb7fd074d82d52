/**
 * Writes a response of unknown length. Each chunk is written only after the socket has accepted the
 * previous one. The response ends early if its client disconnects or stops reading.
 */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Writable } from 'node:stream';

import { DatabaseError } from '../../session/index.js';
import { slotOf } from '../../sockets/index.js';
import { type Compressor, createCompressor } from './compression.js';
import type { Coding } from '../request/negotiation.js';

/** Number of checks per stall timeout. */
const STALL_CHECKS = 12;

/**
 * Delay between the last bytes of a failed response and the end of its connection. A browser that
 * receives both together discards the unread data, including the error.
 */
const LINGER_MS = 250;

/** Reports that the client closed its connection, so no response is needed. */
export class ClientDisconnected extends Error {
  override readonly name = 'ClientDisconnected';

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
   * Headers must be set before this call; a `coding` adds `Content-Encoding`. A client that does
   * not accept any bytes for `stallMs` is treated as disconnected.
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

  /**
   * Resolves when more data may be written. Rejects with `ClientDisconnected`, or with `Closed` if
   * the server stops.
   */
  async write(bytes: Buffer | string): Promise<void> {
    if (this.#response.destroyed) {
      throw new ClientDisconnected();
    }
    if (!this.#sink.write(bytes)) {
      await this.#drained();
    }
  }

  end(bytes: Buffer | string): void {
    this.#sink.end(bytes);
  }

  /**
   * Sends `bytes`, then closes the connection without the final chunk, so that the client sees an
   * incomplete response.
   */
  async cut(bytes: string): Promise<void> {
    const closing = once(this.#response, 'close');
    this.#sink.write(bytes, () => {
      const destroy = (): void => {
        setTimeout(() => this.#response.socket?.destroySoon(), LINGER_MS);
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
    const stopWaiting = (): void => {
      watch.abort();
    };
    const stall = watchStall(this.#response, this.#stallMs, stopWaiting);
    const { socket } = this.#response;
    const stopping = socket === null ? undefined : slotOf(socket)?.stopping;
    this.#response.once('close', stopWaiting);
    stopping?.addEventListener('abort', stopWaiting);
    try {
      await once(this.#sink, 'drain', { signal: watch.signal });
    } catch {
      if (stopping?.aborted === true && !this.#response.destroyed) {
        throw new DatabaseError({ code: 'Closed', message: 'the server is shutting down' });
      }
      throw new ClientDisconnected();
    } finally {
      clearInterval(stall);
      this.#response.off('close', stopWaiting);
      stopping?.removeEventListener('abort', stopWaiting);
    }
  }
}

/** Destroys a response whose socket accepts no bytes for `stallMs`. */
function watchStall(
  response: ServerResponse,
  stallMs: number,
  onStall: () => void,
): NodeJS.Timeout {
  let waiting = response.socket?.writableLength ?? 0;
  let since = performance.now();
  return setInterval(() => {
    const now = response.socket?.writableLength ?? 0;
    if (now !== waiting) {
      waiting = now;
      since = performance.now();
    } else if (performance.now() - since >= stallMs) {
      response.destroy();
      onStall();
    }
  }, stallMs / STALL_CHECKS).unref();
}

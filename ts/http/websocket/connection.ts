/**
 * A WebSocket after its upgrade. Messages are processed in order. The socket is read only as far as
 * the buffer limit allows, and writes wait for the socket.
 */
import type { Socket } from 'node:net';
import { once } from 'node:events';

import type { BufferedMessages, WebSocketReader } from '../../session/index.js';
import { ClientDisconnected } from '../response/body-writer.js';

/** Close codes. */
export const CLOSE = { normal: 1000, goingAway: 1001, failure: 1011 } as const;

/** Maximum size of buffered messages in bytes; when it is exceeded, the socket is paused. */
const READ_AHEAD_BYTES = 1024 * 1024;
/** The operating system probes a silent client after this time. */
const KEEP_ALIVE_MS = 60_000;
/** Maximum size of a close reason, in bytes: a control frame carries at most 125 bytes. */
const MAX_REASON_BYTES = 123;

const BINARY = 0x82;
const CLOSING = 0x88;

export class WebSocketConnection {
  /** Resolves when the socket has ended. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #reader: WebSocketReader;
  readonly #ended = new AbortController();
  #messages: Buffer[] = [];
  /** Whether messages may have been buffered since `bufferedMessages` last yielded the reader. */
  #hasBuffered = false;
  #waitingBytes = 0;
  #wake: (() => void) | null = null;
  /**
   * True if no more messages will arrive, because the client closed the connection or violated the
   * protocol, or the server is stopping.
   */
  #isOver = false;
  #isStopping = false;
  #hasClosed = false;

  /** `stopping` aborts when the server stops; it also ends work in progress. */
  constructor(socket: Socket, reader: WebSocketReader, stopping?: AbortSignal) {
    this.#socket = socket;
    this.#reader = reader;
    const end = (): void => {
      this.#ended.abort();
      this.#finish();
    };
    stopping?.addEventListener('abort', end);
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        stopping?.removeEventListener('abort', end);
        end();
        resolve();
      });
    });
    socket.on('error', () => undefined);
    socket.on('end', () => {
      // A half-open connection is treated as closed, because no client would read the replies.
      end();
      socket.destroySoon();
    });
    socket.setTimeout(0);
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    socket.on('data', this.#received);
    if (socket.destroyed) {
      end();
    }
  }

  /** Aborted when no client is reading replies, or when the server interrupts running work. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the server is ending the connection. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** Yields the client's messages, until the client closes or the server stops. */
  async *messages(): AsyncGenerator<Buffer, void> {
    for (;;) {
      // A message whose processing had not started when the server stopped must be resent by the
      // client.
      const message = this.#isStopping ? undefined : this.#messages.shift();
      if (message !== undefined) {
        this.#waitingBytes -= message.length;
        yield message;
      } else if (this.#isOver) {
        return;
      } else {
        await this.#arrival();
      }
    }
  }

  /**
   * Yields the reader whenever it has buffered messages, until the client closes or the server
   * stops. The consumer calls `reportRemaining` with the number of messages that it left in the
   * buffer.
   */
  async *bufferedMessages(): AsyncGenerator<WebSocketReader, void> {
    while (!this.#isStopping) {
      if (this.#hasBuffered) {
        this.#hasBuffered = false;
        yield this.#reader;
      } else if (this.#isOver) {
        return;
      } else {
        await this.#arrival();
      }
    }
  }

  /**
   * Reports how many messages the consumer left in the buffer. More messages may have arrived in
   * the meantime.
   */
  reportRemaining({ count, bytes }: BufferedMessages): void {
    this.#hasBuffered ||= count > 0;
    this.#waitingBytes = bytes;
    if (bytes <= READ_AHEAD_BYTES) {
      this.#socket.resume();
    }
  }

  async #arrival(): Promise<void> {
    this.#socket.resume();
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  /**
   * Sends one binary message; resolves when more data may be sent. Rejects with
   * `ClientDisconnected`.
   */
  async send(...buffers: readonly Buffer[]): Promise<void> {
    await this.sendAll([buffers]);
  }

  /** Sends several messages, each as a list of buffers. */
  async sendAll(messages: readonly (readonly Buffer[])[]): Promise<void> {
    if (this.#hasClosed || !this.#socket.writable) {
      throw new ClientDisconnected();
    }
    let isAccepted = true;
    this.#socket.cork();
    for (const buffers of messages) {
      const length = buffers.reduce((sum, buffer) => sum + buffer.length, 0);
      isAccepted = this.#socket.write(frameHead(BINARY, length));
      for (const buffer of buffers) {
        isAccepted = this.#socket.write(buffer);
      }
    }
    this.#socket.uncork();
    if (!isAccepted && this.#socket.writableNeedDrain) {
      await once(this.#socket, 'drain', { signal: this.ended }).catch(() => {
        throw new ClientDisconnected();
      });
    }
  }

  /** Closes the connection with a code and a reason; only the first call has an effect. */
  close(code: number, reason = ''): void {
    if (!this.#hasClosed && this.#socket.writable) {
      const text = Buffer.from(reason).subarray(0, MAX_REASON_BYTES);
      const payload = Buffer.alloc(2 + text.length);
      payload.writeUInt16BE(code);
      text.copy(payload, 2);
      this.#socket.write(Buffer.concat([frameHead(CLOSING, payload.length), payload]));
    }
    this.#end();
  }

  /** Stops reading; the handler finishes the messages it has started. */
  stop(): void {
    this.#isStopping = true;
    this.#finish();
  }

  readonly #received = (bytes: Buffer): void => {
    if (this.#isOver) {
      return;
    }
    const { messages, buffered, reply, isOver, failure } = this.#reader.receive(bytes);
    this.#messages.push(...messages);
    this.#waitingBytes += messages.reduce((sum, message) => sum + message.length, 0);
    if (buffered.count > 0) {
      this.#hasBuffered = true;
      this.#waitingBytes = buffered.bytes;
    }
    if (reply !== null && this.#socket.writable) {
      this.#socket.write(reply);
    }
    if (failure !== null) {
      this.close(failure.code, failure.reason);
    }
    if (isOver) {
      this.#end();
    }
    if (this.#waitingBytes > READ_AHEAD_BYTES) {
      this.#socket.pause();
    }
    this.#notify();
  };

  /** Refuses further data, but still sends data that is already queued. */
  #end(): void {
    this.#hasClosed = true;
    this.#finish();
    this.#socket.resume();
    this.#socket.end();
  }

  #finish(): void {
    this.#isOver = true;
    this.#notify();
  }

  #notify(): void {
    this.#wake?.();
    this.#wake = null;
  }
}

/** The header of a frame that is a complete message; server frames are not masked. */
function frameHead(first: number, length: number): Buffer {
  if (length < 126) {
    return Buffer.from([first, length]);
  }
  if (length <= 0xff_ff) {
    return Buffer.from([first, 126, length >> 8, length & 0xff]);
  }
  const head = Buffer.alloc(10);
  head.set([first, 127]);
  head.writeBigUInt64BE(BigInt(length), 2);
  return head;
}

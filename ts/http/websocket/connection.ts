/**
 * One WebSocket after its upgrade: messages come one after the other, and no more is read of the
 * socket than may wait; what is sent waits for the socket to take it.
 */
import type { Socket } from 'node:net';
import { once } from 'node:events';

import type { KeptMessages, WebSocketReader } from '../../session/index.js';
import { ClientGone } from '../response/body-writer.js';

/** Codes of the close. */
export const CLOSE = { normal: 1000, goingAway: 1001, failure: 1011 } as const;

/** Messages that wait may have so many bytes until the socket is read no further. */
const READ_AHEAD_BYTES = 1024 * 1024;
/** A client that says nothing is asked by the operating system whether it is there. */
const KEEP_ALIVE_MS = 60_000;
/** Of a reason for a close: the frame has at most 125 bytes. */
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
  /** Whether the reader may keep messages since its last one was asked for. */
  #hasKept = false;
  #waitingBytes = 0;
  #wake: (() => void) | null = null;
  /** Nothing more comes: the client closed, broke a rule, or the server stops. */
  #isOver = false;
  #isStopping = false;
  #hasClosed = false;

  /** `stopping` is called when what runs is to end because the server does. */
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
      // Half an open connection is none: no client would read the answers.
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

  /** Called when no client reads an answer any more, and when the server interrupts. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Whether the server ends it. */
  get isStopping(): boolean {
    return this.#isStopping;
  }

  /** The client's messages, until it closes or the server stops. */
  async *messages(): AsyncGenerator<Buffer, void> {
    for (;;) {
      // What came before the server stopped and was not begun is the client's to send again.
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
   * The reader, whenever it keeps messages, until the client closes or the server stops. Who takes
   * them says what is left, by `leaves`.
   */
  async *kept(): AsyncGenerator<WebSocketReader, void> {
    while (!this.#isStopping) {
      if (this.#hasKept) {
        this.#hasKept = false;
        yield this.#reader;
      } else if (this.#isOver) {
        return;
      } else {
        await this.#arrival();
      }
    }
  }

  /** Of messages that are kept. Others may have come meanwhile. */
  leaves({ count, bytes }: KeptMessages): void {
    this.#hasKept ||= count > 0;
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

  /** Sends one binary message; resolves when more may come. Rejects with `ClientGone`. */
  async send(...parts: readonly Buffer[]): Promise<void> {
    await this.sendAll([parts]);
  }

  /** The same for several messages, each of which is given in parts. */
  async sendAll(messages: readonly (readonly Buffer[])[]): Promise<void> {
    if (this.#hasClosed || !this.#socket.writable) {
      throw new ClientGone();
    }
    let isTaken = true;
    this.#socket.cork();
    for (const parts of messages) {
      const length = parts.reduce((sum, part) => sum + part.length, 0);
      isTaken = this.#socket.write(frameHead(BINARY, length));
      for (const part of parts) {
        isTaken = this.#socket.write(part);
      }
    }
    this.#socket.uncork();
    if (!isTaken && this.#socket.writableNeedDrain) {
      await once(this.#socket, 'drain', { signal: this.ended }).catch(() => {
        throw new ClientGone();
      });
    }
  }

  /** Says that it is over, and why; the first time counts. */
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

  /** Reads no further: who serves it finishes what it has begun. */
  stop(): void {
    this.#isStopping = true;
    this.#finish();
  }

  readonly #received = (bytes: Buffer): void => {
    if (this.#isOver) {
      return;
    }
    const { messages, kept, reply, isOver, failure } = this.#reader.receive(bytes);
    this.#messages.push(...messages);
    this.#waitingBytes += messages.reduce((sum, message) => sum + message.length, 0);
    if (kept.count > 0) {
      this.#hasKept = true;
      this.#waitingBytes = kept.bytes;
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

  /** Nothing is said any more; what was said before still goes out. */
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

/** The head of a frame that is a whole message; those of servers are not masked. */
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

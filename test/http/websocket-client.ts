/**
 * A small WebSocket client over a plain or encrypted socket, which can also violate the protocol.
 */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { connect as connectEncrypted } from 'node:tls';

import { within } from '../until.js';

const ACCEPT_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

interface ClientOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** Bytes sent immediately after the request. */
  readonly behind?: Buffer;
  readonly encrypted?: boolean;
}

/** A frame sent by the server or a client. */
interface Frame {
  readonly kind: number;
  readonly payload: Buffer;
}

export const KIND = { text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

/**
 * Builds a masked frame with a complete message or, if `isLast` is false, with a fragment of one.
 */
export function maskedFrame(kind: number, payload: Buffer, isLast = true): Buffer {
  const { length } = payload;
  const first = (isLast ? 0x80 : 0) | kind;
  const head = Buffer.alloc(length < 126 ? 2 : length <= 0xff_ff ? 4 : 10);
  head[0] = first;
  if (length < 126) {
    head[1] = 0x80 | length;
  } else if (length <= 0xff_ff) {
    head[1] = 0x80 | 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 0x80 | 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  const mask = randomBytes(4);
  const masked = Buffer.from(payload);
  for (let at = 0; at < masked.length; at += 1) {
    masked[at] = (masked[at] ?? 0) ^ (mask[at & 3] ?? 0);
  }
  return Buffer.concat([head, mask, masked]);
}

/** A server's refusal of an upgrade request. */
export class Refused extends Error {
  readonly status: number;
  readonly head: string;

  constructor(status: number, head: string) {
    super(`status ${status}`);
    this.status = status;
    this.head = head;
  }
}

export class WebSocketClient {
  readonly socket: Socket;
  /** Head of the 101 response. */
  readonly head: string;
  readonly #closed: Promise<unknown>;
  #bytes: Buffer;
  #isOver = false;
  #wake: () => void = () => undefined;

  private constructor(socket: Socket, head: string, rest: Buffer) {
    this.socket = socket;
    this.head = head;
    this.#bytes = rest;
    socket.on('data', (bytes: Buffer) => {
      this.#bytes = Buffer.concat([this.#bytes, bytes]);
      this.#wake();
    });
    // Does not use `once`, which rejects if the connection is reset.
    this.#closed = new Promise<void>((resolve) => {
      socket.once('close', () => {
        this.#isOver = true;
        this.#wake();
        resolve();
      });
    });
  }

  /** Rejects with `Refused` if the server does not upgrade the connection. */
  static async open(
    port: number,
    path: string,
    options: ClientOptions = {},
  ): Promise<WebSocketClient> {
    const { headers = {}, behind = Buffer.alloc(0), encrypted = false } = options;
    const key = randomBytes(16).toString('base64');
    const all: Record<string, string> = {
      Host: `127.0.0.1:${port}`,
      Upgrade: 'websocket',
      Connection: 'Upgrade',
      'Sec-WebSocket-Version': '13',
      'Sec-WebSocket-Key': key,
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    const socket = encrypted
      ? connectEncrypted({ port, host: '127.0.0.1', rejectUnauthorized: false })
      : connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(
      Buffer.concat([Buffer.from(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`), behind]),
    );
    const { head, rest } = await readHead(socket);
    const status = Number(head.slice(9, 12));
    if (status !== 101) {
      socket.destroy();
      throw new Refused(status, head);
    }
    const expected = createHash('sha1').update(`${key}${ACCEPT_SUFFIX}`).digest('base64');
    if (!head.includes(`Sec-WebSocket-Accept: ${expected}`)) {
      throw new Error(`wrong accept in ${head}`);
    }
    return new WebSocketClient(socket, head, rest);
  }

  send(payload: Buffer, kind: number = KIND.binary): void {
    this.socket.write(maskedFrame(kind, payload));
  }

  /** Returns the next frame; null at the end of the connection. Rejects on a timeout. */
  async receive(): Promise<Frame | null> {
    for (;;) {
      const frame = this.#takeFrame();
      if (frame !== null || this.#isOver) {
        return frame;
      }
      const woken = new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      await within(woken, () => 'a frame arrives');
    }
  }

  /** Returns the code of the close frame that follows; null if the connection ends without one. */
  async receiveClose(): Promise<number | null> {
    const frame = await this.receive();
    await within(this.#closed, () => 'the connection ends');
    return frame?.kind === KIND.close ? frame.payload.readUInt16BE(0) : null;
  }

  #takeFrame(): Frame | null {
    const bytes = this.#bytes;
    const [first = 0, short = 0] = bytes;
    const headLength = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (bytes.length < headLength) {
      return null;
    }
    const length =
      short < 126
        ? short
        : short === 126
          ? bytes.readUInt16BE(2)
          : Number(bytes.readBigUInt64BE(2));
    if (bytes.length < headLength + length) {
      return null;
    }
    this.#bytes = bytes.subarray(headLength + length);
    return { kind: first & 0x0f, payload: bytes.subarray(headLength, headLength + length) };
  }
}

async function readHead(socket: Socket): Promise<{ head: string; rest: Buffer }> {
  let bytes = Buffer.alloc(0);
  for await (const [chunk] of dataOf(socket)) {
    bytes = Buffer.concat([bytes, chunk]);
    const end = bytes.indexOf('\r\n\r\n');
    if (end >= 0) {
      return { head: bytes.toString('latin1', 0, end + 2), rest: bytes.subarray(end + 4) };
    }
  }
  throw new Refused(0, bytes.toString('latin1'));
}

async function* dataOf(socket: Socket): AsyncGenerator<[Buffer]> {
  const ended = new AbortController();
  socket.once('close', () => {
    ended.abort();
  });
  for (;;) {
    try {
      yield (await once(socket, 'data', { signal: ended.signal })) as [Buffer];
    } catch {
      return;
    }
  }
}

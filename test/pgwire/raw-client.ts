/** A client that sends raw messages, exactly as a test specifies them. */
import { connect, type Socket } from 'node:net';

import type { ClientMessage } from '../../ts/pgwire/protocol/client-messages.js';
import { boundValues } from './parameter-rows.js';

/** A server message. */
export interface ServerMessage {
  readonly type: string;
  readonly body: Buffer;
}

const WAIT_MS = 60_000;

/** A frontend message; numbers are 32-bit, `[n]` 16-bit, strings are zero-terminated. */
export function clientMessage(
  type: string,
  ...parts: readonly (string | number | readonly [number] | Buffer)[]
): Buffer {
  const body = Buffer.concat(parts.map(part));
  const header = Buffer.alloc(type === '' ? 4 : 5);
  header.write(type, 0, 'latin1');
  header.writeInt32BE(body.length + 4, type.length);
  return Buffer.concat([header, body]);
}

function part(value: string | number | readonly [number] | Buffer): Buffer {
  if (Buffer.isBuffer(value)) {
    return value;
  }
  if (typeof value === 'string') {
    return Buffer.from(`${value}\0`);
  }
  const bytes = Buffer.alloc(typeof value === 'number' ? 4 : 2);
  if (typeof value === 'number') {
    bytes.writeInt32BE(value);
  } else {
    bytes.writeInt16BE(value[0]);
  }
  return bytes;
}

/** Returns a decoded message, with the values of a Bind instead of their offsets. */
export function shown(message: ClientMessage | null): unknown {
  return message?.kind === 'bind' ? { ...message, parameters: boundValues(message) } : message;
}

export function startup(user: string, minor = 0, more: readonly string[] = []): Buffer {
  return clientMessage('', 196_608 + minor, 'user', user, ...more, Buffer.from([0]));
}

export class RawClient {
  readonly socket: Socket;
  private received = Buffer.alloc(0);
  private closed = false;
  private wake: () => void = () => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('data', (chunk) => {
      this.received = Buffer.concat([this.received, Buffer.from(chunk)]);
      this.wake();
    });
    socket.on('close', () => {
      this.closed = true;
      this.wake();
    });
    socket.on('error', () => undefined);
  }

  static open(port: number): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => {
        resolve(new RawClient(socket));
      });
      socket.once('error', reject);
    });
  }

  /** Logs in with a clear-text password and reads up to and including the first ReadyForQuery. */
  static async login(port: number, user = 'admin', password = 'quest'): Promise<RawClient> {
    const client = await RawClient.open(port);
    client.send(startup(user), clientMessage('p', password));
    await client.until('Z');
    return client;
  }

  send(...messages: readonly Buffer[]): void {
    this.socket.write(Buffer.concat(messages));
  }

  /** Returns a single byte, such as the response to SSLRequest. */
  async byte(): Promise<string> {
    await this.need(() => this.received.length > 0);
    const byte = this.received.subarray(0, 1).toString('latin1');
    this.received = this.received.subarray(1);
    return byte;
  }

  /** Returns the next message, or null at the end of the connection. */
  async next(): Promise<ServerMessage | null> {
    const complete = (): boolean =>
      this.received.length >= 5 && this.received.length > this.received.readInt32BE(1);
    await this.need(() => complete() || this.closed);
    if (!complete()) {
      return null;
    }
    const length = this.received.readInt32BE(1) + 1;
    const message = this.received.subarray(0, length);
    this.received = this.received.subarray(length);
    return { type: message.subarray(0, 1).toString('latin1'), body: message.subarray(5) };
  }

  /** Returns messages up to and including the first one of this type, or up to the end. */
  async until(type: string): Promise<ServerMessage[]> {
    const all: ServerMessage[] = [];
    for (;;) {
      const message = await this.next();
      if (message === null) {
        return all;
      }
      all.push(message);
      if (message.type === type) {
        return all;
      }
    }
  }

  /** Returns the types of the messages up to ReadyForQuery, as one string. */
  async types(): Promise<string> {
    return (await this.until('Z')).map(({ type }) => type).join('');
  }

  close(): void {
    this.socket.destroy();
  }

  private async need(condition: () => boolean): Promise<void> {
    const deadline = Date.now() + WAIT_MS;
    while (!condition()) {
      if (Date.now() > deadline) {
        throw new Error('the server does not answer');
      }
      await new Promise<void>((resolve) => {
        this.wake = resolve;
        setTimeout(resolve, 100);
      });
    }
  }
}

/** Returns the fields of an ErrorResponse, by letter. */
export function errorFields(message: ServerMessage | undefined): Record<string, string> {
  const fields: Record<string, string> = {};
  for (const field of (message?.body.toString('utf8') ?? '').split('\0')) {
    if (field !== '') {
      fields[field.charAt(0)] = field.slice(1);
    }
  }
  return fields;
}

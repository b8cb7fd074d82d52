/** A client that reads results over QWP and exposes every message. */
import { KIND, WebSocketClient } from '../http/websocket-client.js';
import { int64, queryRequest, type RequestOptions, varint } from './requests.js';
import { ResultDecoder, type ServerMessage } from './result-decoder.js';

/** Complete result of a query. */
interface Answer {
  readonly rows: unknown[][];
  readonly messages: readonly ServerMessage[];
  readonly last: ServerMessage;
}

export class ReadClient {
  readonly socket: WebSocketClient;
  readonly decoder = new ResultDecoder();
  /** The first message. */
  info: ServerMessage | null = null;

  private constructor(socket: WebSocketClient) {
    this.socket = socket;
  }

  static async open(
    port: number,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<ReadClient> {
    const client = new ReadClient(await WebSocketClient.open(port, '/read/v1', { headers }));
    client.info = await client.next();
    return client;
  }

  request(id: number, sql: string, options?: RequestOptions): void {
    this.socket.send(queryRequest(id, sql, options));
  }

  cancel(id: number): void {
    this.socket.send(Buffer.concat([Buffer.from([0x14]), int64(id)]));
  }

  grant(id: number, bytes: number): void {
    this.socket.send(Buffer.concat([Buffer.from([0x15]), int64(id), varint(bytes)]));
  }

  /** Returns the next message; null at the end of the connection. */
  async next(): Promise<ServerMessage | null> {
    const frame = await this.socket.receive();
    return frame?.kind === KIND.binary ? this.decoder.read(frame.payload) : null;
  }

  /** Returns all messages up to the last one of a query. */
  async answer(): Promise<Answer> {
    const messages: ServerMessage[] = [];
    const rows: unknown[][] = [];
    for (;;) {
      const message = await this.next();
      if (message === null) {
        throw new Error(`the connection ended after ${JSON.stringify(messages.length)} messages`);
      }
      messages.push(message);
      if (message.kind === 'batch') {
        rows.push(...(message.rows ?? []));
      } else if (message.kind !== 'reset' && message.kind !== 'info') {
        return { rows, messages, last: message };
      }
    }
  }

  async query(id: number, sql: string, options?: RequestOptions): Promise<Answer> {
    this.request(id, sql, options);
    return await this.answer();
  }

  close(): void {
    this.socket.socket.destroy();
  }
}

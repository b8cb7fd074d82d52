/** What a server's requests are made as: which are upgrades, and when a body is asked for. */
import { IncomingMessage, type ServerResponse } from 'node:http';

/** Those that do not ask for a WebSocket stay requests. */
export class PlainRequest extends IncomingMessage {
  #asksForUpgrade = false;
  /** Sends `100 Continue`; null where the client has it, or does not wait for it. */
  #invite: (() => void) | null = null;

  /** Node reads it before it looks for a body; other upgrades (`h2c`) are never granted. */
  get upgrade(): boolean {
    return this.#asksForUpgrade && (this.method === 'CONNECT' || asksForWebSocket(this));
  }

  set upgrade(asks: boolean | null) {
    // Node's own constructor sets it before there are fields.
    if (#asksForUpgrade in this) {
      this.#asksForUpgrade = asks === true;
    }
  }

  /** Whether the client holds its body back until it receives `100 Continue`. */
  get holdsBody(): boolean {
    return this.#invite !== null;
  }

  /** The first read of the body sends `100 Continue`, unless the client has its answer. */
  inviteWhenRead(response: ServerResponse): void {
    this.#invite = () => {
      if (!response.headersSent) {
        response.writeContinue();
      }
    };
  }

  override _read(size: number): void {
    this.#continue();
    super._read(size);
  }

  /** Called with each piece that comes: a client that did not wait goes on as any other. */
  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    this.#continue();
    return super.push(chunk, encoding);
  }

  #continue(): void {
    this.#invite?.();
    this.#invite = null;
  }
}

/** Whether its client may still send a body or not, so that no request can follow it. */
export function holdsBody(request: IncomingMessage): boolean {
  return request instanceof PlainRequest && request.holdsBody;
}

/** Whether an upgrade to a WebSocket is asked for. */
function asksForWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.trim().toLowerCase() === 'websocket';
}

/** Whether a request says that a body follows its head. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

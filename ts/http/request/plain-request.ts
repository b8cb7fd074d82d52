/**
 * The server's request class: decides which requests are upgrades, and when to request the body.
 */
import { IncomingMessage, type ServerResponse } from 'node:http';

/**
 * An HTTP request. A request to upgrade to any protocol other than WebSocket is processed as a
 * plain request.
 */
export class PlainRequest extends IncomingMessage {
  #requestsUpgrade = false;
  /** Sends `100 Continue`; `null` if it was already sent, or if the client does not wait for it. */
  #invite: (() => void) | null = null;

  /**
   * Node reads this property before it decides whether the request has a body. Upgrades to other
   * protocols (`h2c`) are never granted.
   */
  get upgrade(): boolean {
    return this.#requestsUpgrade && (this.method === 'CONNECT' || requestsWebSocket(this));
  }

  set upgrade(isRequested: boolean | null) {
    // Node's constructor sets this property before the private fields exist.
    if (#requestsUpgrade in this) {
      this.#requestsUpgrade = isRequested === true;
    }
  }

  /** Whether the client waits for `100 Continue` before sending the body. */
  get awaitsContinue(): boolean {
    return this.#invite !== null;
  }

  /** The first read of the body sends `100 Continue`, unless the response was already sent. */
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

  /**
   * Called for each received chunk. A client that sends its body without waiting is then handled
   * like any other client.
   */
  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    this.#continue();
    return super.push(chunk, encoding);
  }

  #continue(): void {
    this.#invite?.();
    this.#invite = null;
  }
}

/**
 * Whether the client may decide not to send the body. The connection then cannot accept another
 * request.
 */
export function awaitsContinue(request: IncomingMessage): boolean {
  return request instanceof PlainRequest && request.awaitsContinue;
}

/** Whether the request is for a WebSocket upgrade. */
function requestsWebSocket({ method, headers }: IncomingMessage): boolean {
  return method === 'GET' && headers.upgrade?.trim().toLowerCase() === 'websocket';
}

/** Whether the request headers announce a body. */
export function announcesBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

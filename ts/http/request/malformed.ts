/**
 * Responds to input that cannot be parsed as a request. The response is plain text, and the
 * connection ends afterwards, so that later bytes are not parsed as a request.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

export const MAX_HEADERS = 200;

export type ParserError = NodeJS.ErrnoException & { readonly rawPacket?: Buffer };

/** A request line that is well-formed, apart from an unknown method. */
const REQUEST_LINE = /^([!#$%&'*+.^_`|~\dA-Za-z-]{1,32}) \S+ HTTP\/1\.[01]\r\n/;

/** A refusal that ends the connection; the remaining bytes are not read. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
}

/** Returns a refusal if other parsers might interpret the request differently. */
export function ambiguity({ headers, rawHeaders }: IncomingMessage): Refusal | null {
  // Node silently drops headers beyond its limit, and one of them may be significant.
  if (rawHeaders.length / 2 > MAX_HEADERS) {
    const message = `Request Header Fields Too Large [limit=${MAX_HEADERS}]`;
    return { status: 431, message };
  }
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    return { status: 400, message: 'Bad Request: only Transfer-Encoding chunked is supported' };
  }
  return null;
}

const HANDSHAKE_LATE = 'ERR_TLS_HANDSHAKE_TIMEOUT';

export function refuseMalformed(error: ParserError, socket: Duplex): void {
  // After a failed handshake the client could not read a response.
  const isHandshake = error.code?.startsWith('ERR_SSL') === true || error.code === HANDSHAKE_LATE;
  if (error.code === 'ECONNRESET' || isHandshake || !socket.writable) {
    socket.destroy();
    return;
  }
  const method = error.code === 'HPE_INVALID_METHOD' ? methodOf(error.rawPacket) : undefined;
  if (error.code === 'HPE_HEADER_OVERFLOW') {
    refuse(socket, '431 Request Header Fields Too Large');
  } else if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    refuse(socket, '408 Request Timeout');
  } else if (method !== undefined) {
    refuse(socket, '405 Method Not Allowed', `Method ${method} not supported`);
  } else {
    refuse(socket, '400 Bad Request');
  }
}

function methodOf(packet: Buffer | undefined): string | undefined {
  return REQUEST_LINE.exec(packet?.toString('latin1', 0, 4096) ?? '')?.[1];
}

/** Refuses CONNECT, since the server is not a proxy. */
export function refuseTunnel(_request: IncomingMessage, socket: Duplex): void {
  socket.on('error', () => undefined);
  refuse(socket, '405 Method Not Allowed', 'Method CONNECT not supported');
}

function refuse(socket: Duplex, status: string, message = status.slice(4)): void {
  const body = `${message}\r\n`;
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: text/plain; charset=utf-8\r\n` +
      `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
}

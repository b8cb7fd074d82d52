/** Encrypts a wire protocol socket. */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

import type { Credentials } from '../../tls/index.js';

/** The registered ALPN name, which a client that starts with TLS directly must specify. */
const PROTOCOL = 'postgresql';
/** First byte of a TLS handshake; no startup packet begins with it. */
const HANDSHAKE = 0x16;

/** Whether a client starts with the handshake instead of requesting it. */
export function beginsHandshake(chunk: Buffer): boolean {
  return chunk[0] === HANDSHAKE;
}

/**
 * Runs the server side of the handshake over `socket`, which no other code may read afterwards.
 * `received` contains handshake bytes that were already read.
 */
export function encrypt(socket: Socket, credentials: Credentials, received?: Buffer): TLSSocket {
  socket.removeAllListeners('data');
  if (received !== undefined) {
    socket.pause();
    socket.unshift(received);
  }
  return new TLSSocket(socket, {
    isServer: true,
    secureContext: credentials.context,
    ALPNProtocols: [PROTOCOL],
  });
}

/**
 * Whether both sides negotiated the protocol's name, which is required if the client did not
 * request encryption first.
 */
export function namedProtocol(socket: TLSSocket): boolean {
  return socket.alpnProtocol === PROTOCOL;
}

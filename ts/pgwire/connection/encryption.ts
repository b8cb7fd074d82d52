/** A socket of the wire protocol made an encrypted one. */
import type { Socket } from 'node:net';
import { TLSSocket } from 'node:tls';

import type { Credentials } from '../../tls/index.js';

/** The protocol's registered name, by which a client that asks for TLS first says what it wants. */
const PROTOCOL = 'postgresql';
/** What the first byte of a TLS handshake is, and that of no start-up packet. */
const HANDSHAKE = 0x16;

/** Whether a client begins with the handshake instead of asking for it. */
export function beginsHandshake(chunk: Buffer): boolean {
  return chunk[0] === HANDSHAKE;
}

/**
 * The server's side of the handshake over `socket`, which no other code may read from now on.
 * `received`: bytes of the handshake that are already here.
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

/** Whether both sides named the protocol: who does not ask first must. */
export function namedProtocol(socket: TLSSocket): boolean {
  return socket.alpnProtocol === PROTOCOL;
}

/**
 * Upgrades requests to WebSockets (RFC 6455): recognises and checks the handshake, and sends the
 * response.
 */
import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import { DatabaseError, WebSocketReader } from '../../session/index.js';
import type { Logger } from '../../observability/index.js';
import { slotOf } from '../../sockets/index.js';
import { ClientDisconnected } from '../response/body-writer.js';
import { answerText, type HttpContext } from '../route.js';
import { CLOSE, WebSocketConnection } from './connection.js';
import type { Acceptance, WebSocketRoute } from './route.js';

const VERSION = '13';
/** Appended to the client's key before hashing. */
const KEY_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Checks the handshake. If it is invalid, sends a refusal and returns false. */
function checkHandshake(context: HttpContext): boolean {
  if (context.get('Sec-WebSocket-Version') !== VERSION) {
    context.set('Sec-WebSocket-Version', VERSION);
    answerText(context, 426, `Upgrade Required: expected WebSocket version ${VERSION}`);
    return false;
  }
  const key = context.get('Sec-WebSocket-Key');
  if (!/^[A-Za-z0-9+/]{22}==$/.test(key)) {
    answerText(context, 400, 'Bad Request: Sec-WebSocket-Key must be 16 bytes in base64');
    return false;
  }
  return true;
}

/**
 * Handles a request on a WebSocket route: sends a response, or runs the WebSocket until it ends.
 */
export async function serveUpgrade(
  context: HttpContext,
  route: WebSocketRoute,
  { open, logger }: Upgrades,
): Promise<void> {
  if (!checkHandshake(context)) {
    return;
  }
  const acceptance = await route.accept(context);
  if (acceptance === null) {
    return;
  }
  const { req, res } = context;
  const { socket } = req;
  if (socket.destroyed) {
    throw new ClientDisconnected();
  }
  const reader = new WebSocketReader(acceptance.maxMessageBytes, acceptance.buffersMessages);
  switchProtocols(context);
  res.detachSocket(socket);
  const connection = new WebSocketConnection(socket, reader, slotOf(socket)?.stopping);
  open.add(connection);
  try {
    await run(connection, acceptance, logger);
  } finally {
    open.delete(connection);
  }
}

/** Dependencies of all WebSockets. */
interface Upgrades {
  /** The open WebSockets. */
  readonly open: Set<WebSocketConnection>;
  readonly logger: Logger;
}

function switchProtocols(context: HttpContext): void {
  const { res } = context;
  const accept = createHash('sha1').update(context.get('Sec-WebSocket-Key') + KEY_SUFFIX);
  context.set('Upgrade', 'websocket');
  context.set('Connection', 'Upgrade');
  context.set('Sec-WebSocket-Accept', accept.digest('base64'));
  context.respond = false;
  res.writeHead(101);
  res.flushHeaders();
}

async function run(
  connection: WebSocketConnection,
  { run: serve }: Acceptance,
  logger: Logger,
): Promise<void> {
  try {
    await serve(connection);
    connection.close(connection.isStopping ? CLOSE.goingAway : CLOSE.normal);
  } catch (error) {
    if (!(error instanceof ClientDisconnected)) {
      const level = error instanceof DatabaseError && error.code !== 'Internal' ? 'info' : 'error';
      logger.log(level, 'websocket_failed', { error });
    }
    connection.close(connection.isStopping ? CLOSE.goingAway : CLOSE.failure);
  }
  await connection.closed;
}

/** Creates a response for an upgrade request. */
export function attach(response: ServerResponse, socket: Duplex): void {
  if (!(socket instanceof Socket)) {
    socket.destroy();
    return;
  }
  // Sent as the last response on the connection, because no further request can follow.
  response.shouldKeepAlive = false;
  response.assignSocket(socket);
  response.once('finish', () => {
    response.detachSocket(socket);
    socket.destroySoon();
  });
}

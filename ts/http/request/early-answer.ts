/**
 * Sends the last response of a connection while its request is still arriving. Closing a socket
 * with unread bytes resets it, and the client may lose the response. Therefore the response is sent
 * first, and the connection ends only after the body.
 */
import { awaitsContinue } from './plain-request.js';
import { watchBody } from './request-body.js';
import type { HttpContext } from '../route.js';

/**
 * Maximum silence of a client. A client that sends nothing for this long either has read the
 * response or never will.
 */
const MAX_IDLE_MS = 2_000;
const MAX_MS = 30_000;

/**
 * Sends the response to a client that waits for `100 Continue`. The body may or may not follow, so
 * no further request can be read from the connection.
 */
export function answerAwaitingClient(context: HttpContext): void {
  const { req, res, body } = context;
  const isOurs = context.respond !== false && !res.headersSent;
  const bytes = body ?? '';
  const isBuffered = typeof bytes === 'string' || Buffer.isBuffer(bytes);
  if (isOurs && isBuffered && awaitsContinue(req)) {
    context.set('Connection', 'close');
    context.remove('Keep-Alive');
    writeBeforeBody(context, context.status, bytes);
  }
}

/** Ends the connection after the response; the caller has set the header that announces this. */
export function endBeforeBody(
  context: HttpContext,
  status: number,
  type: string,
  text: string,
): void {
  context.set('Content-Type', type);
  writeBeforeBody(context, status, text);
}

function writeBeforeBody(context: HttpContext, status: number, body: string | Buffer): void {
  const { req, res } = context;
  if (status !== 204) {
    context.set('Content-Length', String(Buffer.byteLength(body)));
  }
  context.respond = false;
  res.statusCode = status;
  res.flushHeaders();
  if (body.length > 0) {
    res.write(body);
  }
  const end = (): void => {
    stop();
    clearTimeout(late);
    req.off('close', end);
    res.end();
  };
  const stop = watchBody(req, MAX_IDLE_MS, end);
  const late = setTimeout(end, MAX_MS).unref();
  // Emitted when the body has ended or the client has disconnected.
  req.once('close', end);
  req.resume();
}

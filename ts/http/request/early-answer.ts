/**
 * The last answer of a connection whose request is still on its way. A socket that is closed before
 * its bytes are taken is reset, and the answer may be lost with it: so the answer is sent, and the
 * connection ends when the body has passed.
 */
import { holdsBody } from './plain-request.js';
import { watchBody } from './request-body.js';
import type { HttpContext } from '../route.js';

/** A client that sends nothing for so long has its answer, or never reads it. */
const MAX_IDLE_MS = 2_000;
const MAX_MS = 30_000;

/**
 * Sends an answer that was set to a client that holds its body back: whether that still comes
 * cannot be known, and no request may follow it.
 */
export function answerHeldBody(context: HttpContext): void {
  const { req, res, body } = context;
  const isOurs = context.respond !== false && !res.headersSent;
  const bytes = body ?? '';
  const isWhole = typeof bytes === 'string' || Buffer.isBuffer(bytes);
  if (isOurs && isWhole && holdsBody(req)) {
    context.set('Connection', 'close');
    context.remove('Keep-Alive');
    writeBeforeBody(context, context.status, bytes);
  }
}

/** The caller has set what says that the connection ends. */
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
  // Comes when the body has ended, and when the client is gone.
  req.once('close', end);
  req.resume();
}

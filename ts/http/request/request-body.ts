/**
 * Reads request bodies. A stalled body is abandoned; time during which the server itself is not
 * reading does not count. `small-body.ts` reads small bodies completely.
 */
import type { IncomingMessage } from 'node:http';
import { type Readable, Transform, type TransformCallback } from 'node:stream';
import { createGunzip } from 'node:zlib';

import { inflatesTooFar } from '../../ingest/index.js';
import { slotOf } from '../../sockets/index.js';

/**
 * After this time, a body must have arrived at an average rate of at least `MIN_BYTES_PER_SECOND`.
 */
const GRACE_MS = 60_000;
const MIN_BYTES_PER_SECOND = 1024;
const CHECK_MS = 1_000;

/** Reports that a body was refused; the message is for the client. */
export class BodyError extends Error {
  override readonly name = 'BodyError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Watches a body until it is complete. Calls `stalled` once if no byte arrives for `stallMs`, the
 * average rate is too low, or the server stops. The returned function ends the watch. The
 * connection stays open, because a response must be sent.
 */
export function watchBody(
  request: IncomingMessage,
  stallMs: number,
  stalled: (error: BodyError) => void,
): () => void {
  const started = performance.now();
  let lastBytesRead = request.socket.bytesRead;
  let waitedMs = 0;
  const first = lastBytesRead;
  const stopping = slotOf(request.socket)?.stopping;
  const stop = (): void => {
    clearInterval(timer);
    stopping?.removeEventListener('abort', interrupt);
  };
  const interrupt = (): void => {
    stop();
    stalled(new BodyError(503, 'the server is shutting down'));
  };
  const timer = setInterval(() => {
    const now = request.socket.bytesRead;
    const oursToRead = request.readableLength > 0 || request.isPaused();
    waitedMs = now !== lastBytesRead || oursToRead ? 0 : waitedMs + CHECK_MS;
    lastBytesRead = now;
    const elapsedMs = performance.now() - started;
    const tooSlow =
      elapsedMs > GRACE_MS &&
      !oursToRead &&
      (now - first) * 1000 < MIN_BYTES_PER_SECOND * elapsedMs;
    if (request.complete) {
      stop();
    } else if (stopping?.aborted === true) {
      interrupt();
    } else if (waitedMs >= stallMs || tooSlow) {
      stop();
      const limit = tooSlow ? `${MIN_BYTES_PER_SECOND} bytes/s` : `${stallMs} ms`;
      stalled(new BodyError(408, `the request body stalled or was too slow [limit=${limit}]`));
    }
  }, CHECK_MS).unref();
  stopping?.addEventListener('abort', interrupt);
  return stop;
}

/** Returns the body, decompressed from gzip if necessary; other encodings are refused. */
export function decodedBody(request: IncomingMessage): Readable {
  const encoding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
  switch (encoding) {
    case 'identity':
      return request;
    case 'gzip':
    case 'x-gzip':
      return inflate(request);
    default:
      throw new BodyError(415, `unsupported content encoding [encoding=${encoding}]`);
  }
}

function inflate(request: IncomingMessage): Readable {
  const gunzip = createGunzip();
  let total = 0;
  const cap = new Transform({
    transform(chunk: Buffer, _encoding, done: TransformCallback) {
      total += chunk.length;
      const tooFar = inflatesTooFar(total, gunzip.bytesWritten);
      done(tooFar ? new BodyError(413, 'decompressed request body is too large') : null, chunk);
    },
  });
  // Errors are not passed on to the request, because its connection must still carry the response.
  gunzip.on('error', (error) => cap.destroy(error));
  cap.on('error', () => {
    request.unpipe(gunzip);
    gunzip.destroy();
    request.resume();
  });
  onEarlyEnd(request, (error) => cap.destroy(error));
  request.pipe(gunzip).pipe(cap);
  return cap;
}

/** Calls `broken` if the client disconnects before the end of the body. */
export function onEarlyEnd(request: IncomingMessage, broken: (error: Error) => void): void {
  const check = (): void => {
    if (!request.complete) {
      broken(endedEarly());
    }
  };
  request.on('error', () => undefined);
  if (request.destroyed) {
    check();
  } else {
    request.once('close', check);
  }
}

export function endedEarly(): BodyError {
  return new BodyError(400, 'the request body is incomplete');
}

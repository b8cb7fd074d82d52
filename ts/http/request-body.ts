/**
 * Request bodies: small forms read whole under a cap, large ones streamed. A body that stops
 * coming is given up; time in which we do not read is not the client's.
 */
import type { IncomingMessage } from 'node:http';
import { type Readable, Transform, type TransformCallback } from 'node:stream';
import { createGunzip } from 'node:zlib';

/** No byte for so long ends the request. */
const STALL_MS = 30_000;
/** After this time a body must have come at `LEAST_BYTES_PER_SECOND` on average. */
const GRACE_MS = 60_000;
const LEAST_BYTES_PER_SECOND = 1024;
const CHECK_MS = 1_000;

/** Inflated bytes that are taken without asking for the ratio. */
const INFLATED_FREE_BYTES = 64 * 1024 * 1024;
const LARGEST_RATIO = 200;

/** A body that cannot be taken; the message is for the client. */
export class BodyError extends Error {
  override readonly name = 'BodyError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Watches a body until it is complete; `stop` ends the watch. */
export function watchBody(request: IncomingMessage): () => void {
  const started = performance.now();
  let seen = request.socket.bytesRead;
  let waitedMs = 0;
  const first = seen;
  const timer = setInterval(() => {
    const now = request.socket.bytesRead;
    const oursToRead = request.readableLength > 0 || request.isPaused();
    waitedMs = now !== seen || oursToRead ? 0 : waitedMs + CHECK_MS;
    seen = now;
    const elapsedMs = performance.now() - started;
    const tooSlow =
      elapsedMs > GRACE_MS &&
      !oursToRead &&
      (now - first) * 1000 < LEAST_BYTES_PER_SECOND * elapsedMs;
    if (request.complete) {
      clearInterval(timer);
    } else if (waitedMs >= STALL_MS || tooSlow) {
      clearInterval(timer);
      request.destroy(new BodyError(408, 'the request body stopped coming'));
    }
  }, CHECK_MS).unref();
  return () => {
    clearInterval(timer);
  };
}

/** The whole body, at most `limit` bytes. */
export async function readBody(request: IncomingMessage, limit: number): Promise<Buffer> {
  const stop = watchBody(request);
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > limit) {
        throw new BodyError(413, `request body is too large [limit=${limit}]`);
      }
      chunks.push(chunk);
    }
  } finally {
    stop();
  }
  return Buffer.concat(chunks);
}

/** The body, inflated where it came as gzip; other encodings are refused. */
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
      const tooFar = total > gunzip.bytesWritten * LARGEST_RATIO && total > INFLATED_FREE_BYTES;
      done(tooFar ? new BodyError(413, 'request body inflates too far') : null, chunk);
    },
  });
  // What breaks in front breaks what follows; nothing breaks the request, which has an answer.
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

/** Calls `broken` when the client goes away, or the body is given up, before its end. */
export function onEarlyEnd(request: IncomingMessage, broken: (error: Error) => void): void {
  const check = (): void => {
    if (!request.complete) {
      broken(request.errored instanceof BodyError ? request.errored : endedEarly());
    }
  };
  request.on('error', () => undefined);
  if (request.destroyed) {
    check();
  } else {
    request.once('close', check);
  }
}

function endedEarly(): BodyError {
  return new BodyError(400, 'the request ended early');
}

/**
 * Reads a request body that is itself a file (`curl -T`, `--data-binary`) as the only part of an
 * import.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';

import type { ImportPart } from '../../ingest/index.js';
import { BodyError, decodedBody, watchBody } from './request-body.js';

/**
 * Whether a body of this content type is a file. `curl` declares such a body as a form by default.
 */
export function isRawBody(type: string): boolean {
  return !/^multipart\//i.test(type);
}

/**
 * Returns the raw bytes, with the same checks as `readRawBody`. The caller must consume any unread
 * remainder.
 */
export async function* readContent(
  request: IncomingMessage,
  stallMs: number,
): AsyncGenerator<Buffer> {
  const body = decodedBody(request);
  const stop = watchBody(request, stallMs, (error) => body.destroy(error));
  try {
    yield* contentOf(body);
  } finally {
    stop();
  }
}

/**
 * Returns the bytes of a body. Throws `BodyError` if the body ends early or stalls for `stallMs`.
 * The iteration ends only after the complete body has arrived, because the reader then commits.
 */
export async function* readRawBody(
  request: IncomingMessage,
  stallMs: number,
): AsyncGenerator<ImportPart> {
  const body = decodedBody(request);
  const stop = watchBody(request, stallMs, (error) => body.destroy(error));
  try {
    yield await Promise.resolve({ name: 'data', filename: null, content: contentOf(body) });
  } finally {
    stop();
    // The remainder of the body must be consumed, or the client loses the response.
    request.resume();
  }
}

async function* contentOf(body: Readable): AsyncGenerator<Buffer> {
  try {
    // If the reader stops early, the connection must stay open, because a response must still be
    // sent.
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      yield chunk as Buffer;
    }
  } catch (error) {
    if (error instanceof BodyError) {
      throw error;
    }
    const reason = error instanceof Error ? error.message : 'unknown error';
    throw new BodyError(400, `unreadable request body: ${reason}`);
  }
}

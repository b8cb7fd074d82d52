/** A body that is a file itself (`curl -T`, `--data-binary`), as the one part of an import. */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';

import type { ImportPart } from '../../ingest/index.js';
import { BodyError, decodedBody, watchBody } from './request-body.js';

/** Whether a body of this type is a file; `curl` calls one a form by default. */
export function isRawBody(type: string): boolean {
  return !/^multipart\//i.test(type);
}

/** The bytes themselves, under the same rules; what is left unread is the caller's. */
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
 * Throws `BodyError` when the body ends early or does not go on for `stallMs`. It ends only with
 * the whole body: its reader commits then.
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
    // What was left unread must pass, or the answer is lost.
    request.resume();
  }
}

async function* contentOf(body: Readable): AsyncGenerator<Buffer> {
  try {
    // A reader that gives up has an answer to send: the connection stays.
    for await (const chunk of body.iterator({ destroyOnReturn: false })) {
      yield chunk as Buffer;
    }
  } catch (error) {
    if (error instanceof BodyError) {
      throw error;
    }
    const reason = error instanceof Error ? error.message : 'unreadable';
    throw new BodyError(400, `unreadable request body: ${reason}`);
  }
}

/**
 * Streams an upload's parts one after another, without buffering a whole part. busboy splits the
 * body, and a slow consumer slows down the socket.
 */
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';

import busboy from 'busboy';

import type { ImportPart } from '../../ingest/index.js';
import { BodyError, decodedBody, onEarlyEnd, watchBody } from './request-body.js';

const MAX_PARTS = 8;
const MAX_PART_HEADERS = 16;
/** The parser buffers the complete content of a part without a file name. */
const MAX_FIELD_BYTES = 16 * 1024 * 1024;
const CHUNK_BYTES = 512 * 1024;
const MAX_BOUNDARY_LENGTH = 70;

/** Returns the problem with an invalid multipart content type; `null` if the type is valid. */
export function multipartProblem(type: string): string | null {
  if (!/^multipart\/form-data\b/i.test(type)) {
    return 'Non-multipart POST not supported';
  }
  const boundary = /;\s*boundary=(?:"([^"]*)"|([^;\s]*))/i.exec(type);
  const length = (boundary?.[1] ?? boundary?.[2] ?? '').length;
  return length >= 1 && length <= MAX_BOUNDARY_LENGTH
    ? null
    : 'malformed multipart body: the boundary is missing or too long';
}

/**
 * Throws `BodyError` if the body ends before its last boundary, is malformed, or stalls for
 * `stallMs`.
 */
export async function* readParts(
  request: IncomingMessage,
  stallMs: number,
): AsyncGenerator<ImportPart> {
  const queue = new PartQueue();
  const body = decodedBody(request);
  const parser = createParser(request, queue);
  const stop = watchBody(request, stallMs, (error) => parser.destroy(error));
  // Not `pipeline`, which would destroy the request and with it the error response.
  parser.once('error', (error) => {
    queue.finish(bodyError(error));
  });
  parser.once('close', () => {
    queue.finish(null);
  });
  body.once('error', (error) => parser.destroy(error));
  onEarlyEnd(request, (error) => parser.destroy(error));
  body.pipe(parser);
  try {
    for (let part = await queue.next(); part !== null; part = await queue.next()) {
      yield { name: part.name, filename: part.filename, content: readContent(part.stream, queue) };
      // The part's unread bytes must be consumed, or the next part never arrives.
      part.stream.resume();
    }
  } finally {
    stop();
    queue.drop();
    body.unpipe(parser);
    body.resume();
  }
}

function createParser(request: IncomingMessage, queue: PartQueue): busboy.Busboy {
  const parser = busboy({
    headers: request.headers,
    preservePath: true,
    // Keeps strings as raw bytes, because the import decodes them and must detect invalid UTF-8.
    defCharset: 'latin1',
    defParamCharset: 'utf8',
    highWaterMark: CHUNK_BYTES,
    fileHwm: CHUNK_BYTES,
    limits: {
      parts: MAX_PARTS + 1,
      headerPairs: MAX_PART_HEADERS,
      fieldSize: MAX_FIELD_BYTES,
    },
  });
  let found = 0;
  const add = (part: QueuedPart): void => {
    found += 1;
    if (found > MAX_PARTS) {
      parser.destroy(new BodyError(400, `too many parts [limit=${MAX_PARTS}]`));
    } else {
      queue.push(part);
    }
  };
  parser.on('file', (name: string | undefined, stream, info: { filename?: string }) => {
    // An error on a stream without a reader must not end the process.
    stream.on('error', () => undefined);
    add({ name: name ?? '', filename: info.filename ?? null, stream });
  });
  parser.on('field', (name: string | undefined, value, info) => {
    if (info.valueTruncated) {
      const problem = `a part without a file name is too large [limit=${MAX_FIELD_BYTES}]`;
      parser.destroy(new BodyError(413, problem));
      return;
    }
    const stream = Readable.from([Buffer.from(value, 'latin1')]);
    add({ name: name ?? '', filename: null, stream });
  });
  return parser;
}

/**
 * Returns a part's bytes. The iteration ends only after the next part has begun or the body is
 * complete. A reader that commits at the end thus never commits for a client that has disconnected.
 */
async function* readContent(stream: Readable, queue: PartQueue): AsyncGenerator<Buffer> {
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      yield chunk;
    }
  } catch (error) {
    throw bodyError(error);
  }
  await queue.followed();
}

function bodyError(error: unknown): BodyError {
  if (error instanceof BodyError) {
    return error;
  }
  const reason = error instanceof Error ? error.message : 'unknown error';
  return new BodyError(400, `malformed multipart body: ${reason}`);
}

interface QueuedPart {
  readonly name: string;
  readonly filename: string | null;
  readonly stream: Readable;
}

/**
 * Parts that were found but not yet consumed; busboy finds the next part while the current one is
 * being read.
 */
class PartQueue {
  #parts: QueuedPart[] = [];
  #failure: BodyError | null = null;
  #ended = false;
  #dropped = false;
  #wake: (() => void) | null = null;

  push(part: QueuedPart): void {
    if (this.#dropped) {
      part.stream.resume();
      return;
    }
    this.#parts.push(part);
    this.#wake?.();
  }

  /** Only the first call has an effect. */
  finish(failure: BodyError | null): void {
    if (!this.#ended) {
      this.#failure = failure;
      this.#ended = true;
    }
    this.#wake?.();
  }

  /** Discards all parts, because no reader will consume them. */
  drop(): void {
    this.#dropped = true;
    for (const part of this.#parts.splice(0)) {
      part.stream.resume();
    }
  }

  async next(): Promise<QueuedPart | null> {
    await this.followed();
    return this.#parts.shift() ?? null;
  }

  /**
   * Waits until the next part begins or the body is complete; throws if the body ends in any other
   * way.
   */
  async followed(): Promise<void> {
    while (this.#parts.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
    if (this.#parts.length === 0 && this.#failure !== null) {
      throw this.#failure;
    }
  }
}

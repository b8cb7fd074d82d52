/**
 * Streams an upload's parts one after another, without buffering a whole part. Dicer, the parser of
 * `@fastify/busboy`, splits the body, and a slow consumer slows down the socket.
 */
import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';

import { Dicer } from '@fastify/busboy';

import type { ImportPart } from '../../ingest/index.js';
import { BodyError, decodedBody, onEarlyEnd, watchBody } from './request-body.js';

const MAX_PARTS = 8;
const MAX_PART_HEADERS = 16;
const MAX_PART_HEADER_BYTES = 16 * 1024;
const CHUNK_BYTES = 512 * 1024;
const MAX_BOUNDARY_LENGTH = 70;
const BOUNDARY = /;\s*boundary=(?:"([^"]*)"|([^;\s]*))/i;
/** A parameter of Content-Disposition. Its value is a token or a quoted string with escapes. */
const PARAMETER = /;\s*([\w*-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))/g;

/** Returns the problem with an invalid multipart content type; `null` if the type is valid. */
export function multipartProblem(type: string): string | null {
  if (!/^multipart\/form-data\b/i.test(type)) {
    return 'Non-multipart POST not supported';
  }
  const { length } = boundaryOf(type);
  return length >= 1 && length <= MAX_BOUNDARY_LENGTH
    ? null
    : 'malformed multipart body: the boundary is missing or too long';
}

function boundaryOf(type: string): string {
  const match = BOUNDARY.exec(type);
  return match?.[1] ?? match?.[2] ?? '';
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
  const { parser, checkHeader } = createParser(request, queue);
  const stop = watchBody(request, stallMs, (error) => parser.destroy(error));
  // Not `pipeline`, which would destroy the request and with it the error response.
  body.once('error', (error) => parser.destroy(error));
  onEarlyEnd(request, (error) => parser.destroy(error));
  body.pipe(parser);
  body.on('data', checkHeader);
  try {
    for (let part = await queue.next(); part !== null; part = await queue.next()) {
      yield { name: part.name, filename: part.filename, content: readContent(part.stream, queue) };
      // The part's unread bytes must be consumed, or the next part never arrives.
      part.stream.resume();
    }
  } finally {
    stop();
    queue.drop();
    body.off('data', checkHeader);
    body.unpipe(parser);
    body.resume();
  }
}

/** Header values by name in lower case. */
type PartHeader = Record<string, string[] | undefined>;

/**
 * Returns the parser, and a function to call with each chunk after the parser has read the chunk.
 */
function createParser(
  request: IncomingMessage,
  queue: PartQueue,
): { parser: Dicer; checkHeader: (chunk: Buffer) => void } {
  const boundary = boundaryOf(request.headers['content-type'] ?? '');
  // Passed as a variable, because the declared type of the argument lacks some of these options.
  const options = {
    boundary,
    maxHeaderPairs: MAX_PART_HEADERS,
    // The parser truncates headers at this size. Twice the limit is enough to detect that a header
    // is too long.
    maxHeaderSize: 2 * MAX_PART_HEADER_BYTES,
    partHwm: CHUNK_BYTES,
    highWaterMark: CHUNK_BYTES,
    // The body can be complete before its parts are read.
    autoDestroy: false,
  };
  const parser = new Dicer(options);
  let found = 0;
  let named = 0;
  let last: Readable | null = null;
  parser.on('part', (stream) => {
    found += 1;
    last = stream;
    // An error on a stream without a reader must not end the process.
    stream.on('error', () => undefined);
    stream.on('header', (header: PartHeader) => {
      const disposition = dispositionOf(header);
      if (disposition === null) {
        parser.destroy(malformedHeader());
      } else if (!parser.destroyed) {
        named += 1;
        queue.push({ ...disposition, stream });
      }
    });
    if (named < found - 1) {
      parser.destroy(malformedHeader());
    } else if (found > MAX_PARTS) {
      parser.destroy(new BodyError(400, `too many parts [limit=${MAX_PARTS}]`));
    }
  });
  parser.on('error', (error) => {
    queue.finish(bodyError(error));
    last?.destroy(error);
  });
  parser.on('finish', () => {
    queue.finish(named < found ? malformedHeader() : null);
  });
  let unfinished = 0;
  let headerBytes = 0;
  // Checked here because the parser would wait for the end of a header of any length.
  const checkHeader = (chunk: Buffer): void => {
    if (found !== unfinished) {
      headerBytes = -Math.max(0, chunk.lastIndexOf(`--${boundary}`));
      unfinished = found;
    }
    headerBytes += chunk.length;
    if (named < found && headerBytes > MAX_PART_HEADER_BYTES) {
      parser.destroy(malformedHeader());
    }
  };
  return { parser, checkHeader };
}

function malformedHeader(): BodyError {
  return new BodyError(400, 'malformed multipart body: Malformed part header');
}

/** Returns the names of a part; `null` if it is not form data or its headers are too long. */
function dispositionOf(headers: PartHeader): Pick<QueuedPart, 'name' | 'filename'> | null {
  const header = headers['content-disposition']?.[0] ?? '';
  const lengths = Object.entries(headers).map(
    ([name, values]) => name.length + String(values).length,
  );
  const length = lengths.reduce((sum, bytes) => sum + bytes, 0);
  if (!/^form-data\s*(?:;|$)/i.test(header) || length > MAX_PART_HEADER_BYTES) {
    return null;
  }
  const parameters = new Map<string, string>();
  for (const [, name = '', quoted, token = ''] of header.matchAll(PARAMETER)) {
    // The parser returns one character for each byte.
    const bytes = quoted?.replaceAll(/\\(["\\])/g, '$1') ?? token;
    parameters.set(name.toLowerCase(), Buffer.from(bytes, 'latin1').toString());
  }
  const filename = parameters.get('filename');
  return {
    name: parameters.get('name') ?? '',
    filename: extendedValue(parameters.get('filename*')) ?? filename ?? null,
  };
}

/** Decodes `UTF-8''a%20b`; other character sets are ignored. */
function extendedValue(text: string | undefined): string | undefined {
  const encoded = /^utf-8'[^']*'(.*)$/i.exec(text ?? '')?.[1];
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

/**
 * Returns a part's bytes. The iteration ends only when the next part has begun or the body is
 * complete. A reader that commits at the end of the part therefore never commits if the client has
 * disconnected.
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
 * Parts that were found but not yet consumed; the parser finds the next part while the current one
 * is being read.
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

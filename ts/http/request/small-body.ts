/**
 * Reads small bodies completely with koa-body, within their route's limit. Nothing is written to
 * files, data beyond the limit is not buffered, and errors use this server's messages.
 */
import type { Part } from 'formidable';
import type { Context } from 'koa';
import type { koaBody } from 'koa-body';

import { BodyError, endedEarly, onEarlyEnd, watchBody } from './request-body.js';
import type { HttpContext, SmallBody } from '../route.js';
import type { Step } from '../steps.js';

type Parse = (context: Context, next: () => Promise<void>) => Promise<unknown>;
type Coding = 'bytes' | 'multipart';

const MAX_FIELDS = 32;
const TOO_LARGE = 413;

/** Reads the body of POST and PUT before the route runs. */
export function readSmallBody(body: SmallBody): Step {
  return (context) =>
    context.method === 'POST' || context.method === 'PUT' ? take(context, body) : true;
}

async function take(context: HttpContext, { kind, limitBytes }: SmallBody): Promise<boolean> {
  if (context.headers['content-encoding'] !== undefined) {
    throw new BodyError(415, 'unsupported content encoding');
  }
  if (kind === 'bytes') {
    context.state.body = await readBytes(context, limitBytes);
  } else {
    await readForm(context, limitBytes);
  }
  return true;
}

/** Adds form fields to the URL parameters; form fields take precedence. */
async function readForm(context: HttpContext, limitBytes: number): Promise<void> {
  const type = context.headers['content-type']?.toLowerCase() ?? '';
  const { parameters } = context.state;
  if (type.startsWith('multipart/form-data')) {
    const fields = await read(context, 'multipart', limitBytes);
    for (const [name, value] of Object.entries(fields as Record<string, string | string[]>)) {
      parameters.set(name, [value].flat().at(-1) ?? '');
    }
    return;
  }
  const bytes = await readBytes(context, limitBytes);
  if (type.startsWith('application/x-www-form-urlencoded')) {
    // Form fields are parsed like the query string: they must be valid UTF-8, and the last value of
    // a repeated name wins.
    parameters.addEncoded(bytes.toString('latin1'));
  } else if (bytes.length > 0) {
    throw new BodyError(415, 'expected application/x-www-form-urlencoded or multipart/form-data');
  }
}

async function readBytes(context: HttpContext, limitBytes: number): Promise<Buffer> {
  return (await read(context, 'bytes', limitBytes)) as Buffer;
}

/** Reads a complete body with koa-body; throws if the body stalls or ends early. */
async function read(context: HttpContext, coding: Coding, limitBytes: number): Promise<unknown> {
  const { req, method, state } = context;
  if (Number(req.headers['content-length'] ?? 0) > limitBytes) {
    throw tooLarge(limitBytes);
  }
  library ??= await import('koa-body');
  const make = library.koaBody;
  // The members of Koa's context that koa-body reads; hot routes have no Koa context.
  const request: { body?: unknown } = {};
  const is = (types: readonly string[]): boolean => types.includes(coding);
  const koaContext = { req, method, request, is } as unknown as Context;
  let stop = (): void => undefined;
  let late: NodeJS.Immediate | undefined;
  try {
    await new Promise((resolve, reject) => {
      const parse =
        coding === 'bytes'
          ? bytesParser(make, limitBytes)
          : multipartParser(make, limitBytes, reject);
      onEarlyEnd(req, reject);
      parse(koaContext, NEXT).then(resolve, reject);
      // Delayed, because a body that arrived together with its headers need not be watched.
      late = setImmediate(() => {
        stop = watchBody(req, state.timeouts.bodyMs, reject);
      });
    });
    return request.body;
  } catch (error) {
    throw bodyError(error, coding, limitBytes);
  } finally {
    clearImmediate(late);
    stop();
  }
}

type KoaBody = typeof koaBody;
/** Loaded with the first body, because its dependencies would slow every startup by a quarter. */
let library: { readonly koaBody: KoaBody } | undefined;
const NEXT = (): Promise<void> => Promise.resolve();

const NOTHING = { json: false, text: false, urlencoded: false, multipart: false };
/** Parsers, keyed by size limit. */
const bytesParsers = new Map<number, Parse>();

/**
 * Returns a parser for bytes. Its encoding is empty, because koa-body decodes the body as text if
 * no encoding is specified.
 */
function bytesParser(make: KoaBody, limitBytes: number): Parse {
  let parse = bytesParsers.get(limitBytes);
  if (parse === undefined) {
    const options = { text: true, textTypes: ['bytes'], textLimit: limitBytes, encoding: '' };
    parse = make({ ...NOTHING, ...options });
    bytesParsers.set(limitBytes, parse);
  }
  return parse;
}

/** Stores fields, up to a maximum number, and skips files. */
function multipartParser(
  make: KoaBody,
  limitBytes: number,
  refuse: (error: BodyError) => void,
): Parse {
  let bytes = 0;
  let fields = 0;
  const onPart = (part: Part, accept: (part: Part) => void): void => {
    part.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > limitBytes) {
        refuse(tooLarge(limitBytes));
      }
    });
    if (part.originalFilename === null && fields < MAX_FIELDS) {
      fields += 1;
      // Without this, koa-body would treat the part as a file and write it to disk.
      part.mimetype = null;
      accept(part);
    }
  };
  const options = { multipart: true, multipartTypes: ['multipart'] };
  return make({ ...NOTHING, ...options, formidable: { maxFieldsSize: limitBytes, onPart } });
}

function tooLarge(limitBytes: number): BodyError {
  return new BodyError(413, `request body is too large [limit=${limitBytes}]`);
}

/** Converts koa-body's errors to this server's messages. */
function bodyError(error: unknown, coding: Coding, limitBytes: number): BodyError {
  if (error instanceof BodyError) {
    return error;
  }
  const { status, message } = error as Error & { status?: number };
  if (status === TOO_LARGE) {
    return tooLarge(limitBytes);
  }
  return coding === 'multipart'
    ? new BodyError(400, `malformed multipart body: ${message}`)
    : endedEarly();
}

/**
 * Small bodies, read whole by koa-body under the limit of their route. Nothing goes to files, what
 * is over the limit is not held, and errors have this server's texts.
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

/** Adds the fields of a form to the parameters of the address; the form's win. */
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
    // As the query string is read: strict UTF-8, the last of repeated names.
    parameters.addEncoded(bytes.toString('latin1'));
  } else if (bytes.length > 0) {
    throw new BodyError(415, 'expected application/x-www-form-urlencoded or multipart/form-data');
  }
}

async function readBytes(context: HttpContext, limitBytes: number): Promise<Buffer> {
  return (await read(context, 'bytes', limitBytes)) as Buffer;
}

/** What koa-body makes of a body that goes on, and ends. */
async function read(context: HttpContext, coding: Coding, limitBytes: number): Promise<unknown> {
  const { req, method, state } = context;
  if (Number(req.headers['content-length'] ?? 0) > limitBytes) {
    throw tooLarge(limitBytes);
  }
  library ??= await import('koa-body');
  const make = library.koaBody;
  // What koa-body reads of Koa's context, which hot routes do without.
  const request: { body?: unknown } = {};
  const is = (types: readonly string[]): boolean => types.includes(coding);
  const asked = { req, method, request, is } as unknown as Context;
  let stop = (): void => undefined;
  let late: NodeJS.Immediate | undefined;
  try {
    await new Promise((resolve, reject) => {
      const parse =
        coding === 'bytes'
          ? bytesParser(make, limitBytes)
          : multipartParser(make, limitBytes, reject);
      onEarlyEnd(req, reject);
      parse(asked, NEXT).then(resolve, reject);
      // A body that came with its head needs no watch.
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
/** Loaded at the first body: what it brings along would make every start a quarter longer. */
let library: { readonly koaBody: KoaBody } | undefined;
const NEXT = (): Promise<void> => Promise.resolve();

const NOTHING = { json: false, text: false, urlencoded: false, multipart: false };
/** By limit. */
const bytesParsers = new Map<number, Parse>();

/** To koa-body it is a text in no encoding. */
function bytesParser(make: KoaBody, limitBytes: number): Parse {
  let parse = bytesParsers.get(limitBytes);
  if (parse === undefined) {
    const options = { text: true, textTypes: ['bytes'], textLimit: limitBytes, encoding: '' };
    parse = make({ ...NOTHING, ...options });
    bytesParsers.set(limitBytes, parse);
  }
  return parse;
}

/** Fields are kept, the first of too many; files pass unread. */
function multipartParser(
  make: KoaBody,
  limitBytes: number,
  refuse: (error: BodyError) => void,
): Parse {
  let bytes = 0;
  let fields = 0;
  const onPart = (part: Part, keep: (part: Part) => void): void => {
    part.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes > limitBytes) {
        refuse(tooLarge(limitBytes));
      }
    });
    if (part.originalFilename === null && fields < MAX_FIELDS) {
      fields += 1;
      // Otherwise it would be taken for a file, and written to one.
      part.mimetype = null;
      keep(part);
    }
  };
  const options = { multipart: true, multipartTypes: ['multipart'] };
  return make({ ...NOTHING, ...options, formidable: { maxFieldsSize: limitBytes, onPart } });
}

function tooLarge(limitBytes: number): BodyError {
  return new BodyError(413, `request body is too large [limit=${limitBytes}]`);
}

/** What the library says, in our words. */
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

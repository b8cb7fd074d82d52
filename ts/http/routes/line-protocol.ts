/**
 * POST /write and /api/v2/write: the line protocol. A request is one commit across all its tables.
 * Status 204 means that every row is as durable as configured; any other status means that no row
 * was written.
 */
import { randomBytes } from 'node:crypto';

import { type Config, KEYS } from '../../config/index.js';
import { LineError, writeLines } from '../../ingest/index.js';
import type { Logger } from '../../observability/index.js';
import {
  asDatabaseError,
  errorMeaning,
  type LineOptions,
  type LinePrecision,
  WriteAuthorizer,
} from '../../session/index.js';
import { ClientDisconnected } from '../response/body-writer.js';
import { principalOf } from '../response/statement-answer.js';
import { endBeforeBody } from '../request/early-answer.js';
import { readContent } from '../request/raw-body.js';
import { BodyError } from '../request/request-body.js';
import { answer, type HttpContext, type HttpServices, type Route } from '../route.js';

/** Without a charset, because QuestDB's Python client compares the complete header. */
const JSON_TYPE = 'application/json';

/** Maximum size of rows in memory, as a multiple of the maximum request size. */
const BUFFER_FACTOR = 4;

const PRECISIONS: ReadonlyMap<string, LinePrecision> = new Map([
  ['n', 'n'],
  ['ns', 'n'],
  ['u', 'u'],
  ['us', 'u'],
  ['ms', 'ms'],
  ['s', 's'],
  ['m', 'm'],
  ['h', 'h'],
]);

/** Limits the total size of the requests being read or committed. */
class OpenBodies {
  readonly #limit: number;
  #bytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  reserve(bytes: number): void {
    if (this.#bytes + bytes > this.#limit) {
      throw new BodyError(503, 'too many concurrent requests: send the lines again later');
    }
    this.#bytes += bytes;
  }

  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}

/** A refusal as sent to clients. Clients display the error id, which the log also contains. */
interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly line?: number;
}

export function lineProtocolRoutes(services: HttpServices, paths: readonly string[]): Route[] {
  const { config } = services;
  if (!config.get(KEYS.lineHttpEnabled)) {
    return [];
  }
  const open = new OpenBodies(config.get(KEYS.lineBodiesLimit));
  const metrics = services.ingest.of('line_http');
  const refusals = new Refusals(services.logger.child('http'), config.get(KEYS.lineLogMessage));
  return paths.map((path) => ({
    path,
    methods: ['POST'],
    access: 'data',
    errors: 'text',
    about: 'accepts rows in the line protocol',
    handle: async (context) => {
      const began = performance.now();
      try {
        const { rows, bytes } = await receiveLines(context, services, open);
        metrics.bytes.increment(bytes);
        metrics.rows.increment(rows);
        metrics.commits.increment();
        context.status = 204;
      } catch (error) {
        if (error instanceof ClientDisconnected) {
          throw error;
        }
        metrics.errors.increment();
        refusals.answer(context, refusalOf(error));
      } finally {
        metrics.requestSeconds?.observe((performance.now() - began) / 1000);
      }
    },
  }));
}

async function receiveLines(
  context: HttpContext,
  services: HttpServices,
  open: OpenBodies,
): Promise<{ readonly rows: number; readonly bytes: number }> {
  const { config, sessions } = services;
  const readOnly = config.get(KEYS.httpReadOnly);
  if (readOnly) {
    // Status 403 is not used, so that clients that know several servers try the next one.
    throw new BodyError(503, 'this server is read-only');
  }
  const options = lineOptions(config, context.state.parameters.get('precision') ?? 'n');
  const writeAuthorizer = new WriteAuthorizer(sessions.guard, {
    principal: principalOf(context, readOnly),
    commitSeconds: services.ingest.of('line_http').commitSeconds,
  });
  const content = new BoundedContent(context, config.get(KEYS.lineBodyLimit), open);
  try {
    const rows = await writeLines(sessions.database, options, content.read(), writeAuthorizer);
    return { rows, bytes: content.bytes };
  } finally {
    content.release();
  }
}

function lineOptions(config: Config, unit: string): LineOptions {
  const precision = PRECISIONS.get(unit);
  if (precision === undefined) {
    const known = [...PRECISIONS.keys()].join(', ');
    throw new BodyError(400, `unknown precision '${unit.slice(0, 20)}', expected one of ${known}`);
  }
  return {
    precision,
    createTables: config.get(KEYS.lineCreateTables),
    createColumns: config.get(KEYS.lineCreateColumns),
    partitionBy: config.get(KEYS.linePartitionBy),
    maxLineBytes: config.get(KEYS.lineLimit),
    maxPendingBytes: BUFFER_FACTOR * config.get(KEYS.lineBodyLimit),
    isContinued: false,
  };
}

/** A body whose bytes count towards the limit of one request and the limit of all open requests. */
class BoundedContent {
  readonly #context: HttpContext;
  readonly #limit: number;
  readonly #open: OpenBodies;
  #bytes = 0;

  constructor(context: HttpContext, limit: number, open: OpenBodies) {
    this.#context = context;
    this.#limit = limit;
    this.#open = open;
  }

  /** Bytes read so far, after decompression. */
  get bytes(): number {
    return this.#bytes;
  }

  async *read(): AsyncGenerator<Buffer> {
    const { req, state } = this.#context;
    this.#check(Number(req.headers['content-length'] ?? 0));
    for await (const chunk of readContent(req, state.timeouts.bodyMs)) {
      this.#check(this.#bytes + chunk.length);
      this.#open.reserve(chunk.length);
      this.#bytes += chunk.length;
      yield chunk;
    }
  }

  release(): void {
    this.#open.release(this.#bytes);
    this.#bytes = 0;
  }

  #check(bytes: number): void {
    if (bytes > this.#limit) {
      throw new BodyError(413, `the request is larger than ${this.#limit} bytes: send fewer lines`);
    }
  }
}

function refusalOf(error: unknown): Refusal {
  if (error instanceof LineError) {
    const { line, message, isTooLarge } = error;
    return isTooLarge
      ? { status: 413, message, line }
      : {
          status: 400,
          message: `failed to parse line protocol: error in line ${line}: ${message}`,
          line,
        };
  }
  if (error instanceof BodyError) {
    const { status, message } = error;
    return { status, message };
  }
  const failure = asDatabaseError(error);
  const { httpStatus } = errorMeaning(failure.code);
  // A full disk is reported as a busy server, so that clients retry.
  return { status: httpStatus === 507 ? 503 : httpStatus, message: failure.message };
}

/** Error classes, named as in InfluxDB. */
function classOf(status: number): string {
  switch (status) {
    case 403:
      return 'forbidden';
    case 413:
      return 'request too large';
    case 503:
      return 'unavailable';
    default:
      return status >= 500 ? 'internal error' : 'invalid';
  }
}

class Refusals {
  readonly #logger: Logger;
  readonly #showsReason: boolean;
  /** A random prefix, so that error ids differ between server starts. */
  readonly #start = randomBytes(6).toString('hex');
  #count = 0;

  constructor(logger: Logger, showsReason: boolean) {
    this.#logger = logger;
    this.#showsReason = showsReason;
  }

  answer(context: HttpContext, { status, message, line }: Refusal): void {
    this.#count += 1;
    const errorId = `${this.#start}-${this.#count}`;
    const code = classOf(status);
    this.#logger.log(status >= 500 && status !== 503 ? 'error' : 'info', 'lines_refused', {
      errorId,
      status,
      ...(this.#showsReason ? { message } : {}),
      ...(line === undefined ? {} : { line }),
    });
    const text = JSON.stringify({
      code,
      message,
      ...(line === undefined ? {} : { line }),
      errorId,
    });
    if (context.req.complete) {
      answer(context, status, JSON_TYPE, text);
      return;
    }
    // The remainder of the body must not be parsed as the next request.
    context.set('Connection', 'close');
    context.remove('Keep-Alive');
    endBeforeBody(context, status, JSON_TYPE, text);
  }
}

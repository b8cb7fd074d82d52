/** What a route is, and what routes share. */
import type { IncomingMessage, ServerResponse } from 'node:http';

import type {
  Authenticator,
  Directory,
  Identity,
  KnownLogin,
  LoginObserver,
} from '../auth/index.js';
import { type Config, KEYS } from '../config/index.js';
import type {
  IngestMetrics,
  Logger,
  MetricsRegistry,
  StatementMetrics,
} from '../observability/index.js';
import type { Documents } from '../mcp/documents.js';
import type { SessionHost } from '../session/index.js';
import type { Parameters } from './request/parameters.js';
import { holdsBody } from './request/plain-request.js';
import type { StaticFiles } from './response/static-files.js';

/** What the composition root hands to the HTTP server. */
export interface HttpServices {
  readonly sessions: SessionHost;
  readonly config: Config;
  readonly authenticator: Authenticator;
  /** The users of the database; absent where access control is off. */
  readonly directory?: Directory;
  readonly observer?: LoginObserver;
  readonly logger: Logger;
  readonly metrics: MetricsRegistry;
  /** What came in, by protocol. */
  readonly ingest: IngestMetrics;
  /** How long statements took, by protocol. */
  readonly statements: StatementMetrics;
  readonly console: StaticFiles;
  readonly documents: Documents;
  readonly version: string;
  /** The directory that `read_parquet` and COPY read, absolute. */
  readonly importRoot: string;
  /** Lines come over TCP, too. */
  readonly takesLinesOverTcp: boolean;
  /** The wire protocol's own door; absent while it is shut. */
  readonly wire?: () => WireDoor | null;
}

/** Where PostgreSQL clients come in. */
export interface WireDoor {
  readonly port: number;
  readonly isEncrypted: boolean;
}

/** How long the other side may pause, in milliseconds. */
export interface TransferTimeouts {
  /** While it sends a body. */
  readonly bodyMs: number;
  /** While it should take an answer. */
  readonly sendMs: number;
}

/** A statement as a request has it. */
interface AskedStatement {
  readonly text: string;
  /** When it was there whole, by `performance.now()`: its time limit begins. */
  readonly sinceMs: number;
}

/** What the server adds to a request on its way to the route. */
export interface RequestState {
  /** Path as sent, without the query, leading slashes made one. */
  path: string;
  /** The query string, undecoded, one byte per character. */
  rawQuery: string;
  parameters: Parameters;
  /** The bytes that a route with a body of `bytes` was sent. */
  body: Buffer;
  identity: Identity | null;
  /** What `identity` was proved by. */
  login: KnownLogin | null;
  timeouts: TransferTimeouts;
  authenticationNanos: number;
  /** Set by the routes that run SQL: errors are then JSON with the text and a position. */
  statement: AskedStatement | null;
}

/** A request and its answer, as steps and routes see them: Koa's context, or an `Exchange`. */
export interface HttpContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  /** The request's. */
  readonly headers: IncomingMessage['headers'];
  state: RequestState;
  status: number;
  /** Text or bytes. */
  body: unknown;
  /** False: the route writes to `res` itself. */
  respond?: boolean;
  /** A header of the request; empty when it was not sent. */
  get(name: string): string;
  /** Sets a header of the answer, and so do the others. */
  set(name: string, value: string | string[]): void;
  append(name: string, value: string): void;
  remove(name: string): void;
  vary(name: string): void;
}

/** A body that is read whole before the route runs; other bodies are the route's to read. */
export interface SmallBody {
  /** `form`: its fields become parameters. `bytes`: they come as they are, in `state.body`. */
  readonly kind: 'form' | 'bytes';
  readonly limitBytes: number;
}

export type ErrorForm = 'json' | 'text';

/** All that a route is: nothing about it is registered elsewhere. */
export interface Route {
  readonly path: string;
  /** GET brings HEAD along. */
  readonly methods: readonly string[];
  /** `data`: login, and only from pages of this server. `open`: neither. */
  readonly access: 'data' | 'open';
  /**
   * How the route's errors are answered: `{"error":…}`, or as text. Those of a statement are JSON,
   * refused logins are text.
   */
  readonly errors: ErrorForm;
  /** What its user must have been granted; statements are judged one by one in the session. */
  readonly permission?: string;
  /** Of POST and PUT. */
  readonly body?: SmallBody;
  /** Whether it is asked so often that Koa and its router are left out. */
  readonly isHot?: boolean;
  /** Its line in docs/http.md, which routes share that say the same; `null` for none. */
  readonly about: string | null;
  readonly handle: (context: HttpContext) => Promise<void> | void;
}

/** A provider that is slow to tell its addresses is waited for so long. */
export const DISCOVERY_WAIT_MS = 3_000;

export const JSON_TYPE = 'application/json; charset=utf-8';
export const TEXT_TYPE = 'text/plain; charset=utf-8';

/** A whole answer; texts for people end in CRLF. */
export function answer(context: HttpContext, status: number, type: string, body: string): void {
  context.status = status;
  context.set('Content-Type', type);
  context.body = body;
}

export function answerText(context: HttpContext, status: number, message: string): void {
  answer(context, status, TEXT_TYPE, `${message}\r\n`);
}

/** Clients of `/exec` and `/exp` look for this header; other answers carry Node's own. */
export function keepAliveHeader(config: Config): string {
  const timeoutMs = config.get(KEYS.httpKeepAlive);
  return `timeout=${Math.floor(timeoutMs / 1000)}, max=${config.get(KEYS.httpKeepAliveMax)}`;
}

/** Sets `Keep-Alive` on a connection that stays open. */
export function promiseKeepAlive(context: HttpContext, header: string): void {
  if (context.res.shouldKeepAlive && !holdsBody(context.req)) {
    context.set('Connection', 'keep-alive');
    context.set('Keep-Alive', header);
  }
}

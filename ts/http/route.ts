/** The route definition, and helpers that routes share. */
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
import { awaitsContinue } from './request/plain-request.js';
import type { StaticFiles } from './response/static-files.js';

/** Dependencies that the composition root passes to the HTTP server. */
export interface HttpServices {
  readonly sessions: SessionHost;
  readonly config: Config;
  readonly authenticator: Authenticator;
  /** The database's users; absent without access control. */
  readonly directory?: Directory;
  readonly observer?: LoginObserver;
  readonly logger: Logger;
  readonly metrics: MetricsRegistry;
  /** Ingestion counters by protocol. */
  readonly ingest: IngestMetrics;
  /** Statement durations by protocol. */
  readonly statements: StatementMetrics;
  readonly console: StaticFiles;
  readonly documents: Documents;
  readonly version: string;
  /** Absent only in tests that do not request the status. */
  readonly status?: StatusSource;
  /** Absolute path of the directory that `read_parquet` and COPY read. */
  readonly importRoot: string;
  /** Whether the line protocol is also served over TCP. */
  readonly servesLinesOverTcp: boolean;
  /** The wire protocol's address; returns `null` while it is closed. */
  readonly wire?: () => WireEndpoint | null;
}

/** The status for `tidemark status`. */
export interface StatusSource {
  /** The bearer token of GET /api/v1/status. */
  readonly token: string;
  readonly read: () => Promise<object>;
}

/** The address for PostgreSQL clients. */
export interface WireEndpoint {
  readonly port: number;
  readonly isEncrypted: boolean;
}

/** Maximum pauses of a client, in milliseconds. */
export interface TransferTimeouts {
  /** Maximum pause while the client sends a body. */
  readonly bodyMs: number;
  /** Maximum pause while the client reads a response. */
  readonly sendMs: number;
}

/** A request's statement. */
interface RequestStatement {
  readonly text: string;
  /**
   * The `performance.now()` time at which the statement had arrived completely; its timeout starts
   * then.
   */
  readonly sinceMs: number;
}

/** State that the pipeline adds to a request. */
export interface RequestState {
  /** The path as sent, without the query string, and with leading slashes collapsed. */
  path: string;
  /** The raw query string, one byte per character. */
  rawQuery: string;
  parameters: Parameters;
  /** The request body, for a route with a body of kind `bytes`. */
  body: Buffer;
  identity: Identity | null;
  /** The login that determined `identity`. */
  login: KnownLogin | null;
  timeouts: TransferTimeouts;
  authenticationNanos: number;
  /** Set by routes that run SQL: their errors are JSON with the SQL text and a position. */
  statement: RequestStatement | null;
}

/** The request and response interface for steps and routes: Koa's context or an `Exchange`. */
export interface HttpContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly method: string;
  /** Request headers. */
  readonly headers: IncomingMessage['headers'];
  state: RequestState;
  status: number;
  /** The response body: a string or bytes. */
  body: unknown;
  /** False if the route writes to `res` itself. */
  respond?: boolean;
  /** Returns a request header; empty if it was not sent. */
  get(name: string): string;
  /** Sets a response header, like the methods below. */
  set(name: string, value: string | string[]): void;
  append(name: string, value: string): void;
  remove(name: string): void;
  vary(name: string): void;
}

/**
 * A body that is read completely before the route runs. Routes must read bodies of any other kind
 * themselves.
 */
export interface SmallBody {
  /** `form`: fields become parameters. `bytes`: the raw body is in `state.body`. */
  readonly kind: 'form' | 'bytes';
  readonly limitBytes: number;
}

export type ErrorForm = 'json' | 'text';

/** The complete definition of a route. */
export interface Route {
  readonly path: string;
  /** GET includes HEAD. */
  readonly methods: readonly string[];
  /**
   * `data` requires a login and refuses requests from other sites' pages; `open` has no
   * restrictions.
   */
  readonly access: 'data' | 'open';
  /**
   * Format of the route's errors: `{"error":…}` or text. Statement errors are always JSON, and
   * login errors are always text.
   */
  readonly errors: ErrorForm;
  /** Permission required for the route. Statements are authorised individually in the session. */
  readonly permission?: string;
  /** Body for POST and PUT requests. */
  readonly body?: SmallBody;
  /** Whether the route is used frequently and therefore bypasses Koa and its router. */
  readonly isHot?: boolean;
  /**
   * The route's line in docs/http.md. Routes with the same text share one line; `null` omits the
   * route from the document.
   */
  readonly about: string | null;
  readonly handle: (context: HttpContext) => Promise<void> | void;
}

/** Maximum time to wait for a slow provider's metadata. */
export const DISCOVERY_WAIT_MS = 3_000;

export const JSON_TYPE = 'application/json; charset=utf-8';
export const TEXT_TYPE = 'text/plain; charset=utf-8';

/** Sends a complete response; messages for users end in CRLF. */
export function answer(context: HttpContext, status: number, type: string, body: string): void {
  context.status = status;
  context.set('Content-Type', type);
  context.body = body;
}

export function answerText(context: HttpContext, status: number, message: string): void {
  answer(context, status, TEXT_TYPE, `${message}\r\n`);
}

/**
 * Value of the `Keep-Alive` header, which clients of `/exec` and `/exp` read; other responses use
 * Node's default.
 */
export function keepAliveHeader(config: Config): string {
  const timeoutMs = config.get(KEYS.httpKeepAlive);
  return `timeout=${Math.floor(timeoutMs / 1000)}, max=${config.get(KEYS.httpKeepAliveMax)}`;
}

/** Sets `Keep-Alive` on a connection that stays open. */
export function promiseKeepAlive(context: HttpContext, header: string): void {
  if (context.res.shouldKeepAlive && !awaitsContinue(context.req)) {
    context.set('Connection', 'keep-alive');
    context.set('Keep-Alive', header);
  }
}

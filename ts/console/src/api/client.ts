/**
 * HTTP client for the server's API. It uses relative URLs and the credentials of `credentials.ts`.
 * Every failure is a `SqlError` (the server returned an error) or an `Unreachable` (no response).
 */
import { AnswerReader, type AnswerHead, type AnswerTail, type Column, type Row } from './answer.js';
import { awaitsLogin, credentialHeaders, loginRefused } from './credentials.js';
import { EventReader, type ServerEvent } from './events.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Error returned by the server. `position` is an offset in the statement, in UTF-16 code units. */
export class SqlError extends Error {
  readonly position: number | undefined;
  readonly status: number;

  constructor(message: string, position: number | undefined, status: number) {
    super(message);
    this.name = 'SqlError';
    this.position = position;
    this.status = status;
  }
}

/** Thrown if the server sent no response or an incomplete one. */
export class Unreachable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'Unreachable';
  }
}

export interface Settings {
  readonly config: Readonly<Record<string, unknown>>;
  readonly preferences: Readonly<Record<string, unknown>>;
  /** Version of the preferences, incremented by each change. */
  readonly version: number;
}

interface ExecuteOptions {
  /** Maximum number of rows to return. The row count still covers the whole result. */
  readonly maxRows: number;
  /** Number of rows to skip at the beginning of the result. */
  readonly skip?: number;
  /** True, the default, to count all rows of the result. */
  readonly counted?: boolean;
  readonly signal?: AbortSignal;
  /** Time limit of the statement. Without it, the server's own limit applies. */
  readonly timeoutMs?: number;
  readonly onHead?: (head: AnswerHead) => void;
  readonly onRows?: (rows: Row[]) => void;
}

const SILENT = texts.server.notRespondingDraftsSafe;
const BROKEN_OFF = texts.server.responseEnded;
/**
 * Maximum number of characters per response. It protects the page's memory from results with wide
 * rows.
 */
const MAX_TEXT = 64 * 1024 * 1024;
const SIGNED_OUT = texts.server.notSignedIn;

/** Runs one statement and passes its rows to `onRows` as they arrive. */
export async function execute(statement: string, options: ExecuteOptions): Promise<AnswerTail> {
  const { skip = 0, maxRows, counted = true } = options;
  const parameters = new URLSearchParams({
    limit: `${skip + 1},${skip + maxRows}`,
    count: String(counted),
    timings: 'true',
    exactPosition: 'true',
    quoteLargeNum: 'true',
    src: 'con',
  });
  const { signal, timeoutMs } = options;
  const limit = timeoutMs === undefined ? {} : { 'Statement-Timeout': String(timeoutMs) };
  const response = await request(`exec?${parameters}`, signal, statement, limit);
  const reader = new AnswerReader();
  try {
    const taken = await readRows(response, reader, options);
    if (taken !== undefined) {
      return { count: skip + taken, isCut: true };
    }
  } catch (cause) {
    // If a query fails after the first rows, the server sends the error and closes the connection.
    const midwayError =
      cause instanceof Unreachable ? midwayErrorOf(reader, response.status) : undefined;
    throw midwayError ?? cause;
  }
  const tail = read(() => reader.finish(), response.status);
  if (tail.error !== undefined) {
    throw refusal(tail, response.status);
  }
  return tail;
}

function midwayErrorOf(reader: AnswerReader, status: number): SqlError | undefined {
  try {
    const tail = reader.finish();
    return tail.error === undefined ? undefined : refusal(tail, status);
  } catch {
    return undefined;
  }
}

/**
 * Reads the rows of a response. Stops at `MAX_TEXT` characters and then returns the number of rows
 * read.
 */
async function readRows(
  response: Response,
  reader: AnswerReader,
  options: ExecuteOptions,
): Promise<number | undefined> {
  let hasHead = false;
  let length = 0;
  let taken = 0;
  for await (const text of chunks(response)) {
    const rows = read(() => reader.feed(text), response.status);
    if (!hasHead && reader.head) {
      hasHead = true;
      options.onHead?.(reader.head);
    }
    if (rows.length > 0) {
      options.onRows?.(rows);
    }
    taken += rows.length;
    length += text.length;
    if (length > MAX_TEXT && taken > 0 && reader.inRows) {
      return taken;
    }
  }
  return undefined;
}

/** Checks a statement without running it. Returns its result columns, or rejects with its error. */
export async function validate(
  statement: string,
  signal?: AbortSignal,
): Promise<{ readonly columns: readonly Column[] }> {
  const response = await request('api/v1/sql/validate?inlineErrors=true', signal, statement);
  const body = (await response.json()) as AnswerTail & { readonly columns?: readonly Column[] };
  if (body.error !== undefined) {
    throw refusal(body, response.status);
  }
  return { columns: body.columns ?? [] };
}

/** Runs a statement and returns its complete result. Intended for small results. */
export async function query(
  statement: string,
  options: Partial<Pick<ExecuteOptions, 'maxRows' | 'signal' | 'timeoutMs'>> = {},
): Promise<{ head: AnswerHead; rows: Row[] }> {
  let head: AnswerHead = { query: statement, columns: [], timestamp: -1 };
  const rows: Row[] = [];
  await execute(statement, {
    maxRows: 10_000,
    ...options,
    onHead: (received) => (head = received),
    onRows: (more) => rows.push(...more),
  });
  return { head, rows };
}

/** Loads the settings, which the server returns even before a login. */
export async function settings(signal?: AbortSignal): Promise<Settings> {
  const response = await request('settings', signal);
  if (!response.ok) {
    throw refusal(await readTail(response), response.status);
  }
  const body = (await response.json()) as Partial<Settings> & { 'preferences.version'?: number };
  const { config = {}, preferences = {}, 'preferences.version': version = 0 } = body;
  return { config, preferences, version };
}

/** Changes some preferences. Fails if other changes were saved after `version`. */
export async function savePreferences(
  changed: Readonly<Record<string, string>>,
  version: number,
): Promise<void> {
  const init = { method: 'POST', body: JSON.stringify(changed) };
  const response = await send(`settings?version=${version}`, init, undefined);
  if (!response.ok) {
    throw refusal(await readTail(response), response.status);
  }
}

/**
 * Streams the changes of a table until the server ends the stream. `from` is `now` or the `id` of
 * an event. The URL contains only the table's name and this position.
 */
export async function* changes(
  table: string,
  from: string,
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  if (awaitsLogin()) {
    throw new SqlError(SIGNED_OUT, undefined, 401);
  }
  const parameters = new URLSearchParams({ table, from, quoteLargeNum: 'true' });
  const response = await request(`changes?${parameters}`, signal);
  if (!response.ok) {
    throw refusal(await readTail(response), response.status);
  }
  const reader = new EventReader();
  for await (const text of chunks(response)) {
    yield* reader.feed(text);
  }
}

/** A query whose result the server sends again whenever it changes. */
export interface LiveQuery {
  readonly name: string;
  readonly query: string;
  readonly everyMs: number;
}

/**
 * Streams the results of queries until the server ends the stream. Each result is sent again when
 * it changes.
 */
export async function* live(
  queries: readonly LiveQuery[],
  signal: AbortSignal,
): AsyncGenerator<ServerEvent> {
  if (awaitsLogin()) {
    throw new SqlError(SIGNED_OUT, undefined, 401);
  }
  const body = JSON.stringify({ queries });
  const response = await send('live', { method: 'POST', body }, signal);
  if (!response.ok) {
    throw refusal(await readTail(response), response.status);
  }
  const reader = new EventReader();
  for await (const text of chunks(response)) {
    yield* reader.feed(text);
  }
}

interface Call {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  readonly body?: string;
  readonly signal?: AbortSignal;
}

/** Calls an endpoint other than `/exec` and returns the status and the JSON body. */
export async function call(
  address: string,
  { method, body, signal }: Call,
): Promise<{ status: number; body: unknown }> {
  const init = { method, ...(body === undefined ? {} : { body }) };
  const response = await send(address, init, signal);
  const text = await response.text();
  const parsed: unknown = read(() => JSON.parse(text) as unknown, response.status);
  return { status: response.status, body: parsed };
}

/** Returns the URL that runs a statement. */
export function execAddress(statement: string, more: Record<string, string> = {}): string {
  return `exec?${new URLSearchParams({ query: statement, ...more })}`;
}

export const EXPORT_FORMATS = ['csv', 'parquet', 'json'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export const FORMAT_NAMES = { csv: 'CSV', parquet: 'Parquet', json: 'JSON' } as const;

/** Returns the URL that downloads the whole result of a statement. */
export function exportAddress(statement: string, format: ExportFormat): string {
  const query = new URLSearchParams({ query: statement }).toString();
  const { path, separator } = exportPath(format);
  return `${path}${separator}${query}`;
}

/** Formats the current time for file names: `2026-11-27-230612`. */
function stamp(): string {
  return new Date().toISOString().slice(0, 19).replace('T', '-').replaceAll(':', '');
}

function exportPath(format: ExportFormat): { path: string; separator: string } {
  return format === 'json'
    ? { path: 'exec', separator: '?' }
    : { path: `exp?fmt=${format}&filename=tidemark-${stamp()}`, separator: '&' };
}

/** Downloads the whole result of a statement with the page's credentials. */
export async function exported(
  statement: string,
  format: ExportFormat,
  signal: AbortSignal,
): Promise<ReadableStream<Uint8Array<ArrayBuffer>>> {
  const response = await request(exportPath(format).path, signal, statement);
  if (!response.ok || !response.body) {
    throw refusal(await readTail(response), response.status);
  }
  return response.body;
}

async function readTail(response: Response): Promise<AnswerTail> {
  const text = await response.text();
  return read(() => JSON.parse(text) as AnswerTail, response.status);
}

/**
 * Sends the statement in the body, because URLs have a length limit. URLs also appear in proxy
 * logs, which must not contain a statement with a password.
 */
async function request(
  address: string,
  signal: AbortSignal | undefined,
  statement?: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  if (statement !== undefined && awaitsLogin()) {
    throw new SqlError(SIGNED_OUT, undefined, 401);
  }
  const body = new URLSearchParams({ query: statement ?? '' });
  const init = statement === undefined ? {} : { method: 'POST', body, headers };
  return await send(address, init, signal);
}

interface OwnInit extends RequestInit {
  readonly headers?: Record<string, string>;
}

async function send(
  address: string,
  { headers: own, ...init }: OwnInit,
  signal: AbortSignal | undefined,
): Promise<Response> {
  const headers: Record<string, string> = { ...own, ...(await credentialHeaders()) };
  let response;
  try {
    response = await fetch(address, {
      cache: 'no-store',
      headers,
      ...init,
      ...(signal ? { signal } : {}),
    });
  } catch (cause) {
    throw aborted(cause) ? cause : new Unreachable(SILENT, { cause });
  }
  if (response.status === 401) {
    loginRefused();
  }
  return response;
}

async function* chunks(response: Response): AsyncGenerator<string> {
  if (!response.body) {
    return;
  }
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        break;
      }
      yield decoder.decode(value, { stream: true });
    }
    yield decoder.decode();
  } catch (cause) {
    throw aborted(cause) ? cause : new Unreachable(BROKEN_OFF, { cause });
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

/**
 * Parses a body and classifies parse errors. A body that is not JSON came from a proxy or was
 * truncated.
 */
function read<T>(parse: () => T, status: number): T {
  try {
    return parse();
  } catch (cause) {
    if (status >= 500) {
      throw new Unreachable(SILENT, { cause });
    }
    if (status === 401) {
      throw new SqlError(SIGNED_OUT, undefined, status);
    }
    if (status >= 400) {
      throw new SqlError(fill(texts.common.returnedStatus, { status }), undefined, status);
    }
    throw new Unreachable(BROKEN_OFF, { cause });
  }
}

function refusal(tail: AnswerTail, status: number): SqlError {
  const position = tail.position === undefined ? undefined : Number(tail.position);
  return new SqlError(tail.error ?? texts.server.unknownError, position, status);
}

/** True if the failure is an aborted request. */
export function aborted(cause: unknown): boolean {
  return cause instanceof DOMException && cause.name === 'AbortError';
}

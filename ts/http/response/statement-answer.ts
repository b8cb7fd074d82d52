/**
 * Functions shared by `/exec` and `/exp`: they read the request, refuse invalid statements, and
 * read replies to the end.
 */
import {
  asDatabaseError,
  DatabaseError,
  type ExecuteReply,
  firstQuestionMark,
  httpStatusOf,
  type PreparedStatement,
  type Principal,
  type ResultColumn,
  type ResultStream,
  type Session,
  type Summary,
  timeBounds,
  type TimeBounds,
} from '../../session/index.js';
import { ClientDisconnected } from './body-writer.js';
import {
  answer,
  type HttpContext,
  type HttpServices,
  JSON_TYPE,
  promiseKeepAlive,
  type SmallBody,
} from '../route.js';

export const BAD_UTF8 = 'Bad UTF8 encoding in query text';

/** A statement is at most 16 M characters long; the form encoding adds some overhead. */
export const STATEMENT_FORM: SmallBody = { kind: 'form', limitBytes: 17 * 1024 * 1024 };

export function openSession(
  context: HttpContext,
  { sessions, statements }: HttpServices,
  readOnly: boolean,
): Session {
  return sessions.open(principalOf(context, readOnly), false, statements.http);
}

/** A request's principal, for operations without a session. */
export function principalOf({ state }: HttpContext, readOnly: boolean): Principal {
  const { identity } = state;
  return identity === null
    ? { name: 'admin', readOnly }
    : { name: identity.name, readOnly, identity };
}

/** Returns the statement of a request, and records its arrival time for the timeout. */
export function noteStatement({ state }: HttpContext): string {
  const text = state.parameters.get('query') ?? '';
  state.statement = { text, sinceMs: performance.now() };
  return text;
}

/** Time limit from `Statement-Timeout`, in milliseconds; an invalid value is ignored. */
export function statementBounds(context: HttpContext): TimeBounds {
  const text = context.get('Statement-Timeout').trim();
  const timeoutMs = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  const sinceMs = context.state.statement?.sinceMs ?? performance.now();
  return timeBounds(timeoutMs > 0 ? timeoutMs : undefined, sinceMs);
}

/** `{"query":…,"error":…,"position":…}`; a `null` position is omitted. */
export function errorBody(query: string, message: string, position: number | null): string {
  const fields = position === null ? {} : { position };
  return JSON.stringify({ query, error: message, ...fields });
}

/**
 * Returns the position of an error in the SQL text. If a value of a row cannot be converted,
 * clients expect position 0; with `exactPosition`, the position is that of the converted
 * expression.
 */
export function positionOf(context: HttpContext, { code, start = 0 }: DatabaseError): number {
  const isShown = code !== 'InvalidCell' || context.state.parameters.isTrue('exactPosition');
  return isShown ? start : 0;
}

export function answerStatementError(context: HttpContext, error: DatabaseError): void {
  const status = httpStatusOf(error.code);
  const body = errorBody(
    context.state.statement?.text ?? '',
    error.message,
    positionOf(context, error),
  );
  answer(context, status, JSON_TYPE, body);
}

/** Refuses a request before its statement runs. */
export function refuse(context: HttpContext, message: string, position = 0): void {
  const body = errorBody(context.state.statement?.text ?? '', message, position);
  answer(context, 400, JSON_TYPE, body);
}

/**
 * Returns the statement of a request. If the request has none, sends an error and returns `null`.
 */
export function readStatement(context: HttpContext, keepAlive: string): string | null {
  const { parameters } = context.state;
  const text = noteStatement(context);
  if (parameters.isInvalid('query')) {
    refuse(context, BAD_UTF8);
    return null;
  }
  promiseKeepAlive(context, keepAlive);
  if (text.trim() === '') {
    answerEmpty(context, text);
    return null;
  }
  return text;
}

/** Clients test for exactly this response, including the quoted position. */
export function answerEmpty(context: HttpContext, text: string): void {
  const body = JSON.stringify({ error: 'empty query', query: text, position: '0' });
  answer(context, 200, JSON_TYPE, body);
}

/** A column's JSON description. */
export function columnJson(column: ResultColumn | undefined): string {
  if (column === undefined) {
    return '{}';
  }
  const { name, type, dimensions } = column;
  const array = dimensions > 0 ? { dim: dimensions, elemType: 'DOUBLE' } : {};
  return JSON.stringify({ name: reportedName(name), type, ...array });
}

/** Text formats over HTTP quote a name that contains a dot. */
function reportedName(name: string): string {
  return name.includes('.') ? `"${name}"` : name;
}

/**
 * Refuses a statement with placeholders, because a request cannot supply values. Returns false if
 * the statement has no placeholders.
 */
export function refusePlaceholders(context: HttpContext, statement: PreparedStatement): boolean {
  if (statement.description.parameters.length === 0) {
    return false;
  }
  const mark = firstQuestionMark(statement.text);
  if (mark === null) {
    refuse(context, 'bind variable service is not provided');
  } else {
    // A question mark is reported as an invalid column name, because requests have no parameter
    // values.
    refuse(context, 'Invalid column: ?', mark);
  }
  return true;
}

/** Reads a reply to the end, discarding its rows. */
export async function finish(reply: ExecuteReply): Promise<Summary> {
  if (reply.summary !== null) {
    return reply.summary;
  }
  const { stream } = reply;
  if (stream === null) {
    throw new DatabaseError({ code: 'Internal', message: 'the reply has no rows or summary' });
  }
  while ((await stream.next()) !== null) {
    // Discard the rows.
  }
  return stream.summary();
}

/** Binds a statement; aborts if its time limit expires or the client disconnects. */
export async function prepareWhileConnected(
  context: HttpContext,
  session: Session,
  text: string,
): Promise<PreparedStatement> {
  const disconnected = new AbortController();
  const abort = (): void => {
    disconnected.abort();
  };
  context.res.once('close', abort);
  try {
    const options = { ...statementBounds(context), signal: disconnected.signal };
    return await session.prepare(text, undefined, options);
  } finally {
    context.res.off('close', abort);
  }
}

/**
 * Runs `work`. If the client disconnects before the first rows arrive, cancels the statement; after
 * that, cancels the stream.
 */
export async function whileConnected<T>(
  context: HttpContext,
  statement: PreparedStatement,
  work: (follow: (stream: ResultStream | null) => void) => Promise<T>,
): Promise<T> {
  let stream: ResultStream | null = null;
  let isClosed = context.res.closed;
  const onClose = (): void => {
    isClosed = !context.res.writableFinished;
    if (isClosed) {
      stream?.cancel();
      statement.cancel();
    }
  };
  context.res.once('close', onClose);
  try {
    if (isClosed) {
      throw new ClientDisconnected();
    }
    return await work((next) => {
      stream = next;
      if (isClosed) {
        next?.cancel();
      }
    });
  } catch (error) {
    throw error instanceof ClientDisconnected ? error : asDatabaseError(error);
  } finally {
    context.res.off('close', onClose);
    statement.close();
  }
}

/** What `/exec` and `/exp` share: reading the request, refusing texts, running to the end. */
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
import { ClientGone } from './body-writer.js';
import {
  answer,
  type HttpContext,
  type HttpServices,
  JSON_TYPE,
  promiseKeepAlive,
  type SmallBody,
} from '../route.js';

export const BAD_UTF8 = 'Bad UTF8 encoding in query text';

/** A statement has at most 16 M characters. */
export const STATEMENT_FORM: SmallBody = { kind: 'form', limitBytes: 17 * 1024 * 1024 };

export function openSession(
  context: HttpContext,
  { sessions, statements }: HttpServices,
  readOnly: boolean,
): Session {
  return sessions.open(principalOf(context, readOnly), false, statements.http);
}

/** Who asks, for what runs without a session. */
export function principalOf({ state }: HttpContext, readOnly: boolean): Principal {
  const { identity } = state;
  return identity === null
    ? { name: 'admin', readOnly }
    : { name: identity.name, readOnly, identity };
}

/** The statement of a request, whose time begins. */
export function noteStatement({ state }: HttpContext): string {
  const text = state.parameters.get('query') ?? '';
  state.statement = { text, sinceMs: performance.now() };
  return text;
}

/** By `Statement-Timeout`, in milliseconds; what cannot be read counts as absent. */
export function statementBounds(context: HttpContext): TimeBounds {
  const text = context.get('Statement-Timeout').trim();
  const timeoutMs = /^\d{1,15}$/.test(text) ? Number(text) : 0;
  const sinceMs = context.state.statement?.sinceMs ?? performance.now();
  return timeBounds(timeoutMs > 0 ? timeoutMs : undefined, sinceMs);
}

/** `{"query":…,"error":…,"position":…}`; a `null` position is left out. */
export function errorBody(query: string, message: string, position: number | null): string {
  const fields = position === null ? {} : { position };
  return JSON.stringify({ query, error: message, ...fields });
}

/**
 * Where an error is in the statement's text. Clients know 0 for a value of a row that does not
 * convert; those that ask get the place of what was to be converted.
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

/** The statement that a request brings; `null` when it has none and was answered so. */
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

/** Clients test for this answer, quoted position and all. */
export function answerEmpty(context: HttpContext, text: string): void {
  const body = JSON.stringify({ error: 'empty query', query: text, position: '0' });
  answer(context, 200, JSON_TYPE, body);
}

/** A column as the answers describe it. */
export function columnJson(column: ResultColumn | undefined): string {
  if (column === undefined) {
    return '{}';
  }
  const { name, type, dimensions } = column;
  const array = dimensions > 0 ? { dim: dimensions, elemType: 'DOUBLE' } : {};
  return JSON.stringify({ name: reportedName(name), type, ...array });
}

/** A name with a dot has quotes around it in the text forms of HTTP. */
function reportedName(name: string): string {
  return name.includes('.') ? `"${name}"` : name;
}

/** Refuses a statement with placeholders, which have no values here; false when it has none. */
export function refusePlaceholders(context: HttpContext, statement: PreparedStatement): boolean {
  if (statement.description.parameters.length === 0) {
    return false;
  }
  const mark = firstQuestionMark(statement.text);
  if (mark === null) {
    refuse(context, 'bind variable service is not provided');
  } else {
    // Without values a question mark is a name like any other.
    refuse(context, 'Invalid column: ?', mark);
  }
  return true;
}

/** Reads a reply to its end when its rows are not wanted. */
export async function finish(reply: ExecuteReply): Promise<Summary> {
  if (reply.summary !== null) {
    return reply.summary;
  }
  const { stream } = reply;
  if (stream === null) {
    throw new DatabaseError({ code: 'Internal', message: 'a reply without rows and without end' });
  }
  while ((await stream.next()) !== null) {
    // Rows that were not asked for.
  }
  return stream.summary();
}

/** Binds a statement, and ends that with its time or when the client goes away. */
export async function prepareWhileConnected(
  context: HttpContext,
  session: Session,
  text: string,
): Promise<PreparedStatement> {
  const gone = new AbortController();
  const abort = (): void => {
    gone.abort();
  };
  context.res.once('close', abort);
  try {
    const options = { ...statementBounds(context), signal: gone.signal };
    return await session.prepare(text, undefined, options);
  } finally {
    context.res.off('close', abort);
  }
}

/**
 * Runs `work` and cancels what it runs when the client goes away: the statement while its first
 * rows are awaited, the stream afterwards.
 */
export async function whileConnected<T>(
  context: HttpContext,
  statement: PreparedStatement,
  work: (follow: (stream: ResultStream | null) => void) => Promise<T>,
): Promise<T> {
  let stream: ResultStream | null = null;
  let isGone = context.res.closed;
  const gone = (): void => {
    isGone = !context.res.writableFinished;
    if (isGone) {
      stream?.cancel();
      statement.cancel();
    }
  };
  context.res.once('close', gone);
  try {
    if (isGone) {
      throw new ClientGone();
    }
    return await work((next) => {
      stream = next;
      if (isGone) {
        next?.cancel();
      }
    });
  } catch (error) {
    throw error instanceof ClientGone ? error : asDatabaseError(error);
  } finally {
    context.res.off('close', gone);
    statement.close();
  }
}

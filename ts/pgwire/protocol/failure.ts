/**
 * Converts statement errors for the client: SQLSTATE, and the position in the client's SQL text.
 */
import { asDatabaseError, ChangedResult, DatabaseError, sqlStateOf } from '../../session/index.js';
import { ProtocolError } from './protocol-error.js';
import { errorResponse } from './server-messages.js';

/** An error with its position in the client's SQL text. */
class LocatedError extends Error {
  readonly failure: DatabaseError;
  readonly position: number | undefined;
  /** Position in the COPY data, if any. */
  readonly where: string | undefined;

  constructor(failure: DatabaseError, position: number | undefined, where?: string) {
    super(failure.message);
    this.failure = failure;
    this.position = position;
    this.where = where;
  }
}

/** `offset` is the start of the statement in `text`; positions count characters from 1. */
export function located(
  error: unknown,
  text: string,
  offset: number,
): LocatedError | ProtocolError {
  if (error instanceof LocatedError || error instanceof ProtocolError) {
    return error;
  }
  const failure = asDatabaseError(error);
  if (failure.start === undefined) {
    return new LocatedError(failure, undefined);
  }
  const before = text === '' ? failure.start : characters(text.slice(0, offset + failure.start));
  return new LocatedError(failure, before + 1);
}

/** An error in COPY data. It has no position in the SQL text, but may have one in the data. */
export function inData(error: unknown, where?: string): Error {
  if (error instanceof ProtocolError) {
    return new ProtocolError(error.sqlState, error.message, error.fatal, where);
  }
  return new LocatedError(asDatabaseError(error), undefined, where);
}

/**
 * Converts an error position in a part of the SQL text to a position in the whole text. The part
 * starts at `offset`.
 */
export function shifted(error: unknown, offset: number): Error {
  if (error instanceof ProtocolError) {
    return error;
  }
  const { code, message, start, end, detail, hint, retryable } = asDatabaseError(error);
  const move = (position: number | undefined): number | undefined =>
    position === undefined ? undefined : position + offset;
  const range = { start: move(start), end: move(end) };
  return new DatabaseError({ code, message, detail, hint, retryable, ...range }, { cause: error });
}

export function errorReport(error: LocatedError | ProtocolError): Buffer {
  const { message } = error;
  if (error instanceof ProtocolError) {
    const { sqlState, where } = error;
    return errorResponse({ severity: 'ERROR', sqlState, message, where });
  }
  const { code, detail, hint } = error.failure;
  const fields = { sqlState: sqlStateOf(code), message, detail, hint, ...special(error.failure) };
  const { position, where } = error;
  return errorResponse({ severity: 'ERROR', ...fields, position, where });
}

/**
 * Returns the SQLSTATE and the function name to report if a statement's result columns have
 * changed. Drivers that see this function name prepare the statement again.
 */
function special(failure: DatabaseError): { sqlState?: string; routine?: string } {
  return failure instanceof ChangedResult
    ? { sqlState: sqlStateOf('NotSupported'), routine: 'RevalidateCachedQuery' }
    : {};
}

/** Number of characters as the protocol counts them: code points. */
function characters(text: string): number {
  return text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0);
}

/**
 * Converts any thrown value to `DatabaseError`. An internal error gets an id that appears in both
 * the response and the log.
 */
import { randomBytes } from 'node:crypto';

import { DatabaseError } from '../engine/error.js';

/** An error from the parser. It is recognised by its message and its UTF-16 offsets. */
interface PositionedError {
  readonly message: string;
  readonly start: number;
  readonly end: number;
  readonly code?: 'Syntax' | 'NotSupported' | 'TableNotFound';
}

function isPositioned(error: unknown): error is PositionedError {
  return (
    typeof error === 'object' &&
    error !== null &&
    'start' in error &&
    typeof error.start === 'number' &&
    'end' in error &&
    typeof error.end === 'number' &&
    'message' in error &&
    typeof error.message === 'string'
  );
}

export function asSyntaxError(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) {
    return error;
  }
  if (isPositioned(error)) {
    const { message, start, end, code = 'Syntax' } = error;
    return new DatabaseError({ code, message, start, end });
  }
  return asDatabaseError(error);
}

/**
 * Reports that the result columns of a prepared statement have changed since its client received
 * them.
 */
export class ChangedResult extends DatabaseError {
  constructor() {
    super({
      code: 'Replan',
      // Drivers recognise this exact message.
      message: 'cached plan must not change result type',
      detail: 'the columns of this statement changed because its tables changed',
      hint: 'prepare the statement again',
      retryable: true,
    });
  }
}

/**
 * Returns a `DatabaseError` unchanged. Anything else is an internal error: its message is logged
 * (as `cause`), and the client receives an id.
 */
export function asDatabaseError(error: unknown): DatabaseError {
  if (error instanceof DatabaseError) {
    return error;
  }
  const id = randomBytes(6).toString('hex');
  return new DatabaseError(
    { code: 'Internal', message: `internal error [id=${id}]`, detail: id },
    { cause: error },
  );
}

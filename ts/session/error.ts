/** Whatever was thrown, as the one error type; defects get an id that client and log share. */
import { randomBytes } from 'node:crypto';

import { DatabaseError } from '../engine/error.js';

/** The parser's error, known by its shape: a message and UTF-16 offsets. */
interface PositionedError {
  readonly message: string;
  readonly start: number;
  readonly end: number;
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
    const { message, start, end } = error;
    return new DatabaseError({ code: 'Syntax', message, start, end });
  }
  return asDatabaseError(error);
}

/** A prepared statement would answer with other columns than its client received. */
export class ChangedResult extends DatabaseError {
  constructor() {
    super({
      code: 'Replan',
      // Drivers know these words.
      message: 'cached plan must not change result type',
      detail: 'the tables of this statement changed, and its columns with them',
      hint: 'prepare the statement again',
      retryable: true,
    });
  }
}

/**
 * A `DatabaseError` stays; anything else is a defect: its text goes to the log (as `cause`), the
 * client sees an id.
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

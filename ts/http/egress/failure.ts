/** Columnar protocol errors: a status and a message. */
import type { DatabaseError } from '../../session/index.js';
import { STATUS } from '../qwp-status.js';

/** Status codes; clients treat any unknown status as a protocol error. */
type Status = (typeof STATUS)[
  | 'schemaMismatch'
  | 'parseError'
  | 'internalError'
  | 'securityError'
  | 'cancelled'
  | 'limitExceeded'
  | 'queryTimeout'];

/**
 * Reports a message that cannot be decoded. `id` is the query that the message refers to, if it
 * could be read.
 */
export class MalformedMessage extends Error {
  readonly id: bigint | null;

  constructor(message: string, id: bigint | null = null) {
    super(message);
    this.id = id;
  }
}

/** Reports a request that exceeds a limit. */
export class LimitExceeded extends MalformedMessage {}

/** Reports a parameter of an unknown type. */
export class BindMismatch extends MalformedMessage {}

const BY_CODE: Readonly<Partial<Record<DatabaseError['code'], Status>>> = {
  InvalidBinary: STATUS.schemaMismatch,
  InvalidCopyData: STATUS.schemaMismatch,
  AccessDenied: STATUS.securityError,
  ReadOnly: STATUS.securityError,
  Cancelled: STATUS.cancelled,
  Timeout: STATUS.limitExceeded,
  ResourceLimit: STATUS.limitExceeded,
  StatementTooComplex: STATUS.limitExceeded,
  OutOfMemory: STATUS.limitExceeded,
  Busy: STATUS.limitExceeded,
  Replan: STATUS.internalError,
  DiskFull: STATUS.internalError,
  Io: STATUS.internalError,
  Damaged: STATUS.internalError,
  RootLocked: STATUS.internalError,
  Closed: STATUS.internalError,
  Internal: STATUS.internalError,
};

export interface Failure {
  readonly status: Status;
  readonly message: string;
}

/**
 * Converts a statement error; the message includes the position. `hasOwnTime`: the client specified
 * a timeout, so it understands the timeout status.
 */
export function failureOf(error: DatabaseError, hasOwnTime = false): Failure {
  const { code, message, start, detail } = error;
  const isBind = detail?.startsWith('parameter $') === true;
  const status = isBind ? STATUS.schemaMismatch : statusOf(code, hasOwnTime);
  const location = isBind ? ` [${detail}]` : start === undefined ? '' : ` [position=${start}]`;
  return { status, message: message + location };
}

function statusOf(code: DatabaseError['code'], hasOwnTime: boolean): Status {
  const isOwnTimeout = code === 'Timeout' && hasOwnTime;
  return isOwnTimeout ? STATUS.queryTimeout : (BY_CODE[code] ?? STATUS.parseError);
}

/** Converts the error of a request that could not be decoded. */
export function requestFailure(error: MalformedMessage): Failure {
  const { message } = error;
  if (error instanceof LimitExceeded) {
    return { status: STATUS.limitExceeded, message };
  }
  const isMismatch = error instanceof BindMismatch;
  return { status: isMismatch ? STATUS.schemaMismatch : STATUS.parseError, message };
}

/** What goes wrong, as clients of the columnar protocol learn it: a status and a text. */
import type { DatabaseError } from '../../session/index.js';
import { STATUS } from '../qwp-status.js';

/** Clients take any other for a fault of the protocol. */
type Status = (typeof STATUS)[
  | 'schemaMismatch'
  | 'parseError'
  | 'internalError'
  | 'securityError'
  | 'cancelled'
  | 'limitExceeded'
  | 'queryTimeout'];

/** A message that says nothing; `id` is the query it is about, where that could be read. */
export class MalformedMessage extends Error {
  readonly id: bigint | null;

  constructor(message: string, id: bigint | null = null) {
    super(message);
    this.id = id;
  }
}

/** A request beyond a limit. */
export class LimitExceeded extends MalformedMessage {}

/** A parameter whose type nothing here has. */
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
 * Of a statement; where in its text is part of the message. `hasOwnTime`: its client said how long
 * it may take, and knows the status of that.
 */
export function failureOf(error: DatabaseError, hasOwnTime = false): Failure {
  const { code, message, start, detail } = error;
  const isBind = detail?.startsWith('parameter $') === true;
  const status = isBind ? STATUS.schemaMismatch : statusOf(code, hasOwnTime);
  const place = isBind ? ` [${detail}]` : start === undefined ? '' : ` [position=${start}]`;
  return { status, message: message + place };
}

function statusOf(code: DatabaseError['code'], hasOwnTime: boolean): Status {
  const isOwnTimeout = code === 'Timeout' && hasOwnTime;
  return isOwnTimeout ? STATUS.queryTimeout : (BY_CODE[code] ?? STATUS.parseError);
}

/** Of a request that was not understood. */
export function requestFailure(error: MalformedMessage): Failure {
  const { message } = error;
  if (error instanceof LimitExceeded) {
    return { status: STATUS.limitExceeded, message };
  }
  const isMismatch = error instanceof BindMismatch;
  return { status: isMismatch ? STATUS.schemaMismatch : STATUS.parseError, message };
}

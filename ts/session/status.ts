/**
 * The external representation of each error: HTTP status, SQLSTATE and log level. It covers every
 * `ErrorCode`: a new code without an entry does not compile.
 */
import type { ErrorCode } from '../engine/types.js';

interface ErrorMeaning {
  readonly httpStatus: number;
  readonly sqlState: string;
  /**
   * `error` requires action, `warn` reports degraded service, and `debug` reports errors that
   * clients cause.
   */
  readonly logLevel: 'error' | 'warn' | 'debug';
  /** Whether the error concerns the SQL text and has a position in it. */
  readonly isOfText: boolean;
}

function meaning(
  httpStatus: number,
  sqlState: string,
  logLevel: ErrorMeaning['logLevel'] = 'debug',
): ErrorMeaning {
  return { httpStatus, sqlState, logLevel, isOfText: false };
}

function ofText(sqlState: string): ErrorMeaning {
  return { ...meaning(400, sqlState), isOfText: true };
}

const MEANINGS: Readonly<Record<ErrorCode, ErrorMeaning>> = {
  Syntax: ofText('42601'),
  StatementTooComplex: ofText('54001'),
  TableNotFound: ofText('42P01'),
  TableExists: ofText('42P07'),
  ColumnNotFound: ofText('42703'),
  DuplicateColumn: ofText('42701'),
  AmbiguousColumn: ofText('42702'),
  FunctionNotFound: ofText('42883'),
  TypeMismatch: ofText('42804'),
  InvalidValue: ofText('22P02'),
  InvalidCell: ofText('22P02'),
  NullValue: ofText('23502'),
  InvalidEncoding: ofText('22021'),
  InvalidBinary: ofText('22P03'),
  InvalidCopyData: ofText('22P04'),
  InvalidName: ofText('42602'),
  InvalidState: ofText('55000'),
  NotSupported: ofText('0A000'),
  // The session retries after this error, so clients see it only if the catalog keeps changing.
  Replan: meaning(503, '40001', 'warn'),
  // HTTP clients expect status 400 for timeouts and cancellations.
  Cancelled: meaning(400, '57014'),
  Timeout: meaning(400, '57014'),
  ResourceLimit: meaning(400, '54000'),
  Busy: meaning(503, '53300', 'warn'),
  OutOfMemory: meaning(503, '53200', 'warn'),
  DiskFull: meaning(507, '53100', 'error'),
  Io: meaning(500, '58030', 'error'),
  Damaged: meaning(500, 'XX001', 'error'),
  RootLocked: meaning(503, '55006', 'error'),
  Closed: meaning(503, '57P01'),
  ReadOnly: meaning(403, '25006'),
  HistoryGone: meaning(410, '55000'),
  AccessDenied: meaning(403, '42501'),
  Internal: meaning(500, 'XX000', 'error'),
};

export function errorMeaning(code: ErrorCode): ErrorMeaning {
  return MEANINGS[code];
}

export function httpStatusOf(code: ErrorCode): number {
  return MEANINGS[code].httpStatus;
}

export function sqlStateOf(code: ErrorCode): string {
  return MEANINGS[code].sqlState;
}

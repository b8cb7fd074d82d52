/**
 * The one error that TypeScript throws. The engine's errors arrive as JSON objects of the same
 * fields; `ts/engine/index.ts` alone decodes them.
 */
import type { ErrorCode } from '../border/types.generated.js';

export interface ErrorFields {
  readonly code: ErrorCode;
  readonly message: string;
  /** UTF-16 offset of the offending token in the statement text. */
  readonly start?: number | undefined;
  readonly end?: number | undefined;
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
  /** The same call may succeed later without a change. */
  readonly retryable?: boolean | undefined;
}

export class DatabaseError extends Error {
  override readonly name = 'DatabaseError';
  readonly code: ErrorCode;
  readonly start: number | undefined;
  readonly end: number | undefined;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
  readonly retryable: boolean;

  constructor(fields: ErrorFields, options?: ErrorOptions) {
    super(fields.message, options);
    this.code = fields.code;
    this.start = fields.start;
    this.end = fields.end;
    this.detail = fields.detail;
    this.hint = fields.hint;
    this.retryable = fields.retryable ?? false;
  }
}

/**
 * The only error class that TypeScript throws. Engine errors arrive as JSON objects with the same
 * fields, and only `ts/engine/index.ts` decodes them.
 */
import type { ErrorCode } from '../border/types.generated.js';

export interface ErrorFields {
  readonly code: ErrorCode;
  readonly message: string;
  /** UTF-16 offset of the offending token in the SQL text. */
  readonly start?: number | undefined;
  readonly end?: number | undefined;
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
  /** Whether repeating the same call later may succeed. */
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

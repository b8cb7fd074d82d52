/** Detects the schema of files during binding, within the statement's timeout. */
import { DatabaseError } from '../engine/error.js';
import type { StatementContext, TextFormatRequest, TextShape } from '../engine/types.js';
import { timedOut } from './time-bounds.js';

/** Detects how to read text files; `signal` aborts the detection. */
export type TextShapeDetector = (
  request: TextFormatRequest,
  signal: AbortSignal,
) => Promise<TextShape>;

interface Limits {
  /** Timeout in milliseconds; 0 means no limit. */
  readonly timeoutMs: number;
  /** Milliseconds that have already elapsed. */
  readonly elapsedMs: number;
  readonly cancelled: AbortSignal | undefined;
}

/** Returns the member of a statement's context that detects schemas. */
export function textShapeContext(
  detectTextShape: TextShapeDetector | undefined,
  limits: Limits,
): Pick<StatementContext, 'detectTextShape'> {
  return detectTextShape === undefined
    ? {}
    : { detectTextShape: (request) => limited(detectTextShape, request, limits) };
}

async function limited(
  detectTextShape: TextShapeDetector,
  request: TextFormatRequest,
  { timeoutMs, elapsedMs, cancelled }: Limits,
): Promise<TextShape> {
  const late =
    timeoutMs > 0 ? [AbortSignal.timeout(Math.max(Math.ceil(timeoutMs - elapsedMs), 1))] : [];
  const signal = AbortSignal.any(cancelled === undefined ? late : [cancelled, ...late]);
  try {
    return await detectTextShape(request, signal);
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
    throw cancelled?.aborted === true
      ? new DatabaseError({ code: 'Cancelled', message: 'cancelled by user' })
      : timedOut(timeoutMs);
  }
}

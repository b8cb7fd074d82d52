/** Looking at files while a statement is bound: it ends with the statement's time. */
import { DatabaseError } from '../engine/error.js';
import type { StatementContext, TextAsk, TextShape } from '../engine/types.js';
import { timedOut } from './time-bounds.js';

/** Finds how the texts in some files are read; ends as the signal says. */
export type Looks = (ask: TextAsk, signal: AbortSignal) => Promise<TextShape>;

interface Limits {
  /** Milliseconds; 0: no limit. */
  readonly timeoutMs: number;
  /** Milliseconds of it that are over. */
  readonly elapsedMs: number;
  readonly cancelled: AbortSignal | undefined;
}

/** What a statement's context has of it. */
export function looksWithin(
  looks: Looks | undefined,
  limits: Limits,
): Pick<StatementContext, 'looks'> {
  return looks === undefined ? {} : { looks: (ask) => limited(looks, ask, limits) };
}

async function limited(
  looks: Looks,
  ask: TextAsk,
  { timeoutMs, elapsedMs, cancelled }: Limits,
): Promise<TextShape> {
  const late =
    timeoutMs > 0 ? [AbortSignal.timeout(Math.max(Math.ceil(timeoutMs - elapsedMs), 1))] : [];
  const signal = AbortSignal.any(cancelled === undefined ? late : [cancelled, ...late]);
  try {
    return await looks(ask, signal);
  } catch (error) {
    if (!signal.aborted) {
      throw error;
    }
    throw cancelled?.aborted === true
      ? new DatabaseError({ code: 'Cancelled', message: 'cancelled by user' })
      : timedOut(timeoutMs);
  }
}

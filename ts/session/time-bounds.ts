/** The time of one statement: it runs from its arrival on, through every step. */

import { DatabaseError } from '../engine/error.js';

/** How long a statement may go on. */
export interface TimeBounds {
  /** Milliseconds; absent: as long as the server lets it. */
  readonly timeoutMs?: number;
  /** Milliseconds of it that are over. */
  readonly elapsedMs: number;
}

/** Of a statement whose time begins. */
export const ALL_TIME: TimeBounds = { elapsedMs: 0 };

/** Of a statement that came at `sinceMs`, by `performance.now()`. */
export function timeBounds(timeoutMs: number | undefined, sinceMs: number): TimeBounds {
  const elapsedMs = Math.floor(performance.now() - sinceMs);
  return timeoutMs === undefined ? { elapsedMs } : { timeoutMs, elapsedMs };
}

/** Throws where no time is left. */
export function refuseIfLate({ timeoutMs, elapsedMs }: TimeBounds): void {
  if (timeoutMs !== undefined && elapsedMs >= timeoutMs) {
    throw timedOut(timeoutMs);
  }
}

/** The error of a statement that ran longer than it may. */
export function timedOut(timeoutMs: number): DatabaseError {
  const message = `timeout, query aborted [timeout=${timeoutMs}ms]`;
  return new DatabaseError({ code: 'Timeout', message });
}

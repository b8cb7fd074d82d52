/** A statement's time limit, which covers every step after the statement arrives. */

import { DatabaseError } from '../engine/error.js';

/** A statement's time limit. */
export interface TimeBounds {
  /** Timeout in milliseconds; absent if the server's limit applies. */
  readonly timeoutMs?: number;
  /** Milliseconds that have already elapsed. */
  readonly elapsedMs: number;
}

/** Time bounds of a statement that starts now. */
export const ALL_TIME: TimeBounds = { elapsedMs: 0 };

/**
 * Returns the time bounds of a statement that arrived at `sinceMs`, as measured by
 * `performance.now()`.
 */
export function timeBounds(timeoutMs: number | undefined, sinceMs: number): TimeBounds {
  const elapsedMs = Math.floor(performance.now() - sinceMs);
  return timeoutMs === undefined ? { elapsedMs } : { timeoutMs, elapsedMs };
}

/** Throws if no time is left. */
export function refuseIfLate({ timeoutMs, elapsedMs }: TimeBounds): void {
  if (timeoutMs !== undefined && elapsedMs >= timeoutMs) {
    throw timedOut(timeoutMs);
  }
}

/** The error for a statement that exceeded its time limit. */
export function timedOut(timeoutMs: number): DatabaseError {
  const message = `timeout, query aborted [timeout=${timeoutMs}ms]`;
  return new DatabaseError({ code: 'Timeout', message });
}

/** The time of one statement: it runs from its arrival on, through every step. */

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

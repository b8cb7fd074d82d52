/** Interfaces and helpers of the sources from which a tab follows rows. */
import type { AnswerHead, Row } from '../api/answer.js';
import { SqlError } from '../api/client.js';
import { quoted } from '../sql/names.js';
import { messageOf } from '../model/message.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface FollowListener {
  /** Called with the last rows, oldest first, whenever they may have changed. */
  readonly rows: (head: AnswerHead, rows: readonly Row[]) => void;
  /** Called when the server reports that the rows have not changed. */
  readonly same: () => void;
  /**
   * Called with a reason when polling begins, and with `undefined` when the server pushes changes
   * again.
   */
  readonly polled: (reason: string | undefined) => void;
  /**
   * Called if the server refuses a request or does not respond. The next attempt starts after
   * `retryMs`.
   */
  readonly failed: (message: string, isLost: boolean, retryMs: number) => void;
}

export interface FollowSource {
  /** Starts sending rows to a listener. The listener is not called after `close`. */
  readonly subscribe: (listener: FollowListener) => { readonly close: () => void };
}

export interface Followed {
  /** Name of the table, or of the query. */
  readonly table: string;
  /** The query to follow. If absent, the table is followed. */
  readonly query?: string | undefined;
  /** Maximum number of rows to show. */
  readonly rows: number;
}

const FIRST_WAIT_MS = 1000;
const MAX_WAIT_MS = 10_000;

/** Returns the statement that reads the last rows in order. */
export function lastRows({ table, query, rows }: Followed): string {
  const from = query === undefined ? quoted(table) : `(${query.replace(/[;\s]+$/, '')}\n)`;
  return `SELECT * FROM ${from} LIMIT -${rows}`;
}

/** Returns the delay before the next attempt, after a number of consecutive failures. */
export function waitAfter(failures: number): number {
  return Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
}

/**
 * True if the error concerns the table or the user, so that another kind of request would fail too.
 */
export function isOfTable(cause: unknown): boolean {
  return (
    cause instanceof SqlError &&
    (cause.status === 401 || cause.status === 403 || /does not exist/i.test(cause.message))
  );
}

/** Explains to the user why no new rows arrive. */
export function troubleText(cause: unknown, { table, query }: Followed): string {
  if (!(cause instanceof SqlError) || !isOfTable(cause) || query !== undefined) {
    return messageOf(cause);
  }
  switch (cause.status) {
    case 401:
      return cause.message;
    case 403:
      return fill(texts.follow.noPermission, { table, message: cause.message });
    default:
      return fill(texts.follow.noTable, { table });
  }
}

/** Resolves after `ms`, or earlier if the signal aborts. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, signal.aborted ? 0 : ms);
    signal.addEventListener('abort', end);
  });
}

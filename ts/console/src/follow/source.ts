/** Where the last rows of a table come from while it is followed. */
import type { AnswerHead, Row } from '../api/answer.js';
import { SqlError } from '../api/client.js';
import { quoted } from '../sql/names.js';
import { messageOf } from '../model/message.js';

export interface FollowListener {
  /** The last rows, oldest first, whenever they may be others. */
  readonly rows: (head: AnswerHead, rows: readonly Row[]) => void;
  /** The server says that nothing has changed. */
  readonly same: () => void;
  /** The server is asked again and again from now on, and why; nothing: it tells by itself. */
  readonly polled: (reason: string | undefined) => void;
  /** There was no answer, or the server refused; it is tried again after so long. */
  readonly failed: (message: string, isLost: boolean, retryMs: number) => void;
}

export interface FollowSource {
  /** Begins at once; nothing is heard after `close`. */
  readonly subscribe: (listener: FollowListener) => { readonly close: () => void };
}

export interface Followed {
  /** The table, or what the query is called. */
  readonly table: string;
  /** A query whose last rows they are; otherwise they are those of the table. */
  readonly query?: string | undefined;
  /** At most so many rows, the last ones. */
  readonly rows: number;
}

const FIRST_WAIT_MS = 1000;
const MAX_WAIT_MS = 10_000;

/** The statement that gives the last rows in order. */
export function lastRows({ table, query, rows }: Followed): string {
  const from = query === undefined ? quoted(table) : `(${query.replace(/[;\s]+$/, '')}\n)`;
  return `SELECT * FROM ${from} LIMIT -${rows}`;
}

/** How long to wait after so many failures in a row. */
export function waitAfter(failures: number): number {
  return Math.min(MAX_WAIT_MS, FIRST_WAIT_MS * 2 ** (failures - 1));
}

/** Whether a refusal is of the table itself, or of the user: another way to ask changes nothing. */
export function isOfTable(cause: unknown): boolean {
  return (
    cause instanceof SqlError &&
    (cause.status === 401 || cause.status === 403 || /does not exist/i.test(cause.message))
  );
}

/** Why nothing new comes, for people. */
export function troubleText(cause: unknown, { table, query }: Followed): string {
  if (!(cause instanceof SqlError) || !isOfTable(cause) || query !== undefined) {
    return messageOf(cause);
  }
  switch (cause.status) {
    case 401:
      return cause.message;
    case 403:
      return `You may not read ${table}: ${cause.message}.`;
    default:
      return `There is no table or view named ${table}.`;
  }
}

/** Resolves after so long, or when it is not waited for any more. */
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

/** Where the last rows of a table come from while it is followed. */
import type { AnswerHead, Row } from '../api/answer.js';
import { aborted, query, SqlError } from '../api/client.js';
import { quoted } from '../schema/model.js';

interface FollowListener {
  /** The last rows, oldest first, whenever they may be others. */
  readonly rows: (head: AnswerHead, rows: readonly Row[]) => void;
  /** The server was asked, and nothing has changed. */
  readonly same: () => void;
  /** There was no answer, or the server refused; it is tried again after so long. */
  readonly failed: (message: string, isLost: boolean, retryMs: number) => void;
}

export interface FollowSource {
  /** Begins at once; nothing is heard after `close`. */
  readonly subscribe: (listener: FollowListener) => { readonly close: () => void };
}

export interface Followed {
  readonly table: string;
  /** At most so many rows, the last ones. */
  readonly rows: number;
}

const ASK_MS = 1000;
const LONGEST_WAIT_MS = 10_000;
/** An UPDATE leaves no mark in the catalog: each so many looks the rows are read in any case. */
const READ_EVERY = 5;

/** The statement that gives the last rows in order. */
export function lastRows({ table, rows }: Followed): string {
  return `SELECT * FROM ${quoted(table)} LIMIT -${rows}`;
}

/**
 * Asks again and again whether the table has grown, which is cheap, and only then for its last
 * rows; from time to time in any case: rows that come late, or are others than before, are seen.
 */
export function polledSource(followed: Followed): FollowSource {
  const name = followed.table.replaceAll("'", "''");
  const mark =
    `SELECT table_txn, table_row_count, table_max_timestamp FROM tables() ` +
    `WHERE table_name = '${name}'`;
  return {
    subscribe: (listener) => {
      const abort = new AbortController();
      void poll(abort.signal, mark, lastRows(followed), followed.rows, listener);
      return { close: () => abort.abort() };
    },
  };
}

async function poll(
  signal: AbortSignal,
  mark: string,
  statement: string,
  maxRows: number,
  listener: FollowListener,
): Promise<void> {
  let seen = '';
  let failures = 0;
  for (let looks = 0; !signal.aborted; looks += 1) {
    let wait = ASK_MS;
    try {
      const now = JSON.stringify((await query(mark, { signal })).rows);
      // What the catalog does not tell of is read each time.
      if (now === seen && now !== '[]' && looks % READ_EVERY !== 0) {
        listener.same();
      } else {
        const { head, rows } = await query(statement, { signal, maxRows });
        listener.rows(head, rows);
        seen = now;
      }
      failures = 0;
    } catch (cause) {
      if (aborted(cause)) {
        return;
      }
      failures += 1;
      wait = Math.min(LONGEST_WAIT_MS, ASK_MS * 2 ** (failures - 1));
      const message = cause instanceof Error ? cause.message : String(cause);
      listener.failed(message, !(cause instanceof SqlError), wait);
      // The table may be another one when it is there again.
      seen = '';
    }
    await pause(wait, signal);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

/** The last rows of a table where the server tells of no changes: it is asked for them. */
import { aborted, query, SqlError } from '../api/client.js';
import { literal } from '../sql/names.js';
import {
  lastRows,
  pause,
  troubleText,
  waitAfter,
  type Followed,
  type FollowListener,
} from './source.js';

const ASK_MS = 1000;
/** An UPDATE leaves no mark in the catalog: each so many looks the rows are read in any case. */
const READ_EVERY = 5;
/** Where the server has no room to tell of changes it is looked for after so long. */
const POLLED_MS = 60_000;

/** What the catalog says of something else than a table. */
const UNKNOWN = '[]';

/**
 * Asks again and again whether the table has grown, which is cheap, and only then for its last
 * rows; from time to time in any case: rows that come late, or are others than before, are seen.
 * Resolves when it is not wanted any more.
 */
export async function poll(
  followed: Followed,
  listener: Pick<FollowListener, 'rows' | 'same' | 'failed'>,
  signal: AbortSignal,
): Promise<void> {
  const mark =
    `SELECT table_txn, table_row_count, table_max_timestamp FROM tables() ` +
    `WHERE table_name = ${literal(followed.table)}`;
  let seen = '';
  let failures = 0;
  for (let looks = 0; !signal.aborted; looks += 1) {
    let wait = ASK_MS;
    try {
      const isTable = followed.query === undefined;
      const now = isTable ? JSON.stringify((await query(mark, { signal })).rows) : UNKNOWN;
      // What the catalog does not tell of is read each time.
      if (now === seen && now !== UNKNOWN && looks % READ_EVERY !== 0) {
        listener.same();
      } else {
        const { head, rows } = await query(lastRows(followed), { signal, maxRows: followed.rows });
        listener.rows(head, rows);
        seen = now;
      }
      failures = 0;
    } catch (cause) {
      if (aborted(cause)) {
        return;
      }
      failures += 1;
      wait = waitAfter(failures);
      listener.failed(troubleText(cause, followed), !(cause instanceof SqlError), wait);
      // The table may be another one when it is there again.
      seen = '';
    }
    await pause(wait, signal);
  }
}

/** Asks for a while: until it is time to look whether the server tells of changes again. */
export async function forAWhile(
  ask: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const abort = new AbortController();
  const end = (): void => abort.abort();
  const timer = setTimeout(end, POLLED_MS);
  signal.addEventListener('abort', end);
  await ask(abort.signal);
  clearTimeout(timer);
  signal.removeEventListener('abort', end);
}

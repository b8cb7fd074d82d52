/** Follows the last rows of a table by polling, for servers that push no changes. */
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

const POLL_MS = 1000;
/** The catalog does not reveal an UPDATE, so every n-th poll reads the rows regardless. */
const READ_EVERY = 5;
/** Interval between checks for whether the server has capacity for a feed again. */
const POLLED_MS = 60_000;

/** Catalog response for an object that is not a table. */
const UNKNOWN = '[]';

/**
 * Polls the catalog, which is cheap, and reads the last rows only if the table has grown. It also
 * reads them from time to time, to detect late and changed rows. Resolves when the signal aborts.
 */
export async function poll(
  followed: Followed,
  listener: Pick<FollowListener, 'rows' | 'same' | 'failed'>,
  signal: AbortSignal,
): Promise<void> {
  const mark =
    `SELECT table_txn, table_row_count, table_max_timestamp FROM tables() ` +
    `WHERE table_name = ${literal(followed.table)}`;
  let lastMark = '';
  let failures = 0;
  for (let polls = 0; !signal.aborted; polls += 1) {
    let wait = POLL_MS;
    try {
      const isTable = followed.query === undefined;
      const now = isTable ? JSON.stringify((await query(mark, { signal })).rows) : UNKNOWN;
      // An object that is not in the catalog is read at every poll.
      if (now === lastMark && now !== UNKNOWN && polls % READ_EVERY !== 0) {
        listener.same();
      } else {
        const { head, rows } = await query(lastRows(followed), { signal, maxRows: followed.rows });
        listener.rows(head, rows);
        lastMark = now;
      }
      failures = 0;
    } catch (cause) {
      if (aborted(cause)) {
        return;
      }
      failures += 1;
      wait = waitAfter(failures);
      listener.failed(troubleText(cause, followed), !(cause instanceof SqlError), wait);
      // A table that reappears may be a different table.
      lastMark = '';
    }
    await pause(wait, signal);
  }
}

/** Polls until it is time to check whether the server pushes changes again. */
export async function pollUntilRecheck(
  run: (signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const abort = new AbortController();
  const end = (): void => abort.abort();
  const timer = setTimeout(end, POLLED_MS);
  signal.addEventListener('abort', end);
  await run(abort.signal);
  clearTimeout(timer);
  signal.removeEventListener('abort', end);
}

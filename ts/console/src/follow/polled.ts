/** Follows the last rows of a table by polling. Used for servers that push no changes. */
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
/**
 * Every n-th poll reads the rows even if the catalog is unchanged, because the catalog does not
 * reflect an UPDATE.
 */
const READ_EVERY = 5;
/** Time to poll before checking whether the server can provide a feed again. */
const POLLED_MS = 60_000;

/** Catalog response for an object that is not a table. */
const UNKNOWN = '[]';

/**
 * Polls the catalog, which is cheap, and reads the last rows only if the table has changed. Also
 * reads them from time to time, to detect changes that the catalog does not show. Resolves when the
 * signal aborts.
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
      // Read an object that is not in the catalog at every poll.
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
      // After a failure, the name may belong to a different table.
      lastMark = '';
    }
    await pause(wait, signal);
  }
}

/** Polls for a limited time. The caller then checks whether the server pushes changes again. */
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

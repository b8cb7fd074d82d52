/** Change feeds as loops. */
import { arenaToBatch } from '../engine/arrow.js';
import {
  ChangeFeed,
  DatabaseError,
  parseFeedStart,
  positionText,
  type Session,
} from '../session/index.js';
import { type Row, type RowOptions, rowsOf } from './rows.js';
import { textOf } from './sql.js';

/** A change of the followed table. */
export interface Change<R = Row> {
  /**
   * With `rows`, the rows were added. With `range`, the rows replace all previous rows in the time
   * ranges.
   */
  readonly kind: 'rows' | 'range';
  readonly rows: readonly R[];
  /** Time ranges of the rows; `null` is unbounded. */
  readonly ranges: readonly { readonly from: string | null; readonly to: string | null }[];
  /** The position after this change, from which another loop can resume. */
  readonly position: string;
}

export interface ChangeOptions extends RowOptions {
  /** `now` (default), `start` for the existing rows first, or the position of a change. */
  readonly from?: string | undefined;
  /** Ends the loop with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** Maximum time in milliseconds to wait for a change before checking again. */
const WAIT_MS = 30_000;

/** Yields the changes of the table that a query reads. */
export async function* followChanges<R>(
  session: Session,
  sql: string,
  { from = 'now', signal, ...form }: ChangeOptions,
): AsyncGenerator<Change<R>, void> {
  const text = textOf(sql);
  const start = parseFeedStart(from);
  if (start === null) {
    const message = `invalid position '${from}': expected now, start, or the position of a change`;
    throw new DatabaseError({ code: 'InvalidValue', message });
  }
  signal?.throwIfAborted();
  const feed = new ChangeFeed(await session.prepare(text), start, { rows: { format: 'arrow' } });
  const aborted = (): void => {
    feed.close();
  };
  signal?.addEventListener('abort', aborted, { once: true });
  try {
    for (;;) {
      const step = await feed.next(WAIT_MS);
      const { kind, ranges } = step.change;
      const rows: R[] = [];
      for await (const { bytes } of feed.chunks(step)) {
        rows.push(...rowsOf<R>(arenaToBatch(bytes), form));
      }
      signal?.throwIfAborted();
      if (kind !== 'none') {
        const position = feed.position === null ? from : positionText(feed.position);
        yield { kind, rows, ranges, position };
      }
    }
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', aborted);
    feed.close();
  }
}

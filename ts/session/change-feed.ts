/**
 * A table's change feed, shared by all protocols. Each step executes the feed's statement
 * separately; between steps, the feed holds no engine resources.
 */
import { DatabaseError } from '../engine/error.js';
import type {
  Chunk,
  ExecuteOptions,
  ExecuteReply,
  StatementDescription,
  TableChange,
} from '../engine/types.js';

/** A query whose changes are reported. */
interface FollowedQuery {
  readonly description: StatementDescription;
  execute(
    parameters: readonly [],
    how: (bound: StatementDescription) => Pick<ExecuteOptions, 'rows' | 'skip' | 'changes'>,
  ): Promise<ExecuteReply>;
  /** Throws if the user may no longer read the table. */
  authorise(): void;
  /** Cancels the running execution. */
  cancel(): void;
  close(): void;
}

/**
 * A position in a feed: the number of the last transaction that was reported completely, and the
 * number of rows already reported from the next transaction.
 */
interface FeedPosition {
  readonly txn: number;
  readonly rows: number;
}

/** Start position of a feed; `start` reports the existing rows first, then the changes. */
export type FeedStart = FeedPosition | 'now' | 'start';

interface FeedOptions {
  readonly closed?: () => void;
  /** Whether LONG values are written as strings. */
  readonly quoteLargeNumbers?: boolean;
  /** The row encoding; JSON by default. */
  readonly rows?: ExecuteOptions['rows'];
}

/** A change to the table, and its rows. */
export interface FeedStep {
  readonly change: TableChange;
  readonly reply: ExecuteReply;
  /** Description of the rows; it changes when the table's columns change. */
  readonly description: StatementDescription;
}

/** Encoded rows. */
interface FeedChunk {
  readonly bytes: Buffer;
  readonly rows: number;
  /**
   * The position after these rows; `null` if a feed that resumes here must repeat the whole change.
   */
  readonly position: FeedPosition | null;
}

const COMMA = 0x2c;

/** Parses `now`, `start`, or a position as formatted by `positionText`; `null` if invalid. */
export function parseFeedStart(text: string): FeedStart | null {
  if (text === 'now' || text === 'start') {
    return text;
  }
  const [, txn = '', rows = '0'] = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(text) ?? [];
  return txn === '' ? null : { txn: Number(txn), rows: Number(rows) };
}

export function positionText({ txn, rows }: FeedPosition): string {
  return rows === 0 ? `${txn}` : `${txn}-${rows}`;
}

export class ChangeFeed {
  readonly #statement: FollowedQuery;
  readonly #closed: (() => void) | undefined;
  readonly #rows: ExecuteOptions['rows'];
  #at: FeedStart;
  #isClosed = false;

  /** `closed` is called when the feed is closed. */
  constructor(
    statement: FollowedQuery,
    at: FeedStart,
    { closed, quoteLargeNumbers = false, rows }: FeedOptions = {},
  ) {
    if (statement.description.kind !== 'select') {
      const message = 'change feeds support only SELECT columns FROM table WHERE condition';
      throw new DatabaseError({ code: 'NotSupported', message, start: 0 });
    }
    this.#statement = statement;
    this.#at = at;
    this.#closed = closed;
    this.#rows = rows ?? { format: 'json', quoteLargeNumbers };
  }

  /** Closes the feed, even if it is waiting. */
  close(): void {
    this.#isClosed = true;
    this.#statement.cancel();
    this.#statement.close();
    this.#closed?.();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** The feed's position; `null` until it is known. */
  get position(): FeedPosition | null {
    return typeof this.#at === 'string' ? null : this.#at;
  }

  /** Returns the next change, or a step of kind `none` if there was no change within `waitMs`. */
  async next(waitMs: number, withoutRows = false): Promise<FeedStep> {
    let description = this.#statement.description;
    const at = this.#at;
    const changes = {
      waitMs,
      withoutRows,
      all: at === 'start',
      ...(typeof at === 'string' ? {} : { after: at.txn }),
    };
    const skip = typeof at === 'string' ? 0 : at.rows;
    const reply = await this.#statement.execute([], (bound) => {
      description = bound;
      return { rows: this.#rows, skip, changes };
    });
    const { change } = reply;
    if (change === undefined) {
      reply.stream?.cancel();
      throw new DatabaseError({
        code: 'NotSupported',
        message: 'this statement has no change feed',
      });
    }
    // Rights may have been revoked during the wait.
    this.#statement.authorise();
    if (change.kind === 'none' || withoutRows) {
      this.#at = { txn: change.txn, rows: 0 };
    }
    return { change, reply, description };
  }

  /**
   * Yields the rows of a step. The step counts as reported when its last rows have been yielded.
   */
  async *chunks({ change, reply }: FeedStep): AsyncGenerator<FeedChunk> {
    const before = this.position;
    let rows = before?.rows ?? 0;
    let chunk = reply.chunk ?? (await nextOf(reply));
    while (chunk !== null) {
      const following = await nextOf(reply);
      rows += chunk.rows;
      const isInsideCommit = before !== null && change.kind === 'rows' && change.commits === 1;
      const inside = isInsideCommit ? { txn: before.txn, rows } : null;
      const position = following === null ? { txn: change.txn, rows: 0 } : inside;
      this.#at = position ?? this.#at;
      const bytes = this.#rows.format === 'json' ? withoutComma(chunk.bytes) : chunk.bytes;
      yield { bytes, rows: chunk.rows, position };
      chunk = following;
    }
    this.#at = { txn: change.txn, rows: 0 };
  }
}

async function nextOf({ stream }: ExecuteReply): Promise<Chunk | null> {
  return (await stream?.next()) ?? null;
}

/** Removes the comma with which a chunk begins if other chunks of the stream precede it. */
function withoutComma(bytes: Buffer): Buffer {
  return bytes[0] === COMMA ? bytes.subarray(1) : bytes;
}

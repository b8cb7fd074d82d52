/**
 * The changes of a table, step after step: what the feeds of all protocols have in common. Each
 * step is an execution of its statement like any other; between two of them nothing is held.
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
  /** Throws where its user may not read it any more. */
  authorise(): void;
  /** Stops what runs. */
  cancel(): void;
  close(): void;
}

/** What follows a transaction, but for so many rows of it. */
interface FeedPosition {
  readonly txn: number;
  readonly rows: number;
}

/** Where a feed begins: `start` tells the rows that there are, then what changes. */
export type FeedStart = FeedPosition | 'now' | 'start';

interface FeedOptions {
  readonly closed?: () => void;
  /** Whether LONG values are written as text. */
  readonly quoteLargeNumbers?: boolean;
}

/** A change of the table, and its rows. */
export interface FeedStep {
  readonly change: TableChange;
  readonly reply: ExecuteReply;
  /** What the rows are; another one where the table was altered. */
  readonly description: StatementDescription;
}

/** Rows in a form of their own. */
interface FeedPiece {
  readonly bytes: Buffer;
  readonly rows: number;
  /** Where a feed goes on that has reported them; null: it has to begin the change again. */
  readonly position: FeedPosition | null;
}

const COMMA = 0x2c;

/** A position as `positionText` writes it, `now` or `start`; null for what is none of them. */
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

  /** `closed` is called as it is closed. */
  constructor(
    statement: FollowedQuery,
    at: FeedStart,
    { closed, quoteLargeNumbers = false }: FeedOptions = {},
  ) {
    if (statement.description.kind !== 'select') {
      const message = 'a feed of changes follows SELECT columns FROM table WHERE condition';
      throw new DatabaseError({ code: 'NotSupported', message, start: 0 });
    }
    this.#statement = statement;
    this.#at = at;
    this.#closed = closed;
    this.#rows = { format: 'json', quoteLargeNumbers };
  }

  /** Stops it, whatever it waits for. */
  close(): void {
    this.#isClosed = true;
    this.#statement.cancel();
    this.#statement.close();
    this.#closed?.();
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Null until it is known. */
  get position(): FeedPosition | null {
    return typeof this.#at === 'string' ? null : this.#at;
  }

  /** The next change, or after `waitMs` that there was none. */
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
      throw new DatabaseError({ code: 'NotSupported', message: 'this statement has no changes' });
    }
    // It waited: what was granted may have been taken away.
    this.#statement.authorise();
    if (change.kind === 'none' || withoutRows) {
      this.#at = { txn: change.txn, rows: 0 };
    }
    return { change, reply, description };
  }

  /** The rows of a step. It counts as reported with the last of them. */
  async *pieces({ change, reply }: FeedStep): AsyncGenerator<FeedPiece> {
    const before = this.position;
    let rows = before?.rows ?? 0;
    let chunk = reply.chunk ?? (await nextOf(reply));
    while (chunk !== null) {
      const following = await nextOf(reply);
      rows += chunk.rows;
      const isPart = before !== null && change.kind === 'rows' && change.commits === 1;
      const inside = isPart ? { txn: before.txn, rows } : null;
      const position = following === null ? { txn: change.txn, rows: 0 } : inside;
      this.#at = position ?? this.#at;
      yield { bytes: withoutComma(chunk.bytes), rows: chunk.rows, position };
      chunk = following;
    }
    this.#at = { txn: change.txn, rows: 0 };
  }
}

async function nextOf({ stream }: ExecuteReply): Promise<Chunk | null> {
  return (await stream?.next()) ?? null;
}

/** Rows that follow others of one stream begin with a comma. */
function withoutComma(bytes: Buffer): Buffer {
  return bytes[0] === COMMA ? bytes.subarray(1) : bytes;
}

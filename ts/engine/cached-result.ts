/**
 * Caches the reply of a query that reads no rows of a table: `SELECT 1`, `SELECT count() FROM t`.
 * Until the next commit, every equal request has the same reply, so only the epoch is requested
 * from the engine.
 */
import type { ExecuteOptions, ExecuteReply } from './types.js';

/**
 * Number of statements and rows that were answered from the cache, across all statements of a
 * database.
 */
export interface Answered {
  statements: number;
  rows: number;
}

interface CachedReply {
  readonly epoch: number;
  readonly key: string;
  readonly reply: ExecuteReply;
}

/** The last cacheable reply of a statement. */
export class CachedResult {
  readonly #answered: Answered;
  #cached: CachedReply | null = null;

  constructor(answered: Answered) {
    this.#answered = answered;
  }

  /** Returns the cached reply; `null` if the request's options differ, or after a commit. */
  find(options: ExecuteOptions, currentEpoch: () => number | null): ExecuteReply | null {
    const cached = this.#cached;
    if (cached === null) {
      return null;
    }
    const isSame = cached.key === keyOf(options);
    if (!isSame || cached.epoch !== currentEpoch()) {
      return null;
    }
    this.#answered.statements += 1;
    this.#answered.rows += cached.reply.chunk?.rows ?? 0;
    return cached.reply;
  }

  store(epoch: number, options: ExecuteOptions, reply: ExecuteReply): void {
    if (reply.summary === null) {
      return;
    }
    // A later request does not execute the query, so its execution time is zero.
    const summary = { ...reply.summary, executeNanos: 0 };
    this.#cached = { epoch, key: keyOf(options), reply: { ...reply, summary } };
  }
}

/** The options that determine the bytes of a reply. */
function keyOf(options: ExecuteOptions): string {
  const { rows, skip, take, countAll, last, firstChunkRows } = options;
  return JSON.stringify([rows, skip, take, countAll, last, firstChunkRows]);
}

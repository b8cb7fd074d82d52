/**
 * Caches the reply to a query that reads no table rows: `SELECT 1`, `SELECT count() FROM t`. Until
 * the next commit, every equal request gets the same reply, so only the epoch is requested from the
 * engine.
 */
import type { ExecuteOptions, ExecuteReply } from './types.js';

/** Number of statements and rows answered from the cache, across all statements in a database. */
export interface Answered {
  statements: number;
  rows: number;
}

interface CachedReply {
  readonly epoch: number;
  readonly key: string;
  readonly reply: ExecuteReply;
}

/** A statement's last cacheable reply. */
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

/** The options that affect a reply's bytes. */
function keyOf(options: ExecuteOptions): string {
  const { rows, skip, take, countAll, last, firstChunkRows } = options;
  return JSON.stringify([rows, skip, take, countAll, last, firstChunkRows]);
}

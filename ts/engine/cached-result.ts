/**
 * The answer of a query that reads no rows of a table: `SELECT 1`, `SELECT count() FROM t`. While
 * nothing is committed it is the same for every equal request, and the engine is asked for no
 * more than that.
 */
import type { ExecuteOptions, ExecuteReply } from './types.js';

/** Answers given from here, by all statements of a database. */
export interface Answered {
  statements: number;
  rows: number;
}

interface Kept {
  readonly epoch: number;
  readonly asked: string;
  readonly reply: ExecuteReply;
}

/** The last such answer of a statement. */
export class CachedResult {
  readonly #answered: Answered;
  #kept: Kept | null = null;

  constructor(answered: Answered) {
    this.#answered = answered;
  }

  /** Null when something else was asked, or there was a commit. */
  find(options: ExecuteOptions, currentEpoch: () => number | null): ExecuteReply | null {
    const kept = this.#kept;
    if (kept === null) {
      return null;
    }
    const isSame = kept.asked === question(options);
    if (!isSame || kept.epoch !== currentEpoch()) {
      return null;
    }
    this.#answered.statements += 1;
    this.#answered.rows += kept.reply.chunk?.rows ?? 0;
    return kept.reply;
  }

  keep(epoch: number, options: ExecuteOptions, reply: ExecuteReply): void {
    if (reply.summary === null) {
      return;
    }
    // The next one is not executed at all.
    const summary = { ...reply.summary, executeNanos: 0 };
    this.#kept = { epoch, asked: question(options), reply: { ...reply, summary } };
  }
}

/** What decides about the bytes of an answer. */
function question(options: ExecuteOptions): string {
  const { rows, skip, take, countAll, last, firstChunkRows } = options;
  return JSON.stringify([rows, skip, take, countAll, last, firstChunkRows]);
}

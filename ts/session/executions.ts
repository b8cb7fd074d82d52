/**
 * Which executions wait for their first rows. A query's id is told with its first rows; a client
 * that goes away before needs another way to name its query.
 */
import type { Database } from '../engine/types.js';

export class Executions {
  readonly #database: Database;
  /** How many of each user's texts. */
  readonly #waiting = new Map<string, Map<string, number>>();
  readonly #streaming = new Set<bigint>();

  constructor(database: Database) {
    this.#database = database;
  }

  began(user: string, text: string): void {
    let texts = this.#waiting.get(user);
    if (texts === undefined) {
      texts = new Map();
      this.#waiting.set(user, texts);
    }
    texts.set(text, (texts.get(text) ?? 0) + 1);
  }

  replied(user: string, text: string): void {
    const texts = this.#waiting.get(user);
    const count = (texts?.get(text) ?? 1) - 1;
    if (count > 0) {
      texts?.set(text, count);
      return;
    }
    texts?.delete(text);
    if (texts?.size === 0) {
      this.#waiting.delete(user);
    }
  }

  /** The reply came, with a stream. */
  streams(queryId: bigint): void {
    this.#streaming.add(queryId);
  }

  closed(queryIds: readonly bigint[]): void {
    for (const id of queryIds) {
      this.#streaming.delete(id);
    }
  }

  /**
   * Cancels the only waiting execution of `text` by `user`. False when there is none yet, or
   * when two wait and which one is meant cannot be told.
   */
  cancelWaiting(user: string, text: string): boolean {
    if (this.#waiting.get(user)?.get(text) !== 1) {
      return false;
    }
    const query = this.#database
      .activeQueries()
      .find(
        (candidate) =>
          candidate.user === user &&
          candidate.text === text &&
          !this.#streaming.has(candidate.queryId),
      );
    return query !== undefined && this.#database.cancelQuery(query.queryId);
  }
}

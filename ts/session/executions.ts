/**
 * Which executions wait for their first rows. A query's id is told with its first rows; a client
 * that goes away before needs another way to name its query.
 */
import type { Database } from '../engine/types.js';

export class Executions {
  readonly #database: Database;
  readonly #waiting = new Map<string, number>();
  readonly #streaming = new Set<bigint>();

  constructor(database: Database) {
    this.#database = database;
  }

  began(user: string, text: string): void {
    const name = nameOf(user, text);
    this.#waiting.set(name, (this.#waiting.get(name) ?? 0) + 1);
  }

  replied(user: string, text: string): void {
    const name = nameOf(user, text);
    const count = (this.#waiting.get(name) ?? 1) - 1;
    if (count === 0) {
      this.#waiting.delete(name);
    } else {
      this.#waiting.set(name, count);
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
    if (this.#waiting.get(nameOf(user, text)) !== 1) {
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

function nameOf(user: string, text: string): string {
  return `${user}\u0000${text}`;
}

/** Tracks the queries that run on the server, from all clients. */
import type { Accessor } from 'solid-js';
import { recordsOf, type Answer } from '../api/cells.js';
import { query } from '../api/client.js';
import { JOBS_QUESTION } from './jobs.js';
import { LIVE_TREE_QUESTION, TREE_QUESTION } from './schema.js';
import { settle, type Loading, readyOf } from './loading.js';
import { VITAL_QUESTIONS } from './vitals.js';
import { signal } from '../model/signal.js';

export interface RunningQuery {
  /** Query id; a string, because ids are 64-bit integers. */
  readonly id: string;
  readonly user: string;
  /** Start time in ISO format, UTC. */
  readonly startedAt: string;
  readonly isCancelled: boolean;
  readonly text: string;
}

/**
 * Query for the running queries. It is sent repeatedly, and its result includes this query itself.
 */
export const ACTIVITY_QUESTION =
  'SELECT query_id, username, query_start, state, query FROM query_activity()';

/** Queries that the console sends on its own behalf. */
const OWN_QUESTIONS: ReadonlySet<string> = new Set([
  ACTIVITY_QUESTION,
  TREE_QUESTION,
  LIVE_TREE_QUESTION,
  JOBS_QUESTION,
  ...VITAL_QUESTIONS,
]);

export class Activity {
  readonly #queries = signal<Loading<readonly RunningQuery[]>>({
    state: 'loading',
  });
  readonly queries: Accessor<Loading<readonly RunningQuery[]>> = this.#queries;
  #asking = false;

  /** Number of running queries, excluding the console's own. */
  get count(): number {
    return readyOf(this.queries())?.length ?? 0;
  }

  /** Requests the list again, unless a request is pending. */
  async refresh(): Promise<void> {
    if (this.#asking) {
      return;
    }
    this.#asking = true;
    this.#queries.set(await settle(async () => runningQueries(await query(ACTIVITY_QUESTION))));
    this.#asking = false;
  }

  /** Applies a response to `ACTIVITY_QUESTION`. */
  take(answer: Answer): void {
    this.#queries.set({ state: 'ready', value: runningQueries(answer) });
  }

  /** Asks the server to cancel a query, which may already have ended. */
  async cancel(id: string): Promise<void> {
    await query(`CANCEL QUERY ${id}`);
    await this.refresh();
  }
}

/** Parses the rows of `query_activity()`, longest running first. */
function runningQueries(answer: Answer): RunningQuery[] {
  return recordsOf(answer)
    .map((cell) => ({
      id: String(cell('query_id')),
      user: String(cell('username') ?? ''),
      startedAt: String(cell('query_start')),
      isCancelled: cell('state') === 'cancelled',
      text: String(cell('query')),
    }))
    .filter((running) => !OWN_QUESTIONS.has(running.text.trim()))
    .sort((left, right) => left.startedAt.localeCompare(right.startedAt));
}

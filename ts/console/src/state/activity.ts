/** What the server runs now, for all its clients. */
import { createSignal, type Accessor } from 'solid-js';
import { reader, type Answer } from '../api/cells.js';
import { query } from '../api/client.js';
import { JOBS_QUESTION } from './jobs.js';
import { LIVE_TREE_QUESTION, settle, TREE_QUESTION, type Loading } from './schema.js';
import { VITAL_QUESTIONS } from './vitals.js';

export interface RunningQuery {
  /** As text: the server counts in 64 bits. */
  readonly id: string;
  readonly user: string;
  /** ISO, UTC. */
  readonly startedAt: string;
  readonly isCancelled: boolean;
  readonly text: string;
}

/** Asked again and again; it finds itself among the rest. */
export const ACTIVITY_QUESTION =
  'SELECT query_id, username, query_start, state, query FROM query_activity()';

/** Queries that pages send by themselves are not a user's. */
const OWN_QUESTIONS: ReadonlySet<string> = new Set([
  ACTIVITY_QUESTION,
  TREE_QUESTION,
  LIVE_TREE_QUESTION,
  JOBS_QUESTION,
  ...VITAL_QUESTIONS,
]);

export class Activity {
  readonly queries: Accessor<Loading<readonly RunningQuery[]>>;
  readonly #setQueries: (queries: Loading<readonly RunningQuery[]>) => void;
  #asking = false;

  constructor() {
    const [queries, setQueries] = createSignal<Loading<readonly RunningQuery[]>>({
      state: 'loading',
    });
    this.queries = queries;
    this.#setQueries = setQueries;
  }

  /** How many queries run, our own question left out. */
  get count(): number {
    const queries = this.queries();
    return queries.state === 'ready' ? queries.value.length : 0;
  }

  /** Asks anew; a question that is still under way is enough. */
  async refresh(): Promise<void> {
    if (this.#asking) {
      return;
    }
    this.#asking = true;
    this.#setQueries(await settle(async () => runningQueries(await query(ACTIVITY_QUESTION))));
    this.#asking = false;
  }

  /** Takes over an answer to `ACTIVITY_QUESTION`. */
  take(answer: Answer): void {
    this.#setQueries({ state: 'ready', value: runningQueries(answer) });
  }

  /** Asks the server to stop a query; it may have ended before. */
  async cancel(id: string): Promise<void> {
    await query(`CANCEL QUERY ${id}`);
    await this.refresh();
  }
}

/** Rows of `query_activity()`, the longest running first. */
function runningQueries(answer: Answer): RunningQuery[] {
  const id = reader(answer, 'query_id');
  const user = reader(answer, 'username');
  const startedAt = reader(answer, 'query_start');
  const state = reader(answer, 'state');
  const text = reader(answer, 'query');
  return answer.rows
    .map((row) => ({
      id: String(id(row)),
      user: String(user(row) ?? ''),
      startedAt: String(startedAt(row)),
      isCancelled: state(row) === 'cancelled',
      text: String(text(row)),
    }))
    .filter((running) => !OWN_QUESTIONS.has(running.text.trim()))
    .sort((left, right) => left.startedAt.localeCompare(right.startedAt));
}

/** The work that the server does by itself: refreshes of views, checkpoints, rows that expire. */
import { createSignal, type Accessor } from 'solid-js';
import { numberOf, reader, textOf, type Answer } from '../api/cells.js';
import { query, SqlError } from '../api/client.js';
import { settle, type Loading } from './schema.js';

export type JobState = 'running' | 'waiting' | 'failing' | 'paused' | 'stopped';

export interface Job {
  /** Kind and name: what tells it from the others. */
  readonly id: string;
  readonly kind: string;
  /** What it works on; empty where it is one for all. */
  readonly name: string;
  readonly state: JobState;
  readonly lastError: string | undefined;
  /** ISO, UTC. */
  readonly lastStart: string | undefined;
  /** How long the last run took. */
  readonly lastMs: number;
  readonly nextRun: string | undefined;
  readonly runs: number;
  /** Since it last did well. */
  readonly failures: number;
}

/** Asked again and again, by every page. */
export const JOBS_QUESTION =
  'SELECT kind, name, state, last_error, last_start, last_micros, next_run, runs, failures ' +
  'FROM jobs()';

export class Jobs {
  readonly all: Accessor<Loading<readonly Job[]>>;
  readonly #setAll: (jobs: Loading<readonly Job[]>) => void;
  #asking: Promise<void> | undefined;
  #isRefused = false;

  constructor() {
    const [all, setAll] = createSignal<Loading<readonly Job[]>>({ state: 'loading' });
    this.all = all;
    this.#setAll = setAll;
  }

  /** Those that need a look: failing, or stopped until what they need is mended. */
  get troubled(): readonly Job[] {
    return this.#known.filter(({ state }) => state === 'failing' || state === 'stopped');
  }

  /** The job that refreshes a view. */
  refreshOf(view: string): Job | undefined {
    return this.#known.find(({ kind, name }) => kind === 'refresh' && name === view);
  }

  /** Asks anew; a question that is still under way is enough. Never rejects. */
  refresh(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /** For the pages that are always there: who is refused once is not asked again. */
  async watch(): Promise<void> {
    if (!this.#isRefused) {
      await this.refresh();
    }
  }

  /** Takes over an answer to `JOBS_QUESTION`. */
  take(answer: Answer): void {
    this.#setAll({ state: 'ready', value: jobsOf(answer) });
  }

  async #ask(): Promise<void> {
    const asked = await settle(async () => {
      try {
        return jobsOf(await query(JOBS_QUESTION));
      } catch (cause) {
        this.#isRefused = cause instanceof SqlError;
        throw cause;
      }
    });
    this.#setAll(asked);
  }

  get #known(): readonly Job[] {
    const all = this.all();
    return all.state === 'ready' ? all.value : [];
  }
}

/** Rows of `jobs()`. */
export function jobsOf(answer: Answer): Job[] {
  const kind = reader(answer, 'kind');
  const name = reader(answer, 'name');
  const state = reader(answer, 'state');
  const lastError = reader(answer, 'last_error');
  const lastStart = reader(answer, 'last_start');
  const lastMicros = reader(answer, 'last_micros');
  const nextRun = reader(answer, 'next_run');
  const runs = reader(answer, 'runs');
  const failures = reader(answer, 'failures');
  return answer.rows.map((row) => ({
    id: JSON.stringify([kind(row), name(row)]),
    kind: String(kind(row)),
    name: String(name(row) ?? ''),
    state: String(state(row)) as JobState,
    lastError: textOf(lastError(row)),
    lastStart: textOf(lastStart(row)),
    lastMs: (numberOf(lastMicros(row)) ?? 0) / 1000,
    nextRun: textOf(nextRun(row)),
    runs: numberOf(runs(row)) ?? 0,
    failures: numberOf(failures(row)) ?? 0,
  }));
}

/** The work that the server does by itself: refreshes of views, checkpoints, rows that expire. */
import type { Accessor } from 'solid-js';
import { numberOf, recordsOf, textOf, type Answer } from '../api/cells.js';
import { query, SqlError } from '../api/client.js';
import { settle, type Loading, readyOf } from './loading.js';
import { signal } from '../model/signal.js';

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
  readonly #all = signal<Loading<readonly Job[]>>({ state: 'loading' });
  readonly all: Accessor<Loading<readonly Job[]>> = this.#all;
  #asking: Promise<void> | undefined;
  #isRefused = false;

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
    this.#all.set({ state: 'ready', value: jobsOf(answer) });
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
    this.#all.set(asked);
  }

  get #known(): readonly Job[] {
    return readyOf(this.all()) ?? [];
  }
}

/** Rows of `jobs()`. */
export function jobsOf(answer: Answer): Job[] {
  return recordsOf(answer).map((cell) => ({
    id: JSON.stringify([cell('kind'), cell('name')]),
    kind: String(cell('kind')),
    name: String(cell('name') ?? ''),
    state: String(cell('state')) as JobState,
    lastError: textOf(cell('last_error')),
    lastStart: textOf(cell('last_start')),
    lastMs: (numberOf(cell('last_micros')) ?? 0) / 1000,
    nextRun: textOf(cell('next_run')),
    runs: numberOf(cell('runs')) ?? 0,
    failures: numberOf(cell('failures')) ?? 0,
  }));
}

/** Tracks the server's background jobs: view refreshes, checkpoints and expiry of rows. */
import type { Accessor } from 'solid-js';
import { numberOf, recordsOf, textOf, type Answer } from '../api/cells.js';
import { query, SqlError } from '../api/client.js';
import { settle, type Loading, readyOf } from './loading.js';
import { signal } from '../model/signal.js';

export type JobState = 'running' | 'waiting' | 'failing' | 'paused' | 'stopped';

export interface Job {
  /** Kind and name, which together identify the job. */
  readonly id: string;
  readonly kind: string;
  /** Object that the job works on; empty if the job concerns the whole server. */
  readonly name: string;
  readonly state: JobState;
  readonly lastError: string | undefined;
  /** Start of the last run in ISO format, UTC. */
  readonly lastStart: string | undefined;
  /** Duration of the last run in milliseconds. */
  readonly lastMs: number;
  readonly nextRun: string | undefined;
  readonly runs: number;
  /** Number of consecutive failures. */
  readonly failures: number;
}

/** Query for the background jobs, sent repeatedly by every page. */
export const JOBS_QUESTION =
  'SELECT kind, name, state, last_error, last_start, last_micros, next_run, runs, failures ' +
  'FROM jobs()';

export class Jobs {
  readonly #all = signal<Loading<readonly Job[]>>({ state: 'loading' });
  readonly all: Accessor<Loading<readonly Job[]>> = this.#all;
  #asking: Promise<void> | undefined;
  #isRefused = false;

  /** Jobs that need attention: failing jobs, and jobs stopped until their problem is fixed. */
  get troubled(): readonly Job[] {
    return this.#known.filter(({ state }) => state === 'failing' || state === 'stopped');
  }

  /** Returns the job that refreshes a view. */
  refreshOf(view: string): Job | undefined {
    return this.#known.find(({ kind, name }) => kind === 'refresh' && name === view);
  }

  /** Requests the jobs again, unless a request is pending. Never rejects. */
  refresh(): Promise<void> {
    this.#asking ??= this.#request().finally(() => (this.#asking = undefined));
    return this.#asking;
  }

  /**
   * Requests the jobs for controls that are always visible. After the server has refused a request,
   * no further requests are sent.
   */
  async watch(): Promise<void> {
    if (!this.#isRefused) {
      await this.refresh();
    }
  }

  /** Applies a response to `JOBS_QUESTION`. */
  take(answer: Answer): void {
    this.#all.set({ state: 'ready', value: jobsOf(answer) });
  }

  async #request(): Promise<void> {
    const loaded = await settle(async () => {
      try {
        return jobsOf(await query(JOBS_QUESTION));
      } catch (cause) {
        this.#isRefused = cause instanceof SqlError;
        throw cause;
      }
    });
    this.#all.set(loaded);
  }

  get #known(): readonly Job[] {
    return readyOf(this.all()) ?? [];
  }
}

/** Parses the rows of `jobs()`. */
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

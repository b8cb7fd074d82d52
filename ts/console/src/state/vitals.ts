/** Tracks the load of the server: ingestion rate and memory usage. */
import type { Accessor } from 'solid-js';
import type { Answer } from '../api/cells.js';
import { query, SqlError } from '../api/client.js';
import { Rates } from '../model/rates.js';
import { signal } from '../model/signal.js';

export const MEMORY_QUESTION =
  "SELECT bytes FROM memory_metrics() WHERE memory_tag = 'NATIVE_RESIDENT'";
/** Queries that every page sends repeatedly. */
export const VITAL_QUESTIONS: readonly string[] = [MEMORY_QUESTION];

const ALL_TABLES = '';

export interface Vital {
  /** Rows per second over the last ten seconds, for all visible tables. */
  readonly rate: number | undefined;
  /** Rows per second between consecutive polls of the last minute, oldest first. */
  readonly history: readonly number[];
  /** Memory usage in bytes, excluding memory-mapped files. */
  readonly memory: number | undefined;
}

export class Vitals {
  readonly #now = signal<Vital>({ rate: undefined, history: [], memory: undefined });
  readonly now: Accessor<Vital> = this.#now;
  readonly #rates = new Rates();
  /** Queries that the server does not support, or that the user may not run. */
  readonly #refused = new Set<string>();

  /**
   * Polls the server. `rows` is the current total number of rows in all tables. Rejects if the
   * server does not respond.
   */
  async refresh(rows: number | undefined): Promise<void> {
    this.#rates.note(performance.now(), [{ name: ALL_TABLES, rows }]);
    this.#now.set({
      rate: this.#rates.of(ALL_TABLES),
      history: this.#rates.history(ALL_TABLES),
      memory: await this.#request(MEMORY_QUESTION),
    });
  }

  /** Records the current total number of rows. */
  note(rows: number | undefined): void {
    this.#rates.note(performance.now(), [{ name: ALL_TABLES, rows }]);
    const [rate, history] = [this.#rates.of(ALL_TABLES), this.#rates.history(ALL_TABLES)];
    this.#now.set({ ...this.now(), rate, history });
  }

  /** Applies a response to `MEMORY_QUESTION`. */
  take({ rows }: Answer): void {
    const value = Number(rows[0]?.[0] ?? Number.NaN);
    this.#now.set({ ...this.now(), memory: Number.isNaN(value) ? undefined : value });
  }

  async #request(question: string): Promise<number | undefined> {
    if (this.#refused.has(question)) {
      return undefined;
    }
    try {
      const [row] = (await query(question)).rows;
      const value = Number(row?.[0] ?? Number.NaN);
      return Number.isNaN(value) ? undefined : value;
    } catch (cause) {
      if (cause instanceof SqlError) {
        this.#refused.add(question);
        return undefined;
      }
      throw cause;
    }
  }
}

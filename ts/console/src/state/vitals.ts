/** The server as a whole: how fast rows come in, and what memory it holds. */
import type { Accessor } from 'solid-js';
import type { Answer } from '../api/cells.js';
import { query, SqlError } from '../api/client.js';
import { Rates } from '../model/rates.js';
import { signal } from '../model/signal.js';

export const MEMORY_QUESTION =
  "SELECT bytes FROM memory_metrics() WHERE memory_tag = 'NATIVE_RESIDENT'";
/** What is asked again and again, by every page. */
export const VITAL_QUESTIONS: readonly string[] = [MEMORY_QUESTION];

const ALL_TABLES = '';

export interface Vital {
  /** Rows a second over the last ten seconds, of all tables that may be seen. */
  readonly rate: number | undefined;
  /** The same from one look to the next, for a minute, the oldest first. */
  readonly history: readonly number[];
  /** Bytes, without files that are mapped. */
  readonly memory: number | undefined;
}

export class Vitals {
  readonly #now = signal<Vital>({ rate: undefined, history: [], memory: undefined });
  readonly now: Accessor<Vital> = this.#now;
  readonly #rates = new Rates();
  /** Questions that this server, or the rights of who asks, leaves without an answer. */
  readonly #refused = new Set<string>();

  /** Asks anew; `rows` are in all tables now. Rejects when the server does not answer. */
  async refresh(rows: number | undefined): Promise<void> {
    this.#rates.note(performance.now(), [{ name: ALL_TABLES, rows }]);
    this.#now.set({
      rate: this.#rates.of(ALL_TABLES),
      history: this.#rates.history(ALL_TABLES),
      memory: await this.#ask(MEMORY_QUESTION),
    });
  }

  /** Takes over how many rows there are now. */
  note(rows: number | undefined): void {
    this.#rates.note(performance.now(), [{ name: ALL_TABLES, rows }]);
    const [rate, history] = [this.#rates.of(ALL_TABLES), this.#rates.history(ALL_TABLES)];
    this.#now.set({ ...this.now(), rate, history });
  }

  /** Takes over an answer to `MEMORY_QUESTION`. */
  take({ rows }: Answer): void {
    const value = Number(rows[0]?.[0] ?? Number.NaN);
    this.#now.set({ ...this.now(), memory: Number.isNaN(value) ? undefined : value });
  }

  async #ask(question: string): Promise<number | undefined> {
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

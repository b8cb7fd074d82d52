/** The problems that the editor found in each tab, with suggestions. */
import { nearest } from '../sql/names.js';
import { expectedWord } from '../sql/error-span.js';
import type { Schema } from './schema.js';
import { signal } from '../model/signal.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface ProblemReport {
  readonly line: number;
  readonly column: number;
  /** The text that the editor underlines. */
  readonly text: string;
  readonly message: string;
  /** Tables whose columns are allowed at this position. */
  readonly tables: readonly string[];
}

export interface Problem extends ProblemReport {
  /** Number of problems in the tab. */
  readonly count: number;
  readonly advice: string | undefined;
  readonly replacement: string | undefined;
}

export class Problems {
  readonly #all = signal<ReadonlyMap<string, Problem>>(new Map());
  readonly #schema: Schema;

  constructor(schema: Schema) {
    this.#schema = schema;
  }

  of(tab: string): Problem | undefined {
    return this.#all().get(tab);
  }

  /** Records a tab's problem and adds a suggestion. */
  set(tab: string, report: ProblemReport | undefined, count: number): void {
    if (!report) {
      this.clear(tab);
      return;
    }
    const replacement = this.#suggestion(report);
    const advice =
      replacement === undefined ? undefined : fill(texts.editor.didYouMean, { replacement });
    const problem = { ...report, count, advice, replacement };
    if (JSON.stringify(problem) !== JSON.stringify(this.of(tab))) {
      this.#all.set(new Map(this.#all()).set(tab, problem));
      void this.#readNames(tab, problem);
    }
  }

  clear(tab: string): void {
    const remaining = new Map(this.#all());
    if (remaining.delete(tab)) {
      this.#all.set(remaining);
    }
  }

  /** Loads the columns of further tables, because one of them may have a similar name. */
  async #readNames(tab: string, problem: Problem): Promise<void> {
    const { tables } = this.#schema.names();
    const unread = problem.tables.filter(
      (name) =>
        tables.some((table) => table.name === name) && this.#schema.columnsOf(name).length === 0,
    );
    if (problem.replacement !== undefined || unread.length === 0) {
      return;
    }
    await Promise.all(unread.map((name) => this.#schema.open(name)));
    if (this.of(tab) === problem && this.#suggestion(problem) !== undefined) {
      this.set(tab, problem, problem.count);
    }
  }

  #suggestion({ message, text }: ProblemReport): string | undefined {
    if (!/invalid column|does not exist|unknown (?:column|table)/i.test(message)) {
      return expectedWord(text, message);
    }
    const names = this.#schema.names();
    return nearest(text, [...names.columns, ...names.tables.map(({ name }) => name)]);
  }
}

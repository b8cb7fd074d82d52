/** The last run of a cell: its rows, its error, and whether the rows are up to date. */
import { batch, type Accessor } from 'solid-js';
import { aborted, query, SqlError, Unreachable } from '../api/client.js';
import { Runner, type Run } from '../state/run.js';
import type { CellStatement, CellTrouble } from '../cells/statement.js';
import { messageOf } from '../model/message.js';
import { signal, counter } from '../model/signal.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Maximum number of rows per cell. The limit is low because a notebook has many cells. */
const CELL_ROWS = 10_000;

type Refreshed = 'done' | 'lost' | 'refused' | 'stopped';

export class CellRun {
  readonly runner = new Runner();
  /** Incremented whenever the displayed result changes. */
  readonly revision: Accessor<number> = () => this.runner.revision() + this.#refreshes();
  readonly #trouble = signal<CellTrouble | undefined>(undefined);
  /** Why the cell could not run. */
  readonly trouble: Accessor<CellTrouble | undefined> = this.#trouble;
  readonly #late = signal<string | undefined>(undefined);
  /** Why the cell's rows are out of date. */
  readonly late: Accessor<string | undefined> = this.#late;
  readonly #at = signal<Date | undefined>(undefined);
  /** Time at which the displayed rows were requested. */
  readonly at: Accessor<Date | undefined> = this.#at;
  readonly #text = signal<string | undefined>(undefined);
  /** The cell's text at its last run. */
  readonly text: Accessor<string | undefined> = this.#text;
  readonly #tables = signal<readonly string[] | undefined>(undefined);
  /** Tables that the cell's last statement reads. */
  readonly tables: Accessor<readonly string[] | undefined> = this.#tables;
  readonly #refreshes = counter();

  /** Registers a text that ran before the page was loaded, so that refreshes may run it again. */
  resume(text: string): void {
    this.#text.set(text);
  }

  /** Marks the rows as late because a request sent at `since` has not been answered. */
  wait(since: Date): void {
    this.#late.set(fill(texts.cells.noResponseSince, { time: since.toTimeString().slice(0, 8) }));
  }

  /** Records why the cell cannot run. The result of the last run is retained. */
  refuse(trouble: CellTrouble): void {
    this.#trouble.set(trouble);
  }

  /** Runs the statement to completion. Never rejects. */
  async run(statement: CellStatement, written: string): Promise<Run> {
    const { text, start, bound } = statement;
    batch(() => {
      this.#trouble.set(undefined);
      this.#late.set(undefined);
      this.#text.set(written);
      this.#tables.set(statement.tables);
    });
    const at = new Date();
    const run = await this.runner.start({ text, start, bound, maxRows: CELL_ROWS });
    if (run.state === 'done') {
      this.#at.set(at);
    }
    return run;
  }

  /**
   * Requests the rows again and replaces the displayed rows. The `statements` are equivalent: if
   * the server refuses one, the next is tried.
   */
  async refresh(
    statement: CellStatement,
    statements: readonly string[],
    signal: AbortSignal,
  ): Promise<Refreshed> {
    const at = new Date();
    const shown = this.runner.result();
    if (!shown) {
      return refreshedBy(await this.run(statement, this.text() ?? statement.text));
    }
    let refusal = '';
    for (const text of statements) {
      try {
        const { head, rows } = await query(text, { maxRows: CELL_ROWS, signal });
        if (signal.aborted || this.runner.result() !== shown) {
          return 'stopped';
        }
        if (JSON.stringify(shown.columns) !== JSON.stringify(head.columns)) {
          return refreshedBy(await this.run(statement, this.text() ?? statement.text));
        }
        batch(() => {
          shown.slide(rows, 0);
          shown.total = rows.length;
          shown.isCut = rows.length === CELL_ROWS;
          this.#trouble.set(undefined);
          this.#late.set(undefined);
          this.#at.set(at);
          this.#refreshes.bump();
        });
        return 'done';
      } catch (cause) {
        if (aborted(cause)) {
          return 'stopped';
        }
        refusal = messageOf(cause);
        if (cause instanceof Unreachable) {
          this.#late.set(texts.common.notResponding);
          return 'lost';
        }
        if (!(cause instanceof SqlError)) {
          break;
        }
      }
    }
    this.#late.set(refusal);
    return 'refused';
  }
}

function refreshedBy({ state, failure }: Run): Refreshed {
  switch (state) {
    case 'done':
      return 'done';
    case 'failed':
      return failure?.reachable === false ? 'lost' : 'refused';
    default:
      return 'stopped';
  }
}

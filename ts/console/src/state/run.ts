/** A run of a statement in a tab: its state, its duration, and its rows as they arrive. */
import { batch, type Accessor } from 'solid-js';
import type { AnswerTail } from '../api/answer.js';
import { aborted, execute, SqlError, Unreachable } from '../api/client.js';
import { isPartial, MAX_ROWS, Result } from '../model/result.js';
import type { Versions } from './lazy-rows.js';
import type { Bound } from '../sql/parameters.js';
import { duration, rowsText } from '../model/format.js';
import { messageOf } from '../model/message.js';
import { signal, counter } from '../model/signal.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** A result that was read before the page was reloaded. */
export interface EarlierResult {
  readonly result: Result;
  readonly at: Date;
  /** Number of rows that the result had before the reload. */
  readonly total: number;
}

export interface StatementText {
  readonly text: string;
  /** Offset of the statement in the tab's text. */
  readonly start: number;
  /** Number of rows to skip at the beginning of the result. */
  readonly skip?: number;
  /** Maximum number of rows to read. By default, the console's own limit applies. */
  readonly maxRows?: number;
  /** The statement to send instead, with the values of its parameters inserted. */
  readonly bound?: Bound;
}

interface Failure {
  readonly message: string;
  /** UTF-16 offset in the tab's text, if the server reported a position. */
  readonly offset: number | undefined;
  readonly reachable: boolean;
}

type RunState = 'running' | 'done' | 'failed' | 'cancelled';

export interface Run {
  readonly id: number;
  readonly statement: StatementText;
  readonly state: RunState;
  readonly startedAt: number;
  readonly totalMs: number | undefined;
  readonly tail: AnswerTail | undefined;
  readonly failure: Failure | undefined;
  /** True if the result of this run has rows and columns. */
  readonly hasRows: boolean;
}

let lastRunId = 0;

/**
 * Runs the statements of one tab. The displayed result is retained until the columns of the next
 * result arrive.
 */
export class Runner {
  readonly #run = signal<Run | undefined>(undefined);
  readonly run: Accessor<Run | undefined> = this.#run;
  readonly #result = signal<Result | undefined>(undefined);
  readonly result: Accessor<Result | undefined> = this.#result;
  readonly #earlier = signal<EarlierResult | undefined>(undefined);
  /** Result from before a reload, shown until a statement runs in this tab. */
  readonly earlier: Accessor<EarlierResult | undefined> = this.#earlier;
  readonly #revision = counter();
  /** Incremented whenever the displayed result grows. */
  readonly revision: Accessor<number> = this.#revision;
  #abort: AbortController | undefined;
  readonly #versions: (() => Versions) | undefined;

  /** If `versions` is given, further rows of large results are loaded on demand. */
  constructor(versions?: () => Versions) {
    this.#versions = versions;
  }

  get running(): boolean {
    return this.run()?.state === 'running';
  }

  cancel(): void {
    this.#abort?.abort();
  }

  /** Shows a result from before a reload, unless a statement has already run. */
  restore(earlier: EarlierResult): void {
    if (this.run() === undefined) {
      batch(() => {
        this.#earlier.set(earlier);
        this.#result.set(earlier.result);
        this.#revision.bump();
      });
    }
  }

  /** Runs a statement to completion and resolves to the finished run. Never rejects. */
  async start(statement: StatementText): Promise<Run> {
    this.cancel();
    const abort = new AbortController();
    this.#abort = abort;
    let run: Run = {
      id: ++lastRunId,
      statement,
      state: 'running',
      startedAt: performance.now(),
      totalMs: undefined,
      tail: undefined,
      failure: undefined,
      hasRows: false,
    };
    const current = (): boolean => this.#abort === abort;
    const publish = (changes: Partial<Run>): void => {
      run = { ...run, ...changes };
      if (current()) {
        this.#run.set(run);
      }
    };
    publish({});
    try {
      const tail = await this.#execute(statement, abort.signal, current, () =>
        publish({ hasRows: true }),
      );
      publish({ state: 'done', totalMs: performance.now() - run.startedAt, tail });
    } catch (cause) {
      const state = aborted(cause) ? 'cancelled' : 'failed';
      const failure = state === 'failed' ? failureOf(cause, statement) : undefined;
      publish({ state, totalMs: performance.now() - run.startedAt, failure });
    }
    return run;
  }

  async #execute(
    statement: StatementText,
    signal: AbortSignal,
    current: () => boolean,
    onRows: () => void,
  ): Promise<AnswerTail> {
    let result: Result | undefined;
    let frame = 0;
    const versions = this.#versions?.();
    const sent = statement.bound?.text ?? statement.text;
    const tail = await execute(sent, {
      maxRows: statement.maxRows ?? MAX_ROWS,
      skip: statement.skip ?? 0,
      signal,
      onHead: (head) => {
        const shown = new Result(head, sent, statement.skip);
        result = shown;
        if (!current()) {
          return;
        }
        batch(() => {
          onRows();
          this.result()?.windows?.close();
          this.#earlier.set(undefined);
          this.#result.set(shown);
          this.#revision.bump();
        });
      },
      onRows: (rows) => {
        result?.append(rows);
        // The views are updated at most once per frame, even if chunks arrive faster.
        if (!current() || frame !== 0) {
          return;
        }
        frame = requestAnimationFrame(() => {
          frame = 0;
          this.#revision.bump();
        });
      },
    });
    if (result) {
      result.total = tail.count ?? result.rows.length;
      result.isCut = tail.isCut === true;
    }
    if (current()) {
      this.#revision.bump();
    }
    if (result && versions && isPartial(result)) {
      void this.#loadLazily(result, versions);
    }
    return tail;
  }

  /** Determines whether the remaining rows of a result can be loaded on demand. */
  async #loadLazily(result: Result, versions: Versions): Promise<void> {
    const { loadLazily } = await import('./lazy-rows.js');
    await loadLazily(result, versions, (next) => {
      if (this.result() !== result || this.running) {
        return false;
      }
      batch(() => {
        this.#result.set(next);
        this.#revision.bump();
      });
      return true;
    });
  }
}

function failureOf(cause: unknown, statement: StatementText): Failure {
  if (cause instanceof SqlError) {
    const { position } = cause;
    const hasPosition = position !== undefined && Number.isFinite(position);
    const written = hasPosition ? (statement.bound?.original(position) ?? position) : 0;
    const offset = hasPosition ? statement.start + written : undefined;
    return { message: cause.message, offset, reachable: true };
  }
  const message = messageOf(cause);
  return { message, offset: undefined, reachable: !(cause instanceof Unreachable) };
}

/** Summarizes a run in one sentence, for the mark's tooltip, the log and the live region. */
export function runTitle(run: Run): string {
  const took =
    run.totalMs === undefined ? '' : fill(texts.run.took, { duration: duration(run.totalMs) });
  switch (run.state) {
    case 'running':
      return texts.common.running;
    case 'cancelled':
      return fill(texts.run.cancelledAfter, { duration: duration(run.totalMs ?? 0) });
    case 'failed':
      return fill(texts.run.failed, { message: run.failure?.message ?? '' });
    case 'done':
      return `${outcome(run)}${took}`;
  }
}

/** Describes the outcome of a finished run: `72 rows`, `OK`, `2 rows updated`. */
export function outcome({ hasRows, tail }: Run): string {
  if (hasRows) {
    return `${tail?.isCut ? texts.run.moreThan : ''}${rowsText(tail?.count ?? 0)}`;
  }
  if (tail?.updated !== undefined) {
    return fill(texts.run.updated, { updated: rowsText(tail.updated) });
  }
  return tail?.notice ?? tail?.ddl ?? tail?.dml ?? 'OK';
}

/** One run of a statement in one tab: its states, its clock, its rows as they arrive. */
import { batch, type Accessor } from 'solid-js';
import type { AnswerTail } from '../api/answer.js';
import { aborted, execute, SqlError, Unreachable } from '../api/client.js';
import { isPart, MAX_ROWS, Result } from '../model/result.js';
import type { Versions } from './beyond.js';
import type { Bound } from '../sql/parameters.js';
import { duration, rowsText } from '../model/format.js';
import { messageOf } from '../model/message.js';
import { signal, counter } from '../model/signal.js';

/** A result of an earlier page. */
export interface EarlierResult {
  readonly result: Result;
  readonly at: Date;
  /** Rows that it had then. */
  readonly total: number;
}

export interface StatementText {
  readonly text: string;
  /** Where the statement begins in the tab's text. */
  readonly start: number;
  /** Rows of its result before those that are shown. */
  readonly skip?: number;
  /** At most so many rows; otherwise as many as the page keeps. */
  readonly most?: number;
  /** What is sent in its stead, with the values of parameters. */
  readonly bound?: Bound;
}

interface Failure {
  readonly message: string;
  /** UTF-16 offset in the tab's text, when the server named a place. */
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
  /** Whether this run's answer has rows and columns. */
  readonly hasRows: boolean;
}

let lastRunId = 0;

/** The runs of one tab. What is shown stays until the next answer's columns are there. */
export class Runner {
  readonly #run = signal<Run | undefined>(undefined);
  readonly run: Accessor<Run | undefined> = this.#run;
  readonly #result = signal<Result | undefined>(undefined);
  readonly result: Accessor<Result | undefined> = this.#result;
  readonly #earlier = signal<EarlierResult | undefined>(undefined);
  /** What an earlier page showed, until something runs here. */
  readonly earlier: Accessor<EarlierResult | undefined> = this.#earlier;
  readonly #revision = counter();
  /** Grows whenever the shown result has grown. */
  readonly revision: Accessor<number> = this.#revision;
  #abort: AbortController | undefined;
  readonly #versions: (() => Versions) | undefined;

  /** With the versions of tables rows beyond those that come first are read as well. */
  constructor(versions?: () => Versions) {
    this.#versions = versions;
  }

  get running(): boolean {
    return this.run()?.state === 'running';
  }

  cancel(): void {
    this.#abort?.abort();
  }

  /** Shows what an earlier page showed, where nothing has run yet. */
  restore(earlier: EarlierResult): void {
    if (this.run() === undefined) {
      batch(() => {
        this.#earlier.set(earlier);
        this.#result.set(earlier.result);
        this.#revision.bump();
      });
    }
  }

  /** Runs to the end and resolves to the finished run; never rejects. */
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
      maxRows: statement.most ?? MAX_ROWS,
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
        // However fast pieces arrive, the views are updated once per frame.
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
    if (result && versions && isPart(result)) {
      void this.#readBeyond(result, versions);
    }
    return tail;
  }

  /** Finds out whether rows that did not come with a result can be read when they are wanted. */
  async #readBeyond(result: Result, versions: Versions): Promise<void> {
    const { beyond } = await import('./beyond.js');
    await beyond(result, versions, (next) => {
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
    const placed = position !== undefined && Number.isFinite(position);
    const written = placed ? (statement.bound?.original(position) ?? position) : 0;
    const offset = placed ? statement.start + written : undefined;
    return { message: cause.message, offset, reachable: true };
  }
  const message = messageOf(cause);
  return { message, offset: undefined, reachable: !(cause instanceof Unreachable) };
}

/** A run in one sentence: for the mark's tooltip, the log and the live region. */
export function runTitle(run: Run): string {
  const took = run.totalMs === undefined ? '' : ` in ${duration(run.totalMs)}`;
  switch (run.state) {
    case 'running':
      return 'Running';
    case 'cancelled':
      return `Cancelled after ${duration(run.totalMs ?? 0)}`;
    case 'failed':
      return `Failed: ${run.failure?.message ?? ''}`;
    case 'done':
      return `${outcome(run)}${took}`;
  }
}

/** What a finished run did: `72 rows`, `OK`, `2 rows updated`. */
export function outcome({ hasRows, tail }: Run): string {
  if (hasRows) {
    return `${tail?.isCut ? 'more than ' : ''}${rowsText(tail?.count ?? 0)}`;
  }
  if (tail?.updated !== undefined) {
    return `${rowsText(tail.updated)} updated`;
  }
  return tail?.notice ?? tail?.ddl ?? tail?.dml ?? 'OK';
}

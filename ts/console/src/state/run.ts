/** One run of a statement in one tab: its states, its clock, its rows as they arrive. */
import { batch, createSignal, type Accessor } from 'solid-js';
import type { AnswerTail } from '../api/answer.js';
import { aborted, execute, SqlError, Unreachable } from '../api/client.js';
import { isPart, MAX_ROWS, Result } from '../model/result.js';
import type { Versions } from './beyond.js';
import type { Bound } from '../sql/parameters.js';

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
  readonly run: Accessor<Run | undefined>;
  readonly result: Accessor<Result | undefined>;
  /** What an earlier page showed, until something runs here. */
  readonly earlier: Accessor<EarlierResult | undefined>;
  /** Grows whenever the shown result has grown. */
  readonly revision: Accessor<number>;
  readonly #setRun: (run: Run) => void;
  readonly #setResult: (result: Result | undefined) => void;
  readonly #setEarlier: (earlier: EarlierResult | undefined) => void;
  readonly #bump: () => void;
  #abort: AbortController | undefined;
  readonly #versions: (() => Versions) | undefined;

  /** With the versions of tables rows beyond those that come first are read as well. */
  constructor(versions?: () => Versions) {
    this.#versions = versions;
    const [run, setRun] = createSignal<Run>();
    const [result, setResult] = createSignal<Result>();
    const [revision, setRevision] = createSignal(0);
    const [earlier, setEarlier] = createSignal<EarlierResult>();
    this.earlier = earlier;
    this.#setEarlier = setEarlier;
    this.run = run;
    this.result = result;
    this.revision = revision;
    this.#setRun = setRun;
    this.#setResult = setResult;
    this.#bump = () => setRevision((value) => value + 1);
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
        this.#setEarlier(earlier);
        this.#setResult(earlier.result);
        this.#bump();
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
        this.#setRun(run);
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
          this.#setEarlier(undefined);
          this.#setResult(shown);
          this.#bump();
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
          this.#bump();
        });
      },
    });
    if (result) {
      result.total = tail.count ?? result.rows.length;
      result.isCut = tail.isCut === true;
    }
    if (current()) {
      this.#bump();
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
        this.#setResult(next);
        this.#bump();
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
  const message = cause instanceof Error ? cause.message : String(cause);
  return { message, offset: undefined, reachable: !(cause instanceof Unreachable) };
}

/**
 * State of the zoom: the visible range of the time axis, and the rows that the server returned for
 * it.
 */
import { createEffect, on, onCleanup, type Accessor } from 'solid-js';
import { aborted, execute, SqlError } from '../api/client.js';
import { isPartial, MAX_ROWS, Result } from '../model/result.js';
import { rangeQueries } from '../sql/ranges.js';
import type { Range } from './decimate.js';
import type { AxisKind } from './model.js';
import { sampled, type SampleRequest } from './sampled.js';
import { messageOf } from '../model/message.js';
import { signal } from '../model/signal.js';

type Asking = 'idle' | 'asking' | 'answered' | { readonly failed: string };

interface Source {
  readonly result: Result;
  readonly axis: Exclude<AxisKind, 'none'>;
  readonly x: number;
  /** Called with the new range, if several charts share a time range. */
  readonly shareRange: ((range: Range | undefined) => void) | undefined;
  /** Maximum number of points that the chart can show. */
  readonly maxPoints: number;
  /** Describes the columns that the chart draws. */
  readonly sampleRequest: SampleRequest;
}

export class Zoom {
  readonly #range = signal<Range | undefined>(undefined);
  readonly range: Accessor<Range | undefined> = this.#range;
  readonly #detail = signal<Result | undefined>(undefined);
  /** Rows of the visible range, once they have arrived. */
  readonly detail: Accessor<Result | undefined> = this.#detail;
  readonly #asking = signal<Asking>('idle');
  readonly asking: Accessor<Asking> = this.#asking;
  readonly #isSampled = signal(false);
  /** True if the drawn rows are an aggregation by the server. */
  readonly isSampled: Accessor<boolean> = this.#isSampled;
  readonly canGoBack: Accessor<boolean> = () => this.#past().length > 0;
  readonly canGoForward: Accessor<boolean> = () => this.#future().length > 0;
  readonly #source: Source;
  /** Ranges before and after the current one. In each list, the nearest range is last. */
  readonly #past = signal<readonly (Range | undefined)[]>([]);
  readonly #future = signal<readonly (Range | undefined)[]>([]);
  #abort: AbortController | undefined;

  constructor(source: Source) {
    this.#source = source;
    createEffect(
      on(
        () => source.result,
        () => this.startOver(),
        { defer: true },
      ),
    );
    onCleanup(() => this.#abort?.abort());
  }

  #setDetail(result: Result | undefined, isOfAll: boolean): void {
    this.#isSampled.set(isOfAll);
    this.#detail.set(result);
  }

  /** Shows the whole range and clears the history. Called when the chart shows different data. */
  startOver(): void {
    this.#past.set([]);
    this.#future.set([]);
    this.#show(undefined);
  }

  /** Callback for time ranges shared by several charts, if the x axis is a time axis. */
  get #shareRange(): Source['shareRange'] {
    return this.#source.axis === 'time' ? this.#source.shareRange : undefined;
  }

  /** Shows the whole range again. Called when the user resets the zoom. */
  reset(): void {
    this.#shareRange?.(undefined);
    if (this.range()) {
      this.#remember();
    }
    this.#show(undefined);
  }

  /**
   * Shows a range. The loaded rows are drawn immediately, and the server is asked for all rows of
   * the range.
   */
  to(range: Range): void {
    if (!(range.to > range.from)) {
      return;
    }
    if (this.#shareRange) {
      this.#shareRange(range);
      return;
    }
    this.#remember();
    this.#show(range);
  }

  back(): void {
    const past = this.#past();
    if (past.length > 0) {
      this.#future.set([...this.#future(), this.range()]);
      this.#past.set(past.slice(0, -1));
      this.#show(past.at(-1));
    }
  }

  forward(): void {
    const future = this.#future();
    if (future.length > 0) {
      this.#past.set([...this.#past(), this.range()]);
      this.#future.set(future.slice(0, -1));
      this.#show(future.at(-1));
    }
  }

  /**
   * Scales the visible range around its middle. If no range is set, scales the range of all
   * positions.
   */
  scale(factor: number, positions: readonly number[]): void {
    const all = { from: positions[0] ?? 0, to: positions.at(-1) ?? 0 };
    const { from, to } = this.range() ?? all;
    const [middle, half] = [(from + to) / 2, ((to - from) / 2) * factor];
    this.to({ from: middle - half, to: middle + half });
  }

  /** Moves the visible range by a fraction of its width. */
  pan(fraction: number): void {
    const range = this.range();
    if (range) {
      const by = (range.to - range.from) * fraction;
      this.to({ from: range.from + by, to: range.to + by });
    }
  }

  /** Requests the visible rows again, after the drawing has changed or the result is complete. */
  refresh(): void {
    this.#show(this.range());
  }

  #remember(): void {
    this.#past.set([...this.#past(), this.range()]);
    this.#future.set([]);
  }

  #show(range: Range | undefined): void {
    this.#abort?.abort();
    this.#range.set(range);
    if (!range) {
      this.#setDetail(undefined, false);
      this.#asking.set('idle');
    }
    const { axis, result } = this.#source;
    const isNeeded = range !== undefined || isPartial(result);
    if (axis === 'time' && isNeeded && !this.#shareRange) {
      void this.#request(range);
    }
  }

  async #request(range: Range | undefined): Promise<void> {
    const abort = (this.#abort = new AbortController());
    const { signal } = abort;
    this.#asking.set('asking');
    try {
      const rows = range && (await this.#rowsIn(range, signal));
      if (rows) {
        this.#take(rows, false, signal);
      }
      if (!rows || isPartial(rows)) {
        const { result, sampleRequest } = this.#source;
        this.#take(await sampled(result, sampleRequest, range, signal), true, signal);
      }
      if (!signal.aborted) {
        this.#asking.set('answered');
      }
    } catch (cause) {
      if (!aborted(cause) && !signal.aborted) {
        this.#asking.set({ failed: messageOf(cause) });
      }
    }
  }

  #take(rows: Result | undefined, isOfAll: boolean, signal: AbortSignal): void {
    if (rows && !signal.aborted) {
      this.#setDetail(rows, isOfAll);
    }
  }

  /** Reads the rows of a range. Tries several statements until the server accepts one. */
  async #rowsIn(range: Range, signal: AbortSignal): Promise<Result | undefined> {
    const { result, x, maxPoints } = this.#source;
    const column = result.columns[x]?.name ?? '';
    let refused: unknown;
    for (const query of rangeQueries(result.statement, { column, ...range }, maxPoints)) {
      try {
        return await rowsOf(query, signal);
      } catch (cause) {
        if (!(cause instanceof SqlError)) {
          throw cause;
        }
        refused = cause;
      }
    }
    throw refused;
  }
}

async function rowsOf(query: string, signal: AbortSignal): Promise<Result | undefined> {
  let result: Result | undefined;
  const tail = await execute(query, {
    maxRows: MAX_ROWS,
    signal,
    onHead: (head) => (result = new Result(head, query)),
    onRows: (rows) => result?.append(rows),
  });
  if (result) {
    result.total = tail.count ?? result.rows.length;
    result.isCut = tail.isCut === true;
  }
  return result;
}

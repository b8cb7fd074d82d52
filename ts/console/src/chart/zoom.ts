/** The part of the time axis in view, and the rows the server has for it. */
import { createEffect, on, onCleanup, type Accessor } from 'solid-js';
import { aborted, execute, SqlError } from '../api/client.js';
import { isPart, MAX_ROWS, Result } from '../model/result.js';
import { rangeQueries } from '../sql/ranges.js';
import type { Range } from './decimate.js';
import type { AxisKind } from './model.js';
import { sampled, type Wanted } from './sampled.js';
import { messageOf } from '../model/message.js';
import { signal } from '../model/signal.js';

type Asking = 'idle' | 'asking' | 'answered' | { readonly failed: string };

interface Source {
  readonly result: Result;
  readonly axis: Exclude<AxisKind, 'none'>;
  readonly x: number;
  /** Takes the range instead, where it is that of several charts of time. */
  readonly share: ((range: Range | undefined) => void) | undefined;
  /** Points that the picture has room for. */
  readonly room: number;
  /** What is drawn. */
  readonly wanted: Wanted;
}

export class Zoom {
  readonly #range = signal<Range | undefined>(undefined);
  readonly range: Accessor<Range | undefined> = this.#range;
  readonly #detail = signal<Result | undefined>(undefined);
  /** The rows of the range, once they have come. */
  readonly detail: Accessor<Result | undefined> = this.#detail;
  readonly #asking = signal<Asking>('idle');
  readonly asking: Accessor<Asking> = this.#asking;
  readonly #isSampled = signal(false);
  /** Whether the server has summed up all rows for the picture. */
  readonly isSampled: Accessor<boolean> = this.#isSampled;
  readonly canGoBack: Accessor<boolean> = () => this.#past().length > 0;
  readonly canGoForward: Accessor<boolean> = () => this.#future().length > 0;
  readonly #source: Source;
  /** The ranges before and after this one, the nearest last. */
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

  /** All of it, and nothing to go back to: something else is drawn. */
  startOver(): void {
    this.#past.set([]);
    this.#future.set([]);
    this.#show(undefined);
  }

  /** The one that takes ranges of time instead, if there is one. */
  get #share(): Source['share'] {
    return this.#source.axis === 'time' ? this.#source.share : undefined;
  }

  /** All of it again, as the user wants it. */
  reset(): void {
    this.#share?.(undefined);
    if (this.range()) {
      this.#remember();
    }
    this.#show(undefined);
  }

  /** Shows a range at once with the rows there are, then asks the server for its own. */
  to(range: Range): void {
    if (!(range.to > range.from)) {
      return;
    }
    if (this.#share) {
      this.#share(range);
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

  /** Makes the range smaller or larger around its middle; without one, of all places. */
  scale(factor: number, places: readonly number[]): void {
    const all = { from: places[0] ?? 0, to: places.at(-1) ?? 0 };
    const { from, to } = this.range() ?? all;
    const [middle, half] = [(from + to) / 2, ((to - from) / 2) * factor];
    this.to({ from: middle - half, to: middle + half });
  }

  /** Moves the range by a share of its width. */
  pan(share: number): void {
    const range = this.range();
    if (range) {
      const by = (range.to - range.from) * share;
      this.to({ from: range.from + by, to: range.to + by });
    }
  }

  /** Asks for what is in view again: it is drawn in another way, or its result has ended. */
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
    const isAsked = range !== undefined || isPart(result);
    if (axis === 'time' && isAsked && !this.#share) {
      void this.#ask(range);
    }
  }

  async #ask(range: Range | undefined): Promise<void> {
    const abort = (this.#abort = new AbortController());
    const { signal } = abort;
    this.#asking.set('asking');
    try {
      const rows = range && (await this.#rowsIn(range, signal));
      if (rows) {
        this.#take(rows, false, signal);
      }
      if (!rows || isPart(rows)) {
        const { result, wanted } = this.#source;
        this.#take(await sampled(result, wanted, range, signal), true, signal);
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

  /** The rows of a range, by the first of the statements that the server takes. */
  async #rowsIn(range: Range, signal: AbortSignal): Promise<Result | undefined> {
    const { result, x, room } = this.#source;
    const column = result.columns[x]?.name ?? '';
    let refused: unknown;
    for (const query of rangeQueries(result.statement, { column, ...range }, room)) {
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

/** The part of the time axis in view, and the rows the server has for it. */
import { createEffect, createSignal, on, onCleanup, type Accessor } from 'solid-js';
import { aborted, execute, SqlError } from '../api/client.js';
import { MAX_ROWS, Result } from '../model/result.js';
import { rangeQueries } from '../sql/ranges.js';
import { PARTS, type Range } from './decimate.js';
import type { AxisKind } from './model.js';

type Asking = 'idle' | 'asking' | 'answered' | { readonly failed: string };

interface Source {
  readonly result: Result;
  readonly axis: AxisKind;
  readonly x: number;
  /** Takes the range instead, where it is that of several charts of time. */
  readonly share: ((range: Range | undefined) => void) | undefined;
}

export class Zoom {
  readonly range: Accessor<Range | undefined>;
  /** The rows of the range, once they have come. */
  readonly detail: Accessor<Result | undefined>;
  readonly asking: Accessor<Asking>;
  readonly #source: Source;
  readonly #setRange: (range: Range | undefined) => void;
  readonly #setDetail: (result: Result | undefined) => void;
  readonly #setAsking: (asking: Asking) => void;
  #abort: AbortController | undefined;

  constructor(source: Source) {
    const [range, setRange] = createSignal<Range>();
    const [detail, setDetail] = createSignal<Result>();
    const [asking, setAsking] = createSignal<Asking>('idle');
    this.range = range;
    this.detail = detail;
    this.asking = asking;
    this.#source = source;
    this.#setRange = (next) => setRange(() => next);
    this.#setDetail = (next) => setDetail(() => next);
    this.#setAsking = (next) => setAsking(() => next);
    createEffect(
      on(
        () => source.result,
        () => this.#forget(),
        { defer: true },
      ),
    );
    onCleanup(() => this.#abort?.abort());
  }

  /** All of it again, as the user wants it. */
  reset(): void {
    if (this.#source.axis === 'time') {
      this.#source.share?.(undefined);
    }
    this.#forget();
  }

  #forget(): void {
    this.#abort?.abort();
    this.#setRange(undefined);
    this.#setDetail(undefined);
    this.#setAsking('idle');
  }

  /** Shows a range at once with the rows there are, then asks the server for its own. */
  to(range: Range): void {
    if (!(range.to > range.from)) {
      return;
    }
    if (this.#source.share && this.#source.axis === 'time') {
      this.#source.share(range);
      return;
    }
    this.#setRange(range);
    if (this.#source.axis === 'time') {
      void this.#ask(range);
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

  async #ask(range: Range): Promise<void> {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    const { result, x } = this.#source;
    const column = result.columns[x]?.name ?? '';
    this.#setAsking('asking');
    let failed = '';
    for (const query of rangeQueries(result.statement, { column, ...range }, PARTS / 2)) {
      try {
        const detail = await rowsOf(query, abort.signal);
        if (!abort.signal.aborted && detail) {
          this.#setDetail(detail);
          this.#setAsking('answered');
        }
        return;
      } catch (cause) {
        if (aborted(cause)) {
          return;
        }
        failed = cause instanceof Error ? cause.message : String(cause);
        if (!(cause instanceof SqlError)) {
          break;
        }
      }
    }
    this.#setAsking({ failed });
  }
}

async function rowsOf(query: string, signal: AbortSignal): Promise<Result | undefined> {
  let result: Result | undefined;
  await execute(query, {
    maxRows: MAX_ROWS,
    signal,
    onHead: (head) => (result = new Result(head, query)),
    onRows: (rows) => result?.append(rows),
  });
  return result;
}

/**
 * Loads the rows of a large result on demand. Rows are read in windows when they become visible.
 * The least recently viewed window is evicted first. The source determines how a window is read.
 */
import type { Accessor } from 'solid-js';
import type { Row } from '../api/answer.js';
import { messageOf } from './message.js';
import { signal, counter } from './signal.js';

/** Number of rows per window. */
export const WINDOW_ROWS = 1000;
/**
 * Maximum number of cached rows, not counting the first rows of the result. It applies to results
 * with few columns.
 */
export const MAX_WINDOW_ROWS = 100_000;
/** Maximum number of cached cells. It limits memory use for results with many columns. */
const MAX_CELLS = 2_000_000;
/** Idle time after scrolling before rows are requested. */
const SCROLL_IDLE_MS = 60;

interface RowSource {
  /**
   * Reads `count` rows from a position. Returns `undefined` if the data has changed since the other
   * rows were read.
   */
  readonly read: (
    from: number,
    count: number,
    signal: AbortSignal,
  ) => Promise<readonly Row[] | undefined>;
  /** True if the row at a position of the whole result is loaded independently of windows. */
  readonly isLoaded: (position: number) => boolean;
}

interface Span {
  readonly first: number;
  /** End of the span, exclusive. */
  readonly end: number;
}

export class Windows {
  /** Number of rows in the whole result. */
  readonly total: number;
  readonly #edition = counter();
  /** Incremented each time more rows are loaded. */
  readonly edition: Accessor<number> = this.#edition;
  readonly #failure = signal<string | undefined>(undefined);
  /** Error message, if visible rows could not be loaded. */
  readonly failure: Accessor<string | undefined> = this.#failure;
  /** Note for the user about where the rows come from. */
  readonly notice: string | undefined;
  readonly #source: RowSource;
  readonly #maxWindows: number;
  /** Cached windows by their number. The most recently viewed window is last. */
  readonly #cached = new Map<number, readonly Row[]>();
  #visible: Span = { first: 0, end: 0 };
  #reading: { readonly span: Span; readonly abort: AbortController } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(total: number, columns: number, source: RowSource, notice?: string) {
    this.total = total;
    this.notice = notice;
    this.#source = source;
    const rows = Math.min(MAX_WINDOW_ROWS, MAX_CELLS / Math.max(1, columns));
    // Up to two windows are visible at the same time, and their neighbours are loaded with them.
    this.#maxWindows = Math.max(6, Math.floor(rows / WINDOW_ROWS));
  }

  /** Returns the row at a position of the whole result, if the row is cached. */
  row(position: number): Row | undefined {
    return this.#cached.get(Math.floor(position / WINDOW_ROWS))?.[position % WINDOW_ROWS];
  }

  /** Number of cached rows. */
  get size(): number {
    return [...this.#cached.values()].reduce((sum, rows) => sum + rows.length, 0);
  }

  /** Records which rows are visible. Missing rows are loaded once scrolling stops. */
  setVisible(first: number, end: number): void {
    this.#visible = { first, end };
    for (const window of windowsIn(this.#visible)) {
      const rows = this.#cached.get(window);
      if (rows) {
        this.#cached.delete(window);
        this.#cached.set(window, rows);
      }
    }
    clearTimeout(this.#timer);
    if (this.#missing(this.#visible)) {
      this.#timer = setTimeout(() => void this.#read(), SCROLL_IDLE_MS);
    }
  }

  /** Tries again to load the visible rows. */
  retry(): void {
    void this.#read();
  }

  /** Cancels pending reads. Called when other rows are shown instead. */
  close(): void {
    clearTimeout(this.#timer);
    this.#reading?.abort.abort();
  }

  /** Returns the span from the first to the last window in which rows of `span` are missing. */
  #missing(span: Span): Span | undefined {
    const lacking = windowsIn(span).filter((window) => this.#lacks(window, span));
    const [first] = lacking;
    const last = lacking.at(-1);
    return first === undefined || last === undefined ? undefined : { first, end: last + 1 };
  }

  #lacks(window: number, { first, end }: Span): boolean {
    const from = Math.max(first, window * WINDOW_ROWS);
    const to = Math.min(end, (window + 1) * WINDOW_ROWS, this.total);
    const isLoaded = this.#source.isLoaded(from) && this.#source.isLoaded(to - 1);
    return from < to && !isLoaded && !this.#cached.has(window);
  }

  async #read(): Promise<void> {
    const missing = this.#missing(this.#visible);
    const under = this.#reading?.span;
    if (!missing || (under && under.first <= missing.first && missing.end <= under.end)) {
      return;
    }
    this.#reading?.abort.abort();
    const abort = new AbortController();
    // Also load one window before and one after, because users scroll in small steps.
    const before = missing.first > 0 && this.#lacks(missing.first - 1, ALL) ? 1 : 0;
    const after = this.#lacks(missing.end, ALL) ? 1 : 0;
    const span = { first: missing.first - before, end: missing.end + after };
    const reading = { span, abort };
    this.#reading = reading;
    try {
      const from = span.first * WINDOW_ROWS;
      const count = Math.min(span.end * WINDOW_ROWS, this.total) - from;
      const rows = await this.#source.read(from, count, abort.signal);
      if (this.#reading === reading && rows) {
        this.#take(span, rows);
      }
    } catch (cause) {
      if (this.#reading === reading && !abort.signal.aborted) {
        this.#failure.set(messageOf(cause));
      }
    } finally {
      if (this.#reading === reading) {
        this.#reading = undefined;
      }
    }
  }

  #take({ first, end }: Span, rows: readonly Row[]): void {
    for (let window = first; window < end; window += 1) {
      const from = (window - first) * WINDOW_ROWS;
      this.#cached.delete(window);
      this.#cached.set(window, rows.slice(from, from + WINDOW_ROWS));
    }
    for (const window of this.#cached.keys()) {
      if (this.#cached.size <= this.#maxWindows) {
        break;
      }
      this.#cached.delete(window);
    }
    this.#failure.set(undefined);
    this.#edition.bump();
  }
}

const ALL: Span = { first: 0, end: Infinity };

function windowsIn({ first, end }: Span): number[] {
  const from = Math.floor(first / WINDOW_ROWS);
  const count = Math.max(0, Math.ceil(end / WINDOW_ROWS) - from);
  return Array.from({ length: count }, (_, index) => from + index);
}

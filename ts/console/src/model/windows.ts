/**
 * Rows of a large result beyond those that came with it: read by windows when they come into view,
 * the windows looked at longest ago forgotten. What a window is read from is the source's matter.
 */
import type { Accessor } from 'solid-js';
import type { Row } from '../api/answer.js';
import { messageOf } from './message.js';
import { signal, counter } from './signal.js';

/** Rows of one window. */
export const WINDOW_ROWS = 1000;
/** The most rows that are kept beyond those that came first, of results with few columns. */
export const MAX_WINDOW_ROWS = 100_000;
/** Wide rows fill the memory of a page sooner than many. */
const MAX_CELLS = 2_000_000;
/** A scroll that goes on asks for nothing. */
const AT_REST_MS = 60;

interface RowSource {
  /** So many rows from a place on; nothing where they are not of the state of the others. */
  readonly read: (
    from: number,
    count: number,
    signal: AbortSignal,
  ) => Promise<readonly Row[] | undefined>;
  /** Rows that are there without windows, by places of the whole result. */
  readonly isHeld: (place: number) => boolean;
}

interface Span {
  readonly first: number;
  /** Behind the last one. */
  readonly end: number;
}

export class Windows {
  /** Rows of the whole result. */
  readonly total: number;
  readonly #edition = counter();
  /** Grows whenever rows have come. */
  readonly edition: Accessor<number> = this.#edition;
  readonly #failure = signal<string | undefined>(undefined);
  /** Why rows in view could not be read. */
  readonly failure: Accessor<string | undefined> = this.#failure;
  /** What the user has to know of how these rows came about. */
  readonly notice: string | undefined;
  readonly #source: RowSource;
  readonly #most: number;
  /** By their numbers; the one that was looked at last is the last. */
  readonly #kept = new Map<number, readonly Row[]>();
  #wanted: Span = { first: 0, end: 0 };
  #reading: { readonly span: Span; readonly abort: AbortController } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(total: number, columns: number, source: RowSource, notice?: string) {
    this.total = total;
    this.notice = notice;
    this.#source = source;
    const rows = Math.min(MAX_WINDOW_ROWS, MAX_CELLS / Math.max(1, columns));
    // Two windows are in view at once, and those beside them are read with them.
    this.#most = Math.max(6, Math.floor(rows / WINDOW_ROWS));
  }

  /** The row at a place of the whole result, if it is there. */
  row(place: number): Row | undefined {
    return this.#kept.get(Math.floor(place / WINDOW_ROWS))?.[place % WINDOW_ROWS];
  }

  /** How many rows are kept. */
  get size(): number {
    return [...this.#kept.values()].reduce((sum, rows) => sum + rows.length, 0);
  }

  /** Takes note of the rows in view; those that are missing are read once the view rests. */
  want(first: number, end: number): void {
    this.#wanted = { first, end };
    for (const window of windowsIn(this.#wanted)) {
      const rows = this.#kept.get(window);
      if (rows) {
        this.#kept.delete(window);
        this.#kept.set(window, rows);
      }
    }
    clearTimeout(this.#timer);
    if (this.#missing(this.#wanted)) {
      this.#timer = setTimeout(() => void this.#read(), AT_REST_MS);
    }
  }

  /** Asks anew for what could not be read. */
  again(): void {
    void this.#read();
  }

  /** Ends what is under way: other rows are shown now. */
  close(): void {
    clearTimeout(this.#timer);
    this.#reading?.abort.abort();
  }

  /** The windows from the first to the last one that lack rows in view. */
  #missing(span: Span): Span | undefined {
    const lacking = windowsIn(span).filter((window) => this.#lacks(window, span));
    const [first] = lacking;
    const last = lacking.at(-1);
    return first === undefined || last === undefined ? undefined : { first, end: last + 1 };
  }

  #lacks(window: number, { first, end }: Span): boolean {
    const from = Math.max(first, window * WINDOW_ROWS);
    const to = Math.min(end, (window + 1) * WINDOW_ROWS, this.total);
    const isHeld = this.#source.isHeld(from) && this.#source.isHeld(to - 1);
    return from < to && !isHeld && !this.#kept.has(window);
  }

  async #read(): Promise<void> {
    const missing = this.#missing(this.#wanted);
    const under = this.#reading?.span;
    if (!missing || (under && under.first <= missing.first && missing.end <= under.end)) {
      return;
    }
    this.#reading?.abort.abort();
    const abort = new AbortController();
    // One more on each side: a reader goes on in small steps.
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
      this.#kept.delete(window);
      this.#kept.set(window, rows.slice(from, from + WINDOW_ROWS));
    }
    for (const window of this.#kept.keys()) {
      if (this.#kept.size <= this.#most) {
        break;
      }
      this.#kept.delete(window);
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

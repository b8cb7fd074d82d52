/**
 * Refreshes visible cells at an interval, or when their tables change. A hidden page sends no
 * requests. While the server is unreachable, a single cell retries on behalf of all. Only read-only
 * statements are refreshed. A cell with a pending request is not requested again.
 */
import { createEffect, createMemo, createSignal, on, onCleanup, type Accessor } from 'solid-js';
import { BUCKETS, type Range } from '../chart/decimate.js';
import { waitAfter } from '../follow/source.js';
import { route } from '../page/pages.js';
import { onlyReads } from '../sql/effects.js';
import { rangeQueries } from '../sql/ranges.js';
import type { NotebookDocument } from './document.js';
import { sqlCells, type SqlCell, type TimeRange } from '../cells/model.js';
import { compose, type CellStatement } from '../cells/statement.js';
import { watchTables } from './table-watch.js';
import { timeOf } from '../cells/times.js';
import { signal } from '../model/signal.js';

/** Delay that combines the key presses of a typed value into one request. */
const SETTLED_MS = 250;
/** Minimum interval between refreshes if a table changes continuously. */
const MIN_INTERVAL_MS = 1000;
/** Response time above which the cell reports a delay. */
const SLOW_MS = 10_000;

type RefreshState =
  | { readonly kind: 'off' }
  | { readonly kind: 'live'; readonly at: Date | undefined }
  | { readonly kind: 'lost'; readonly retryAt: Date };

export class Refresher {
  readonly #state = signal<RefreshState>({ kind: 'off' });
  readonly state: Accessor<RefreshState> = this.#state;
  /** True if the time range was selected in a chart. */
  readonly isZoomed: Accessor<boolean> = () => this.#before() !== undefined;
  readonly #document: NotebookDocument;
  readonly #visible = new Set<string>();
  readonly #elements = new Map<Element, string>();
  readonly #observer: IntersectionObserver;
  readonly #asking = new Map<string, { readonly abort: AbortController; readonly since: Date }>();
  /** Ids of cells to refresh when they become visible again. */
  readonly #due = new Set<string>();
  readonly #reads = new Map<string, boolean>();
  readonly #before = signal<{ readonly range: TimeRange | undefined } | undefined>(undefined);
  #failures = 0;
  #retry: ReturnType<typeof setTimeout> | undefined;
  #isActive = false;

  constructor(document_: NotebookDocument, isApproved: () => boolean) {
    this.#document = document_;
    this.#observer = new IntersectionObserver((entries) => this.#onIntersection(entries), {
      rootMargin: '100px',
    });
    // After a run, the rows of a chart may have to be restricted to the time range.
    document_.ran = (cell) => this.#cut(cell);
    onCleanup(() => {
      document_.ran = undefined;
      this.#observer.disconnect();
      this.#stop();
    });
    this.#follow(isApproved);
  }

  /** Tracks whether a cell is visible. Call the returned function to stop tracking. */
  watch(id: string, element: Element): () => void {
    this.#elements.set(element, id);
    this.#observer.observe(element);
    return () => {
      this.#observer.unobserve(element);
      this.#elements.delete(element);
      this.#visible.delete(id);
    };
  }

  /** Applies a chart's time range to all cells; `undefined` restores the previous range. */
  zoom(range: Range | undefined): void {
    const before = this.#before();
    if (range === undefined) {
      if (before) {
        this.#before.set(undefined);
        this.setRange(before.range);
      }
      return;
    }
    if (!before) {
      this.#before.set({ range: this.#document.notebook().range });
    }
    const text = (at: number): string => new Date(at).toISOString().replace('T', ' ').slice(0, 23);
    this.setRange({ from: text(Math.floor(range.from)), to: text(Math.ceil(range.to)) });
  }

  /** Sets a range that was chosen outside a chart. */
  choose(range: TimeRange | undefined): void {
    this.#before.set(undefined);
    this.setRange(range);
  }

  setRange(range: TimeRange | undefined): void {
    this.#document.change({ kind: 'settings', patch: { range } });
  }

  now(): void {
    this.#failures = 0;
    this.#all();
  }

  #follow(isApproved: () => boolean): void {
    const { notebook } = this.#document;
    const [isHidden, setHidden] = createSignal(document.hidden);
    const listen = (): void => void setHidden(document.hidden);
    document.addEventListener('visibilitychange', listen);
    onCleanup(() => document.removeEventListener('visibilitychange', listen));
    const isActive = createMemo(() => isApproved() && !isHidden() && route().page === 'sql');
    const refresh = createMemo(() => notebook().refresh);
    const tables = createMemo(() => (refresh() === 'changes' ? this.#tables() : []), undefined, {
      equals: (left, right) => left.join('\n') === right.join('\n'),
    });
    createEffect(() => {
      this.#isActive = isActive();
    });
    createEffect(() => {
      const every = refresh();
      if (!isActive() || every === 'off') {
        this.#state.set({ kind: 'off' });
        this.#stop();
        return;
      }
      this.#state.set({ kind: 'live', at: undefined });
      this.#all();
      if (every === 'changes') {
        this.#watch(tables());
      } else {
        const timer = setInterval(() => this.#all(), every * 1000);
        onCleanup(() => clearInterval(timer));
      }
    });
    // If the range or a variable changes, all cells that have been run are requested again.
    const values = createMemo(() => JSON.stringify([notebook().range, notebook().variables]));
    createEffect(
      on(
        values,
        () => {
          const timer = setTimeout(() => this.#isActive && this.#all('values'), SETTLED_MS);
          onCleanup(() => clearTimeout(timer));
        },
        { defer: true },
      ),
    );
  }

  #tables(): readonly string[] {
    const all = sqlCells(this.#document.notebook()).flatMap(
      ({ id }) => this.#document.run(id).tables() ?? [],
    );
    return [...new Set(all)].sort();
  }

  #watch(tables: readonly string[]): void {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const changed = new Set<string>();
    const flush = (): void => {
      timer = undefined;
      const dirty = [...changed];
      changed.clear();
      for (const cell of sqlCells(this.#document.notebook())) {
        if (
          this.#document
            .run(cell.id)
            .tables()
            ?.some((table) => dirty.includes(table)) === true
        ) {
          this.#refreshIfVisible(cell);
        }
      }
    };
    void watchTables(
      tables,
      (table) => {
        changed.add(table);
        timer ??= setTimeout(flush, MIN_INTERVAL_MS);
      },
      abort.signal,
    );
    onCleanup(() => {
      abort.abort();
      clearTimeout(timer);
    });
  }

  #onIntersection(entries: readonly IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      const id = this.#elements.get(target);
      if (id !== undefined && isIntersecting) {
        this.#visible.add(id);
        const cell = this.#document.cell(id);
        if (this.#due.has(id) && this.#isActive && cell?.kind === 'sql') {
          this.#refreshIfVisible(cell);
        }
      } else if (id !== undefined) {
        this.#visible.delete(id);
      }
    }
  }

  #all(reason?: 'values'): void {
    for (const cell of sqlCells(this.#document.notebook())) {
      this.#refreshIfVisible(cell, reason);
    }
  }

  /** Refreshes a cell if it is visible. Other cells are refreshed when they become visible. */
  #refreshIfVisible(cell: SqlCell, reason?: 'values'): void {
    const { id } = cell;
    const run = this.#document.run(id);
    const state = run.runner.run()?.state;
    // Cells that have never run are not started, and cells that the user stopped are not restarted.
    if (run.text() === undefined || state === 'running' || state === 'cancelled') {
      return;
    }
    if (!this.#visible.has(id)) {
      this.#due.add(id);
      return;
    }
    if (reason === 'values') {
      this.#asking.get(id)?.abort.abort();
      this.#asking.delete(id);
    }
    const pending = this.#asking.get(id);
    if (pending && Date.now() - pending.since.getTime() > SLOW_MS) {
      run.wait(pending.since);
    }
    const isLost = this.#retry !== undefined;
    if (this.#asking.has(id) || isLost) {
      this.#due.add(id);
      return;
    }
    this.#due.delete(id);
    void this.#request(cell);
  }

  async #request(cell: SqlCell): Promise<void> {
    const run = this.#document.run(cell.id);
    const { statement, trouble } = compose(this.#document.asRun(), cell.id, Date.now());
    if (trouble) {
      if (run.runner.result()) {
        run.refuse(trouble);
      }
      return;
    }
    if (!this.#onlyReads(statement.text)) {
      return;
    }
    const isFirst = run.runner.result() === undefined;
    const abort = new AbortController();
    this.#asking.set(cell.id, { abort, since: new Date() });
    const texts = this.#texts(cell, statement);
    const outcome = await run.refresh(statement, texts, abort.signal);
    if (this.#asking.get(cell.id)?.abort === abort) {
      this.#asking.delete(cell.id);
    }
    if (outcome === 'lost') {
      this.#lost();
    } else if (outcome !== 'stopped') {
      this.#answered();
    }
    if (outcome === 'done' && isFirst) {
      this.#cut(cell);
    }
  }

  /** Requests a chart's rows again if they must be restricted to the time range. */
  #cut(cell: SqlCell): void {
    const { statement } = compose(this.#document.asRun(), cell.id, Date.now());
    if (statement && this.#texts(cell, statement)[0] !== statement.bound.text) {
      this.#refreshIfVisible(cell, 'values');
    }
  }

  /**
   * Must be called when a cell's view changes, because a chart shows only rows in the time range.
   */
  shownAs(id: string): void {
    const cell = this.#document.cell(id);
    if (cell?.kind === 'sql') {
      this.#cut(cell);
    }
  }

  /**
   * Returns the statements to try for a cell. A chart is restricted to the time range unless its
   * statement uses the range's variables.
   */
  #texts(cell: SqlCell, { bound, variables }: CellStatement): readonly string[] {
    const { range } = this.#document.notebook();
    const result = this.#document.run(cell.id).runner.result();
    const column = result?.columns[result.timestamp]?.name;
    const isOwn = variables.has('from') || variables.has('to');
    if (!range || isOwn || cell.view !== 'chart' || column === undefined) {
      return [bound.text];
    }
    const now = Date.now();
    const [from, to] = [timeOf(range.from, now), timeOf(range.to, now)];
    return from === undefined || to === undefined
      ? [bound.text]
      : rangeQueries(bound.text, { column, from, to }, BUCKETS / 2);
  }

  #onlyReads(text: string): boolean {
    let reads = this.#reads.get(text);
    if (reads === undefined) {
      this.#reads.set(text, (reads = onlyReads(text)));
    }
    return reads;
  }

  /** Schedules a retry of one cell. The other cells wait for its response. */
  #lost(): void {
    if (this.#retry !== undefined || !this.#isActive) {
      return;
    }
    this.#failures += 1;
    const wait = waitAfter(this.#failures);
    this.#state.set({ kind: 'lost', retryAt: new Date(Date.now() + wait) });
    this.#retry = setTimeout(() => {
      this.#retry = undefined;
      const [first] = [...this.#visible].flatMap((id) => {
        const cell = this.#document.cell(id);
        return cell?.kind === 'sql' && this.#document.run(id).text() !== undefined ? [cell] : [];
      });
      if (first && !this.#asking.has(first.id)) {
        void this.#request(first);
      }
    }, wait);
  }

  #answered(): void {
    if (this.#failures > 0) {
      this.#failures = 0;
      clearTimeout(this.#retry);
      this.#retry = undefined;
      this.#all();
    }
    if (this.#isActive && this.#document.notebook().refresh !== 'off') {
      this.#state.set({ kind: 'live', at: new Date() });
    }
  }

  #stop(): void {
    this.#asking.forEach(({ abort }) => abort.abort());
    this.#asking.clear();
    clearTimeout(this.#retry);
    this.#retry = undefined;
    this.#failures = 0;
  }
}

/** Geometry of a grid: scroll position, column widths, and the visible rows and columns. */
import { createMemo, createSignal, type Accessor } from 'solid-js';
import type { RowOrder } from '../model/order.js';
import { asOf, type ColumnLayout, type Result } from '../model/result.js';
import { isNumeric } from '../model/types.js';
import type { Cell } from './keys.js';
import type { GridState } from './state.js';
import { elementHeight, isAtEdge, pixelAt, scrollPositionOf } from './tall.js';
import { columnWindow, edgesOf, rowWindow, scrollInto } from './window.js';
import { signal } from '../model/signal.js';

export const ROW_HEIGHT = 26;
export const HEAD_HEIGHT = 42;
const SPARE_ROWS = 4;
const CELL_PADDING = 24;
const NARROWEST = 56;
const WIDEST = 560;
const MAX_DRAGGED_WIDTH = 1200;
const USUAL_CHAR_WIDTH = 7.3;
/** Idle time after which a scroll counts as finished. */
const SCROLL_IDLE_MS = 200;

interface Shown {
  readonly result: Result;
  readonly revision: number;
  readonly order: RowOrder;
  readonly state: GridState;
}

let measured = 0;

/** Returns the width of one character of the data font. The width is measured only once. */
function charWidth(): number {
  if (measured > 0) {
    return measured;
  }
  const context = document.createElement('canvas').getContext('2d');
  if (!context) {
    return USUAL_CHAR_WIDTH;
  }
  const style = getComputedStyle(document.documentElement);
  context.font = `12px ${style.getPropertyValue('--font-data')}`;
  measured = context.measureText('0'.repeat(20)).width / 20 || USUAL_CHAR_WIDTH;
  return measured;
}

/**
 * Layout of a grid. Rows and columns are identified by their position in the grid, not by their
 * index in the result.
 */
export class GridLayout {
  readonly rowCount: Accessor<number>;
  /** Width of the row number column. */
  readonly numberWidth: Accessor<number>;
  readonly rows: Accessor<number[]>;
  readonly columns: Accessor<number[]>;
  /** A different object whenever the order, position or width of columns changes. */
  readonly arrangement: Accessor<object>;
  readonly #shown: Shown;
  readonly #order: Accessor<readonly number[]>;
  readonly #widths: Accessor<readonly number[]>;
  readonly #edges: Accessor<readonly number[]>;
  readonly #view: Accessor<{ width: number; height: number }>;
  readonly #shift = signal(0);
  /**
   * Number of pixels by which rows are drawn above their positions. It is nonzero only if all rows
   * together exceed the maximum height of an element.
   */
  readonly shift: Accessor<number> = this.#shift;
  readonly #setScroll: (at: { top: number; left: number }) => void;
  /** The element's scroll position at the last update. */
  #top = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #fit: (scroller: HTMLElement) => void;

  constructor(shown: Shown) {
    this.#shown = shown;
    const [scroll, setScroll] = createSignal({ top: 0, left: 0 }, { equals: areSame });
    const [view, setView] = createSignal({ width: 800, height: 400 }, { equals: areSame });
    const { state } = shown;
    const order = createMemo(() => state.order(shown.result.columns.length));
    const natural = createMemo(() =>
      asOf(shown.result, shown.revision + this.#edition()).layout.map((column) =>
        naturalWidth(column),
      ),
    );
    const widths = createMemo(() =>
      order().map((column) => state.widths().get(column) ?? natural()[column] ?? NARROWEST),
    );
    this.#order = order;
    this.#widths = widths;
    this.#edges = createMemo(() => edgesOf(widths()));
    this.#view = view;
    this.#setScroll = setScroll;
    this.rowCount = createMemo(() => {
      const { rows, windows } = asOf(shown.result, shown.revision);
      return shown.order?.length ?? windows?.total ?? rows.length;
    });
    this.numberWidth = createMemo(() => {
      const { rows, windows, skipped } = asOf(shown.result, shown.revision);
      const count = windows?.total ?? skipped + rows.length + 1;
      return Math.max(48, String(count).length * 8 + 20);
    });
    this.arrangement = createMemo(() => ({
      order: order(),
      edges: this.#edges(),
      frozen: state.frozen(),
      from: this.numberWidth(),
    }));
    // The `equals` option avoids updates, because most scrolls do not change which rows and columns
    // are visible.
    this.rows = createMemo(
      () => {
        const height = view().height - HEAD_HEIGHT;
        return indexes(rowWindow(scroll().top, height, ROW_HEIGHT, this.rowCount(), SPARE_ROWS));
      },
      undefined,
      { equals: areSame },
    );
    this.columns = createMemo(
      () => {
        const frozenCount = state.frozen();
        const availableWidth = view().width - this.numberWidth() - this.#frozenWidth();
        const from = scroll().left + this.#frozenWidth();
        const moving = indexes(columnWindow(from, availableWidth, this.#edges()));
        return [
          ...indexes({ first: 0, end: frozenCount }),
          ...moving.filter((position) => position >= frozenCount),
        ];
      },
      undefined,
      { equals: areSame },
    );
    this.#fit = ({ clientWidth, clientHeight }) =>
      setView({ width: clientWidth, height: clientHeight });
  }

  /** Returns the index in the result of the row at a position. */
  rowAt(position: number): number {
    return this.#shown.order?.[position] ?? position - this.#before();
  }

  /** Returns the position of a row of the result, or `undefined` if a filter hides the row. */
  positionOf(row: number): number | undefined {
    const { order } = this.#shown;
    const position = order ? order.indexOf(row) : row + this.#before();
    return position >= 0 && position < this.rowCount() ? position : undefined;
  }

  /**
   * Returns the number of positions before the first loaded row. Only results that load rows on
   * demand have such positions.
   */
  #before(): number {
    const { order, result } = this.#shown;
    return order || !result.windows ? 0 : result.skipped;
  }

  /** Returns a number that changes whenever more rows are loaded. */
  #edition(): number {
    return this.#shown.result.windows?.edition() ?? 0;
  }

  /** Returns the displayed number of the row at a position. */
  numberAt(position: number): number {
    return this.#shown.result.numberOf(this.rowAt(position));
  }

  /** Returns the index in the result of the column at a position. */
  columnAt(position: number): number {
    return this.#order()[position] ?? position;
  }

  isFrozen(position: number): boolean {
    return position < this.#shown.state.frozen();
  }

  /** True for the last frozen column. The columns after it scroll beneath it. */
  isLastFrozen(position: number): boolean {
    return position === this.#shown.state.frozen() - 1;
  }

  /** Returns the position whose left edge is nearest to `x`, measured from the grid's left edge. */
  gapNear(x: number, scrollLeft: number): number {
    const inside = x - this.numberWidth() + (x < this.#frozenWidth() ? 0 : scrollLeft);
    const edges = this.#edges();
    return edges.reduce(
      (best, edge, position) =>
        Math.abs(edge - inside) < Math.abs((edges[best] ?? 0) - inside) ? position : best,
      0,
    );
  }

  #frozenWidth(): number {
    return this.#edges()[this.#shown.state.frozen()] ?? 0;
  }

  get totalWidth(): number {
    return this.numberWidth() + (this.#edges().at(-1) ?? 0);
  }

  get totalHeight(): number {
    return elementHeight(this.#fullHeight);
  }

  /** Number of rows by which Page Up and Page Down move. */
  get page(): number {
    return Math.max(1, Math.floor((this.#view().height - HEAD_HEIGHT) / ROW_HEIGHT) - 1);
  }

  left(column: number): number {
    return this.numberWidth() + (this.#edges()[column] ?? 0);
  }

  width(column: number): number {
    return this.#widths()[column] ?? NARROWEST;
  }

  /** True if a column truncates a text of `chars` characters. */
  cuts(column: number, chars: number): boolean {
    return chars * charWidth() > this.width(column) - CELL_PADDING;
  }

  setWidth(position: number, width: number): void {
    const clamped = Math.max(NARROWEST, Math.min(MAX_DRAGGED_WIDTH, width));
    this.#shown.state.setWidth(this.columnAt(position), clamped);
  }

  /** Updates the layout from the element's scroll position. */
  follow(scroller: HTMLElement): void {
    const { scrollTop, scrollLeft } = scroller;
    const heights = this.#heights();
    const top = pixelAt(scrollTop, { top: this.#top, shift: this.shift() }, heights);
    this.#top = scrollTop;
    this.#shift.set(top - scrollTop);
    this.#setScroll({ top, left: scrollLeft });
    clearTimeout(this.#timer);
    if (isAtEdge(scrollTop, top, heights)) {
      this.scrollTo(scroller, scrollLeft, top);
    } else if (this.shift() !== 0) {
      // When scrolling stops, move the scroll bar to the correct fraction of all rows.
      this.#timer = setTimeout(
        () => this.scrollTo(scroller, scroller.scrollLeft, top),
        SCROLL_IDLE_MS,
      );
    }
  }

  /** Scrolls to a pixel offset within the rows. */
  scrollTo(scroller: HTMLElement, left: number, at: number): void {
    const { top, shift } = scrollPositionOf(at, this.#heights());
    this.#top = top;
    this.#shift.set(shift);
    this.#setScroll({ top: top + shift, left });
    scroller.scrollTo(left, top);
  }

  #heights(): { full: number; view: number } {
    return { full: this.#fullHeight, view: this.#view().height };
  }

  get #fullHeight(): number {
    return HEAD_HEIGHT + this.rowCount() * ROW_HEIGHT;
  }

  /** Updates the layout from the element's size. */
  fit(scroller: HTMLElement): void {
    this.#fit(scroller);
  }

  /** Scrolls a cell into view. */
  reveal(scroller: HTMLElement, { row, column }: Cell): void {
    const frozenWidth = this.#frozenWidth();
    const start = (this.#edges()[column] ?? 0) - frozenWidth;
    const { width, height } = this.#view();
    const top = row * ROW_HEIGHT;
    const availableWidth = width - this.numberWidth() - frozenWidth;
    const { scrollLeft } = scroller;
    const left = this.isFrozen(column)
      ? scrollLeft
      : scrollInto(scrollLeft, availableWidth, start, start + this.width(column));
    const from = scroller.scrollTop + this.shift();
    const to = scrollInto(from, height - HEAD_HEIGHT, top, top + ROW_HEIGHT);
    if (to === from) {
      scroller.scrollTo(left, scroller.scrollTop);
    } else {
      this.scrollTo(scroller, left, to);
    }
  }
}

function naturalWidth({ chars, column }: ColumnLayout): number {
  const marks = isNumeric(column.type) ? 0 : 6;
  const width = chars * charWidth() + CELL_PADDING + marks;
  return Math.round(Math.max(NARROWEST, Math.min(WIDEST, width)));
}

/** Compares two lists of numbers, or two objects whose values are numbers. */
function areSame(left: object, right: object): boolean {
  const [before, after] = [Object.values(left), Object.values(right)];
  return before.length === after.length && before.every((value, at) => value === after[at]);
}

function indexes({ first, end }: { first: number; end: number }): number[] {
  return Array.from({ length: Math.max(0, end - first) }, (_, offset) => first + offset);
}

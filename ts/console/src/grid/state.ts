/**
 * The user's changes to a grid: column order and widths, sorting, filter. They are kept per tab.
 */
import type { Accessor } from 'solid-js';
import type { Column } from '../api/answer.js';
import type { Sort } from '../model/order.js';
import { signal } from '../model/signal.js';

export class GridState {
  readonly #sort = signal<Sort | undefined>(undefined);
  readonly sort: Accessor<Sort | undefined> = this.#sort;
  readonly filter = signal('');
  readonly #widths = signal<ReadonlyMap<number, number>>(new Map());
  /** Widths set by dragging, keyed by the column's index in the result. */
  readonly widths: Accessor<ReadonlyMap<number, number>> = this.#widths;
  readonly #frozen = signal(0);
  /** Number of frozen columns at the left. */
  readonly frozen: Accessor<number> = this.#frozen;
  /** True while the inspector is open. */
  readonly inspected = signal(false);
  readonly #sought = signal<{ readonly row: number } | undefined>(undefined);
  /** Row of the result that another view wants to show. Each request is a new object. */
  readonly sought: Accessor<{ readonly row: number } | undefined> = this.#sought;
  readonly #order = signal<readonly number[]>([]);
  #columns = '';

  /**
   * Sets the columns of the displayed result. If they differ from the previous columns, all changes
   * are reset.
   */
  adopt(columns: readonly Column[]): void {
    const key = JSON.stringify(columns);
    if (key === this.#columns) {
      return;
    }
    this.#columns = key;
    this.reset();
  }

  reset(): void {
    this.#sort.set(undefined);
    this.filter.set('');
    this.#widths.set(new Map());
    this.#frozen.set(0);
    this.#order.set([]);
  }

  /** Moves the grid's cursor to a row of the result. */
  seek(row: number): void {
    this.#sought.set({ row });
  }

  /** Called by the grid once it has handled the requested row. */
  found(): void {
    this.#sought.set(undefined);
  }

  /** Returns the index in the result of each displayed column, from left to right. */
  order(count: number): readonly number[] {
    const order = this.#order();
    return order.length === count ? order : Array.from({ length: count }, (_, index) => index);
  }

  /** Cycles the sort order of a column through ascending, descending and unsorted. */
  cycleSort(column: number): void {
    const sort = this.sort();
    if (sort?.column !== column) {
      this.sortBy({ column, descending: false });
    } else {
      this.sortBy(sort.descending ? undefined : { column, descending: true });
    }
  }

  sortBy(sort: Sort | undefined): void {
    this.#sort.set(sort);
  }

  setWidth(column: number, width: number): void {
    this.#widths.set(new Map(this.widths()).set(column, width));
  }

  /** Moves a column from one position to another. */
  move(count: number, from: number, to: number): void {
    const order = [...this.order(count)];
    const [column] = order.splice(from, 1);
    if (column !== undefined) {
      order.splice(to, 0, column);
      this.#order.set(order);
    }
  }

  freeze(count: number): void {
    this.#frozen.set(count);
  }
}

const states = new WeakMap<object, GridState>();

/** Returns the grid state of a tab's runner, and creates it on first use. */
export function gridStateOf(runner: object): GridState {
  let state = states.get(runner);
  if (!state) {
    states.set(runner, (state = new GridState()));
  }
  return state;
}

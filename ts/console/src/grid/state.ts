/** What the user has made of a grid: order and width of columns, sort, filter. Kept per tab. */
import type { Accessor } from 'solid-js';
import type { Column } from '../api/answer.js';
import type { Sort } from '../model/order.js';
import { signal } from '../model/signal.js';

export class GridState {
  readonly #sort = signal<Sort | undefined>(undefined);
  readonly sort: Accessor<Sort | undefined> = this.#sort;
  readonly filter = signal('');
  readonly #widths = signal<ReadonlyMap<number, number>>(new Map());
  /** Widths that were dragged, by the column's index in the result. */
  readonly widths: Accessor<ReadonlyMap<number, number>> = this.#widths;
  readonly #frozen = signal(0);
  /** How many columns stay in view at the left. */
  readonly frozen: Accessor<number> = this.#frozen;
  /** Whether the inspector is open. */
  readonly inspected = signal(false);
  readonly #sought = signal<{ readonly row: number } | undefined>(undefined);
  /** The row of the result that something else points at, each time anew. */
  readonly sought: Accessor<{ readonly row: number } | undefined> = this.#sought;
  readonly #order = signal<readonly number[]>([]);
  #columns = '';

  /** Takes over a result: what was arranged for other columns is forgotten. */
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

  /** Brings a row of the result under the cursor of the grid. */
  seek(row: number): void {
    this.#sought.set({ row });
  }

  /** The view that shows rows has taken note. */
  found(): void {
    this.#sought.set(undefined);
  }

  /** The result's column at each place, from the left. */
  order(count: number): readonly number[] {
    const order = this.#order();
    return order.length === count ? order : Array.from({ length: count }, (_, index) => index);
  }

  /** Ascending, descending, as it came, and so on. */
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

  /** Moves the column at a place to another one. */
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

/** The state that belongs to a tab's runner, made on first use. */
export function gridStateOf(runner: object): GridState {
  let state = states.get(runner);
  if (!state) {
    states.set(runner, (state = new GridState()));
  }
  return state;
}

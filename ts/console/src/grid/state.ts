/** What the user has made of a grid: order and width of columns, sort, filter. Kept per tab. */
import { createSignal, type Accessor } from 'solid-js';
import type { Column } from '../api/answer.js';
import type { Sort } from '../model/order.js';

export class GridState {
  readonly sort: Accessor<Sort | undefined>;
  readonly filter: Accessor<string>;
  readonly setFilter: (filter: string) => void;
  /** Widths that were dragged, by the column's index in the result. */
  readonly widths: Accessor<ReadonlyMap<number, number>>;
  /** How many columns stay in view at the left. */
  readonly frozen: Accessor<number>;
  /** Whether the inspector is open. */
  readonly inspected: Accessor<boolean>;
  readonly inspect: (open: boolean) => void;
  /** The row of the result that something else points at, each time anew. */
  readonly sought: Accessor<{ readonly row: number } | undefined>;
  readonly #seek: (place: { readonly row: number } | undefined) => void;
  readonly #order: Accessor<readonly number[]>;
  readonly #setOrder: (order: readonly number[]) => void;
  readonly #setSort: (sort: Sort | undefined) => void;
  readonly #setWidths: (widths: ReadonlyMap<number, number>) => void;
  readonly #setFrozen: (count: number) => void;
  #columns = '';

  constructor() {
    const [sort, setSort] = createSignal<Sort>();
    const [filter, setFilter] = createSignal('');
    const [widths, setWidths] = createSignal<ReadonlyMap<number, number>>(new Map());
    const [frozen, setFrozen] = createSignal(0);
    const [order, setOrder] = createSignal<readonly number[]>([]);
    const [inspected, inspect] = createSignal(false);
    const [sought, seek] = createSignal<{ readonly row: number }>();
    this.sought = sought;
    this.#seek = seek;
    this.sort = sort;
    this.filter = filter;
    this.setFilter = setFilter;
    this.widths = widths;
    this.frozen = frozen;
    this.inspected = inspected;
    this.inspect = inspect;
    this.#order = order;
    this.#setOrder = setOrder;
    this.#setSort = (sort) => setSort(() => sort);
    this.#setWidths = setWidths;
    this.#setFrozen = setFrozen;
  }

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
    this.#setSort(undefined);
    this.setFilter('');
    this.#setWidths(new Map());
    this.#setFrozen(0);
    this.#setOrder([]);
  }

  /** Brings a row of the result under the cursor of the grid. */
  seek(row: number): void {
    this.#seek({ row });
  }

  /** The view that shows rows has taken note. */
  found(): void {
    this.#seek(undefined);
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
    this.#setSort(sort);
  }

  setWidth(column: number, width: number): void {
    this.#setWidths(new Map(this.widths()).set(column, width));
  }

  /** Moves the column at a place to another one. */
  move(count: number, from: number, to: number): void {
    const order = [...this.order(count)];
    const [column] = order.splice(from, 1);
    if (column !== undefined) {
      order.splice(to, 0, column);
      this.#setOrder(order);
    }
  }

  freeze(count: number): void {
    this.#setFrozen(count);
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

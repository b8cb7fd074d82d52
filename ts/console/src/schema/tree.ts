/** State of the schema tree: expanded rows, selection and key navigation. */
import { createComputed, createMemo, createSignal, type Accessor } from 'solid-js';
import { createStore, reconcile } from 'solid-js/store';
import { quoted } from '../sql/names.js';
import { treeRows, type TreeRow } from './rows.js';
import { editor } from '../state/editor.js';
import type { Schema } from '../state/schema.js';

export class TreeState {
  readonly rows: Accessor<readonly TreeRow[]>;
  /** Id of the selected row, which is the tree's only tab stop. */
  readonly selected: Accessor<string>;
  readonly select: (id: string) => void;
  readonly #setOpen: (row: TreeRow, open: boolean) => void;

  constructor(schema: Schema, filter: () => string) {
    const [opened, setOpened] = createSignal<ReadonlySet<string>>(new Set());
    const [closed, setClosed] = createSignal<ReadonlySet<string>>(new Set());
    const [current, setCurrent] = createSignal('');
    // Rows with the same id keep their object, so that the element and the focus are preserved.
    const [store, setStore] = createStore<{ rows: TreeRow[] }>({ rows: [] });
    createComputed(() => {
      const rows = treeRows(schema.known, schema.columns(), opened(), closed(), filter());
      setStore('rows', reconcile(rows, { key: 'id' }));
    });
    this.rows = () => store.rows;
    this.selected = createMemo(() => {
      const isThere = this.rows().some((row) => row.id === current());
      return isThere ? current() : (this.rows()[0]?.id ?? '');
    });
    this.select = setCurrent;
    this.#setOpen = (row, open) => {
      if (row.kind === 'group') {
        setClosed(withMember(closed(), row.id, !open));
      } else if (row.kind === 'table') {
        setOpened(withMember(opened(), row.table.name, open));
        if (open) {
          void schema.open(row.table.name);
        }
      }
    };
  }

  get selectedRow(): TreeRow | undefined {
    return this.rows().find((row) => row.id === this.selected());
  }

  /** Expands or collapses a row, or inserts a column's name into the editor. */
  activate(row: TreeRow): void {
    if (row.kind === 'column') {
      editor()?.insert(quoted(row.column.name));
    } else if ('open' in row) {
      this.#setOpen(row, !row.open);
    }
  }

  /**
   * Returns the id of the row that a navigation key selects, or `undefined` for other keys. The
   * left and right arrow keys may expand or collapse the row instead of leaving it.
   */
  move(key: string): string | undefined {
    const rows = this.rows();
    const index = rows.findIndex((row) => row.id === this.selected());
    const row = rows[index];
    if (!row) {
      return undefined;
    }
    const isOpen = 'open' in row && row.open;
    if ((key === 'ArrowRight' && 'open' in row && !isOpen) || (key === 'ArrowLeft' && isOpen)) {
      this.#setOpen(row, !isOpen);
      return row.id;
    }
    const next = stepsOf(key, rows, index);
    return next === undefined ? undefined : (rows[next]?.id ?? row.id);
  }
}

function stepsOf(key: string, rows: readonly TreeRow[], index: number): number | undefined {
  switch (key) {
    case 'ArrowDown':
    case 'ArrowRight':
      return index + 1;
    case 'ArrowUp':
      return Math.max(0, index - 1);
    case 'ArrowLeft':
      return parentOf(rows, index);
    case 'Home':
      return 0;
    case 'End':
      return rows.length - 1;
    default:
      return undefined;
  }
}

function parentOf(rows: readonly TreeRow[], index: number): number {
  const kind = rows[index]?.kind === 'table' ? 'group' : 'table';
  const before = rows.slice(0, index).map((row) => row.kind);
  return rows[index]?.kind === 'group' ? index : Math.max(0, before.lastIndexOf(kind));
}

function withMember(set: ReadonlySet<string>, member: string, isInside: boolean): Set<string> {
  const next = new Set(set);
  if (isInside) {
    next.add(member);
  } else {
    next.delete(member);
  }
  return next;
}

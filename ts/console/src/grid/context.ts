/** Types and helpers shared by the grid's components. */
import { cellText, type CellText, type Zone } from '../model/format.js';
import type { RowOrder } from '../model/order.js';
import type { Result } from '../model/result.js';
import type { Cell } from './keys.js';
import type { GridLayout } from './layout.js';
import type { Selection } from './selection.js';
import type { GridState } from './state.js';

export interface GridProps {
  readonly result: Result;
  readonly revision: number;
  readonly order: RowOrder;
  readonly state: GridState;
  readonly zone: Zone;
  readonly onLeave: () => void;
  /** Distinguishes the cells of several grids on one page. */
  readonly name?: string;
  /** Set if rows arrive at the end and the grid follows them. */
  readonly tail?: GridTail;
}

interface GridTail {
  readonly isAtEnd: () => boolean;
  readonly setAtEnd: (isAtEnd: boolean) => void;
}

export interface GridContext extends GridProps {
  readonly layout: GridLayout;
  /** The cell under the cursor, by position. */
  readonly cell: Cell;
  /** Moves the cursor to a cell. With `extend`, moves only the selection's corner at the cursor. */
  readonly onSelect: (cell: Cell, extend?: boolean) => void;
  /** Selected cells, if more than one cell is selected. */
  readonly selection: Selection | undefined;
}

/** Element id of the cell at a position. */
export function cellId({ row, column }: Cell, name = ''): string {
  return `cell-${name}${row}-${column}`;
}

/** Position of the cell that contains an element. */
export function cellAt(target: EventTarget | null): Cell | undefined {
  const cell = target instanceof Element ? target.closest('.grid-cell') : null;
  const match = /^cell-(?:[a-z]\w*-)?(\d+)-(\d+)$/.exec(cell?.id ?? '');
  return match ? { row: Number(match[1]), column: Number(match[2]) } : undefined;
}

/** A cell of a row that is not loaded yet. */
const NOT_READ: CellText = { kind: 'waiting', text: '…' };

/** A result cell as displayed text. */
export function shownCell(result: Result, { row, column }: Cell, zone: Zone): CellText {
  const layout = result.layout[column];
  if (!layout) {
    return { kind: 'plain', text: '' };
  }
  if (!result.row(row)) {
    return NOT_READ;
  }
  return cellText(result.cell(row, column), layout.column, zone, layout.digits);
}

/** Position of the row whose number is in an element. */
export function rowNumberAt(target: EventTarget | null): number | undefined {
  const row = target instanceof Element ? target.closest('.grid-number')?.parentElement : null;
  const index = Number(row?.getAttribute('aria-rowindex') ?? 0);
  return index >= 2 ? index - 2 : undefined;
}

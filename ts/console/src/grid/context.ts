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
  /** Prefix for element ids, which distinguishes the cells of several grids on one page. */
  readonly name?: string;
  /** Set if rows arrive at the end and the grid scrolls to follow them. */
  readonly tail?: GridTail;
}

interface GridTail {
  readonly isAtEnd: () => boolean;
  readonly setAtEnd: (isAtEnd: boolean) => void;
}

export interface GridContext extends GridProps {
  readonly layout: GridLayout;
  /** Position of the cell under the cursor. */
  readonly cell: Cell;
  /** Moves the cursor to a cell. With `extend`, extends the selection to that cell. */
  readonly onSelect: (cell: Cell, extend?: boolean) => void;
  /** The selection, or `undefined` if only one cell is selected. */
  readonly selection: Selection | undefined;
}

/** Returns the element id of the cell at a position. */
export function cellId({ row, column }: Cell, name = ''): string {
  return `cell-${name}${row}-${column}`;
}

/** Returns the position of the cell that contains an element. */
export function cellAt(target: EventTarget | null): Cell | undefined {
  const cell = target instanceof Element ? target.closest('.grid-cell') : null;
  const match = /^cell-(?:[a-z]\w*-)?(\d+)-(\d+)$/.exec(cell?.id ?? '');
  return match ? { row: Number(match[1]), column: Number(match[2]) } : undefined;
}

/** Text shown in the cells of a row that is not loaded yet. */
const NOT_READ: CellText = { kind: 'waiting', text: '…' };

/** Returns a cell of the result as displayed text. */
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

/** Returns the position of the row whose number an element shows. */
export function rowNumberAt(target: EventTarget | null): number | undefined {
  const row = target instanceof Element ? target.closest('.grid-number')?.parentElement : null;
  const index = Number(row?.getAttribute('aria-rowindex') ?? 0);
  return index >= 2 ? index - 2 : undefined;
}

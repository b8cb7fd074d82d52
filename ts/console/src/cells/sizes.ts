/** Cell sizes in the grid layout. */
import { COLUMNS, MAX_ROWS, type Cell, type CellSize } from './model.js';

/** Height of a row of the grid layout, including the gap below it. */
export const ROW_PX = 40;
const LEAST: CellSize = { width: 2, height: 2 };

export function shownSize(cell: Cell): CellSize {
  const usual = cell.kind === 'sql' ? { width: 6, height: 9 } : { width: 12, height: 2 };
  return cell.size ?? usual;
}

/** The nearest allowed size of a cell. */
export function allowed({ width, height }: CellSize): CellSize {
  const within = (value: number, least: number, most: number): number =>
    Math.max(least, Math.min(most, Math.round(value)));
  return {
    width: within(width, LEAST.width, COLUMNS),
    height: within(height, LEAST.height, MAX_ROWS),
  };
}

/** Default and allowed cell sizes in the grid layout. */
import { COLUMNS, MAX_ROWS, type Cell, type CellSize } from './model.js';

/** Height of a row of the grid layout, including the gap below it. */
export const ROW_PX = 40;
const MIN_SIZE: CellSize = { width: 2, height: 2 };

export function shownSize(cell: Cell): CellSize {
  const usual = cell.kind === 'sql' ? { width: 6, height: 9 } : { width: 12, height: 2 };
  return cell.size ?? usual;
}

/** Returns the nearest allowed cell size. */
export function allowed({ width, height }: CellSize): CellSize {
  const within = (value: number, min: number, max: number): number =>
    Math.max(min, Math.min(max, Math.round(value)));
  return {
    width: within(width, MIN_SIZE.width, COLUMNS),
    height: within(height, MIN_SIZE.height, MAX_ROWS),
  };
}

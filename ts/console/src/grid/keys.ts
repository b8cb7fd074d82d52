/** Moves the cell cursor of the grid in response to key presses. */

export interface Cell {
  readonly row: number;
  readonly column: number;
}

interface Bounds {
  readonly rows: number;
  readonly columns: number;
  /** Number of rows by which Page Up and Page Down move. */
  readonly page: number;
}

type Key = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey'>;

/** Returns the cell to which a key moves the cursor, or `undefined` if the key does not move it. */
export function moveCell(from: Cell, key: Key, bounds: Bounds): Cell | undefined {
  const far = key.ctrlKey || key.metaKey;
  const lastRow = bounds.rows - 1;
  const lastColumn = bounds.columns - 1;
  const to = ((): Cell | undefined => {
    switch (key.key) {
      case 'ArrowUp':
        return { ...from, row: far ? 0 : from.row - 1 };
      case 'ArrowDown':
        return { ...from, row: far ? lastRow : from.row + 1 };
      case 'ArrowLeft':
        return { ...from, column: far ? 0 : from.column - 1 };
      case 'ArrowRight':
        return { ...from, column: far ? lastColumn : from.column + 1 };
      case 'Home':
        return { row: far ? 0 : from.row, column: 0 };
      case 'End':
        return { row: far ? lastRow : from.row, column: lastColumn };
      case 'PageUp':
        return { ...from, row: from.row - bounds.page };
      case 'PageDown':
        return { ...from, row: from.row + bounds.page };
      default:
        return undefined;
    }
  })();
  if (!to) {
    return undefined;
  }
  return { row: within(to.row, lastRow), column: within(to.column, lastColumn) };
}

function within(value: number, last: number): number {
  return Math.max(0, Math.min(last, value));
}

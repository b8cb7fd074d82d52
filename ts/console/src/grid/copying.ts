/** Copies cells of the grid as text, in display order. */
import type { Value } from '../api/answer.js';
import { copyCells, copyRows, copyText, grouped } from '../model/format.js';
import { showToast } from '../page/notices.js';
import { copy } from '../ui/clipboard.js';
import type { GridContext } from './context.js';
import type { Selection } from './selection.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

type Source = Pick<GridContext, 'result' | 'layout'>;

/** Reads the content of a selection. */
export const valuesIn = {
  columns({ layout }: Source, { left, right }: Selection): number[] {
    return Array.from({ length: right - left + 1 }, (_, index) => layout.columnAt(left + index));
  },
  /** Yields the selected values of each loaded row. */
  *rows({ result, layout }: Source, selection: Selection): Generator<Value[]> {
    const columns = valuesIn.columns({ result, layout }, selection);
    for (let position = selection.top; position <= selection.bottom; position += 1) {
      const row = result.row(layout.rowAt(position));
      if (row) {
        yield columns.map((column) => row[column] ?? null);
      }
    }
  },
  /** Counts the loaded rows in the selection. */
  loadedCount({ result, layout }: Source, { top, bottom }: Selection): number {
    let loaded = 0;
    for (let position = top; position <= bottom; position += 1) {
      loaded += Number(result.row(layout.rowAt(position)) !== undefined);
    }
    return loaded;
  },
};

/** Tells the user that some rows are not loaded, and that an export contains all rows. */
function refuseToCopy(loaded: number, count: number): void {
  const numbers = fill(texts.grid.someRows, {
    loaded: grouped(String(loaded)),
    count: grouped(String(count)),
  });
  showToast({ text: fill(texts.grid.nothingCopied, { rows: numbers }) });
}

/**
 * Handles the copy shortcuts. Ctrl+C copies the selected cells, and Ctrl+Shift+C includes their
 * header. If only one cell is selected, Ctrl+C copies its value, and Ctrl+Shift+C its row with the
 * header.
 */
export function copyByKey(event: KeyboardEvent, context: GridContext): boolean {
  const { result, layout, cell, selection, state } = context;
  if (!(event.ctrlKey || event.metaKey) || event.code !== 'KeyC') {
    return false;
  }
  const row = layout.rowAt(cell.row);
  if (!selection && result.row(row) === undefined) {
    return false;
  }
  if (selection) {
    const count = selection.bottom - selection.top + 1;
    const loaded = valuesIn.loadedCount(context, selection);
    if (loaded < count) {
      refuseToCopy(loaded, count);
      return true;
    }
    const values = [...valuesIn.rows(context, selection)];
    const columns = valuesIn.columns(context, selection).flatMap((at) => result.columns[at] ?? []);
    const text = event.shiftKey ? copyRows(columns, values) : copyCells(values);
    void copy(text, event.shiftKey ? texts.grid.cellsWithHeader : texts.grid.cells);
  } else if (event.shiftKey) {
    const order = state.order(result.columns.length);
    const columns = order.flatMap((column) => result.columns[column] ?? []);
    const values = order.map((column) => result.cell(row, column));
    void copy(copyRows(columns, [values]), texts.grid.rowWithHeader);
  } else {
    void copy(copyText(result.cell(row, layout.columnAt(cell.column))), texts.grid.cell);
  }
  return true;
}

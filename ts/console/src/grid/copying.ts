/** Cells of the grid as text for the clipboard, in the order in which they stand. */
import type { Value } from '../api/answer.js';
import { copyCells, copyRows, copyText } from '../model/format.js';
import { copy } from '../shell/announce.js';
import type { GridParts } from './parts.js';
import type { Selection } from './selection.js';

type Source = Pick<GridParts, 'result' | 'layout'>;

/** What of the result a rectangle of places holds. */
export const valuesIn = {
  columns({ layout }: Source, { left, right }: Selection): number[] {
    return Array.from({ length: right - left + 1 }, (_, index) => layout.columnAt(left + index));
  },
  *rows(source: Source, selection: Selection): Generator<Value[]> {
    const columns = valuesIn.columns(source, selection);
    for (let place = selection.top; place <= selection.bottom; place += 1) {
      const row = source.layout.rowAt(place);
      yield columns.map((column) => source.result.cell(row, column));
    }
  },
};

/**
 * Ctrl+C copies the chosen cells, with Shift their header as well; of a single cell the value, with
 * Shift its row and header.
 */
export function copyByKey(event: KeyboardEvent, parts: GridParts): boolean {
  const { result, layout, cell, selection, state } = parts;
  if (!(event.ctrlKey || event.metaKey) || event.code !== 'KeyC') {
    return false;
  }
  const row = layout.rowAt(cell.row);
  if (result.rows[row] === undefined) {
    return false;
  }
  if (selection) {
    const values = [...valuesIn.rows(parts, selection)];
    const columns = valuesIn.columns(parts, selection).flatMap((at) => result.columns[at] ?? []);
    const text = event.shiftKey ? copyRows(columns, values) : copyCells(values);
    void copy(text, event.shiftKey ? 'Cells with header' : 'Cells');
  } else if (event.shiftKey) {
    const order = state.order(result.columns.length);
    const columns = order.flatMap((column) => result.columns[column] ?? []);
    const values = order.map((column) => result.cell(row, column));
    void copy(copyRows(columns, [values]), 'Row with header');
  } else {
    void copy(copyText(result.cell(row, layout.columnAt(cell.column))), 'Cell');
  }
  return true;
}

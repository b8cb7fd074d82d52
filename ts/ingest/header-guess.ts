/**
 * Whether a first line names columns, where the types do not tell: all is text, or there is one
 * row. `/imp` takes such a line for a row, as its clients expect; a proposal is looked at by a
 * person, who can put a guess right.
 */
import { detectColumnType, fitsType } from './column-types.js';

const NAME = /^[\p{L}_][\p{L}\p{N}_ ./()%°#-]{0,63}$/u;
const PLAIN_NAME = /^[a-z][a-z0-9_]*$/;

/** Whether every cell could be a column's name. */
export function areNames(cells: readonly string[]): boolean {
  const folded = new Set(cells.map((cell) => cell.trim().toLowerCase()));
  return folded.size === cells.length && cells.every((cell) => NAME.test(cell.trim()));
}

/** Whether the first line looks like names above the rest, rather than like one of them. */
export function namesColumns(rows: readonly (readonly string[])[]): boolean {
  const [first = [], ...data] = rows;
  const columns = first.map((_, index) => data.map((row) => row[index] ?? ''));
  const recurs = first.some((cell, index) => columns[index]?.includes(cell));
  if (data.length === 0 || recurs || !areNames(first)) {
    return false;
  }
  return first.some((cell, index) => differs(cell, columns[index] ?? []));
}

/** By type, because the others come again and again, or because they are written otherwise. */
function differs(cell: string, values: readonly string[]): boolean {
  return (
    !fitsType(cell, detectColumnType(values)) ||
    new Set(values).size * 2 <= values.length ||
    (PLAIN_NAME.test(cell) && !values.some((value) => PLAIN_NAME.test(value)))
  );
}

/**
 * Guesses whether the first line is a header if the types are inconclusive, because all columns are
 * text or there is only one row. `/imp` reads such a line as data, as its clients expect. In an
 * import proposal, the user can correct the guess.
 */
import { detectColumnType, fitsType } from './column-types.js';

const NAME = /^[\p{L}_][\p{L}\p{N}_ ./()%°#-]{0,63}$/u;
const PLAIN_NAME = /^[a-z][a-z0-9_]*$/;

/** Returns whether every cell could be a column name. */
export function areNames(cells: readonly string[]): boolean {
  const folded = new Set(cells.map((cell) => cell.trim().toLowerCase()));
  return folded.size === cells.length && cells.every((cell) => NAME.test(cell.trim()));
}

/** Returns whether the first line resembles column names rather than data. */
export function namesColumns(rows: readonly (readonly string[])[]): boolean {
  const [first = [], ...data] = rows;
  const columns = first.map((_, index) => data.map((row) => row[index] ?? ''));
  const recurs = first.some((cell, index) => columns[index]?.includes(cell));
  if (data.length === 0 || recurs || !areNames(first)) {
    return false;
  }
  return first.some((cell, index) => differs(cell, columns[index] ?? []));
}

/**
 * Returns whether a cell differs from the values below it in type or form, or whether these values
 * repeat often.
 */
function differs(cell: string, values: readonly string[]): boolean {
  return (
    !fitsType(cell, detectColumnType(values)) ||
    new Set(values).size * 2 <= values.length ||
    (PLAIN_NAME.test(cell) && !values.some((value) => PLAIN_NAME.test(value)))
  );
}

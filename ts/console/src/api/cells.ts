/** Reads the cells of small results by column name. */
import type { Column, Row, Value } from './answer.js';

export interface Answer {
  readonly head: { readonly columns: readonly Column[] };
  readonly rows: readonly Row[];
}

/**
 * A row, as a function of column names. It returns the cell of the first name that exists in the
 * result.
 */
export type RowRecord = (...names: readonly string[]) => Value;

export function recordsOf({ head, rows }: Answer): RowRecord[] {
  const indexes = new Map(head.columns.map(({ name }, at) => [name, at]));
  return rows.map((row) => (...names) => {
    const at = names.map((name) => indexes.get(name)).find((index) => index !== undefined);
    return at === undefined ? null : (row[at] ?? null);
  });
}

/** Converts a value to a string. Returns `undefined` for null and the empty string. */
export function textOf(value: Value): string | undefined {
  return value === null || value === '' ? undefined : String(value);
}

export function numberOf(value: Value): number | undefined {
  return value === null ? undefined : Number(value);
}

/** Cells of small answers, found by the names of their columns. */
import type { Column, Row, Value } from './answer.js';

export interface Answer {
  readonly head: { readonly columns: readonly Column[] };
  readonly rows: readonly Row[];
}

/** Reads a cell by the first of several column names that the answer has. */
export function reader(answer: Answer, ...names: string[]): (row: Row) => Value {
  const at = names
    .map((name) => answer.head.columns.findIndex((column) => column.name === name))
    .find((index) => index >= 0);
  return (row) => (at === undefined ? null : (row[at] ?? null));
}

/** A text that says something; nothing for null and the empty text. */
export function textOf(value: Value): string | undefined {
  return value === null || value === '' ? undefined : String(value);
}

export function numberOf(value: Value): number | undefined {
  return value === null ? undefined : Number(value);
}

/**
 * A result that grows while rows arrive. Rows are kept as the server sent them; what the views
 * need to lay them out (widest cell, places of seconds) is kept up to date beside them.
 */
import type { AnswerHead, Column, Row, Value } from '../api/answer.js';
import { cellText, charsFromPoint, fractionDigits, MOST_FROM_POINT } from './format.js';
import { familyOf } from './types.js';

/** The most rows that are kept in the page; the others are asked for by people, as many at once. */
export const MAX_ROWS = 100_000;

/** Rows whose width is measured: enough for a first page, cheap for any result. */
const MEASURED_ROWS = 200;
const WIDEST_CHARS = 48;

export interface ColumnLayout {
  readonly column: Column;
  /** Widest header or cell seen so far, in characters. */
  chars: number;
  /** Places of seconds needed by the times seen so far; of numbers, see `cellText`. */
  digits: number;
}

export class Result {
  readonly statement: string;
  readonly columns: readonly Column[];
  readonly timestamp: number;
  readonly layout: readonly ColumnLayout[];
  readonly rows: Row[] = [];
  /** Rows of the whole result before the first of these. */
  skipped: number;
  /** Rows of the whole result, known when the answer has ended. */
  total: number | undefined;
  /** Whether there are more than `total`. */
  isCut = false;

  constructor(head: AnswerHead, statement: string, skipped = 0) {
    this.skipped = skipped;
    this.statement = statement;
    this.columns = head.columns;
    this.timestamp = head.timestamp;
    this.layout = head.columns.map((column) => ({
      column,
      chars: Math.max(column.name.length, Math.ceil(typeName(column).length * 0.85)),
      digits: 0,
    }));
  }

  append(rows: readonly Row[]): void {
    this.#measureTimes(rows);
    const unmeasured = Math.max(0, MEASURED_ROWS - this.rows.length);
    for (const row of rows) {
      this.rows.push(row);
    }
    for (const row of rows.slice(0, unmeasured)) {
      this.#measureWidths(row);
    }
  }

  /** Takes the rows of a window that has moved on by `dropped` rows. */
  slide(rows: readonly Row[], dropped: number): void {
    this.rows.length = 0;
    this.skipped += dropped;
    this.append(rows);
  }

  /** What the row is called: its number in the whole result. */
  numberOf(row: number): number {
    return this.skipped + row + 1;
  }

  cell(row: number, column: number): Value {
    return this.rows[row]?.[column] ?? null;
  }

  #measureTimes(rows: readonly Row[]): void {
    this.layout.forEach((layout, index) => {
      if (familyOf(layout.column.type) !== 'time') {
        return;
      }
      for (const row of rows) {
        if (layout.digits === 9) {
          return;
        }
        layout.digits = Math.max(layout.digits, fractionDigits(row[index] ?? null));
      }
    });
  }

  #alignNumber(layout: ColumnLayout, value: Value): void {
    const chars = value === null ? 0 : charsFromPoint(String(value));
    if (chars < MOST_FROM_POINT && chars > layout.digits) {
      // What came before is wider by as much, at most.
      layout.chars = Math.min(layout.chars + chars - layout.digits, WIDEST_CHARS);
      layout.digits = chars;
    }
  }

  #measureWidths(row: Row): void {
    this.layout.forEach((layout, index) => {
      if (familyOf(layout.column.type) === 'decimal') {
        this.#alignNumber(layout, row[index] ?? null);
      }
      const shown = cellText(row[index] ?? null, layout.column, 'local', layout.digits);
      const chars =
        shown.text.length +
        (shown.faint?.length ?? 0) +
        (shown.short ?? 0) +
        (shown.kind === 'array' ? 3 : 0);
      layout.chars = Math.max(layout.chars, Math.min(chars, WIDEST_CHARS));
    });
  }
}

/**
 * A result as of a revision. A result grows in place; reading both is what makes a view follow.
 */
// eslint-disable-next-line @typescript-eslint/no-unused-vars -- to be read is all it is for
export function asOf<T extends Result | undefined>(result: T, _revision: number): T {
  return result;
}

/** The type as a person writes it: arrays by element and dimension. */
export function typeName(column: Column): string {
  if (column.type !== 'ARRAY') {
    return column.type;
  }
  return `${column.elemType ?? 'DOUBLE'}${'[]'.repeat(column.dim ?? 1)}`;
}

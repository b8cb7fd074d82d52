/**
 * A result that grows while rows arrive. Rows are kept as the server sent them; what the views
 * need to lay them out (widest cell, places of seconds) is kept up to date beside them.
 */
import type { AnswerHead, Column, Row, Value } from '../api/answer.js';
import { cellText, charsFromPoint, fractionDigits, MAX_FROM_POINT } from './format.js';
import { familyOf } from './types.js';
import type { Windows } from './windows.js';
import { signal } from './signal.js';

/** The most rows that come with a result; the others are read when they come into view. */
export const MAX_ROWS = 100_000;

/** Rows whose width is measured: enough for a first page, cheap for any result. */
const MEASURED_ROWS = 200;
/** And of each piece that arrives, the last ones. */
const MEASURED_AT_END = 10;
const MAX_WIDTH_CHARS = 48;

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
  /** Whether it takes the place of an earlier one of the same query: the view stays where it is. */
  readonly goesOn: boolean;
  /** The rows that did not come with it, or why they cannot be read one by one. */
  readonly beyond = signal<Windows | string | undefined>(undefined);

  constructor(head: AnswerHead, statement: string, skipped = 0, goesOn = false) {
    this.goesOn = goesOn;
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
    // Numbers that count rows are the longest at the end.
    for (const row of rows.slice(Math.max(unmeasured, rows.length - MEASURED_AT_END))) {
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

  /** The rows beyond those that came first, where they can be read. */
  get windows(): Windows | undefined {
    const beyond = this.beyond();
    return typeof beyond === 'object' ? beyond : undefined;
  }

  /** A row, counted from the first one that came; nothing where it is not in the page. */
  row(row: number): Row | undefined {
    return this.rows[row] ?? this.windows?.row(this.skipped + row);
  }

  cell(row: number, column: number): Value {
    return this.row(row)?.[column] ?? null;
  }

  /** Makes room for rows of a window as for those that came first. */
  measure(rows: readonly Row[]): void {
    this.#measureTimes(rows);
    for (const row of [...rows.slice(0, MEASURED_ROWS), ...rows.slice(-MEASURED_AT_END)]) {
      this.#measureWidths(row);
    }
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
    if (chars < MAX_FROM_POINT && chars > layout.digits) {
      // What came before is wider by as much, at most.
      layout.chars = Math.min(layout.chars + chars - layout.digits, MAX_WIDTH_CHARS);
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
      layout.chars = Math.max(layout.chars, Math.min(chars, MAX_WIDTH_CHARS));
    });
  }
}

/** Whether the page holds some of the rows only. */
export function isPart({ rows, total = rows.length, isCut }: Result): boolean {
  return isCut || rows.length < total;
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

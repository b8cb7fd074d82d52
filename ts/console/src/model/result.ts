/**
 * A result that grows while rows arrive. Rows are stored as the server sent them. The facts that
 * views need for their layout (widest cell, fractional digits) are updated along with them.
 */
import type { AnswerHead, Column, Row, Value } from '../api/answer.js';
import { cellText, charsFromPoint, fractionDigits, MAX_FROM_POINT } from './format.js';
import { familyOf } from './types.js';
import type { Windows } from './windows.js';
import { signal } from './signal.js';

/**
 * Maximum number of rows loaded with a result; further rows are loaded when they become visible.
 */
export const MAX_ROWS = 100_000;

/**
 * Number of rows whose cell widths are measured: enough for the first page, and cheap for any
 * result.
 */
const MEASURED_ROWS = 200;
/** Number of rows measured at the end of each chunk that arrives. */
const MEASURED_AT_END = 10;
const MAX_WIDTH_CHARS = 48;

export interface ColumnLayout {
  readonly column: Column;
  /** Widest header or cell seen so far, in characters. */
  chars: number;
  /** Maximum fractional digits of the times seen so far; for numbers, see `cellText`. */
  digits: number;
}

export class Result {
  readonly statement: string;
  readonly columns: readonly Column[];
  readonly timestamp: number;
  readonly layout: readonly ColumnLayout[];
  readonly rows: Row[] = [];
  /** Number of rows of the whole result that precede the loaded rows. */
  skipped: number;
  /** Number of rows of the whole result, known once the response is complete. */
  total: number | undefined;
  /** Whether the result has more rows than `total`. */
  isCut = false;
  /**
   * Whether this result replaces an earlier result of the same query, so that the view keeps its
   * position.
   */
  readonly keepsPosition: boolean;
  /**
   * The windows through which further rows are loaded, or why they cannot be loaded on
   * demand.
   */
  readonly lazyRows = signal<Windows | string | undefined>(undefined);

  constructor(head: AnswerHead, statement: string, skipped = 0, keepsPosition = false) {
    this.keepsPosition = keepsPosition;
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
    // Row numbers and other counters are widest in the last rows.
    for (const row of rows.slice(Math.max(unmeasured, rows.length - MEASURED_AT_END))) {
      this.#measureWidths(row);
    }
  }

  /** Replaces the rows with the rows of a window that has moved by `dropped` rows. */
  slide(rows: readonly Row[], dropped: number): void {
    this.rows.length = 0;
    this.skipped += dropped;
    this.append(rows);
  }

  /** Number of the row in the whole result. */
  numberOf(row: number): number {
    return this.skipped + row + 1;
  }

  /** Windows of rows that are loaded on demand, if this is possible. */
  get windows(): Windows | undefined {
    const lazyRows = this.lazyRows();
    return typeof lazyRows === 'object' ? lazyRows : undefined;
  }

  /** A row by its index among the loaded rows; `undefined` if it is not loaded. */
  row(row: number): Row | undefined {
    return this.rows[row] ?? this.windows?.row(this.skipped + row);
  }

  cell(row: number, column: number): Value {
    return this.row(row)?.[column] ?? null;
  }

  /** Includes the rows of a window in the layout, like the first rows. */
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
      // Earlier numbers become wider by at most this difference.
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

/** Whether only some of the rows are loaded. */
export function isPartial({ rows, total = rows.length, isCut }: Result): boolean {
  return isCut || rows.length < total;
}

/**
 * Associates a result with a revision. A result grows in place, so a view that also reads the
 * revision follows its growth.
 */
// eslint-disable-next-line @typescript-eslint/no-unused-vars -- to be read is all it is for
export function asOf<T extends Result | undefined>(result: T, _revision: number): T {
  return result;
}

/** Display name of a type: arrays by element type and dimensions. */
export function typeName(column: Column): string {
  if (column.type !== 'ARRAY') {
    return column.type;
  }
  return `${column.elemType ?? 'DOUBLE'}${'[]'.repeat(column.dim ?? 1)}`;
}

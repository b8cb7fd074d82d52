/**
 * A query result that grows while rows arrive. Rows are stored as the server sent them. The result
 * also tracks the data that views need for their layout: the widest cell and the number of
 * fractional digits.
 */
import type { AnswerHead, Column, Row, Value } from '../api/answer.js';
import { cellText, charsFromPoint, fractionDigits, MAX_FROM_POINT } from './format.js';
import { familyOf } from './types.js';
import type { Windows } from './windows.js';
import { signal } from './signal.js';

/** Maximum number of rows to load initially. Further rows are loaded when they become visible. */
export const MAX_ROWS = 100_000;

/**
 * Number of rows whose cell widths are measured. This covers the first page and is cheap for any
 * result.
 */
const MEASURED_ROWS = 200;
/** Number of rows to measure at the end of each chunk. */
const MEASURED_AT_END = 10;
const MAX_WIDTH_CHARS = 48;

export interface ColumnLayout {
  readonly column: Column;
  /** Width of the widest header or cell so far, in characters. */
  chars: number;
  /** Maximum number of fractional digits of the times so far. For numbers, see `cellText`. */
  digits: number;
}

export class Result {
  readonly statement: string;
  readonly columns: readonly Column[];
  readonly timestamp: number;
  readonly layout: readonly ColumnLayout[];
  readonly rows: Row[] = [];
  /** Number of rows in the whole result before the first loaded row. */
  skipped: number;
  /** Number of rows in the whole result, or `undefined` until the response is complete. */
  total: number | undefined;
  /** True if the result has more rows than `total`. */
  isCut = false;
  /**
   * True if this result replaces an earlier result of the same query, so that the view keeps its
   * scroll position.
   */
  readonly keepsPosition: boolean;
  /** The windows that load further rows on demand, or the reason that this is not possible. */
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
    // Also measure the last rows, in which row numbers and other counters are widest.
    for (const row of rows.slice(Math.max(unmeasured, rows.length - MEASURED_AT_END))) {
      this.#measureWidths(row);
    }
  }

  /** Replaces the rows after the window over them has moved by `dropped` rows. */
  slide(rows: readonly Row[], dropped: number): void {
    this.rows.length = 0;
    this.skipped += dropped;
    this.append(rows);
  }

  /** Returns the number of a row in the whole result, starting at 1. */
  numberOf(row: number): number {
    return this.skipped + row + 1;
  }

  /** The windows that load rows on demand, if this is possible. */
  get windows(): Windows | undefined {
    const lazyRows = this.lazyRows();
    return typeof lazyRows === 'object' ? lazyRows : undefined;
  }

  /**
   * Returns a row by its index, counted from the first loaded row. Returns `undefined` if the row
   * is not loaded.
   */
  row(row: number): Row | undefined {
    return this.rows[row] ?? this.windows?.row(this.skipped + row);
  }

  cell(row: number, column: number): Value {
    return this.row(row)?.[column] ?? null;
  }

  /** Updates the layout with the rows of a window, as `append` does for the first rows. */
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
      // Earlier numbers become wider by at most the difference in digits.
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

/** True if only some of the rows are loaded. */
export function isPartial({ rows, total = rows.length, isCut }: Result): boolean {
  return isCut || rows.length < total;
}

/**
 * Returns the result, and makes the caller depend on the revision. A result grows in place, so a
 * view must read the revision to notice new rows.
 */
// eslint-disable-next-line @typescript-eslint/no-unused-vars -- to be read is all it is for
export function asOf<T extends Result | undefined>(result: T, _revision: number): T {
  return result;
}

/**
 * Returns the display name of a column's type. The name of an array consists of its element type
 * and dimensions.
 */
export function typeName(column: Column): string {
  if (column.type !== 'ARRAY') {
    return column.type;
  }
  return `${column.elemType ?? 'DOUBLE'}${'[]'.repeat(column.dim ?? 1)}`;
}

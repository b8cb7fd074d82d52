/** The last rows of a table, updated with arriving rows. Pure. */
import type { AnswerHead, Row, Value } from '../api/answer.js';

export class LastRows {
  readonly head: AnswerHead;
  readonly #maxRows: number;
  readonly #rows: Row[];

  constructor(head: AnswerHead, rows: readonly Row[], maxRows: number) {
    this.head = head;
    this.#rows = [...rows];
    this.#maxRows = maxRows;
  }

  /** A copy of the rows, oldest first. */
  get rows(): readonly Row[] {
    return [...this.#rows];
  }

  /**
   * Inserts rows in the table's order: by time, after rows with the same time. Returns false if
   * that is impossible; the window then differs from the table.
   */
  add(more: readonly Row[]): boolean {
    const { timestamp } = this.head;
    for (const row of more) {
      const at = timestamp < 0 ? this.#rows.length : this.#positionOf(row[timestamp] ?? null);
      if (at === undefined) {
        return false;
      }
      this.#rows.splice(at, 0, row);
    }
    this.#rows.splice(0, this.#rows.length - this.#maxRows);
    return true;
  }

  /** Position after the last row that is not later. */
  #positionOf(time: Value): number | undefined {
    let [low, high] = [0, this.#rows.length];
    let middle = high - 1;
    while (low < high) {
      const other = this.#rows[middle]?.[this.head.timestamp] ?? null;
      if (!areComparable(time, other)) {
        return undefined;
      }
      if (String(other) <= String(time)) {
        low = middle + 1;
      } else {
        high = middle;
      }
      middle = (low + high) >> 1;
    }
    return low;
  }
}

/** Strings of the same format, in the years 0 to 9999, sort chronologically. */
function areComparable(left: Value, right: Value): boolean {
  return (
    typeof left === 'string' &&
    typeof right === 'string' &&
    left.length === right.length &&
    /^\d{4}-/.test(left) &&
    /^\d{4}-/.test(right)
  );
}

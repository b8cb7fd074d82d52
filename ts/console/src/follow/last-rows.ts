/** The last rows of a table, updated as new rows arrive. */
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

  /** Returns a copy of the rows, oldest first. */
  get rows(): readonly Row[] {
    return [...this.#rows];
  }

  /**
   * Inserts rows in the table's order: by time, after existing rows with the same time. Returns
   * false if the order cannot be determined. The rows then no longer match the table.
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

  /** Returns the position after the last row that is not later than `time`. */
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

/**
 * True if two times can be compared as strings: they have the same format and are in the years 0 to
 * 9999.
 */
function areComparable(left: Value, right: Value): boolean {
  return (
    typeof left === 'string' &&
    typeof right === 'string' &&
    left.length === right.length &&
    /^\d{4}-/.test(left) &&
    /^\d{4}-/.test(right)
  );
}

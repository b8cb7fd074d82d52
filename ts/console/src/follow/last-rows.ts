/** The last rows of a table, kept up to date with rows that come. Pure. */
import type { AnswerHead, Row, Value } from '../api/answer.js';

export class LastRows {
  readonly head: AnswerHead;
  readonly #most: number;
  readonly #rows: Row[];

  constructor(head: AnswerHead, rows: readonly Row[], most: number) {
    this.head = head;
    this.#rows = [...rows];
    this.#most = most;
  }

  /** Oldest first; a copy. */
  get rows(): readonly Row[] {
    return [...this.#rows];
  }

  /**
   * Puts rows where the table has them: in the order of their time, behind those of the same time.
   * Answers whether it could: false, and it is not as the table is any more.
   */
  add(more: readonly Row[]): boolean {
    const { timestamp } = this.head;
    for (const row of more) {
      const at = timestamp < 0 ? this.#rows.length : this.#placeOf(row[timestamp] ?? null);
      if (at === undefined) {
        return false;
      }
      this.#rows.splice(at, 0, row);
    }
    this.#rows.splice(0, this.#rows.length - this.#most);
    return true;
  }

  /** Behind the last row that is no later. */
  #placeOf(time: Value): number | undefined {
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

/** Texts of one form, in the years from 0 to 9999, are in the order of their times. */
function areComparable(left: Value, right: Value): boolean {
  return (
    typeof left === 'string' &&
    typeof right === 'string' &&
    left.length === right.length &&
    /^\d{4}-/.test(left) &&
    /^\d{4}-/.test(right)
  );
}

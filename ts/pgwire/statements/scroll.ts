/**
 * A scrollable cursor. Its position is 0 before the first row, a row number on a row, or the number
 * of rows plus one after the last. Rows are read from the query only as far as needed.
 */
import type { CursorStep } from '../../session/index.js';
import type { Send } from './portal.js';
import { ScrollRows } from './scroll-rows.js';

/** Reads at most `maxRows` rows from the query; 0 means all rows. Resolves to true at the end. */
export type Read = (maxRows: number, send: Send) => Promise<boolean>;

/** The rows that a cursor step passes, starting with row `from`; no rows if `count` is 0. */
interface Passed {
  readonly from: number;
  readonly count: number;
  readonly isBack: boolean;
}

const NONE: Passed = { from: 0, count: 0, isBack: false };

export class Scroll {
  private readonly rows = new ScrollRows();
  private readonly read: Read;
  private position = 0;
  private ended = false;

  constructor(read: Read) {
    this.read = read;
  }

  /** Moves the cursor, and sends the rows passed. Returns their number. */
  async go(step: CursorStep, send: Send): Promise<number> {
    const { from, count, isBack } = await this.step(step);
    if (count > 0) {
      const to = isBack ? from - count + 1 : from + count - 1;
      for (const chunk of this.rows.chunks(from, to)) {
        await send(chunk);
      }
    }
    return count;
  }

  close(): void {
    this.rows.close();
  }

  private step({ way, rows }: CursorStep): Promise<Passed> | Passed {
    switch (way) {
      case 'absolute':
        return this.toRow(rows);
      case 'relative':
        return this.by(rows);
      case 'backward':
        return rows === 0 ? this.by(0) : this.back(rows);
      case 'forward':
        return rows === 0 ? this.by(0) : this.forward(rows);
    }
  }

  private async forward(rows: number): Promise<Passed> {
    const from = this.position + 1;
    await this.fill(this.position + rows);
    const count = Math.min(rows, Math.max(0, this.rows.count - this.position));
    this.position = count < rows ? this.rows.count + 1 : this.position + rows;
    return { from, count, isBack: false };
  }

  private back(rows: number): Passed {
    const from = this.position - 1;
    const count = Math.min(rows, Math.max(0, from));
    this.position = count < rows ? 0 : this.position - rows;
    return { from, count, isBack: true };
  }

  /** Moves to a row by number; a negative number counts from the last row. */
  private async toRow(number: number): Promise<Passed> {
    await this.fill(number < 0 ? Infinity : number);
    return this.at(number < 0 ? this.rows.count + 1 + number : number);
  }

  private async by(rows: number): Promise<Passed> {
    const number = this.position + rows;
    await this.fill(number);
    return this.at(number);
  }

  /** Moves to a position within the rows read so far. */
  private at(number: number): Passed {
    this.position = Math.min(Math.max(0, number), this.rows.count + 1);
    const isRow = this.position === number && number > 0 && number <= this.rows.count;
    return isRow ? { from: number, count: 1, isBack: false } : NONE;
  }

  /** Reads until `required` rows are buffered, or until the query has no more rows. */
  private async fill(required: number): Promise<void> {
    while (!this.ended && this.rows.count < required) {
      const missing = required === Infinity ? 0 : required - this.rows.count;
      this.ended = await this.read(missing, (bytes) => {
        this.rows.add(bytes);
        return Promise.resolve();
      });
    }
  }
}

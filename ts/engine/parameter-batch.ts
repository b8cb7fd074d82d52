/**
 * Rows of parameter values on their way to the engine, in the form that Bind messages of the wire
 * protocol have them: for each row the count of its values (16 bits), for each value its length in
 * bytes (32 bits, -1 for null) and its text.
 */
import type { ParameterValues } from './types.js';

const FIRST_BYTES = 1_024;
/** The most bytes of UTF-8 that a UTF-16 unit takes. */
const UNIT_BYTES = 3;
const COUNT_BYTES = 2;
const LENGTH_BYTES = 4;

export class ParameterBatch {
  private buffer = Buffer.allocUnsafe(FIRST_BYTES);
  private used = 0;

  /** Bytes so far. */
  get size(): number {
    return this.used;
  }

  get bytes(): Buffer {
    return this.buffer.subarray(0, this.used);
  }

  static of(rows: readonly ParameterValues[]): ParameterBatch {
    const batch = new ParameterBatch();
    for (const row of rows) {
      batch.add(row);
    }
    return batch;
  }

  add(row: ParameterValues): void {
    this.makeRoom(COUNT_BYTES);
    this.used = this.buffer.writeUInt16BE(row.length, this.used);
    for (const value of row) {
      this.makeRoom(LENGTH_BYTES + (value?.length ?? 0) * UNIT_BYTES);
      const start = this.used + LENGTH_BYTES;
      const length = value === null ? -1 : this.buffer.write(value, start);
      this.buffer.writeInt32BE(length, this.used);
      this.used = start + Math.max(0, length);
    }
  }

  /** Adds a row that is in this form already. */
  addBytes(source: Buffer, start: number, end: number): void {
    this.makeRoom(end - start);
    this.used += source.copy(this.buffer, this.used, start, end);
  }

  /** The rows as values. */
  rows(): ParameterValues[] {
    const { bytes } = this;
    const rows: ParameterValues[] = [];
    for (let at = 0; at < bytes.length;) {
      const row: (string | null)[] = [];
      const count = bytes.readUInt16BE(at);
      at += COUNT_BYTES;
      while (row.length < count) {
        const length = bytes.readInt32BE(at);
        const start = at + LENGTH_BYTES;
        at = start + Math.max(0, length);
        row.push(length === -1 ? null : bytes.toString('utf8', start, at));
      }
      rows.push(row);
    }
    return rows;
  }

  private makeRoom(bytes: number): void {
    const needed = this.used + bytes;
    if (needed > this.buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.buffer.length * 2));
      this.buffer.copy(larger, 0, 0, this.used);
      this.buffer = larger;
    }
  }
}

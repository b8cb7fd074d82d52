/**
 * Buffers the rows that a scrollable cursor has read, as DataRow messages. Running the query again
 * instead could return different rows or a different order.
 */
import { ProtocolError } from '../protocol/protocol-error.js';

/** Maximum size of buffered rows in bytes, per cursor and for all cursors together. */
const MAX_BYTES = 64 << 20;
const MAX_TOTAL_BYTES = 256 << 20;
/** Approximate size of each chunk of buffered rows, in bytes. */
const CHUNK_BYTES = 64 << 10;
/** Size in bytes of the offset stored for each row, in addition to the row's content. */
const ROW_BYTES = 4;

let totalBytes = 0;

/** Rows that were added together, and the offset of each row. */
interface RowBlock {
  /** Number of the first row, counted from 1. */
  readonly first: number;
  readonly bytes: Buffer;
  readonly starts: Uint32Array;
}

export class ScrollRows {
  private readonly blocks: RowBlock[] = [];
  private usedBytes = 0;
  private rowCount = 0;
  private closed = false;

  /** Number of buffered rows. */
  get count(): number {
    return this.rowCount;
  }

  /** Copies complete DataRow messages. */
  add(bytes: Buffer): void {
    const starts: number[] = [];
    for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1)) {
      starts.push(at);
    }
    this.reserve(bytes.length + starts.length * ROW_BYTES);
    const first = this.rowCount + 1;
    this.blocks.push({ first, bytes: Buffer.from(bytes), starts: Uint32Array.from(starts) });
    this.rowCount += starts.length;
  }

  /**
   * Yields the messages of buffered rows in chunks. The order is descending if `to` is less than
   * `from`.
   */
  *chunks(from: number, to: number): Iterable<Buffer> {
    const step = from <= to ? 1 : -1;
    let chunk: Buffer[] = [];
    let bytes = 0;
    for (let row = from; row !== to + step; row += step) {
      const message = this.row(row);
      chunk.push(message);
      bytes += message.length;
      if (bytes >= CHUNK_BYTES) {
        yield Buffer.concat(chunk);
        chunk = [];
        bytes = 0;
      }
    }
    yield Buffer.concat(chunk);
  }

  close(): void {
    this.closed = true;
    this.blocks.length = 0;
    totalBytes -= this.usedBytes;
    this.usedBytes = 0;
  }

  private reserve(bytes: number): void {
    if (this.closed) {
      throw new ProtocolError('57014', 'the cursor was closed while its rows were read');
    }
    const isFull = this.usedBytes + bytes > MAX_BYTES;
    if (isFull || totalBytes + bytes > MAX_TOTAL_BYTES) {
      const limitMebibytes = (isFull ? MAX_BYTES : MAX_TOTAL_BYTES) >> 20;
      const whose = isFull ? 'rows of a scroll cursor' : 'rows of all scroll cursors';
      throw new ProtocolError(
        '54000',
        `${whose} are limited to ${limitMebibytes} MiB: use NO SCROLL`,
      );
    }
    this.usedBytes += bytes;
    totalBytes += bytes;
  }

  private row(number: number): Buffer {
    let low = 0;
    for (let high = this.blocks.length - 1; low < high;) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.blocks[middle]?.first ?? 0) <= number) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const block = this.blocks[low];
    const start = block?.starts[number - block.first];
    if (block === undefined || start === undefined) {
      throw new ProtocolError('XX000', `row ${number} of the cursor is not in memory`);
    }
    return block.bytes.subarray(start, block.starts[number - block.first + 1]);
  }
}

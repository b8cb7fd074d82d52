/**
 * Buffers the rows that a scrollable cursor has read, as DataRow messages. They are buffered
 * because running the query again could return different rows or a different order.
 */
import { ProtocolError } from '../protocol/protocol-error.js';

/** Maximum bytes of buffered rows, per cursor and for all cursors together. */
const MAX_BYTES = 64 << 20;
const MAX_BYTES_TOGETHER = 256 << 20;
/** Approximate bytes of each chunk of buffered rows. */
const PIECE_BYTES = 64 << 10;
/** Bytes for each row in addition to its content, which store its offset. */
const ROW_BYTES = 4;

let takenTogether = 0;

/** Rows that arrived together, and the offset of each. */
interface Part {
  /** Number of the first row, counted from 1. */
  readonly first: number;
  readonly bytes: Buffer;
  readonly starts: Uint32Array;
}

export class ScrollRows {
  private readonly parts: Part[] = [];
  private taken = 0;
  private held = 0;
  private closed = false;

  /** Number of buffered rows. */
  get count(): number {
    return this.held;
  }

  /** Copies complete DataRow messages. */
  add(bytes: Buffer): void {
    const starts: number[] = [];
    for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1)) {
      starts.push(at);
    }
    this.take(bytes.length + starts.length * ROW_BYTES);
    const first = this.held + 1;
    this.parts.push({ first, bytes: Buffer.from(bytes), starts: Uint32Array.from(starts) });
    this.held += starts.length;
  }

  /**
   * Yields the messages of buffered rows, in chunks; in descending order if `to` is less than
   * `from`.
   */
  *pieces(from: number, to: number): Iterable<Buffer> {
    const step = from <= to ? 1 : -1;
    let piece: Buffer[] = [];
    let bytes = 0;
    for (let row = from; row !== to + step; row += step) {
      const message = this.row(row);
      piece.push(message);
      bytes += message.length;
      if (bytes >= PIECE_BYTES) {
        yield Buffer.concat(piece);
        piece = [];
        bytes = 0;
      }
    }
    yield Buffer.concat(piece);
  }

  close(): void {
    this.closed = true;
    this.parts.length = 0;
    takenTogether -= this.taken;
    this.taken = 0;
  }

  private take(bytes: number): void {
    if (this.closed) {
      throw new ProtocolError('57014', 'the cursor was closed while its rows were read');
    }
    const isFull = this.taken + bytes > MAX_BYTES;
    if (isFull || takenTogether + bytes > MAX_BYTES_TOGETHER) {
      const most = (isFull ? MAX_BYTES : MAX_BYTES_TOGETHER) >> 20;
      const whose = isFull ? 'rows of a scroll cursor' : 'rows of all scroll cursors';
      throw new ProtocolError('54000', `${whose} are limited to ${most} MiB: use NO SCROLL`);
    }
    this.taken += bytes;
    takenTogether += bytes;
  }

  private row(number: number): Buffer {
    let low = 0;
    for (let high = this.parts.length - 1; low < high;) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.parts[middle]?.first ?? 0) <= number) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const part = this.parts[low];
    const start = part?.starts[number - part.first];
    if (part === undefined || start === undefined) {
      throw new ProtocolError('XX000', `row ${number} of the cursor is not in memory`);
    }
    return part.bytes.subarray(start, part.starts[number - part.first + 1]);
  }
}

/**
 * The rows that a cursor has read and that it may go back to: DataRow messages as they came. A
 * query that ran again could answer other rows, or the same in another order.
 */
import { ProtocolError } from '../protocol/protocol-error.js';

/** What the rows of one cursor, and those of all, may take. */
const MAX_BYTES = 64 << 20;
const MAX_BYTES_TOGETHER = 256 << 20;
/** Rows that go back are sent in pieces of about this size. */
const PIECE_BYTES = 64 << 10;
/** What a row takes beside its bytes: where it begins. */
const ROW_BYTES = 4;

let takenTogether = 0;

/** Rows that came together, and where each of them begins. */
interface Part {
  /** The number of its first row, from 1. */
  readonly first: number;
  readonly bytes: Buffer;
  readonly starts: Uint32Array;
}

export class ScrollRows {
  private readonly parts: Part[] = [];
  private taken = 0;
  private held = 0;
  private closed = false;

  /** How many rows are held. */
  get count(): number {
    return this.held;
  }

  /** Keeps a copy of whole DataRow messages. */
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

  /** The messages of rows that are held, in pieces; downwards where `to` comes before `from`. */
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
      const whose = isFull ? 'a cursor that scrolls holds' : 'all cursors that scroll hold';
      throw new ProtocolError('54000', `${whose} at most ${most} MiB of rows: use NO SCROLL`);
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
      throw new ProtocolError('XX000', `row ${number} of a cursor is not held`);
    }
    return part.bytes.subarray(start, part.starts[number - part.first + 1]);
  }
}

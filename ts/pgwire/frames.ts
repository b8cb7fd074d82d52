/**
 * Bytes to frames. Keeps what arrived as a list of chunks: a large message is put together once,
 * when its last byte is there, and its length is checked before anything is allocated for it.
 */
import { ProtocolError } from './protocol-error.js';

/** Start-up packets, by the reference's limits. */
const STARTUP_BYTES_MIN = 8;
const STARTUP_BYTES_MAX = 10_000;
const HEADER_BYTES = 5;
const LENGTH_BYTES = 4;

/** One message of a client: its letter (empty for start-up packets) and its body. */
export interface Frame {
  readonly type: string;
  readonly body: Buffer;
}

export class FrameReader {
  private chunks: Buffer[] = [];
  private size = 0;

  /** Bytes that are here and not yet given out. */
  get buffered(): number {
    return this.size;
  }

  push(chunk: Buffer): void {
    if (chunk.length === 0) {
      return;
    }
    this.chunks.push(chunk);
    this.size += chunk.length;
  }

  /** The start-up packet, or null while it is incomplete. */
  nextStartup(): Frame | null {
    if (this.size < LENGTH_BYTES) {
      return null;
    }
    const length = this.peek(LENGTH_BYTES).readInt32BE(0);
    if (length < STARTUP_BYTES_MIN || length > STARTUP_BYTES_MAX) {
      throw new ProtocolError('08P01', 'invalid length of startup packet', true);
    }
    if (this.size < length) {
      return null;
    }
    return { type: '', body: this.take(length).subarray(LENGTH_BYTES) };
  }

  /** The next message, or null while it is incomplete. */
  next(maxBytes: number): Frame | null {
    if (this.size < HEADER_BYTES) {
      return null;
    }
    const header = this.peek(HEADER_BYTES);
    const length = header.readInt32BE(1);
    if (length < LENGTH_BYTES || length > maxBytes) {
      throw new ProtocolError('08P01', `invalid message length [length=${length}]`, true);
    }
    if (this.size < length + 1) {
      return null;
    }
    const type = String.fromCharCode(header[0] ?? 0);
    return { type, body: this.take(length + 1).subarray(HEADER_BYTES) };
  }

  /** The first bytes in one piece, left where they are. */
  private peek(count: number): Buffer {
    const first = this.chunks[0];
    if (first !== undefined && first.length >= count) {
      return first;
    }
    const whole = Buffer.concat(this.chunks);
    this.chunks = [whole];
    return whole;
  }

  private take(count: number): Buffer {
    this.size -= count;
    const first = this.chunks[0];
    if (first !== undefined && first.length > count) {
      this.chunks[0] = first.subarray(count);
      return first.subarray(0, count);
    }
    if (first?.length === count) {
      this.chunks.shift();
      return first;
    }
    const whole = Buffer.concat(this.chunks);
    this.chunks = whole.length > count ? [whole.subarray(count)] : [];
    return whole.subarray(0, count);
  }
}

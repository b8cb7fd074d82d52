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
  /** Bytes of the first chunk that were given out. */
  private given = 0;
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
    const length = this.gathered(LENGTH_BYTES).readInt32BE(this.given);
    if (length < STARTUP_BYTES_MIN || length > STARTUP_BYTES_MAX) {
      throw new ProtocolError('08P01', 'invalid length of startup packet', true);
    }
    if (this.size < length) {
      return null;
    }
    return { type: '', body: this.take(length, LENGTH_BYTES) };
  }

  /** The next message, or null while it is incomplete. */
  next(maxBytes: number): Frame | null {
    if (this.size < HEADER_BYTES) {
      return null;
    }
    const header = this.gathered(HEADER_BYTES);
    const length = header.readInt32BE(this.given + 1);
    if (length < LENGTH_BYTES || length > maxBytes) {
      throw new ProtocolError('08P01', `invalid message length [length=${length}]`, true);
    }
    if (this.size < length + 1) {
      return null;
    }
    const type = String.fromCharCode(header[this.given] ?? 0);
    return { type, body: this.take(length + 1, HEADER_BYTES) };
  }

  /** The first chunk, with so many bytes from `given` on in one piece. */
  private gathered(count: number): Buffer {
    const first = this.chunks[0];
    if (first !== undefined && first.length - this.given >= count) {
      return first;
    }
    const whole = Buffer.concat(this.chunks).subarray(this.given);
    this.chunks = [whole];
    this.given = 0;
    return whole;
  }

  /** The next `count` bytes without the first `skipped` of them. */
  private take(count: number, skipped: number): Buffer {
    const whole = this.gathered(count);
    const start = this.given;
    this.size -= count;
    this.given += count;
    if (this.given === whole.length) {
      this.chunks.shift();
      this.given = 0;
    }
    return whole.subarray(start + skipped, start + count);
  }
}

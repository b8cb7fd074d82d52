/**
 * Splits bytes into frames. Received chunks are kept in a list, so that a large message is
 * concatenated only once, when it is complete. Its length is checked before anything is allocated.
 */
import { ProtocolError } from './protocol-error.js';

/** PostgreSQL's limits for startup packets. */
const STARTUP_BYTES_MIN = 8;
const STARTUP_BYTES_MAX = 10_000;
const HEADER_BYTES = 5;
const LENGTH_BYTES = 4;
const NOTHING = Buffer.alloc(0);

/** A client message: its type (empty for startup packets) and body. */
export interface Frame {
  readonly type: string;
  readonly body: Buffer;
}

/** Location of a message: its type code, and the offsets of its body within `bytes`. */
export interface FrameRange {
  readonly type: number;
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

export class FrameReader implements FrameRange {
  /** Type of the message found by `peek`. */
  type = 0;
  bytes: Buffer = NOTHING;
  start = 0;
  end = 0;
  private chunks: Buffer[] = [];
  /** Number of bytes in the first chunk that have been consumed. */
  private consumed = 0;
  private size = 0;

  /** Number of bytes not consumed yet. */
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

  /** The startup packet; `null` while it is incomplete. */
  nextStartup(): Frame | null {
    if (this.size < LENGTH_BYTES) {
      return null;
    }
    const length = this.gathered(LENGTH_BYTES).readInt32BE(this.consumed);
    if (length < STARTUP_BYTES_MIN || length > STARTUP_BYTES_MAX) {
      throw new ProtocolError('08P01', 'invalid length of startup packet', true);
    }
    if (this.size < length) {
      return null;
    }
    return { type: '', body: this.take(length, LENGTH_BYTES) };
  }

  /** The next message; `null` while it is incomplete. */
  next(maxBytes: number): Frame | null {
    return this.peek(maxBytes) ? this.pick() : null;
  }

  /**
   * Locates the next message without consuming it; returns false while the message is incomplete.
   */
  peek(maxBytes: number): boolean {
    if (this.size < HEADER_BYTES) {
      return false;
    }
    const header = this.gathered(HEADER_BYTES);
    const length = header.readInt32BE(this.consumed + 1);
    if (length < LENGTH_BYTES || length > maxBytes) {
      throw new ProtocolError('08P01', `invalid message length [length=${length}]`, true);
    }
    if (this.size < length + 1) {
      return false;
    }
    this.bytes = this.gathered(length + 1);
    this.type = this.bytes[this.consumed] ?? 0;
    this.start = this.consumed + HEADER_BYTES;
    this.end = this.consumed + length + 1;
    return true;
  }

  /** Consumes the message found by `peek`. */
  pick(): Frame {
    const body = this.bytes.subarray(this.start, this.end);
    this.skip();
    return { type: String.fromCharCode(this.type), body };
  }

  /** Skips the message found by `peek`. */
  skip(): void {
    this.pass(this.end - this.start + HEADER_BYTES);
    this.bytes = NOTHING;
  }

  /**
   * Returns the first chunk. If it has fewer than `count` unconsumed bytes, it is first merged with
   * later chunks.
   */
  private gathered(count: number): Buffer {
    const first = this.chunks[0];
    if (first !== undefined && first.length - this.consumed >= count) {
      return first;
    }
    const gathered = Buffer.concat(this.chunks).subarray(this.consumed);
    this.chunks = [gathered];
    this.consumed = 0;
    return gathered;
  }

  /** Consumes `count` bytes, and returns all of them except the first `skipped`. */
  private take(count: number, skipped: number): Buffer {
    const gathered = this.gathered(count);
    const start = this.consumed;
    this.pass(count);
    return gathered.subarray(start + skipped, start + count);
  }

  /** Consumes `count` bytes of the first chunk. */
  private pass(count: number): void {
    this.size -= count;
    this.consumed += count;
    if (this.consumed === this.chunks[0]?.length) {
      this.chunks.shift();
      this.consumed = 0;
    }
  }
}

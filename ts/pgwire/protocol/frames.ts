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
const NOTHING = Buffer.alloc(0);

/** One message of a client: its letter (empty for start-up packets) and its body. */
export interface Frame {
  readonly type: string;
  readonly body: Buffer;
}

/** Where a message lies: its letter's code, and its body in `bytes`. */
export interface FramePlace {
  readonly type: number;
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
}

export class FrameReader implements FramePlace {
  /** What `peek` found. */
  type = 0;
  bytes: Buffer = NOTHING;
  start = 0;
  end = 0;
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
    return this.peek(maxBytes) ? this.pick() : null;
  }

  /** Looks at the next message where it lies; false while it is incomplete. */
  peek(maxBytes: number): boolean {
    if (this.size < HEADER_BYTES) {
      return false;
    }
    const header = this.gathered(HEADER_BYTES);
    const length = header.readInt32BE(this.given + 1);
    if (length < LENGTH_BYTES || length > maxBytes) {
      throw new ProtocolError('08P01', `invalid message length [length=${length}]`, true);
    }
    if (this.size < length + 1) {
      return false;
    }
    this.bytes = this.gathered(length + 1);
    this.type = this.bytes[this.given] ?? 0;
    this.start = this.given + HEADER_BYTES;
    this.end = this.given + length + 1;
    return true;
  }

  /** Takes the message that was looked at. */
  pick(): Frame {
    const body = this.bytes.subarray(this.start, this.end);
    this.skip();
    return { type: String.fromCharCode(this.type), body };
  }

  /** Passes over the message that was looked at. */
  skip(): void {
    this.pass(this.end - this.start + HEADER_BYTES);
    this.bytes = NOTHING;
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
    this.pass(count);
    return whole.subarray(start + skipped, start + count);
  }

  /** Gives out `count` bytes of the first chunk. */
  private pass(count: number): void {
    this.size -= count;
    this.given += count;
    if (this.given === this.chunks[0]?.length) {
      this.chunks.shift();
      this.given = 0;
    }
  }
}

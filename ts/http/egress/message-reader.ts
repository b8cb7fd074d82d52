/** Decodes one client message sequentially; numbers are little-endian. */
import { MalformedMessage } from './failure.js';

/** Maximum length in bytes of an encoded 64-bit number, at 7 bits per byte. */
const MAX_VARINT_BYTES = 10;

export class MessageReader {
  readonly #bytes: Buffer;
  #at = 0;
  #id: bigint | null = null;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Sets the query that errors in the remaining message refer to. */
  blame(id: bigint): void {
    this.#id = id;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  byte(what: string): number {
    return this.bytes(1, what)[0] ?? 0;
  }

  int64(what: string): bigint {
    return this.bytes(8, what).readBigInt64LE();
  }

  /** Reads a number. Values above the largest safe integer are clamped to it. */
  varint(what: string): number {
    const value = this.bigVarint(what);
    return Number(value > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : value);
  }

  /** Reads all 64 bits as unsigned: a negative number decodes to 2^63 or more. */
  bigVarint(what: string): bigint {
    let value = 0n;
    for (let index = 0; index < MAX_VARINT_BYTES; index += 1) {
      const byte = this.byte(what);
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) {
        return value;
      }
    }
    throw this.malformed(`${what}: number is longer than ${MAX_VARINT_BYTES} bytes`);
  }

  /** Returns a view of the next bytes, not a copy. */
  bytes(count: number, what: string): Buffer {
    const available = this.#bytes.length - this.#at;
    if (count > available) {
      throw this.malformed(
        `${what}: expected ${count} bytes at offset ${this.#at}, found ${available}`,
      );
    }
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  /** Returns the next bytes without advancing. */
  peek(count: number, what: string): Buffer {
    const bytes = this.bytes(count, what);
    this.#at -= count;
    return bytes;
  }

  end(): void {
    if (!this.isAtEnd) {
      throw this.malformed(`${this.#bytes.length - this.#at} bytes after the end of the message`);
    }
  }

  malformed(why: string): MalformedMessage {
    return new MalformedMessage(`malformed message: ${why}`, this.#id);
  }

  /** The query that the message refers to. */
  get id(): bigint | null {
    return this.#id;
  }
}

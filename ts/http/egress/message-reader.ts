/** Reads one message of a client from its front; numbers have their lowest byte first. */
import { MalformedMessage } from './failure.js';

/** Of a number of 64 bits, seven in each. */
const MAX_VARINT_BYTES = 10;

export class MessageReader {
  readonly #bytes: Buffer;
  #at = 0;
  #id: bigint | null = null;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Names the query that the rest is about. */
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

  /** Beyond what a number can tell exactly it is as large as that. */
  varint(what: string): number {
    const value = this.bigVarint(what);
    return Number(value > Number.MAX_SAFE_INTEGER ? Number.MAX_SAFE_INTEGER : value);
  }

  /** All of its bits: a negative number of 64 bits is one of 2^63 or more. */
  bigVarint(what: string): bigint {
    let value = 0n;
    for (let index = 0; index < MAX_VARINT_BYTES; index += 1) {
      const byte = this.byte(what);
      value |= BigInt(byte & 0x7f) << BigInt(7 * index);
      if (byte < 0x80) {
        return value;
      }
    }
    throw this.malformed(`${what}: a number of more than ${MAX_VARINT_BYTES} bytes`);
  }

  /** Where they lie. */
  bytes(count: number, what: string): Buffer {
    const left = this.#bytes.length - this.#at;
    if (count > left) {
      throw this.malformed(`${what}: ${count} bytes at byte ${this.#at}, ${left} are left`);
    }
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  /** Looks at what follows, without reading it. */
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

  /** The query that the message is about. */
  get id(): bigint | null {
    return this.#id;
  }
}

/** Decodes server messages of QWP result streams, as a client would. */

const HEAD_BYTES = 12;
const FLAG_GORILLA = 0x04;
const FLAG_DICTIONARY = 0x08;
const FLAG_ZSTD = 0x10;

interface ResultColumn {
  readonly name: string;
  readonly code: number;
}

export type ServerMessage =
  | { readonly kind: 'info'; readonly role: number; readonly capabilities: number }
  | {
      readonly kind: 'batch';
      readonly id: bigint;
      readonly sequence: number;
      readonly flags: number;
      readonly bytes: number;
      /** Null if the body is compressed. */
      readonly rows: unknown[][] | null;
    }
  | { readonly kind: 'end'; readonly id: bigint; readonly sequence: number; readonly rows: number }
  | { readonly kind: 'error'; readonly id: bigint; readonly status: number; readonly text: string }
  | { readonly kind: 'done'; readonly id: bigint; readonly rows: number }
  | { readonly kind: 'reset'; readonly mask: number };

class Bytes {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  take(count: number): Buffer {
    if (this.#at + count > this.#bytes.length) {
      throw new Error(`${count} bytes at ${this.#at} of ${this.#bytes.length}`);
    }
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  byte(): number {
    return this.take(1)[0] ?? 0;
  }

  varint(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) {
        return value;
      }
    }
  }

  text(): string {
    return this.take(this.varint()).toString();
  }

  rest(): Buffer {
    return this.#bytes.subarray(this.#at);
  }

  end(): void {
    if (this.#at !== this.#bytes.length) {
      throw new Error(`${this.#bytes.length - this.#at} bytes are left`);
    }
  }
}

function bit(bytes: Buffer, at: number): number {
  return ((bytes[at >> 3] ?? 0) >> (at & 7)) & 1;
}

/** Decodes deltas of deltas; also returns the number of bytes read. */
function gorilla(bytes: Buffer, count: number): { values: bigint[]; length: number } {
  const values = [bytes.readBigInt64LE(0), bytes.readBigInt64LE(8)];
  let at = 128;
  let step = (values[1] ?? 0n) - (values[0] ?? 0n);
  while (values.length < count) {
    let ones = 0;
    while (ones < 4 && bit(bytes, at) === 1) {
      ones += 1;
      at += 1;
    }
    at += ones < 4 ? 1 : 0;
    const size = [0, 7, 9, 12, 32][ones] ?? 0;
    let number = 0n;
    for (let target = 0; target < size; target += 1) {
      number |= BigInt(bit(bytes, at + target)) << BigInt(target);
    }
    at += size;
    step += BigInt.asIntN(size, number);
    values.push((values.at(-1) ?? 0n) + step);
  }
  return { values, length: Math.ceil(at / 8) };
}

type Read = (bytes: Buffer) => unknown;

const hex: Read = (bytes) => Buffer.from(bytes).reverse().toString('hex');

const FIXED: ReadonlyMap<number, readonly [width: number, read: Read]> = new Map([
  [0x02, [1, (bytes) => bytes.readInt8()]],
  [0x03, [2, (bytes) => bytes.readInt16LE()]],
  [0x04, [4, (bytes) => bytes.readInt32LE()]],
  [0x05, [8, (bytes) => bytes.readBigInt64LE()]],
  [0x06, [4, (bytes) => bytes.readFloatLE()]],
  [0x07, [8, (bytes) => bytes.readDoubleLE()]],
  [0x0c, [16, hex]],
  [0x0d, [32, hex]],
  [0x16, [2, (bytes) => String.fromCharCode(bytes.readUInt16LE())]],
  [0x18, [4, (bytes) => [...bytes].reverse().join('.')]],
]);
const DECIMAL_BYTES: Readonly<Record<number, number>> = { 0x13: 8, 0x14: 16, 0x15: 32 };

function array(bytes: Bytes): unknown {
  const shape = Array.from({ length: bytes.byte() }, () => bytes.take(4));
  const lengths = shape.map((length) => length.readInt32LE());
  const count = lengths.reduce((product, length) => product * length, 1);
  const values = Array.from({ length: count }, () => bytes.take(8).readDoubleLE());
  return { lengths, values };
}

/** Holds the decoder state of one client connection. */
export class ResultDecoder {
  columns: ResultColumn[] = [];
  #symbols: string[] = [];

  read(message: Buffer): ServerMessage {
    const [, , , , version, flags = 0] = message;
    const length = message.readUInt32LE(8);
    const isWhole = message.toString('latin1', 0, 4) === 'QWP1' && version === 1;
    if (!isWhole || HEAD_BYTES + length !== message.length) {
      throw new Error('no head of a message');
    }
    const bytes = new Bytes(message.subarray(HEAD_BYTES));
    const kind = bytes.byte();
    if (kind === 0x18) {
      const role = bytes.byte();
      bytes.take(8);
      const capabilities = bytes.take(4).readUInt32LE();
      return { kind: 'info', role, capabilities };
    }
    if (kind === 0x17) {
      this.#symbols = [];
      return { kind: 'reset', mask: bytes.byte() };
    }
    const id = bytes.take(8).readBigInt64LE();
    switch (kind) {
      case 0x11: {
        const sequence = bytes.varint();
        const isPlain = (flags & FLAG_ZSTD) === 0;
        const rows = isPlain ? this.#rows(bytes, flags, sequence) : null;
        return { kind: 'batch', id, sequence, flags, bytes: message.length, rows };
      }
      case 0x12:
        return { kind: 'end', id, sequence: bytes.varint(), rows: bytes.varint() };
      case 0x13: {
        const status = bytes.byte();
        const text = bytes.take(bytes.take(2).readUInt16LE()).toString();
        bytes.end();
        return { kind: 'error', id, status, text };
      }
      case 0x16:
        bytes.byte();
        return { kind: 'done', id, rows: bytes.varint() };
      default:
        throw new Error(`kind ${kind}`);
    }
  }

  #rows(bytes: Bytes, flags: number, sequence: number): unknown[][] {
    if ((flags & FLAG_DICTIONARY) !== 0) {
      const start = bytes.varint();
      if (start !== this.#symbols.length) {
        throw new Error(`symbols from ${start}, ${this.#symbols.length} are known`);
      }
      this.#symbols.push(...Array.from({ length: bytes.varint() }, () => bytes.text()));
    }
    if (bytes.text() !== '') {
      throw new Error('a result has no name');
    }
    const rows = bytes.varint();
    if (sequence === 0) {
      this.columns = Array.from({ length: bytes.varint() }, () => ({
        name: bytes.text(),
        code: bytes.byte(),
      }));
    }
    const columns = this.columns.map(({ code }) => this.#column(bytes, code, rows, flags));
    bytes.end();
    return Array.from({ length: rows }, (_, row) => columns.map((column) => column[row]));
  }

  #column(bytes: Bytes, code: number, rows: number, flags: number): unknown[] {
    const hasNulls = bytes.byte() !== 0;
    if (hasNulls && code === 0x16) {
      throw new Error('CHAR has no nulls');
    }
    const nulls = hasNulls ? bytes.take(Math.ceil(rows / 8)) : null;
    const isNull = Array.from(
      { length: rows },
      (_, row) => nulls !== null && bit(nulls, row) === 1,
    );
    const count = isNull.filter((one) => !one).length;
    const values = this.#values(bytes, code, count, flags);
    return isNull.map((one) => (one ? null : values.shift()));
  }

  #values(bytes: Bytes, code: number, count: number, flags: number): unknown[] {
    const each = <T>(read: (index: number) => T): T[] =>
      Array.from({ length: count }, (_, index) => read(index));
    const fixed = FIXED.get(code);
    if (fixed !== undefined) {
      const [width, read] = fixed;
      return each(() => read(bytes.take(width)));
    }
    switch (code) {
      case 0x01: {
        const bits = bytes.take(Math.ceil(count / 8));
        return each((index) => bit(bits, index) === 1);
      }
      case 0x09:
        return each(() => this.#symbols[bytes.varint()]);
      case 0x0a:
      case 0x0b:
      case 0x10: {
        const isPacked = (flags & FLAG_GORILLA) !== 0 && bytes.byte() === 1;
        if (!isPacked) {
          return each(() => bytes.take(8).readBigInt64LE());
        }
        const { values, length } = gorilla(bytes.rest(), count);
        bytes.take(length);
        return values;
      }
      case 0x0e: {
        const width = Math.ceil(bytes.varint() / 8);
        return each(() => hex(bytes.take(width)));
      }
      case 0x0f:
      case 0x17: {
        const offsets = Array.from({ length: count + 1 }, () => bytes.take(4).readUInt32LE());
        const all = bytes.take(offsets.at(-1) ?? 0);
        const cut = (index: number): Buffer => all.subarray(offsets[index], offsets[index + 1]);
        return each((index) =>
          code === 0x17 ? cut(index).toString('hex') : cut(index).toString(),
        );
      }
      case 0x11:
        return each(() => array(bytes));
      case 0x13:
      case 0x14:
      case 0x15: {
        const scale = bytes.byte();
        const width = DECIMAL_BYTES[code] ?? 0;
        const number = (): bigint =>
          BigInt.asIntN(8 * width, BigInt(`0x${String(hex(bytes.take(width)))}`));
        return each(() => `${number()}e-${scale}`);
      }
      default:
        throw new Error(`no type ${code}`);
    }
  }
}

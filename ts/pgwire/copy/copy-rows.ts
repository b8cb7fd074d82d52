/** COPY … TO STDOUT: converts the engine's DataRow messages into CopyData, one message per row. */
import type { ResultColumn } from '../../session/index.js';
import { type CopyOptions, names } from './copy-options.js';
import { copyData } from '../protocol/server-messages.js';

const NOTHING = Buffer.alloc(0);
const HEADER_BYTES = 5;
const LOWER_D = 0x64;
const BACKSLASH = 0x5c;
const NEWLINE = 0x0a;
/** Signature, flags and extension length. */
const BINARY_HEAD = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const BINARY_TAIL = Buffer.from([0xff, 0xff]);

/** Maps each byte to the letter of its escape sequence; 0 if the byte needs no escape. */
const TEXT_ESCAPES = new Uint8Array(256);
for (const pair of ['\bb', '\ff', '\nn', '\rr', '\tt', '\vv', '\\\\']) {
  TEXT_ESCAPES[pair.charCodeAt(0)] = pair.charCodeAt(1);
}

export class CopyRows {
  private readonly columns: readonly ResultColumn[];
  private readonly options: CopyOptions;
  private readonly escapes: Uint8Array;
  private readonly nullText: Buffer;
  private readonly delimiter: number;
  /** Whether each column is always quoted. */
  private readonly quoted: readonly boolean[];
  private out = NOTHING;
  private at = 0;
  private headSent = false;

  constructor(columns: readonly ResultColumn[], options: CopyOptions) {
    this.columns = columns;
    this.options = options;
    this.nullText = Buffer.from(options.nullText);
    this.delimiter = options.delimiter.charCodeAt(0);
    this.quoted = columns.map(({ name }) => names(options.forceQuote, name));
    if (options.format === 'csv') {
      this.escapes = new Uint8Array(256);
      for (const special of [options.delimiter, options.quote, options.escape, '\n', '\r']) {
        this.escapes[special.charCodeAt(0)] = 1;
      }
    } else {
      this.escapes = TEXT_ESCAPES.slice();
      this.escapes[this.delimiter] ||= this.delimiter;
    }
  }

  /** Messages that precede the rows. */
  head(): Buffer {
    const { format, header } = this.options;
    if (format === 'binary' || header === false) {
      return NOTHING;
    }
    this.begin(0);
    const start = this.beginRow();
    this.columns.forEach(({ name }, index) => {
      const bytes = Buffer.from(name);
      this.separate(index);
      this.reserve(bytes.length);
      this.value(bytes, 0, bytes.length, false);
    });
    this.endRow(start);
    return this.out.subarray(0, this.at);
  }

  tail(): Buffer {
    return this.options.format === 'binary' ? copyData(this.withHead(BINARY_TAIL)) : NOTHING;
  }

  /**
   * Converts complete DataRow messages. Binary CopyData differs only in the message type, which is
   * changed in place.
   */
  rows(bytes: Buffer): Buffer {
    if (this.options.format === 'binary') {
      return this.binaryRows(bytes);
    }
    this.begin(bytes.length);
    for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1)) {
      this.row(bytes, at + HEADER_BYTES);
    }
    return this.out.subarray(0, this.at);
  }

  private binaryRows(bytes: Buffer): Buffer {
    for (let at = 0; at < bytes.length; at += 1 + bytes.readInt32BE(at + 1)) {
      bytes[at] = LOWER_D;
    }
    if (this.headSent || bytes.length === 0) {
      return bytes;
    }
    const end = 1 + bytes.readInt32BE(1);
    const first = copyData(this.withHead(bytes.subarray(HEADER_BYTES, end)));
    return Buffer.concat([first, bytes.subarray(end)]);
  }

  /**
   * As in PostgreSQL, the header is sent in the same message as the first data, because some
   * drivers require this.
   */
  private withHead(bytes: Buffer): Buffer {
    const bytesWithHead = this.headSent ? bytes : Buffer.concat([BINARY_HEAD, bytes]);
    this.headSent = true;
    return bytesWithHead;
  }

  private row(bytes: Buffer, from: number): void {
    const start = this.beginRow();
    const count = bytes.readUInt16BE(from);
    let at = from + 2;
    for (let index = 0; index < count; index += 1) {
      const length = bytes.readInt32BE(at);
      at += 4;
      this.separate(index);
      if (length < 0) {
        this.reserve(this.nullText.length);
        this.at += this.nullText.copy(this.out, this.at);
        continue;
      }
      if (this.columns[index]?.type === 'BINARY') {
        const hex = Buffer.from(`\\x${bytes.toString('hex', at, at + length)}`, 'latin1');
        this.reserve(hex.length);
        this.value(hex, 0, hex.length, this.quoted[index] === true);
      } else {
        this.reserve(length);
        this.value(bytes, at, at + length, this.quoted[index] === true);
      }
      at += length;
    }
    this.endRow(start);
  }

  private value(bytes: Buffer, start: number, end: number, quoted: boolean): void {
    if (this.options.format === 'csv') {
      this.csvValue(bytes, start, end, quoted);
      return;
    }
    const { out, escapes } = this;
    let { at } = this;
    for (let index = start; index < end; index += 1) {
      const byte = bytes[index] ?? 0;
      const escape = escapes[byte] ?? 0;
      if (escape !== 0) {
        out[at] = BACKSLASH;
        at += 1;
      }
      out[at] = escape === 0 ? byte : escape;
      at += 1;
    }
    this.at = at;
  }

  private csvValue(bytes: Buffer, start: number, end: number, quoted: boolean): void {
    const { out, escapes, nullText } = this;
    let isQuoted = quoted || nullText.equals(bytes.subarray(start, end));
    for (let index = start; index < end && !isQuoted; index += 1) {
      isQuoted = escapes[bytes[index] ?? 0] === 1;
    }
    // Quoted, because readers would interpret a line that contains only `\.` as the end of the
    // data.
    isQuoted ||= this.columns.length === 1 && bytes.toString('latin1', start, end) === '\\.';
    if (!isQuoted) {
      this.at += bytes.copy(out, this.at, start, end);
      return;
    }
    const quote = this.options.quote.charCodeAt(0);
    const escape = this.options.escape.charCodeAt(0);
    let { at } = this;
    out[at] = quote;
    at += 1;
    for (let index = start; index < end; index += 1) {
      const byte = bytes[index] ?? 0;
      if (byte === quote || byte === escape) {
        out[at] = escape;
        at += 1;
      }
      out[at] = byte;
      at += 1;
    }
    out[at] = quote;
    this.at = at + 1;
  }

  // ---- output buffer ----

  private begin(guess: number): void {
    this.out = Buffer.allocUnsafe(guess * 2 + 64);
    this.at = 0;
  }

  /**
   * Reserves space for a value in the worst case: every byte escaped, plus quotes and a separator.
   */
  private reserve(length: number): void {
    const needed = this.at + length * 2 + 16;
    if (needed > this.out.length) {
      const grown = Buffer.allocUnsafe(needed * 2);
      this.out.copy(grown, 0, 0, this.at);
      this.out = grown;
    }
  }

  private separate(index: number): void {
    if (index > 0) {
      this.reserve(0);
      this.out[this.at] = this.delimiter;
      this.at += 1;
    }
  }

  /** Reserves space for the message header; returns its start. */
  private beginRow(): number {
    this.reserve(0);
    const start = this.at;
    this.at += HEADER_BYTES;
    return start;
  }

  private endRow(start: number): void {
    this.reserve(0);
    this.out[this.at] = NEWLINE;
    this.at += 1;
    this.out[start] = LOWER_D;
    this.out.writeInt32BE(this.at - start - 1, start + 1);
  }
}

/**
 * COPY … FROM STDIN: bytes that arrive in any pieces to rows of values. Keeps what belongs to a row
 * that is not complete, and looks at it again only when as much again has come.
 */
import { TextDecoder } from 'node:util';

import { decodeText } from '../protocol/client-messages.js';
import { type CopyOptions, names } from './copy-options.js';
import { ProtocolError } from '../protocol/protocol-error.js';

/** A row, and the line it begins in (its number, for binary rows). */
export interface CopiedRow {
  /** Texts, or bytes of binary values. */
  readonly values: (string | Buffer | null)[];
  readonly line: number;
}

interface CopyColumn {
  readonly name: string;
}

/** Takes pieces of the data; rows come out when they are complete. */
export interface CopyReader {
  push(bytes: Buffer, emit: (row: CopiedRow) => void): void;
  /** The end of the data. */
  end(emit: (row: CopiedRow) => void): void;
  /** Line or row that is read now. */
  readonly line: number;
}

/** Characters or bytes of one row. */
const LONGEST_ROW = 64 * 1024 * 1024;

export function copyReader(columns: readonly CopyColumn[], options: CopyOptions): CopyReader {
  return options.format === 'binary' ? new BinaryReader(columns) : new LineReader(columns, options);
}

function malformed(message: string): ProtocolError {
  return new ProtocolError('22P04', message);
}

function checkCount(columns: readonly CopyColumn[], count: number): void {
  if (count < columns.length) {
    throw malformed(`missing data for column "${columns[count]?.name ?? ''}"`);
  }
  if (count > columns.length) {
    throw malformed('extra data after last expected column');
  }
}

function checkSize(size: number): void {
  if (size > LONGEST_ROW) {
    throw new ProtocolError('54000', `a row of COPY is too long [limit=${LONGEST_ROW}]`);
  }
}

/** A record of a text: its fields, null for null, and where the next begins. */
interface RawRecord {
  readonly fields: (string | null)[];
  readonly next: number;
  /** Ends of lines within it, its own included. */
  readonly lines: number;
}

class LineReader implements CopyReader {
  line = 1;
  private readonly columns: readonly CopyColumn[];
  private readonly options: CopyOptions;
  private readonly decoder: TextDecoder;
  private readonly notNull: readonly boolean[];
  private readonly orNull: readonly boolean[];
  private pending = '';
  /** Length of `pending` below which looking again is of no use. */
  private enough = 0;
  private headerLeft: boolean;
  private ended = false;

  constructor(columns: readonly CopyColumn[], options: CopyOptions) {
    this.columns = columns;
    this.options = options;
    this.decoder = new TextDecoder(options.encoding, { fatal: true, ignoreBOM: false });
    this.headerLeft = options.header !== false;
    this.notNull = columns.map(({ name }) => names(options.forceNotNull, name));
    this.orNull = columns.map(({ name }) => names(options.forceNull, name));
  }

  push(bytes: Buffer, emit: (row: CopiedRow) => void): void {
    this.pending += this.decode(bytes, true);
    if (this.pending.length >= this.enough) {
      this.read(emit, false);
    }
  }

  end(emit: (row: CopiedRow) => void): void {
    this.pending += this.decode(Buffer.alloc(0), false);
    this.read(emit, true);
  }

  private decode(bytes: Buffer, more: boolean): string {
    try {
      return this.decoder.decode(bytes, { stream: more });
    } catch {
      const name = this.decoder.encoding === 'utf-8' ? 'UTF8' : this.decoder.encoding;
      throw new ProtocolError('22021', `invalid byte sequence for encoding "${name}"`);
    }
  }

  private read(emit: (row: CopiedRow) => void, isLast: boolean): void {
    let at = 0;
    while (!this.ended && at < this.pending.length) {
      const record = this.record(at, isLast);
      if (record === null) {
        break;
      }
      at = record.next;
      this.take(record, emit);
    }
    this.pending = this.ended ? '' : this.pending.slice(at);
    checkSize(this.pending.length);
    this.enough = at === 0 ? this.pending.length * 2 : 0;
  }

  private take({ fields, lines }: RawRecord, emit: (row: CopiedRow) => void): void {
    if (this.ended) {
      return;
    }
    if (this.headerLeft) {
      this.headerLeft = false;
      this.checkHeader(fields);
    } else {
      checkCount(this.columns, fields.length);
      emit({ values: fields, line: this.line });
    }
    this.line += lines;
  }

  private checkHeader(fields: readonly (string | null)[]): void {
    if (this.options.header !== 'match') {
      return;
    }
    checkCount(this.columns, fields.length);
    this.columns.forEach(({ name }, index) => {
      if (fields[index]?.toLowerCase() !== name.toLowerCase()) {
        const found = fields[index] ?? '';
        throw malformed(`column ${index + 1} of the header is "${found}", expected "${name}"`);
      }
    });
  }

  /** The record at `at`, null while it is incomplete. */
  private record(at: number, isLast: boolean): RawRecord | null {
    const text = this.pending;
    const { format, quote } = this.options;
    const found = text.indexOf('\n', at);
    if (found < 0 && !isLast) {
      return null;
    }
    const end = found < 0 ? text.length : found;
    const line = text.slice(at, text.charCodeAt(end - 1) === 13 && end > at ? end - 1 : end);
    const next = found < 0 ? end : end + 1;
    if (line === '\\.') {
      this.ended = true;
      return { fields: [], next, lines: 0 };
    }
    if (format === 'csv') {
      return line.includes(quote)
        ? this.quotedRecord(at, isLast)
        : { fields: this.plain(line), next, lines: 1 };
    }
    return line.includes('\\')
      ? this.escapedRecord(at, isLast)
      : { fields: this.plain(line), next, lines: 1 };
  }

  private plain(line: string): (string | null)[] {
    const { delimiter, nullText } = this.options;
    return line
      .split(delimiter)
      .map((field, index) => (field === nullText && this.notNull[index] !== true ? null : field));
  }

  /** A line of the text format with backslashes; before a line's end they continue it. */
  private escapedRecord(at: number, isLast: boolean): RawRecord | null {
    const text = this.pending;
    const { delimiter, nullText } = this.options;
    const fields: (string | null)[] = [];
    let lines = 1;
    let start = at;
    let hasEscape = false;
    let escaped = -1;
    const close = (end: number): void => {
      const raw = text.slice(start, end);
      fields.push(raw === nullText ? null : hasEscape ? unescaped(raw) : raw);
      start = end + 1;
      hasEscape = false;
    };
    for (let index = at; index < text.length; index += 1) {
      const character = text[index];
      if (character === '\\') {
        hasEscape = true;
        index += 1;
        escaped = index;
        lines += text[index] === '\n' ? 1 : 0;
      } else if (character === delimiter) {
        close(index);
      } else if (character === '\n') {
        const isCarriage = text[index - 1] === '\r' && index > start && escaped !== index - 1;
        close(isCarriage ? index - 1 : index);
        return { fields, next: index + 1, lines };
      }
    }
    if (!isLast) {
      return null;
    }
    close(text.length);
    return { fields, next: text.length, lines };
  }

  /** A record of the CSV format with quotes; line ends between them belong to the value. */
  private quotedRecord(at: number, isLast: boolean): RawRecord | null {
    const text = this.pending;
    const { delimiter, quote, escape } = this.options;
    const fields: (string | null)[] = [];
    let lines = 1;
    let value = '';
    let wasQuoted = false;
    let inQuotes = false;
    let index = at;
    for (; index < text.length; index += 1) {
      const character = text.charAt(index);
      if (inQuotes) {
        const following = text.charAt(index + 1);
        if (character === escape && (following === quote || following === escape)) {
          value += following;
          index += 1;
        } else if (character === quote) {
          inQuotes = false;
        } else {
          lines += character === '\n' ? 1 : 0;
          value += character;
        }
      } else if (character === quote) {
        inQuotes = true;
        wasQuoted = true;
      } else if (character === delimiter) {
        fields.push(this.csvField(value, wasQuoted, fields.length));
        value = '';
        wasQuoted = false;
      } else if (character === '\n') {
        break;
      } else {
        value += character;
      }
    }
    const isComplete = index < text.length;
    if (!isComplete && !isLast) {
      return null;
    }
    if (inQuotes) {
      throw malformed('unterminated CSV quoted field');
    }
    const isCarriage = value.endsWith('\r') && text[index - 1] === '\r';
    fields.push(this.csvField(isCarriage ? value.slice(0, -1) : value, wasQuoted, fields.length));
    return { fields, next: isComplete ? index + 1 : index, lines };
  }

  private csvField(value: string, wasQuoted: boolean, index: number): string | null {
    const mayBeNull = wasQuoted ? this.orNull[index] === true : this.notNull[index] !== true;
    return mayBeNull && value === this.options.nullText ? null : value;
  }
}

const ESCAPES: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

const ESCAPE = /\\(?:x([0-9a-f]{1,2})|([0-7]{1,3})|([^]))/gi;

/** The value of an escape: a byte, or a character. */
function meaning(hex?: string, octal?: string, other = ''): number | string {
  const code = hex === undefined ? parseInt(octal ?? '', 8) : parseInt(hex, 16);
  return Number.isNaN(code) ? (ESCAPES[other] ?? other) : code & 255;
}

/** Escapes of the text format. */
function unescaped(raw: string): string {
  if (/\\(?:x[89a-f][0-9a-f]|[23][0-7]{2})/i.test(raw)) {
    return unescapedBytes(raw);
  }
  return raw.replace(ESCAPE, (_, hex?: string, octal?: string, other?: string) => {
    const meant = meaning(hex, octal, other);
    return typeof meant === 'number' ? String.fromCharCode(meant) : meant;
  });
}

/** The same where escapes stand for single bytes of UTF-8. */
function unescapedBytes(raw: string): string {
  const parts: Buffer[] = [];
  let at = 0;
  for (const match of raw.matchAll(ESCAPE)) {
    const meant = meaning(match[1], match[2], match[3]);
    parts.push(Buffer.from(raw.slice(at, match.index)));
    parts.push(typeof meant === 'number' ? Buffer.from([meant]) : Buffer.from(meant));
    at = match.index + match[0].length;
  }
  return decodeText(Buffer.concat([...parts, Buffer.from(raw.slice(at))]));
}

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');

class BinaryReader implements CopyReader {
  line = 0;
  private readonly columns: readonly CopyColumn[];
  private chunks: Buffer[] = [];
  private size = 0;
  private enough = 0;
  private headerLeft = true;
  private ended = false;

  constructor(columns: readonly CopyColumn[]) {
    this.columns = columns;
  }

  push(bytes: Buffer, emit: (row: CopiedRow) => void): void {
    this.chunks.push(Buffer.from(bytes));
    this.size += bytes.length;
    if (this.size >= this.enough) {
      this.read(emit);
    }
  }

  end(emit: (row: CopiedRow) => void): void {
    this.read(emit);
    if (!this.ended && (this.size > 0 || this.headerLeft)) {
      throw malformed('unexpected EOF in COPY data');
    }
  }

  private read(emit: (row: CopiedRow) => void): void {
    const bytes = Buffer.concat(this.chunks);
    let at = this.headerLeft ? this.header(bytes) : 0;
    while (!this.headerLeft && !this.ended) {
      const next = this.row(bytes, at, emit);
      if (next === null) {
        break;
      }
      at = next;
    }
    if (this.ended && at < bytes.length) {
      throw malformed('received copy data after EOF marker');
    }
    const rest = bytes.subarray(at);
    this.chunks = rest.length === 0 ? [] : [rest];
    this.size = rest.length;
    checkSize(rest.length);
    this.enough = at === 0 ? rest.length * 2 : 0;
  }

  /** Reads the header when it is there; answers where rows begin. */
  private header(bytes: Buffer): number {
    if (bytes.length < SIGNATURE.length + 8) {
      return 0;
    }
    if (!bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE)) {
      throw malformed('COPY file signature not recognized');
    }
    const extension = bytes.readUInt32BE(SIGNATURE.length + 4);
    checkSize(extension);
    const end = SIGNATURE.length + 8 + extension;
    if (bytes.length < end) {
      return 0;
    }
    if (bytes.readUInt32BE(SIGNATURE.length) > 0xffff) {
      throw malformed('unrecognized critical flags in COPY file header');
    }
    this.headerLeft = false;
    return end;
  }

  /** Where the row at `at` ends, null while it is incomplete. */
  private row(bytes: Buffer, at: number, emit: (row: CopiedRow) => void): number | null {
    if (bytes.length < at + 2) {
      return null;
    }
    const count = bytes.readInt16BE(at);
    if (count === -1) {
      this.ended = true;
      return at + 2;
    }
    this.line += 1;
    if (count !== this.columns.length) {
      throw malformed(`row field count is ${count}, expected ${this.columns.length}`);
    }
    const values: (Buffer | null)[] = [];
    let end = at + 2;
    while (values.length < count) {
      const length = bytes.length < end + 4 ? 0 : bytes.readInt32BE(end);
      if (length < -1) {
        throw malformed('invalid field size');
      }
      end += 4 + Math.max(0, length);
      if (bytes.length < end) {
        this.line -= 1;
        return null;
      }
      values.push(length === -1 ? null : bytes.subarray(end - length, end));
    }
    emit({ values, line: this.line });
    return end;
  }
}

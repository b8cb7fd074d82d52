/**
 * Encodes rows of parameter values for the engine; `crates/ingest` decodes them. The header
 * describes the encoding of the values. It contains a count (16 bits), and for each value its
 * format (8 bits, 0 is text) and type (32 bits, 0 is unspecified). Values beyond this count are
 * text.
 *
 * The rows follow, as in Bind messages. Each row starts with its number of values (16 bits). Each
 * value consists of its length in bytes (32 bits, -1 for null) and its bytes.
 */
/** Parameter values as strings, each in the format of its parameter's type; `null` is SQL NULL. */
export type ParameterValues = readonly (string | null)[];

const FIRST_BYTES = 1_024;
/** Maximum UTF-8 bytes per UTF-16 code unit. */
const UNIT_BYTES = 3;
const COUNT_BYTES = 2;
const LENGTH_BYTES = 4;
const SENT_BYTES = 5;

/**
 * Encoding of a value as it was received. The format is 0 for text, 1 for binary, or 2 for QWP
 * (little-endian). The type is a PostgreSQL OID, 0 if unspecified, or a QWP type code.
 */
interface SentAs {
  readonly format: number;
  readonly oid: number;
}

const COLUMNAR = 2;

/** Encodes the header for rows whose values have these encodings. */
export function parameterHeader(sent: readonly SentAs[]): Buffer {
  const header = Buffer.allocUnsafe(COUNT_BYTES + sent.length * SENT_BYTES);
  let at = header.writeUInt16BE(sent.length, 0);
  for (const { format, oid } of sent) {
    at = header.writeUInt8(format, at);
    at = header.writeUInt32BE(oid, at);
  }
  return header;
}

/** Whether the value at this index was sent as text. */
export function isSentAsText(header: Buffer, index: number): boolean {
  return formatOf(header, index) === 0;
}

/** Format of the value at this index; values beyond the header are text. */
function formatOf(header: Buffer, index: number): number {
  const isInHeader = index < header.readUInt16BE(0);
  return isInHeader ? header.readUInt8(COUNT_BYTES + index * SENT_BYTES) : 0;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

const ALL_TEXT = parameterHeader([]);

export class ParameterBatch {
  /** The header, which describes the encoding of the values. */
  readonly header: Buffer;
  private buffer: Buffer;
  private used: number;

  constructor(header: Buffer = ALL_TEXT, capacity = FIRST_BYTES) {
    this.header = header;
    this.buffer = Buffer.allocUnsafe(header.length + capacity);
    this.used = header.copy(this.buffer);
  }

  /** An empty batch, for a statement without parameters. */
  static readonly none: ParameterBatch = new ParameterBatch(ALL_TEXT, 0);

  /** Creates a batch from rows of values. */
  static of(
    rows: readonly (readonly (string | Buffer | null)[])[],
    header?: Buffer,
  ): ParameterBatch {
    const batch = new ParameterBatch(header);
    for (const row of rows) {
      batch.add(row);
    }
    return batch;
  }

  /** An execution's single row; empty if the statement has no parameters. */
  static row(values: ParameterValues): ParameterBatch {
    return values.length === 0 ? ParameterBatch.none : ParameterBatch.of([values]);
  }

  /** Size of all rows in bytes. */
  get size(): number {
    return this.used - this.header.length;
  }

  /** The header and all rows, for the engine; empty if there are no rows. */
  get bytes(): Buffer {
    return this.buffer.subarray(0, this.size === 0 ? 0 : this.used);
  }

  /** Number of values in each row. */
  get width(): number {
    return this.size === 0 ? 0 : this.buffer.readUInt16BE(this.header.length);
  }

  /**
   * Whether rows whose values are encoded as in this header can be appended to the batch unchanged.
   */
  suits(header: Buffer): boolean {
    return this.header === header || this.header.equals(header);
  }

  /** Appends a row of strings, or of bytes in the header's formats. */
  add(row: readonly (string | Buffer | null)[]): void {
    this.ensureCapacity(COUNT_BYTES);
    this.used = this.buffer.writeUInt16BE(row.length, this.used);
    for (const value of row) {
      const isText = typeof value === 'string';
      this.ensureCapacity(LENGTH_BYTES + (value?.length ?? 0) * (isText ? UNIT_BYTES : 1));
      const start = this.used + LENGTH_BYTES;
      const length =
        value === null
          ? -1
          : isText
            ? this.buffer.write(value, start)
            : value.copy(this.buffer, start);
      this.buffer.writeInt32BE(length, this.used);
      this.used = start + Math.max(0, length);
    }
  }

  /** Appends a row that is already encoded. */
  addBytes(source: Buffer, start: number, end: number): void {
    this.ensureCapacity(end - start);
    this.used += source.copy(this.buffer, this.used, start, end);
  }

  /** Splits the batch into single rows. */
  rows(): ParameterBatch[] {
    const rows: ParameterBatch[] = [];
    for (let at = this.header.length; at < this.used;) {
      const start = at;
      const count = this.buffer.readUInt16BE(at);
      at += COUNT_BYTES;
      for (let index = 0; index < count; index += 1) {
        at += LENGTH_BYTES + Math.max(0, this.buffer.readInt32BE(at));
      }
      const row = new ParameterBatch(this.header, at - start);
      row.addBytes(this.buffer, start, at);
      rows.push(row);
    }
    return rows;
  }

  /**
   * Returns a row that consists of the first `width` values of the first row, followed by the given
   * strings.
   */
  extended(width: number, texts: readonly string[]): ParameterBatch {
    const own = Array.from({ length: width }, (_, index) => this.bytesAt(index));
    const batch = new ParameterBatch(this.headerOf(width));
    batch.add([...own, ...texts]);
    return batch;
  }

  /** An integer parameter from the first row, as a string; `null` if the value is null. */
  integerAt(index: number): string | null {
    const bytes = this.bytesAt(index);
    if (bytes === null || isSentAsText(this.header, index)) {
      return bytes?.toString('utf8') ?? null;
    }
    const isInteger = [2, 4, 8].includes(bytes.length);
    const ordered = formatOf(this.header, index) === COLUMNAR ? bytes.toReversed() : bytes;
    return isInteger ? String(BigInt.asIntN(bytes.length * 8, BigInt(`0x${hex(ordered)}`))) : '';
  }

  /** Returns the start of the header, which describes the first `width` values. */
  private headerOf(width: number): Buffer {
    const count = Math.min(width, this.header.readUInt16BE(0));
    const header = Buffer.from(this.header.subarray(0, COUNT_BYTES + count * SENT_BYTES));
    header.writeUInt16BE(count, 0);
    return header;
  }

  /** A value from the first row. */
  private bytesAt(index: number): Buffer | null {
    let at = this.header.length + COUNT_BYTES;
    for (let before = 0; before < index; before += 1) {
      at += LENGTH_BYTES + Math.max(0, this.buffer.readInt32BE(at));
    }
    const length = this.buffer.readInt32BE(at);
    at += LENGTH_BYTES;
    return length < 0 ? null : this.buffer.subarray(at, at + length);
  }

  private ensureCapacity(bytes: number): void {
    const needed = this.used + bytes;
    if (needed > this.buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.buffer.length * 2));
      this.buffer.copy(larger, 0, 0, this.used);
      this.buffer = larger;
    }
  }
}

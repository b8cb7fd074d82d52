/**
 * Rows of parameter values on their way to the engine, which reads them: `crates/ingest`. They
 * begin with how the values were sent: their number (16 bits), then for each its format (8
 * bits, 0 is text) and its type (32 bits, 0 is open). Values beyond that number are text. Then come
 * the rows as Bind messages have them: for each the count of its values (16 bits), for each value
 * its length in bytes (32 bits, -1 for null) and its bytes.
 */
/** Parameter values as text in the parameter's own type; `null` is null. */
export type ParameterValues = readonly (string | null)[];

const FIRST_BYTES = 1_024;
/** The most bytes of UTF-8 that a UTF-16 unit takes. */
const UNIT_BYTES = 3;
const COUNT_BYTES = 2;
const LENGTH_BYTES = 4;
const SENT_BYTES = 5;

/**
 * How one value was sent: format (0 text, 1 binary, 2 as QWP has it, the lowest byte first) and
 * type, an OID of PostgreSQL or 0; of QWP its code.
 */
interface SentAs {
  readonly format: number;
  readonly oid: number;
}

const COLUMNAR = 2;

/** The beginning of rows that are sent in this way. */
export function parameterHeader(sent: readonly SentAs[]): Buffer {
  const header = Buffer.allocUnsafe(COUNT_BYTES + sent.length * SENT_BYTES);
  let at = header.writeUInt16BE(sent.length, 0);
  for (const { format, oid } of sent) {
    at = header.writeUInt8(format, at);
    at = header.writeUInt32BE(oid, at);
  }
  return header;
}

/** Whether the value of this number was sent as text. */
export function isSentAsText(header: Buffer, index: number): boolean {
  return formatOf(header, index) === 0;
}

/** Of what is not said it is text. */
function formatOf(header: Buffer, index: number): number {
  const isSaid = index < header.readUInt16BE(0);
  return isSaid ? header.readUInt8(COUNT_BYTES + index * SENT_BYTES) : 0;
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}

const ALL_TEXT = parameterHeader([]);

export class ParameterBatch {
  /** How the values were sent. */
  readonly header: Buffer;
  private buffer: Buffer;
  private used: number;

  constructor(header: Buffer = ALL_TEXT, capacity = FIRST_BYTES) {
    this.header = header;
    this.buffer = Buffer.allocUnsafe(header.length + capacity);
    this.used = header.copy(this.buffer);
  }

  /** No row, for a statement without parameters. */
  static readonly none: ParameterBatch = new ParameterBatch(ALL_TEXT, 0);

  /** Rows of texts. */
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

  /** The one row of an execution; none where a statement has no parameters. */
  static row(values: ParameterValues): ParameterBatch {
    return values.length === 0 ? ParameterBatch.none : ParameterBatch.of([values]);
  }

  /** Bytes of rows so far. */
  get size(): number {
    return this.used - this.header.length;
  }

  /** Everything, for the engine; nothing where there are no rows. */
  get bytes(): Buffer {
    return this.buffer.subarray(0, this.size === 0 ? 0 : this.used);
  }

  /** Values of each row. */
  get width(): number {
    return this.size === 0 ? 0 : this.buffer.readUInt16BE(this.header.length);
  }

  /** Whether rows of the other may be added as they are. */
  suits(header: Buffer): boolean {
    return this.header === header || this.header.equals(header);
  }

  /** Adds a row: texts, or bytes in the form that the header says. */
  add(row: readonly (string | Buffer | null)[]): void {
    this.makeRoom(COUNT_BYTES);
    this.used = this.buffer.writeUInt16BE(row.length, this.used);
    for (const value of row) {
      const isText = typeof value === 'string';
      this.makeRoom(LENGTH_BYTES + (value?.length ?? 0) * (isText ? UNIT_BYTES : 1));
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

  /** Adds a row that is in this form already. */
  addBytes(source: Buffer, start: number, end: number): void {
    this.makeRoom(end - start);
    this.used += source.copy(this.buffer, this.used, start, end);
  }

  /** Each row alone. */
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

  /** The first row with these texts behind its first `width` values. */
  extended(width: number, texts: readonly string[]): ParameterBatch {
    const own = Array.from({ length: width }, (_, index) => this.bytesAt(index));
    const batch = new ParameterBatch(this.headerOf(width));
    batch.add([...own, ...texts]);
    return batch;
  }

  /** The text of a whole number in the first row; `null` is null. */
  integerAt(index: number): string | null {
    const bytes = this.bytesAt(index);
    if (bytes === null || isSentAsText(this.header, index)) {
      return bytes?.toString('utf8') ?? null;
    }
    const isWhole = [2, 4, 8].includes(bytes.length);
    const ordered = formatOf(this.header, index) === COLUMNAR ? bytes.toReversed() : bytes;
    return isWhole ? String(BigInt.asIntN(bytes.length * 8, BigInt(`0x${hex(ordered)}`))) : '';
  }

  /** The header without what comes after so many values. */
  private headerOf(width: number): Buffer {
    const count = Math.min(width, this.header.readUInt16BE(0));
    const header = Buffer.from(this.header.subarray(0, COUNT_BYTES + count * SENT_BYTES));
    header.writeUInt16BE(count, 0);
    return header;
  }

  /** A value of the first row. */
  private bytesAt(index: number): Buffer | null {
    let at = this.header.length + COUNT_BYTES;
    for (let before = 0; before < index; before += 1) {
      at += LENGTH_BYTES + Math.max(0, this.buffer.readInt32BE(at));
    }
    const length = this.buffer.readInt32BE(at);
    at += LENGTH_BYTES;
    return length < 0 ? null : this.buffer.subarray(at, at + length);
  }

  private makeRoom(bytes: number): void {
    const needed = this.used + bytes;
    if (needed > this.buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(needed, this.buffer.length * 2));
      this.buffer.copy(larger, 0, 0, this.used);
      this.buffer = larger;
    }
  }
}

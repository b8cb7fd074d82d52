/**
 * Prefixes CSV strings that a spreadsheet would read as formulas with an apostrophe, which
 * spreadsheets remove. This is done only on request, because it changes the exported data.
 */

const QUOTE = 0x22;
const LINE_END = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/**
 * Characters that start a formula (= + - @), or that may precede it invisibly (tab, carriage
 * return, NUL).
 */
const BEGINNINGS: ReadonlySet<number> = new Set([
  0x3d,
  0x2b,
  0x2d,
  0x40,
  0x09,
  CARRIAGE_RETURN,
  0x00,
]);
const APOSTROPHE = Buffer.from("'");

/** The parser state before the next byte. */
type Position = 'start' | 'quoted start' | 'quoted' | 'plain';

export class FormulaGuard {
  readonly #isText: readonly boolean[];
  readonly #delimiter: number;
  /** Whether the current line is the header, in which every field is a string. */
  #isHeader: boolean;
  #column = 0;
  #position: Position = 'start';

  /** `isText`: whether each column is a string. */
  constructor(isText: readonly boolean[], delimiter: string, header: boolean) {
    this.#isText = isText;
    this.#delimiter = delimiter.charCodeAt(0);
    this.#isHeader = header;
  }

  /** Processes the next bytes of the file; fields may span calls. */
  guard(bytes: Buffer): Buffer {
    const chunks: Buffer[] = [];
    let from = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at] ?? 0;
      if (this.#begins(byte)) {
        chunks.push(bytes.subarray(from, at), APOSTROPHE);
        from = at;
      }
      this.#step(byte);
    }
    return chunks.length === 0 ? bytes : Buffer.concat([...chunks, bytes.subarray(from)]);
  }

  /** Whether a formula would start with this byte. */
  #begins(byte: number): boolean {
    const isStart = this.#position === 'start' || this.#position === 'quoted start';
    // Outside quotes, these bytes end the field.
    const ends = byte === this.#delimiter || byte === CARRIAGE_RETURN;
    const isEnd = this.#position === 'start' && ends;
    const isText = this.#isHeader || this.#isText[this.#column] === true;
    return isStart && !isEnd && isText && BEGINNINGS.has(byte);
  }

  #step(byte: number): void {
    if (this.#position === 'quoted start' || this.#position === 'quoted') {
      this.#position = byte === QUOTE ? 'plain' : 'quoted';
    } else if (byte === QUOTE) {
      // The previous quote seemed to end the field, but together with this one it is an escaped
      // quote.
      this.#position = this.#position === 'start' ? 'quoted start' : 'quoted';
    } else if (byte === this.#delimiter) {
      this.#column += 1;
      this.#position = 'start';
    } else if (byte === LINE_END) {
      this.#column = 0;
      this.#isHeader = false;
      this.#position = 'start';
    } else {
      this.#position = 'plain';
    }
  }
}

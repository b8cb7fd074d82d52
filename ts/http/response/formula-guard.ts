/**
 * Texts of a CSV file that a spreadsheet would take for formulas: an apostrophe before them, which
 * such programs leave out again. Asked for, because it changes what is exported.
 */

const QUOTE = 0x22;
const LINE_END = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** = + - @, tab, carriage return, NUL: what a formula begins with, or hides behind. */
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

/** The place of the next byte. */
type Place = 'start' | 'quoted start' | 'quoted' | 'plain';

export class FormulaGuard {
  readonly #isText: readonly boolean[];
  readonly #delimiter: number;
  /** In the header every field is a text. */
  #isHeader: boolean;
  #column = 0;
  #place: Place = 'start';

  /** `isText`: by column. */
  constructor(isText: readonly boolean[], delimiter: string, header: boolean) {
    this.#isText = isText;
    this.#delimiter = delimiter.charCodeAt(0);
    this.#isHeader = header;
  }

  /** The next bytes of the file; fields may be cut anywhere. */
  guard(bytes: Buffer): Buffer {
    const pieces: Buffer[] = [];
    let from = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at] ?? 0;
      if (this.#begins(byte)) {
        pieces.push(bytes.subarray(from, at), APOSTROPHE);
        from = at;
      }
      this.#step(byte);
    }
    return pieces.length === 0 ? bytes : Buffer.concat([...pieces, bytes.subarray(from)]);
  }

  /** Whether a formula would begin with this byte. */
  #begins(byte: number): boolean {
    const isStart = this.#place === 'start' || this.#place === 'quoted start';
    // Without quotes around them these end the field.
    const ends = byte === this.#delimiter || byte === CARRIAGE_RETURN;
    const isEnd = this.#place === 'start' && ends;
    const isText = this.#isHeader || this.#isText[this.#column] === true;
    return isStart && !isEnd && isText && BEGINNINGS.has(byte);
  }

  #step(byte: number): void {
    if (this.#place === 'quoted start' || this.#place === 'quoted') {
      this.#place = byte === QUOTE ? 'plain' : 'quoted';
    } else if (byte === QUOTE) {
      // After a quote that seemed to end the field, it was one of the field's own.
      this.#place = this.#place === 'start' ? 'quoted start' : 'quoted';
    } else if (byte === this.#delimiter) {
      this.#column += 1;
      this.#place = 'start';
    } else if (byte === LINE_END) {
      this.#column = 0;
      this.#isHeader = false;
      this.#place = 'start';
    } else {
      this.#place = 'plain';
    }
  }
}

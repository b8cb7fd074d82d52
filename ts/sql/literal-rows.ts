/**
 * Rows of plain literals, read straight from the text: `(1, 'a', null), (2, 'b', 1.5)`. A long
 * INSERT has hundred thousands of tokens, and a token each is more than these need. What is not
 * plain is left to the lexer and the grammar, so nothing here refuses anything.
 */

/** Cells as `ValuesBlock` has them, row by row. */
export interface LiteralRows {
  readonly widths: number[];
  /** Letters of each row's cells. */
  readonly kinds: string[];
  readonly texts: string[];
  readonly starts: number[];
  readonly row_starts: number[];
  readonly row_ends: number[];
  /** Where the last row ends. */
  readonly end: number;
}

const QUOTE = 39;
const OPEN = 40;
const CLOSE = 41;
const PLUS = 43;
const COMMA = 44;
const MINUS = 45;
const DOT = 46;

const isDigit = (code: number): boolean => code >= 48 && code <= 57;
const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13);

/** The rows from `from` on, up to the first that is not plain; null when that is the first. */
export function readLiteralRows(text: string, from: number): LiteralRows | null {
  const reader = new RowReader(text);
  let next = reader.skip(from);
  let end = from;
  while (text.charCodeAt(next) === OPEN) {
    const close = reader.row(next);
    if (close < 0) {
      break;
    }
    end = close + 1;
    const comma = reader.skip(end);
    if (text.charCodeAt(comma) !== COMMA) {
      break;
    }
    next = reader.skip(comma + 1);
  }
  return end === from ? null : { ...reader.rows, end };
}

class RowReader {
  readonly rows: Omit<LiteralRows, 'end'> = {
    widths: [],
    kinds: [],
    texts: [],
    starts: [],
    row_starts: [],
    row_ends: [],
  };

  private readonly text: string;
  /** Kind and text of the cell just read. */
  private kind = '';
  private cellText = '';

  constructor(text: string) {
    this.text = text;
  }

  skip(at: number): number {
    let next = at;
    while (isSpace(this.text.charCodeAt(next))) {
      next += 1;
    }
    return next;
  }

  /** Reads the row that opens at `open`: where it closes, or -1, and then nothing is kept. */
  row(open: number): number {
    const { text, rows } = this;
    const cells = rows.texts.length;
    let kinds = '';
    let at = open;
    let code = COMMA;
    while (code === COMMA) {
      const start = this.skip(at + 1);
      const end = this.cell(start);
      at = end < 0 ? end : this.skip(end);
      code = text.charCodeAt(at);
      if (end < 0 || (code !== COMMA && code !== CLOSE)) {
        rows.texts.length = cells;
        rows.starts.length = cells;
        return -1;
      }
      kinds += this.kind;
      rows.texts.push(this.cellText);
      rows.starts.push(start);
    }
    rows.kinds.push(kinds);
    rows.widths.push(kinds.length);
    rows.row_starts.push(open);
    rows.row_ends.push(at);
    return at;
  }

  /** Reads a cell: where it ends, or -1. */
  private cell(start: number): number {
    const code = this.text.charCodeAt(start);
    if (code === QUOTE) {
      return this.string(start);
    }
    if (isDigit(code)) {
      return this.number(start, start);
    }
    if (code === MINUS || code === PLUS) {
      return this.number(code === MINUS ? start : start + 1, start + 1);
    }
    return this.word(start);
  }

  private string(start: number): number {
    const { text } = this;
    let close = text.indexOf("'", start + 1);
    let doubled = false;
    while (close >= 0 && text.charCodeAt(close + 1) === QUOTE) {
      doubled = true;
      close = text.indexOf("'", close + 2);
    }
    if (close < 0) {
      return -1;
    }
    const inside = text.slice(start + 1, close);
    this.kind = 's';
    this.cellText = doubled ? inside.replaceAll("''", "'") : inside;
    return close + 1;
  }

  /** Digits, perhaps with a fraction and an exponent; `from` is where the cell's text begins. */
  private number(from: number, start: number): number {
    let end = this.digits(start);
    if (end === start) {
      return -1;
    }
    this.kind = 'i';
    if (this.text.charCodeAt(end) === DOT) {
      const fraction = this.digits(end + 1);
      if (fraction === end + 1) {
        return -1;
      }
      this.kind = 'd';
      end = fraction;
    }
    if ((this.text.charCodeAt(end) | 32) === 101) {
      const sign = this.text.charCodeAt(end + 1);
      const first = end + (sign === PLUS || sign === MINUS ? 2 : 1);
      const exponent = this.digits(first);
      if (exponent === first) {
        return -1;
      }
      this.kind = 'd';
      end = exponent;
    }
    this.cellText = this.text.slice(from, end);
    return end;
  }

  private digits(from: number): number {
    let end = from;
    while (isDigit(this.text.charCodeAt(end))) {
      end += 1;
    }
    return end;
  }

  private word(start: number): number {
    const { text } = this;
    const five = text.slice(start, start + 5).toLowerCase();
    if (five === 'false') {
      this.kind = 'f';
    } else if (five.startsWith('null')) {
      this.kind = 'n';
    } else if (five.startsWith('true')) {
      this.kind = 't';
    } else {
      return -1;
    }
    const end = start + (this.kind === 'f' ? 5 : 4);
    this.cellText = text.slice(start, end);
    return end;
  }
}

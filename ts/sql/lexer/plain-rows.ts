/**
 * Finds rows of plain literals without creating a token per cell: `(1, 'a', null), (2, 'b', -1.5)`.
 * A long INSERT has hundreds of thousands of cells. The rows remain text, and are parsed where
 * their values are needed (`crates/ast`). Rows that are not plain are left to the lexer and the
 * parser, so this code never refuses input.
 */

/** Position of the plain literal rows. */
export interface PlainRowsRange {
  readonly rows: number;
  /** Offset of the first parenthesis. */
  readonly start: number;
  /** Offset after the last parenthesis. */
  readonly end: number;
}

const QUOTE = 39;
const OPEN = 40;
const CLOSE = 41;
const PLUS = 43;
const COMMA = 44;
const MINUS = 45;
const DOT = 46;
const LETTER_E = 101;
const LETTER_F = 102;
/** Bit that converts an ASCII letter to lower case. */
const SMALL = 32;

/**
 * Returns the plain rows from `from` up to the first row that is not plain; `null` if there are
 * none.
 */
export function findPlainRows(text: string, from: number): PlainRowsRange | null {
  const start = skipSpace(text, from);
  let rows = 0;
  let end = start;
  let next = start;
  while (text.charCodeAt(next) === OPEN) {
    const close = rowEnd(text, next);
    if (close < 0) {
      break;
    }
    rows += 1;
    end = close;
    const comma = skipSpace(text, end);
    if (text.charCodeAt(comma) !== COMMA) {
      break;
    }
    next = skipSpace(text, comma + 1);
  }
  return rows === 0 ? null : { rows, start, end };
}

/** Returns the end of the row that opens at `open`; -1 if it is not plain. */
function rowEnd(text: string, open: number): number {
  let at = open;
  let code = COMMA;
  while (code === COMMA) {
    const end = cellEnd(text, skipSpace(text, at + 1));
    if (end < 0) {
      return -1;
    }
    at = skipSpace(text, end);
    code = text.charCodeAt(at);
  }
  return code === CLOSE ? at + 1 : -1;
}

function cellEnd(text: string, start: number): number {
  const code = text.charCodeAt(start);
  if (code === QUOTE) {
    return stringEnd(text, start);
  }
  if (code === MINUS || code === PLUS) {
    return numberEnd(text, start + 1);
  }
  return isDigit(code) ? numberEnd(text, start) : wordEnd(text, start, code | SMALL);
}

function stringEnd(text: string, start: number): number {
  let close = text.indexOf("'", start + 1);
  while (close >= 0 && text.charCodeAt(close + 1) === QUOTE) {
    close = text.indexOf("'", close + 2);
  }
  return close < 0 ? -1 : close + 1;
}

/** Returns the end of a number: digits, optionally with a fraction and an exponent. */
function numberEnd(text: string, start: number): number {
  let end = digitsEnd(text, start);
  if (end === start) {
    return -1;
  }
  if (text.charCodeAt(end) === DOT) {
    const fraction = end + 1;
    end = digitsEnd(text, fraction);
    if (end === fraction) {
      return -1;
    }
  }
  if ((text.charCodeAt(end) | SMALL) !== LETTER_E) {
    return end;
  }
  const sign = text.charCodeAt(end + 1);
  const exponent = end + (sign === PLUS || sign === MINUS ? 2 : 1);
  end = digitsEnd(text, exponent);
  return end === exponent ? -1 : end;
}

function digitsEnd(text: string, from: number): number {
  let end = from;
  while (isDigit(text.charCodeAt(end))) {
    end += 1;
  }
  return end;
}

/** Returns the end of `null`, `true` or `false`; `first` is the initial letter in lower case. */
function wordEnd(text: string, start: number, first: number): number {
  const end = start + (first === LETTER_F ? 5 : 4);
  const word = text.slice(start, end).toLowerCase();
  return word === 'null' || word === 'true' || word === 'false' ? end : -1;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  let code = text.charCodeAt(at);
  while (code === 32 || (code >= 9 && code <= 13)) {
    at += 1;
    code = text.charCodeAt(at);
  }
  return at;
}

/**
 * Hand-written lexer. Every token has a span in UTF-16 offsets. Comments are dropped, and hints are
 * retained.
 *
 * Tokens are stored in parallel arrays instead of objects, because a long INSERT has several
 * hundred thousand of them. Only `tokenize` throws. `scan` marks unreadable input as `Bad` and
 * continues, so that completion and splitting work on incomplete text.
 */
import { findPlainRows, type PlainRowsRange } from './plain-rows.js';
import { SyntaxError_ } from './syntax-error.js';

export const TokenKind = {
  /** Unquoted word; the token value is the word in upper case. */
  Word: 0,
  /** Operator or punctuation; the token value is its text. */
  Mark: 1,
  /** `"name"` or `` `name` ``. */
  Quoted: 2,
  /** `'text'`, `$$text$$`, `$tag$text$tag$`. */
  String: 3,
  /** `17`, `17_000`, `17L`. */
  Integer: 4,
  /** `1.5`, `1e3`, `1.5f`. */
  Float: 5,
  /** `12.50m`. */
  Decimal: 6,
  /** `0x01ff`. */
  Long256: 7,
  /** `#u33d`, `##0110`. */
  Geohash: 8,
  /** Digits and letters: `1h30m`. Also `3d` and `5m`, which an expression reads as numbers. */
  Duration: 9,
  /** `$1`. */
  Parameter: 10,
  /** `:name`. */
  NamedParameter: 11,
  /** `@name`. */
  Variable: 12,
  /** A comment that begins with a plus sign, directly after SELECT. */
  Hint: 13,
  /** Unreadable input; the token value is the reason. */
  Bad: 14,
  End: 15,
  /** A token that stands for all rows of VALUES that contain only plain literals. */
  Rows: 16,
} as const;

export type TokenKind = (typeof TokenKind)[keyof typeof TokenKind];

export interface Tokens {
  readonly text: string;
  readonly kinds: TokenKind[];
  readonly starts: number[];
  readonly ends: number[];
  /** The upper-case word, the mark, or the reason for a `Bad` token; empty for other tokens. */
  readonly values: string[];
  /** The rows of the `Rows` token, if there is one. */
  rows: PlainRowsRange | null;
}

const MARKS = [
  '<<=',
  '>>=',
  '!~~*',
  '!~~',
  '~~*',
  '!~*',
  '<=',
  '>=',
  '=>',
  '<>',
  '!=',
  '!~',
  '~~',
  '~*',
  '<<',
  '>>',
  '::',
  ':=',
  '||',
  '(',
  ')',
  '[',
  ']',
  ',',
  ';',
  '.',
  '+',
  '-',
  '*',
  '/',
  '%',
  '<',
  '>',
  '=',
  '~',
  '|',
  '&',
  '^',
  '?',
  ':',
  '{',
  '}',
];

/** Marks, keyed by first character, longest first. */
const MARKS_BY_FIRST = new Map<string, string[]>();
for (const mark of MARKS) {
  const first = mark.charAt(0);
  MARKS_BY_FIRST.set(first, [...(MARKS_BY_FIRST.get(first) ?? []), mark]);
}

const DOLLAR = 36;

const isDigit = (code: number): boolean => code >= 48 && code <= 57;

const isAsciiLetter = (code: number): boolean =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90);

const isSpace = (code: number): boolean =>
  code === 32 || (code >= 9 && code <= 13) || (code > 127 && /\s/u.test(String.fromCharCode(code)));

const isWordStart = (code: number): boolean =>
  isAsciiLetter(code) || code === 95 || (code > 127 && !isSpace(code));

const isWordPart = (code: number): boolean => isWordStart(code) || isDigit(code) || code === DOLLAR;

/** Returns the content of a quoted token, with doubled quotes replaced. */
export function unquote(written: string): string {
  const quote = written.charAt(0);
  if (quote === '$') {
    const length = written.indexOf('$', 1) + 1;
    return written.slice(length, -length);
  }
  const inner = written.slice(1, -1);
  return inner.includes(quote) ? inner.replaceAll(quote + quote, quote) : inner;
}

/** The state of a scan. */
class Scanner {
  readonly tokens: Tokens;
  private readonly text: string;
  private at = 0;
  /** Nesting depth of square brackets, in which a colon separates the bounds of a slice. */
  private brackets = 0;
  /** Whether to combine rows of literals into one token. */
  private readonly packs: boolean;

  constructor(text: string, packs: boolean) {
    this.text = text;
    this.packs = packs;
    this.tokens = { text, kinds: [], starts: [], ends: [], values: [], rows: null };
  }

  run(): Tokens {
    while (this.skipSpace()) {
      this.next();
    }
    this.push(TokenKind.End, this.text.length, this.text.length, '');
    return this.tokens;
  }

  private push(kind: TokenKind, start: number, end: number, value: string): void {
    this.tokens.kinds.push(kind);
    this.tokens.starts.push(start);
    this.tokens.ends.push(end);
    this.tokens.values.push(value);
    this.at = end;
  }

  private bad(start: number, end: number, reason: string): void {
    this.push(TokenKind.Bad, start, end, reason);
  }

  private code(offset: number): number {
    return offset < this.text.length ? this.text.charCodeAt(offset) : -1;
  }

  /** Skips to the next token; returns false at the end of the text. */
  private skipSpace(): boolean {
    const { text } = this;
    while (this.at < text.length) {
      const code = text.charCodeAt(this.at);
      if (isSpace(code)) {
        this.at += 1;
      } else if (code === 45 && this.code(this.at + 1) === 45) {
        const line = text.indexOf('\n', this.at);
        this.at = line < 0 ? text.length : line + 1;
      } else if (code === 47 && this.code(this.at + 1) === 42) {
        this.comment();
      } else {
        return true;
      }
    }
    return false;
  }

  private comment(): void {
    const start = this.at;
    const close = this.text.indexOf('*/', start + 2);
    if (close < 0) {
      this.bad(start, this.text.length, 'unclosed comment');
      return;
    }
    const last = this.tokens.kinds.length - 1;
    const afterSelect =
      this.tokens.kinds[last] === TokenKind.Word && this.tokens.values[last] === 'SELECT';
    if (afterSelect && this.code(start + 2) === 43) {
      this.push(TokenKind.Hint, start, close + 2, '');
    } else {
      this.at = close + 2;
    }
  }

  private next(): void {
    const code = this.code(this.at);
    if (isWordStart(code)) {
      this.word();
    } else if (isDigit(code) || (code === 46 && this.startsFraction())) {
      this.number();
    } else if (code === 39) {
      this.string();
    } else if (code === 34) {
      this.enclosed('"', TokenKind.Quoted, 'unclosed quotation mark');
    } else if (code === 96) {
      this.enclosed('`', TokenKind.Quoted, 'unclosed quotation mark');
    } else if (code === 35) {
      this.geohash();
    } else if (code === DOLLAR) {
      this.dollar();
    } else if (code === 64) {
      this.prefixed(TokenKind.Variable, isWordPart);
    } else if (code === 58 && this.brackets === 0 && isWordStart(this.code(this.at + 1))) {
      this.prefixed(TokenKind.NamedParameter, isWordPart);
    } else {
      this.mark();
    }
  }

  private word(): void {
    const start = this.at;
    let end = start;
    let ascii = true;
    for (let code = this.code(end); isWordPart(code); code = this.code(end)) {
      if (code > 127) {
        ascii = false;
      }
      end += 1;
    }
    // Some non-ASCII letters have an ASCII upper-case form (dotless i), so words that contain
    // non-ASCII letters are never keywords.
    const word = this.text.slice(start, end);
    this.push(TokenKind.Word, start, end, ascii ? word.toUpperCase() : word);
    if (this.packs && ascii && word.length === 6 && this.atInsertedRows()) {
      this.packRows();
    }
  }

  /** Returns whether the last token is the VALUES of an INSERT without a query. */
  private atInsertedRows(): boolean {
    const { values } = this.tokens;
    return values.at(-1) === 'VALUES' && values[0] === 'INSERT' && !values.includes('SELECT');
  }

  private packRows(): void {
    const rows = findPlainRows(this.text, this.at);
    if (rows !== null) {
      this.tokens.rows = rows;
      this.push(TokenKind.Rows, rows.start, rows.end, '');
    }
  }

  /** Returns whether the dot starts a number (`.5`) rather than qualifying a name (`t.5`). */
  private startsFraction(): boolean {
    if (!isDigit(this.code(this.at + 1))) {
      return false;
    }
    const last = this.tokens.kinds.length - 1;
    if (last < 0 || this.tokens.ends[last] !== this.at) {
      return true;
    }
    const value = this.tokens.values[last];
    return this.tokens.kinds[last] === TokenKind.Mark && value !== ')' && value !== ']';
  }

  private digits(from: number): number {
    let end = from;
    for (let code = this.code(end); isDigit(code) || code === 95; code = this.code(end)) {
      end += 1;
    }
    return end;
  }

  private number(): void {
    const start = this.at;
    if (this.code(start) === 48 && (this.code(start + 1) | 32) === 120) {
      this.hexadecimal();
      return;
    }
    let end = this.digits(start);
    let fraction = false;
    if (this.code(end) === 46) {
      fraction = true;
      end = this.digits(end + 1);
      if (this.code(end) === 46) {
        this.bad(end, end + 1, 'too many dots');
        return;
      }
    }
    const exponent = this.exponent(end);
    if (exponent > end) {
      fraction = true;
      end = exponent;
    }
    const suffixStart = end;
    while (isWordPart(this.code(end))) {
      end += 1;
    }
    this.classifyNumber(start, suffixStart, end, fraction);
  }

  /** Returns the end of the exponent that starts at `from`, or `from` if there is none. */
  private exponent(from: number): number {
    if ((this.code(from) | 32) !== 101) {
      return from;
    }
    const sign = this.code(from + 1);
    const digits = from + (sign === 43 || sign === 45 ? 2 : 1);
    return isDigit(this.code(digits)) ? this.digits(digits) : from;
  }

  private classifyNumber(start: number, suffixStart: number, end: number, fraction: boolean): void {
    if (suffixStart === end) {
      this.push(fraction ? TokenKind.Float : TokenKind.Integer, start, end, '');
      return;
    }
    const suffix = this.text.slice(suffixStart, end);
    if (!fraction && /^[lL]$/.test(suffix)) {
      this.push(TokenKind.Integer, start, end, '');
    } else if (/^[fF]$/.test(suffix) || (fraction && /^[dD]$/.test(suffix))) {
      this.push(TokenKind.Float, start, end, '');
    } else if (fraction && /^[mM]$/.test(suffix)) {
      this.push(TokenKind.Decimal, start, end, '');
    } else if (!fraction) {
      this.push(TokenKind.Duration, start, end, '');
    } else {
      this.bad(start, end, `invalid constant: ${this.text.slice(start, end)}`);
    }
  }

  private hexadecimal(): void {
    const start = this.at;
    let end = start + 2;
    while (isWordPart(this.code(end))) {
      end += 1;
    }
    const text = this.text.slice(start, end);
    if (/^0[xX][0-9a-fA-F]{1,64}$/.test(text)) {
      this.push(TokenKind.Long256, start, end, '');
    } else {
      this.bad(start, end, `invalid constant: ${text}`);
    }
  }

  private enclosed(quote: string, kind: TokenKind, unclosed: string): void {
    const start = this.at;
    let close = this.text.indexOf(quote, start + 1);
    while (close >= 0 && this.text[close + 1] === quote) {
      close = this.text.indexOf(quote, close + 2);
    }
    if (close < 0) {
      this.bad(start, this.text.length, unclosed);
    } else {
      this.push(kind, start, close + 1, '');
    }
  }

  /** Reads `'…'`; directly after an E, a backslash escapes the next character. */
  private string(): void {
    const { starts, ends, values } = this.tokens;
    const touches = ends.at(-1) === this.at && (starts.at(-1) ?? 0) === this.at - 1;
    if (!touches || values.at(-1) !== 'E') {
      this.enclosed("'", TokenKind.String, 'unclosed quoted string?');
      return;
    }
    const start = this.at;
    for (let at = start + 1; at < this.text.length; at += 1) {
      const code = this.code(at);
      if (code === 92 || (code === 39 && this.code(at + 1) === 39)) {
        at += 1;
      } else if (code === 39) {
        this.push(TokenKind.String, start, at + 1, '');
        return;
      }
    }
    this.bad(start, this.text.length, 'unclosed quoted string?');
  }

  /** Reads `$1`, `$$…$$` or `$tag$…$tag$`; the last two have no escapes. */
  private dollar(): void {
    const start = this.at;
    let end = start + 1;
    if (isWordStart(this.code(end))) {
      do {
        end += 1;
      } while (isWordPart(this.code(end)) && this.code(end) !== DOLLAR);
    }
    if (this.code(end) !== DOLLAR) {
      this.prefixed(TokenKind.Parameter, isDigit);
      return;
    }
    const tag = this.text.slice(start, end + 1);
    const close = this.text.indexOf(tag, end + 1);
    if (close < 0) {
      this.bad(start, this.text.length, `unclosed dollar-quoted string, ${tag} expected`);
    } else {
      this.push(TokenKind.String, start, close + tag.length, '');
    }
  }

  private geohash(): void {
    const start = this.at;
    const match = /^(?:##[01]{1,60}|#[0-9a-zA-Z]{1,12}(?:\/[0-9]{1,2})?)/.exec(
      this.text.slice(start, start + 64),
    );
    if (match !== null && !isWordPart(this.code(start + match[0].length))) {
      this.push(TokenKind.Geohash, start, start + match[0].length, '');
      return;
    }
    let end = start + 1;
    while (isWordPart(this.code(end)) || this.code(end) === 35) {
      end += 1;
    }
    this.bad(start, end, `invalid constant: ${this.text.slice(start, end)}`);
  }

  /** Reads a prefix character and the characters that belong to it: `$1`, `@name`, `:name`. */
  private prefixed(kind: TokenKind, belongs: (code: number) => boolean): void {
    const start = this.at;
    let end = start + 1;
    while (belongs(this.code(end))) {
      end += 1;
    }
    if (end > start + 1) {
      this.push(kind, start, end, '');
    } else {
      this.bad(start, end, `unexpected character '${this.text.charAt(start)}'`);
    }
  }

  private mark(): void {
    const start = this.at;
    const character = this.text.charAt(start);
    for (const mark of MARKS_BY_FIRST.get(character) ?? []) {
      if (!this.text.startsWith(mark, start)) {
        continue;
      }
      if (mark === '[') {
        this.brackets += 1;
      }
      if (mark === ']') {
        this.brackets = Math.max(0, this.brackets - 1);
      }
      this.push(TokenKind.Mark, start, start + mark.length, mark);
      return;
    }
    const shown = this.code(start) < 32 ? `\\u${this.code(start).toString(16)}` : character;
    this.bad(start, start + 1, `unexpected character '${shown}'`);
  }
}

/**
 * Returns all tokens, ending with an `End` token; unreadable input is returned as `Bad` tokens.
 * With `packs`, rows of plain literals after the VALUES of an INSERT become one token.
 */
export function scan(text: string, packs = false): Tokens {
  return new Scanner(text, packs).run();
}

/** Like `scan`, but throws a syntax error at the first unreadable input. */
export function tokenize(text: string, packs = false): Tokens {
  const tokens = scan(text, packs);
  const bad = tokens.kinds.indexOf(TokenKind.Bad);
  if (bad >= 0) {
    throw new SyntaxError_(tokens.values[bad] ?? '', tokens.starts[bad] ?? 0, tokens.ends[bad]);
  }
  return tokens;
}

/**
 * Splits a CSV sample into lines and fields, following the rules of the engine's reader. A field
 * that begins with `"` is quoted. Inside it, `""` is one quote, and line ends are part of the
 * value. CRLF, LF and CR end a line. Blank lines do not count.
 */

/** Delimiters that can be detected, most common first. */
export const DELIMITER_CANDIDATES = [',', '\t', '|', ';', ':', ' '] as const;

interface SampleLines {
  /** Complete lines. */
  readonly terminated: readonly string[];
  /** The text after the last line end; may be empty. */
  readonly remainder: string;
  /**
   * Whether `remainder` is a complete line with closed quotes, because it is the last line of the
   * input.
   */
  readonly isRemainderLine: boolean;
}

/**
 * Splits text into at most `limit` lines. While the delimiter is unknown, a quote after any of
 * `delimiters` opens a field.
 */
export function splitLines(
  text: string,
  delimiters: readonly string[],
  limit: number,
): SampleLines {
  const terminated: string[] = [];
  let start = 0;
  let at = 0;
  let isClosed = true;
  while (at < text.length && terminated.length < limit) {
    const character = text[at] ?? '';
    const opensField = at === start || delimiters.includes(text[at - 1] ?? '');
    if (character === '"' && opensField) {
      const end = skipQuoted(text, at);
      isClosed = end !== null;
      at = end ?? text.length;
    } else if (character === '\n' || character === '\r') {
      if (at > start) {
        terminated.push(text.slice(start, at));
      }
      at += 1;
      start = at;
    } else {
      at += 1;
    }
  }
  const remainder = text.slice(start);
  const isRemainderLine =
    remainder !== '' && (at < text.length ? !/[\r\n]/.test(remainder) : isClosed);
  return { terminated, remainder, isRemainderLine };
}

/**
 * Returns the index after the closing quote of the field that starts at `open`; `null` if the quote
 * is not closed.
 */
function skipQuoted(text: string, open: number): number | null {
  let at = open + 1;
  for (;;) {
    const quote = text.indexOf('"', at);
    if (quote < 0) {
      return null;
    }
    if (text[quote + 1] !== '"') {
      return quote + 1;
    }
    at = quote + 2;
  }
}

/** Splits a line into fields. */
export function splitFields(line: string, delimiter: string): string[] {
  const fields: string[] = [];
  let at = 0;
  for (;;) {
    let end: number;
    const close = line[at] === '"' ? (skipQuoted(line, at) ?? line.length) : at;
    const isQuoted = close > at + 1 && (close === line.length || line[close] === delimiter);
    if (isQuoted) {
      end = close;
      fields.push(line.slice(at + 1, close - 1).replaceAll('""', '"'));
    } else {
      const delimiterAt = line.indexOf(delimiter, close);
      end = delimiterAt < 0 ? line.length : delimiterAt;
      fields.push(line.slice(at, end));
    }
    if (end >= line.length) {
      return fields;
    }
    at = end + 1;
  }
}

/** Counts the delimiters outside quotes in a line. */
export function countDelimiter(line: string, delimiter: string): number {
  return splitFields(line, delimiter).length - 1;
}

/** Backslash escapes in `E'…'`, as in PostgreSQL. */
import type { Parser } from '../parser/parser.js';

const LETTERS: Readonly<Record<string, string>> = {
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/** Matches adjacent byte escapes as one string: `\xc3\xa9` is one letter. */
const ESCAPE =
  /((?:\\x[0-9a-fA-F]{1,2}|\\[0-7]{1,3})+)|\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)/gsu;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Returns the string at the cursor with its escapes replaced. */
export function escapedText(p: Parser): string {
  const text = p
    .unquoted()
    .replace(ESCAPE, (_, bytes?: string, unit?: string, point?: string, letter?: string) => {
      if (bytes !== undefined) {
        return bytesText(p, bytes);
      }
      const code = unit ?? point;
      if (code !== undefined) {
        return character(p, Number.parseInt(code, 16));
      }
      return LETTERS[letter ?? ''] ?? letter ?? '';
    });
  const half = /\p{Surrogate}/u.exec(text);
  if (half !== null) {
    const code = half[0].charCodeAt(0).toString(16);
    p.fail(`\\u${code} is half of a surrogate pair: use both halves, or \\U followed by 8 digits`);
  }
  return text;
}

function bytesText(p: Parser, escapes: string): string {
  const bytes = Array.from(escapes.matchAll(/\\(?:x([^\\]+)|([0-7]+))/gu), ([, hex, octal]) =>
    hex === undefined ? Number.parseInt(octal ?? '', 8) & 0xff : Number.parseInt(hex, 16),
  );
  if (bytes.includes(0)) {
    p.fail('a string cannot contain a NUL character');
  }
  try {
    return utf8.decode(Uint8Array.from(bytes));
  } catch {
    return p.fail(`escaped bytes are not valid UTF-8: ${escapes}`);
  }
}

function character(p: Parser, code: number): string {
  if (code === 0 || code > 0x10_ff_ff) {
    p.fail(`invalid character in an escape: ${code.toString(16)}`);
  }
  // Adjacent surrogates combine into one character.
  return code <= 0xff_ff ? String.fromCharCode(code) : String.fromCodePoint(code);
}

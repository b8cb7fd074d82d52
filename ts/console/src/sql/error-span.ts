/** Finds the word that caused an error, and suggests the word that the user probably meant. */
import { nearest } from './names.js';
import { scan, type Token } from './scanner.js';
import { spanAt } from './statements.js';

interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the word that the user probably meant: the most similar of the expected words listed in
 * the message, in the case of the written word.
 */
export function expectedWord(written: string, message: string): string | undefined {
  const words = [...message.matchAll(/'([a-z]+)'/gi)].map(([, word = '']) => word);
  const near = nearest(written, words);
  return written === written.toUpperCase() ? near?.toUpperCase() : near;
}

/** Error messages whose reported position is the beginning of the statement. */
const NAMED: readonly RegExp[] = [
  /^inconvertible value: (?:`(?<quoted>[^`]*)`|(?<value>.*?)) \[/s,
  /^Access denied \[[^\]]* on (?<table>[^(\]]+)/s,
];

/**
 * Finds the value or table that a message names. A value that occurs twice is ambiguous and yields
 * `undefined`.
 */
function namedIn(text: string, offset: number, message: string): Token | undefined {
  const groups = NAMED.map((form) => form.exec(message)?.groups).find((found) => found);
  if (groups === undefined) {
    return undefined;
  }
  const { table, quoted, value = quoted ?? '' } = groups;
  const behind = scan(text).filter(({ start }) => start >= offset);
  const end = behind.findIndex(({ kind }) => kind === 'separator');
  const named = behind.slice(0, end < 0 ? behind.length : end).filter((token) => {
    const written = text.slice(token.start, token.end);
    return table === undefined
      ? written === `'${value.replaceAll("'", "''")}'`
      : written.replaceAll(/^["']|["']$/g, '').toLowerCase() === table.toLowerCase();
  });
  return table === undefined && named.length > 1 ? undefined : named[0];
}

/**
 * Returns the range to mark as wrong: the token at the offset, or the misspelt word before it. If
 * the message contains a qualified name, only the last part of the name is marked.
 */
export function wrongSpan(text: string, offset: number, message: string): Span {
  const span = spanAt(text, offset);
  const tokens = scan(text);
  const before = tokenBefore(tokens, span.start);
  const isFirst = before === undefined || before.kind === 'separator';
  const named = isFirst ? namedIn(text, offset, message) : undefined;
  if (named !== undefined) {
    return named;
  }
  if (before !== undefined && expectedWord(text.slice(before.start, before.end), message)) {
    return before;
  }
  const suffix = /^(?:\.\w+)+/.exec(text.slice(span.end))?.[0] ?? '';
  const whole = text.slice(span.start, span.end + suffix.length);
  if (suffix === '' || !message.includes(whole)) {
    return span;
  }
  const end = span.end + suffix.length;
  return { start: text.lastIndexOf('.', end - 1) + 1, end };
}

function tokenBefore(tokens: readonly Token[], offset: number): Token | undefined {
  return tokens.findLast(({ kind, end }) => kind !== 'comment' && end <= offset);
}

/** Which statements a text holds, and which one is meant by a cursor. */
import { scan, type Token } from './scanner.js';

export interface Statement {
  /** First character that is neither blank nor comment. */
  readonly start: number;
  /** Behind the last such character, without the semicolon. */
  readonly end: number;
  /** Behind the semicolon, where there is one. */
  readonly close: number;
}

/** The statements of a text. Comments belong to none; empty statements are left out. */
export function statementsOf(tokens: readonly Token[]): Statement[] {
  const found: Statement[] = [];
  let first: Token | undefined;
  let last: Token | undefined;
  for (const token of tokens) {
    if (token.kind === 'comment') {
      continue;
    }
    if (token.kind !== 'separator') {
      first ??= token;
      last = token;
      continue;
    }
    if (first && last) {
      found.push({ start: first.start, end: last.end, close: token.end });
    }
    first = last = undefined;
  }
  if (first && last) {
    found.push({ start: first.start, end: last.end, close: last.end });
  }
  return found;
}

/**
 * The statement a cursor is in. Behind a semicolon on the same line it is still the one that
 * was closed there; between statements it is the next one, at the end of the text the last one.
 */
export function statementAt(
  text: string,
  offset: number,
  statements: readonly Statement[] = statementsOf(scan(text)),
): Statement | undefined {
  let before: Statement | undefined;
  for (const statement of statements) {
    if (offset < statement.start) {
      const sameLine = before && !text.slice(before.close, offset).includes('\n');
      return sameLine ? before : statement;
    }
    if (offset <= statement.end) {
      return statement;
    }
    before = statement;
  }
  return before;
}

/** The part of the text that an error position points at: the token there, or one character. */
export function spanAt(text: string, offset: number): { start: number; end: number } {
  const at = Math.max(0, Math.min(offset, text.length));
  const token = scan(text).find((candidate) => candidate.start <= at && at < candidate.end);
  if (token) {
    return { start: Math.max(token.start, at), end: token.end };
  }
  const start = at === text.length ? Math.max(0, at - 1) : at;
  return { start, end: Math.min(text.length, start + 1) };
}

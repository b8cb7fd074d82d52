/** Finds the statements in a text, and the statement at the cursor. */
import { scan, type Token } from './scanner.js';

export interface Statement {
  /** Position of the first character that is neither whitespace nor comment. */
  readonly start: number;
  /**
   * Position after the last character that is neither whitespace nor comment, without the
   * semicolon.
   */
  readonly end: number;
  /** Position after the semicolon; equal to `end` if the statement has no semicolon. */
  readonly close: number;
}

/**
 * Returns the statements of a text. Comments between statements are ignored, and empty statements
 * are omitted.
 */
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
 * Returns the statement at the cursor. After a semicolon on the same line, this is the statement
 * that ends there; between statements, the next one; at the end of the text, the last one.
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

/**
 * Returns the range to mark for an error position: the token at that position, or one character.
 */
export function spanAt(text: string, offset: number): { start: number; end: number } {
  const at = Math.max(0, Math.min(offset, text.length));
  const token = scan(text).find((candidate) => candidate.start <= at && at < candidate.end);
  if (token) {
    return { start: Math.max(token.start, at), end: token.end };
  }
  const start = at === text.length ? Math.max(0, at - 1) : at;
  return { start, end: Math.min(text.length, start + 1) };
}

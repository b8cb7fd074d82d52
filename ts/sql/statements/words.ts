/** Small productions that several session statements share. */
import { AFTER_SOURCE } from '../lexer/keywords.js';
import { TokenKind } from '../lexer/lexer.js';
import type { StatementText } from '../lexer/split.js';
import type { Parser } from '../parser/parser.js';

export function ended(p: Parser): boolean {
  return p.atEnd() || p.at(';');
}

/** Returns whether the current token is the statement's last. */
export function isLast(p: Parser): boolean {
  return p.kind(1) === TokenKind.End || p.value(1) === ';';
}

/**
 * Consumes an optional word before a name. If the word is the last one of the statement, it is the
 * name itself and is not consumed.
 */
export function takeBeforeName(p: Parser, word: string): void {
  if (!isLast(p)) {
    p.take(word);
  }
}

/** Skips words that have no effect. */
export function skipping<T>(p: Parser, statement: T): T {
  while (!ended(p)) {
    p.advance();
  }
  return statement;
}

/**
 * Returns whether the preceding word is a command. It could also be a table name, but then a clause
 * of a query would follow.
 */
export function atCommand(p: Parser): boolean {
  const isCount = p.kind() === TokenKind.Integer || p.at('-') || p.at('+');
  const isNameOrCount = p.kind() === TokenKind.Quoted || isCount;
  return isNameOrCount || p.at('FROM') || p.at('IN') || (isWord(p) && !p.atAnyOf(AFTER_SOURCE));
}

export function isWord(p: Parser): boolean {
  return p.kind() === TokenKind.Word;
}

/** Parses a name without its quotes, folded as in PostgreSQL. Any word can be a name. */
export function foldedName(p: Parser, missing: string): string {
  if (p.kind() === TokenKind.Quoted) {
    return p.takeName(true).text;
  }
  if (!isWord(p)) {
    p.fail(`${missing} expected`);
  }
  return p.takeName(false).text.toLowerCase();
}

/** Returns the SQL text from the current token to the end of the statement. */
export function remainingText(p: Parser, missing: string): StatementText {
  if (ended(p)) {
    p.fail(missing);
  }
  const start = p.start();
  while (!ended(p)) {
    p.advance();
  }
  return { text: p.text.slice(start, p.lastEnd()), start };
}

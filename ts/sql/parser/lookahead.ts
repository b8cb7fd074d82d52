/** Tests what can start at the current token, and checks closing brackets. */
import { CALLABLE, OPERAND_STARTS } from '../lexer/keywords.js';
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from './parser.js';

/** Marks that can start an operand. */
const OPERAND_MARKS: ReadonlySet<string> = new Set(['(', '[', '-', '+', '~', '~~', '?', '*']);

/** Words that start an operand. */
const OPERAND_WORDS = ['CASE', 'CAST', 'NOT', 'NULL', 'TRUE', 'FALSE', 'ARRAY', 'EXISTS'];

/** Returns whether an operand can start at the current token. */
export function atOperand(p: Parser): boolean {
  p.suggestContext('expression');
  p.suggest(OPERAND_WORDS);
  const kind = p.kind();
  if (kind === TokenKind.Word) {
    if (!p.atReserved() || p.atColumnWord()) {
      return true;
    }
    if (p.atAnyOf(CALLABLE) && p.value(1) === '(') {
      return true;
    }
    return p.atAnyOf(OPERAND_STARTS);
  }
  if (kind === TokenKind.Mark) {
    return OPERAND_MARKS.has(p.value());
  }
  return kind !== TokenKind.End && kind !== TokenKind.Hint && kind !== TokenKind.Bad;
}

/** Consumes the closing square bracket for `open`, or fails. */
export function closeBracket(p: Parser, open: number): void {
  if (p.take(']')) {
    return;
  }
  if (p.atEnd()) {
    p.failAt('unbalanced [', open, open + 1);
  }
  p.fail("',' or ']' expected");
}

/** Tokens that show that ALL is a column name. In `SELECT ALL x`, an operand follows instead. */
const AFTER_COLUMN: ReadonlySet<string> = new Set(
  (
    ', ) ; . = < > <= >= <> != :: FROM AS IS IN LIKE BETWEEN WHERE ORDER LIMIT UNION EXCEPT ' +
    'INTERSECT AND OR'
  ).split(' '),
);

/**
 * Skips `ALL`, the opposite of DISTINCT, unless it is a column name. It has no effect because it is
 * the default.
 */
export function takeAll(p: Parser): void {
  if (p.sees('ALL') && p.kind(1) !== TokenKind.End && !AFTER_COLUMN.has(p.value(1))) {
    p.advance();
  }
}

/** Returns whether a query (not an expression) starts here. */
export function atQuery(p: Parser): boolean {
  const begins = p.at('SELECT') || p.at('DECLARE') || p.at('VALUES', '(');
  return begins || (p.at('WITH') && p.value(1) !== 'OFFSET');
}

/**
 * Fails unless an operand follows. Inside parentheses, an unexpected keyword is reported as a
 * dangling literal.
 */
export function requireOperand(p: Parser, open: number): void {
  if (atOperand(p) && !p.at('*')) {
    return;
  }
  if (p.atEnd()) {
    p.failAt('unbalanced (', open, open + 1);
  }
  if (p.kind() === TokenKind.Word && p.kind(1) !== TokenKind.Mark && p.kind(1) !== TokenKind.End) {
    p.advance();
    p.fail('dangling literal');
  }
  p.fail('expression expected');
}

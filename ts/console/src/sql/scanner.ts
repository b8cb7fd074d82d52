/**
 * Adapts the project's lexer for the editor, which needs token colours, statement boundaries and
 * the word at a position.
 *
 * The lexer omits comments and marks text that it cannot read. This module finds comments in the
 * gaps between tokens, and keeps the colour of a half-typed string or comment.
 */
import { scan as lex, TokenKind as Lexed, type Tokens } from '../../../sql/lexer/lexer.js';
import { isAlsoFunction, isKeyword } from './keywords.js';

type TokenKind =
  | 'keyword'
  | 'function'
  | 'identifier'
  | 'string'
  | 'number'
  | 'variable'
  | 'comment'
  | 'operator'
  | 'separator';

export interface Token {
  readonly kind: TokenKind;
  readonly start: number;
  readonly end: number;
}

const KINDS: ReadonlyMap<Lexed, TokenKind> = new Map<Lexed, TokenKind>([
  [Lexed.Quoted, 'identifier'],
  [Lexed.String, 'string'],
  [Lexed.Integer, 'number'],
  [Lexed.Float, 'number'],
  [Lexed.Decimal, 'number'],
  [Lexed.Long256, 'number'],
  [Lexed.Geohash, 'number'],
  [Lexed.Duration, 'number'],
  [Lexed.Parameter, 'variable'],
  [Lexed.NamedParameter, 'variable'],
  [Lexed.Variable, 'variable'],
  [Lexed.Hint, 'comment'],
]);

const COMMENT = /--[^\n]*|\/\*[^]*?\*\//g;

/** Returns all tokens in order, including comments but not whitespace. Never throws. */
export function scan(text: string): Token[] {
  const lexed = lex(text);
  const tokens: Token[] = [];
  let before = 0;
  for (let index = 0; index < lexed.kinds.length; index += 1) {
    const start = lexed.starts[index] ?? text.length;
    pushComments(tokens, text, before, start);
    const end = lexed.ends[index] ?? text.length;
    if (end > start) {
      tokens.push({ kind: kindOf(lexed, index), start, end });
    }
    before = end;
  }
  return tokens;
}

function pushComments(tokens: Token[], text: string, from: number, to: number): void {
  if (to - from < 2) {
    return;
  }
  for (const { 0: comment, index } of text.slice(from, to).matchAll(COMMENT)) {
    tokens.push({ kind: 'comment', start: from + index, end: from + index + comment.length });
  }
}

function kindOf(lexed: Tokens, index: number): TokenKind {
  const kind = lexed.kinds[index] ?? Lexed.End;
  const value = lexed.values[index] ?? '';
  if (kind === Lexed.Word) {
    const isCalled = lexed.values[index + 1] === '(';
    return namesSomething(lexed, index) ? nameKind(isCalled) : wordKind(value, isCalled);
  }
  if (kind === Lexed.Mark) {
    return value === ';' ? 'separator' : 'operator';
  }
  if (kind === Lexed.Bad) {
    const start = lexed.starts[index] ?? 0;
    return unreadableKind(lexed.text.charAt(start), (lexed.ends[index] ?? 0) - start);
  }
  return KINDS.get(kind) ?? 'operator';
}

/** A word after AS or a dot is a name, even if it is a keyword. */
function namesSomething({ values }: Tokens, index: number): boolean {
  return values[index - 1] === 'AS' || values[index - 1] === '.';
}

function nameKind(isCalled: boolean): TokenKind {
  return isCalled ? 'function' : 'identifier';
}

function wordKind(word: string, isCalled: boolean): TokenKind {
  const isName = !isKeyword(word) || (isCalled && isAlsoFunction(word));
  return isName ? nameKind(isCalled) : 'keyword';
}

/**
 * Returns the kind of an unreadable token whose first character is `first`. A dollar sign followed
 * by more text is an unclosed string.
 */
function unreadableKind(first: string, length: number): TokenKind {
  switch (first) {
    case "'":
      return 'string';
    case '$':
      return length > 1 ? 'string' : 'operator';
    case '"':
    case '`':
      return 'identifier';
    case '/':
      return 'comment';
    default:
      return /[\d.#]/.test(first) ? 'number' : 'operator';
  }
}

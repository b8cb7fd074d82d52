/**
 * The project's lexer as the editor needs it: colours, statement borders, the word at a place.
 *
 * The lexer leaves comments out and marks what it cannot read. Here comments are found again in
 * the gaps between its tokens, and a half-typed string or comment keeps its colour.
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

/** Every token of the text, in order, comments included; blanks are left out. Never fails. */
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

/** After AS and after a dot follows a name, whatever else the word means. */
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

/** What an unreadable part was meant to be, by its first character. */
/** `first` begins the token; a dollar with more behind it is a string that nothing closes. */
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

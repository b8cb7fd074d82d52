/**
 * SQL text to tree, and back. Knows no semantics: no table, type or function is looked up here.
 *
 * Imports nothing but this folder, no Node module either: the console runs it in the browser.
 */
import type { Tree } from './ast.generated.js';
import { parseExpression, parseOperand } from './expressions/expression.js';
import { refuseRows } from './expressions/row.js';
import { scan, TokenKind } from './lexer/lexer.js';
import { Parser, type Grammar, type Probe, type ProbeContext } from './parser/parser.js';
import { parseQuery } from './queries/query.js';
import type { SessionStatement } from './statements/session-statement.js';
import { nearWord } from './parser/near-word.js';
import { FIRST_WORDS, parseStatement } from './statements/statement.js';
import { SyntaxError_ } from './lexer/syntax-error.js';

export type * from './ast.generated.js';
export type { CopyStream, CopyStreamOptions } from './statements/copy-stream.js';
export { scan, TokenKind, type Tokens, unquote } from './lexer/lexer.js';
export { print } from './printer/printer.js';
export { scopeAt, type Scope } from './lexer/scope.js';
export type {
  DeclareCursor,
  CursorStep,
  FetchCursor,
  SessionStatement,
} from './statements/session-statement.js';
export { SyntaxError_ } from './lexer/syntax-error.js';

const GRAMMAR: Grammar = {
  expression: parseExpression,
  operand: parseOperand,
  query: parseQuery,
};

const END = TokenKind.End;
/** Letters of a word that may be a mistyped keyword: of two letters any one is near to another. */
const MIN_WORD = 3;
/** Errors about a token that is not what may follow, not about what it means. */
const SAYS_EXPECTED = /^unexpected token| expected$/;
/** UTF-16 units behind an error that its word is read from. */
const MAX_WORD = 64;

/** One statement, as any client may send it. */
export interface Statement {
  /** As the engine and the server read it; those of the connection are words without effect. */
  readonly tree: Tree;
  /** What a statement of the connection says; null for all others. */
  readonly session: SessionStatement | null;
}

/** Reads one statement; throws `SyntaxError_`. An empty text gives an `Empty` node. */
export function readStatement(text: string): Statement {
  try {
    const parser = new Parser(text, GRAMMAR);
    const { root, session } = parseStatement(parser);
    refuseRows(parser);
    return { tree: parser.tree(root), session };
  } catch (error) {
    throw error instanceof SyntaxError_ ? withMeant(text, error) : error;
  }
}

/** The error, with the keyword that was meant where a word seems mistyped: `WERE`, `ODER BY`. */
function withMeant(text: string, error: SyntaxError_): SyntaxError_ {
  if (!SAYS_EXPECTED.test(error.message)) {
    return error;
  }
  for (const { word, end } of wordsAt(text, error.start)) {
    const { keywords } = expectedAt(text, end);
    const meant = keywords.includes(word.toUpperCase()) ? null : nearWord(word, keywords);
    if (meant !== null) {
      const message = `${error.message}: did you mean '${meant.toLowerCase()}' for '${word}'?`;
      return new SyntaxError_(message, error.start, error.end);
    }
  }
  return error;
}

/**
 * The words that may have made the parse fail at an offset: the one there, the one before it, and
 * the statement's first, which decides how everything behind it is read.
 */
function wordsAt(text: string, offset: number): { word: string; end: number }[] {
  const { kinds, starts, ends } = scan(text.slice(0, offset + MAX_WORD));
  const at = starts.findLastIndex((start, index) => start <= offset && kinds[index] !== END);
  const first = starts.findIndex((start) => start >= lastStatement(text.slice(0, offset)));
  return [at, at - 1, first].flatMap((index) => {
    const end = ends[index] ?? 0;
    const word = text.slice(starts[index], end);
    return kinds[index] === TokenKind.Word && word.length >= MIN_WORD ? [{ word, end }] : [];
  });
}

/** Its tree alone. */
export function parse(text: string): Tree {
  return readStatement(text).tree;
}

/** What may stand at one offset of a text. */
interface Expected {
  /** Where the word under the cursor begins; what is offered replaces it. */
  readonly start: number;
  /** Keywords in capitals, sorted. */
  readonly keywords: readonly string[];
  /** Places for something that is not a keyword: `table`, `expression`, `type`, `name`. */
  readonly contexts: readonly ProbeContext[];
}

/**
 * What may follow the text before `offset`. The parser itself is asked: it reads the text up to
 * there, and every word it looks for at the end is one that may stand there.
 */
export function expectedAt(text: string, offset: number): Expected {
  let before = text.slice(0, offset);
  const word = /[\p{L}_][\p{L}\p{N}_$]*$/u.exec(before);
  if (word !== null) {
    before = before.slice(0, word.index);
  }
  const statement = before.slice(lastStatement(before));
  const tokens = scan(statement);
  const nothing = { start: offset, keywords: [], contexts: [] };
  if (tokens.kinds.includes(TokenKind.Bad)) {
    return nothing;
  }
  const index = tokens.kinds.length - 1;
  const probe: Probe = { index, keywords: new Set(), contexts: new Set() };
  try {
    const parser = new Parser(statement, GRAMMAR, probe);
    if (index === 0) {
      return { ...nothing, start: before.length, keywords: FIRST_WORDS, contexts: ['table'] };
    }
    parseStatement(parser);
  } catch (error) {
    if (!(error instanceof SyntaxError_)) {
      throw error;
    }
  }
  const keywords = [...probe.keywords].filter((value) => /^[A-Z]/.test(value)).sort();
  return { start: before.length, keywords, contexts: [...probe.contexts].sort() };
}

/** Where the last statement of a text begins. */
function lastStatement(text: string): number {
  const tokens = scan(text);
  for (let index = tokens.kinds.length - 1; index >= 0; index -= 1) {
    if (tokens.values[index] === ';' && tokens.kinds[index] === TokenKind.Mark) {
      return tokens.ends[index] ?? 0;
    }
  }
  return 0;
}

/**
 * Converts SQL text to a syntax tree, and back. It has no semantics: it does not look up tables,
 * types or functions.
 *
 * It imports only from this folder and does not import any Node module, because the console runs it
 * in the browser.
 */
import type { Tree } from './ast.generated.js';
import { parseExpression, parseOperand } from './expressions/expression.js';
import { refuseRows } from './expressions/row.js';
import { scan, TokenKind } from './lexer/lexer.js';
import { Parser, type Grammar, type Probe, type ProbeContext } from './parser/parser.js';
import { parseQuery } from './queries/query.js';
import type { SessionStatement } from './statements/session-statement.js';
import { similarKeyword } from './parser/similar-keyword.js';
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
  TransactionModes,
} from './statements/session-statement.js';
export type { ExecuteStatement, PrepareStatement } from './statements/prepare.js';
export { SyntaxError_ } from './lexer/syntax-error.js';

const GRAMMAR: Grammar = {
  expression: parseExpression,
  operand: parseOperand,
  query: parseQuery,
};

const END = TokenKind.End;
/**
 * Minimum length of a word that may be a mistyped keyword; shorter words resemble too many
 * keywords.
 */
const MIN_WORD = 3;
/** Matches error messages about an unexpected or missing token, as opposed to other errors. */
const SAYS_EXPECTED = /^unexpected token| expected$/;
/** Maximum number of UTF-16 code units after an error that are searched for the mistyped word. */
const MAX_WORD = 64;

/** A statement that any client may send. */
export interface Statement {
  /** The tree for the engine and the server. For a session statement, it has no effect. */
  readonly tree: Tree;
  /** The session statement; `null` for other statements. */
  readonly session: SessionStatement | null;
  /** The query with a locking clause: `SELECT FOR UPDATE`; absent without such a clause. */
  readonly locking?: string;
}

/** Parses one statement; throws `SyntaxError_`. Empty text returns an `Empty` node. */
export function readStatement(text: string): Statement {
  try {
    const parser = new Parser(text, GRAMMAR);
    const { root, session } = parseStatement(parser);
    refuseRows(parser);
    const tree = parser.tree(root);
    return parser.locking === null ? { tree, session } : { tree, session, locking: parser.locking };
  } catch (error) {
    throw error instanceof SyntaxError_ ? withMeant(text, error) : error;
  }
}

/** Adds the intended keyword to the error if a word seems mistyped: `WERE`, `ODER BY`. */
function withMeant(text: string, error: SyntaxError_): SyntaxError_ {
  if (!SAYS_EXPECTED.test(error.message)) {
    return error;
  }
  for (const { word, end } of wordsAt(text, error.start)) {
    const { keywords } = expectedAt(text, end);
    const meant = keywords.includes(word.toUpperCase()) ? null : similarKeyword(word, keywords);
    if (meant !== null) {
      const message = `${error.message}: did you mean '${meant.toLowerCase()}' for '${word}'?`;
      return new SyntaxError_(message, error.start, error.end);
    }
  }
  return error;
}

/**
 * Returns the words that may have caused a syntax error at an offset: the word there, the word
 * before it, and the statement's first word, which determines how the remainder is parsed.
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

/** Parses one statement into its syntax tree. */
export function parse(text: string): Tree {
  return readStatement(text).tree;
}

/** The valid input at an offset in the text. */
interface Expected {
  /** Start of the word at the cursor, which a completion replaces. */
  readonly start: number;
  /** Keywords in upper case, sorted. */
  readonly keywords: readonly string[];
  /** Valid grammar elements other than keywords: `table`, `expression`, `type`, `name`. */
  readonly contexts: readonly ProbeContext[];
}

/**
 * Returns the valid input at `offset`. The parser reads the text up to that offset and records
 * every word that it would accept there.
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

/** Returns the start of the text's last statement. */
function lastStatement(text: string): number {
  const tokens = scan(text);
  for (let index = tokens.kinds.length - 1; index >= 0; index -= 1) {
    if (tokens.values[index] === ';' && tokens.kinds[index] === TokenKind.Mark) {
      return tokens.ends[index] ?? 0;
    }
  }
  return 0;
}

/**
 * SQL text to tree, and back. Knows no semantics: no table, type or function is looked up here.
 *
 * Imports nothing but this folder, no Node module either: the console runs it in the browser.
 */
import type { Tree } from './ast.generated.js';
import { parseExpression } from './expression.js';
import { Parser, type Grammar } from './parser.js';
import { parseQuery } from './query.js';
import { parseStatement } from './statement.js';

export type * from './ast.generated.js';
export { scan, tokenize, TokenKind, type Tokens } from './lexer.js';
export { MAX_HEIGHT, MAX_NESTING, MAX_TERMS, MAX_TEXT_LENGTH } from './parser.js';
export { SyntaxError_ } from './syntax-error.js';

const GRAMMAR: Grammar = { expression: parseExpression, query: parseQuery };

/** The tree of one statement; throws `SyntaxError_`. An empty text gives an `Empty` node. */
export function parse(text: string): Tree {
  const parser = new Parser(text, GRAMMAR);
  return parser.tree(parseStatement(parser));
}

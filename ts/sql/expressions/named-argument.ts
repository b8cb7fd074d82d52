/**
 * `name => value` and `name := value`, for functions with options. Each is represented as a
 * comparison in the syntax tree.
 */
import type { NodeId } from '../ast.generated.js';
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from '../parser/parser.js';

const OPTION_TAKERS: ReadonlySet<string> = new Set([
  'READ_CSV',
  'READ_CSV_AUTO',
  'READ_JSON',
  'READ_JSON_AUTO',
  'READ_NDJSON',
]);

/** Returns whether the next argument of the function `name` is an option. */
export function atNamedArgument(p: Parser, name: string): boolean {
  const isName = p.kind() === TokenKind.Word || p.kind() === TokenKind.Quoted;
  return isName && (p.value(1) === '=>' || p.value(1) === ':=') && OPTION_TAKERS.has(name);
}

export function namedArgument(p: Parser): NodeId {
  const start = p.start();
  const path = [p.takeName(p.kind() === TokenKind.Quoted)];
  const left = p.add({ kind: 'Column', path }, start, p.lastEnd());
  const operator_span = { start: p.start(), end: p.end() };
  p.advance();
  const right = p.grammar.expression(p);
  const node = { kind: 'Binary', operator: 'Equal', left, right, operator_span } as const;
  return p.add(node, start, p.lastEnd(), left, right);
}

/** `*` and its modifiers in a select list. */
import type { Name, NodeId, SelectItem } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';

/**
 * Adds a star, from `start` to `end`, that stands for all columns, or for the columns of one
 * source.
 */
export function addStar(
  p: Parser,
  start: number,
  end: number,
  qualifier: Name | null = null,
): NodeId {
  return p.add({ kind: 'Star', qualifier, exclude: [], replace: [] }, start, end);
}

/** Parses `*` with EXCLUDE and REPLACE. */
export function parseStar(p: Parser, start: number, qualifier: Name | null): NodeId {
  const exclude = p.take('EXCLUDE') || p.take('EXCEPT') ? excluded(p) : [];
  const replace = p.at('REPLACE', '(') ? (p.advance(), p.parenthesised(() => replaced(p))) : [];
  const children = replace.map((item) => item.expression);
  return p.add({ kind: 'Star', qualifier, exclude, replace }, start, p.lastEnd(), ...children);
}

function excluded(p: Parser): Name[] {
  const column = (): Name => p.columnName('column name expected');
  return p.at('(') ? p.parenthesised(column) : [column()];
}

function replaced(p: Parser): SelectItem {
  const expression = p.grammar.expression(p);
  p.expect('AS', "'as' and a column name expected");
  return { expression, alias: p.columnName('column name expected') };
}

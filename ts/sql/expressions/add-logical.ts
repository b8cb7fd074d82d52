/** Conjunctions and disjunctions. */
import type { NodeId, Span } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';

/** A chain of conditions as one node; a single condition as it is. */
export function addLogical(
  p: Parser,
  operator: 'And' | 'Or',
  operands: NodeId[],
  { start, end }: Span,
): NodeId {
  const [only] = operands;
  return only !== undefined && operands.length === 1
    ? only
    : p.add({ kind: 'Logical', operator, operands }, start, end, ...operands);
}

/** Chains of AND and OR conditions. */
import type { NodeId, Span } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';

/** Adds a chain of conditions as one node; returns a single condition unchanged. */
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

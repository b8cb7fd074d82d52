/** Function calls that do not appear as such in the SQL text. */
import type { Name, Node, NodeId } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';

/** Adds a call that other syntax represents. */
export function addCall(p: Parser, name: Name, start: number, args: readonly NodeId[]): NodeId {
  const rest = { distinct: false, order_by: [], filter: null, ignore_nulls: false, over: null };
  const node: Node = { kind: 'Call', name, arguments: [...args], ...rest };
  return p.add(node, start, p.lastEnd(), ...args);
}

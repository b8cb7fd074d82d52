/** Calls that no text names. */
import type { Name, Node, NodeId } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';

/** A call that other words or marks stand for. */
export function addCall(p: Parser, name: Name, start: number, args: readonly NodeId[]): NodeId {
  const rest = { distinct: false, order_by: [], filter: null, ignore_nulls: false, over: null };
  const node: Node = { kind: 'Call', name, arguments: [...args], ...rest };
  return p.add(node, start, p.lastEnd(), ...args);
}

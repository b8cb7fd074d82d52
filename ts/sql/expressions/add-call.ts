/** Function calls written with special SQL syntax. */
import type { Name, Node, NodeId } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';

/** Adds the function call that a special syntax represents. */
export function addCall(p: Parser, name: Name, start: number, args: readonly NodeId[]): NodeId {
  const defaults = { distinct: false, order_by: [], filter: null, ignore_nulls: false, over: null };
  const node: Node = { kind: 'Call', name, arguments: [...args], ...defaults };
  return p.add(node, start, p.lastEnd(), ...args);
}

/**
 * INTERVAL beside a time: `ts + INTERVAL '1 month 2 hours'`, `ts - $1::interval`, also times a
 * number. It becomes a call of `add_interval`, which reads the text.
 */
import type { BinaryOperator, NodeId, TypeName } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';
import { addCall } from './add-call.js';

/** The text of an interval, and what it is multiplied by; null for once. */
interface Interval {
  readonly text: NodeId;
  readonly factor: NodeId | null;
}

/** A time and an interval with `+` or `-` between them as a call; null for other operands. */
export function shiftedTime(
  p: Parser,
  operator: BinaryOperator,
  left: NodeId,
  right: NodeId,
  start: number,
): NodeId | null {
  if (operator !== 'Add' && operator !== 'Subtract') {
    return null;
  }
  const behind = intervalOf(p, right);
  const before = operator === 'Add' && behind === null ? intervalOf(p, left) : null;
  const interval = behind ?? before;
  if (interval === null) {
    return null;
  }
  const time = before === null ? left : right;
  const { text, factor } = operator === 'Add' ? interval : negative(p, interval);
  const name = { text: 'add_interval', quoted: false, span: { start, end: p.lastEnd() } };
  return addCall(p, name, start, factor === null ? [time, text] : [time, text, factor]);
}

/** The interval that a node is, or null. */
function intervalOf(p: Parser, id: NodeId): Interval | null {
  const node = p.node(id);
  switch (node.kind) {
    case 'TypedString':
      return isInterval(node.type_name) ? { text: intervalText(p, id), factor: null } : null;
    case 'Cast':
      return isInterval(node.type_name) ? { text: node.operand, factor: null } : null;
    case 'Unary': {
      const inner = node.operator === 'Minus' ? intervalOf(p, node.operand) : null;
      return inner === null ? null : negative(p, inner);
    }
    case 'Binary': {
      if (node.operator !== 'Multiply') {
        return null;
      }
      const [left, right] = [intervalOf(p, node.left), intervalOf(p, node.right)];
      const inner = left ?? right;
      const factor = left === null ? node.left : node.right;
      return inner?.factor === null ? { ...inner, factor } : null;
    }
    default:
      return null;
  }
}

/** An interval as an argument: its text; any other node as it is. */
export function intervalText(p: Parser, id: NodeId): NodeId {
  const node = p.node(id);
  if (node.kind !== 'TypedString' || !isInterval(node.type_name)) {
    return id;
  }
  const { start, end } = p.spanOf(id);
  return p.add({ kind: 'String', value: node.value }, start, end);
}

function isInterval({ name, arguments: args, dimensions }: TypeName): boolean {
  return name.toUpperCase() === 'INTERVAL' && args.length === 0 && dimensions === 0;
}

function negative(p: Parser, { text, factor }: Interval): Interval {
  const { start, end } = p.spanOf(text);
  const operand = factor ?? p.add({ kind: 'Integer', text: '1' }, start, end);
  const minus = p.add({ kind: 'Unary', operator: 'Minus', operand }, start, end, operand);
  return { text, factor: minus };
}

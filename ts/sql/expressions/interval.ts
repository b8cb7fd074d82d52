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

/** The interval that a node is, or null. It looks no deeper than one operator. */
function intervalOf(p: Parser, id: NodeId): Interval | null {
  const node = p.node(id);
  switch (node.kind) {
    case 'Unary': {
      const text = node.operator === 'Minus' ? textOf(p, node.operand) : null;
      return text === null ? null : negative(p, { text, factor: null });
    }
    case 'Binary': {
      if (node.operator !== 'Multiply') {
        return null;
      }
      const [left, right] = [textOf(p, node.left), textOf(p, node.right)];
      if (left !== null) {
        return { text: left, factor: node.right };
      }
      return right === null ? null : { text: right, factor: node.left };
    }
    default: {
      const text = textOf(p, id);
      return text === null ? null : { text, factor: null };
    }
  }
}

/** The text of `INTERVAL '…'` or `…::interval`, or null. */
function textOf(p: Parser, id: NodeId): NodeId | null {
  const node = p.node(id);
  if (node.kind === 'Cast' && isInterval(node.type_name)) {
    return node.operand;
  }
  const text = intervalText(p, id);
  return text === id ? null : text;
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

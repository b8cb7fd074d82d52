/**
 * `f(…) WITHIN GROUP (ORDER BY value)`: aggregates over values in an order. They become calls whose
 * first argument is the value.
 */
import type { NodeId, OrderItem } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';
import { parseOrderItems } from './order-items.js';

/** What takes its value this way. */
const ORDERED: ReadonlySet<string> = new Set(['PERCENTILE_CONT', 'PERCENTILE_DISC', 'MODE']);

/** The item that orders the values; null where there is no WITHIN GROUP. */
export function parseWithinGroup(p: Parser, name: string): OrderItem | null {
  if (!p.at('WITHIN', 'GROUP')) {
    return null;
  }
  if (!ORDERED.has(name.toUpperCase())) {
    const names = [...ORDERED].join(', ').toLowerCase();
    p.fail(`'${name}' takes no WITHIN GROUP; these do: ${names}`);
  }
  p.advance(2);
  const open = p.start();
  p.expect('(');
  p.expect('ORDER');
  p.expect('BY');
  const items = parseOrderItems(p);
  const [item] = items;
  if (item === undefined || items.length > 1) {
    return p.fail('WITHIN GROUP takes one expression');
  }
  p.close(open);
  return item;
}

/** Whether values count from the greatest: then theirs is the negative of what is asked for. */
export function isFromTheTop(name: string, item: OrderItem | null): boolean {
  return item !== null && item.descending && name.toUpperCase() === 'PERCENTILE_CONT';
}

/** The arguments of a call with the value that an order gives: the value, what was written, and
 * whether a value is chosen from the greatest, where this is no order of numbers. */
export function orderedArguments(
  p: Parser,
  name: string,
  written: readonly NodeId[],
  item: OrderItem,
  start: number,
): NodeId[] {
  const isNegative = isFromTheTop(name, item);
  const value = isNegative ? negative(p, item.expression, start) : item.expression;
  const list = [value, ...written];
  const isMode = name.toUpperCase() === 'MODE';
  if (isMode || (item.descending && name.toUpperCase() === 'PERCENTILE_DISC')) {
    list.push(p.add({ kind: 'Boolean', value: item.descending }, start, start));
  }
  return list;
}

/** `-operand`. */
export function negative(p: Parser, operand: NodeId, start: number): NodeId {
  const node = { kind: 'Unary', operator: 'Minus', operand } as const;
  return p.add(node, start, p.lastEnd(), operand);
}

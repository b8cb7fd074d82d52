/**
 * `f(…) WITHIN GROUP (ORDER BY value)`: ordered-set aggregates. They are converted to calls whose
 * first argument is the value.
 */
import type { NodeId, OrderItem } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';
import { parseOrderItems } from './order-items.js';

/** Functions that require WITHIN GROUP. */
const ORDERED: ReadonlySet<string> = new Set(['PERCENTILE_CONT', 'PERCENTILE_DISC', 'MODE']);

/** Parses the ORDER BY item; returns `null` without WITHIN GROUP. */
export function parseWithinGroup(p: Parser, name: string): OrderItem | null {
  if (!p.at('WITHIN', 'GROUP')) {
    return null;
  }
  if (!ORDERED.has(name.toUpperCase())) {
    const names = [...ORDERED].join(', ').toLowerCase();
    p.fail(`'${name}' does not support WITHIN GROUP; supported: ${names}`);
  }
  p.advance(2);
  const open = p.start();
  p.expect('(');
  p.expect('ORDER');
  p.expect('BY');
  const items = parseOrderItems(p);
  const [item] = items;
  if (item === undefined || items.length > 1) {
    return p.fail('WITHIN GROUP expects one expression');
  }
  p.close(open);
  return item;
}

/**
 * Returns whether `percentile_cont` sorts in descending order. In that case both the values and the
 * result are negated.
 */
export function isFromTheTop(name: string, item: OrderItem | null): boolean {
  return item !== null && item.descending && name.toUpperCase() === 'PERCENTILE_CONT';
}

/**
 * Returns the arguments of an ordered-set aggregate: the value, followed by the original arguments.
 * MODE and a descending PERCENTILE_DISC get a further argument, which states whether the order is
 * descending.
 */
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

/** Adds the node for `-operand`. */
export function negative(p: Parser, operand: NodeId, start: number): NodeId {
  const node = { kind: 'Unary', operator: 'Minus', operand } as const;
  return p.add(node, start, p.lastEnd(), operand);
}

/** The items of ORDER BY. */
import type { OrderItem } from '../ast.generated.js';
import { atOperand } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';

/** Parses ORDER BY items, after the keywords. */
export function parseOrderItems(p: Parser): OrderItem[] {
  return p.list(() => {
    if (!atOperand(p)) {
      p.fail('Expression expected');
    }
    const expression = p.grammar.expression(p);
    const descending = p.take('DESC');
    if (!descending) {
      p.take('ASC');
    }
    let nulls: OrderItem['nulls'] = null;
    if (p.take('NULLS', 'FIRST')) {
      nulls = 'First';
    } else if (p.take('NULLS', 'LAST')) {
      nulls = 'Last';
    }
    return { expression, descending, nulls };
  });
}

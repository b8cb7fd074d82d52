/**
 * Row values: `(a, b) = (c, d)`, `(a, b) IN ((1, 2), (3, 4))`, `(ts, id) > ($1, $2)`. They are
 * converted to comparisons between their members.
 */
import type { BinaryOperator, Node, NodeId, Span } from '../ast.generated.js';
import type { Parser } from '../parser/parser.js';
import { addCall } from './add-call.js';
import { addLogical } from './add-logical.js';

const NAME = 'row';

/** Expressions that are cheap enough to evaluate again for each row value in a list. */
const SHORT: ReadonlySet<Node['kind']> = new Set<Node['kind']>([
  'Column',
  'Parameter',
  'NamedParameter',
  'Null',
  'Boolean',
  'Integer',
  'Decimal',
  'Float',
  'String',
  'TypedString',
]);

/**
 * For each comparison of rows: the strict operator for all members except the last, and the
 * non-strict operator that the first member must satisfy.
 */
const ORDERS: Readonly<Partial<Record<BinaryOperator, readonly [BinaryOperator, BinaryOperator]>>> =
  {
    Less: ['Less', 'LessOrEqual'],
    LessOrEqual: ['Less', 'LessOrEqual'],
    Greater: ['Greater', 'GreaterOrEqual'],
    GreaterOrEqual: ['Greater', 'GreaterOrEqual'],
  };

/** Parses the remainder of a row value; the current token is the comma after its first member. */
export function remainingRow(p: Parser, first: NodeId, open: number): NodeId {
  p.expect(',');
  const remaining = p.list(() => p.grammar.expression(p));
  p.close(open);
  const name = { text: NAME, quoted: false, span: { start: open, end: open + 1 } };
  const row = addCall(p, name, open, [first, ...remaining]);
  p.rows.add(row);
  return row;
}

/** Adds a call for `(start, end) OVERLAPS (start, end)`. */
export function overlapping(
  p: Parser,
  left: NodeId,
  right: NodeId,
  span: Span,
  start: number,
): NodeId {
  const ranges = [left, right].map((id) => {
    const values = takeRowMembers(p, id);
    if (values?.length !== 2) {
      const at = p.spanOf(id);
      p.failAt('OVERLAPS expects two rows: (start, end) or (start, length)', at.start, at.end);
    }
    return values;
  });
  return addCall(p, { text: 'overlaps', quoted: false, span }, start, ranges.flat());
}

/** Refuses a statement in which a row value is not compared. */
export function refuseRows(p: Parser): void {
  for (const row of p.rows) {
    const { start, end } = p.spanOf(row);
    p.failAt('row values support only =, <>, <, <=, >, >=, IN and OVERLAPS', start, end);
  }
}

/**
 * Returns the members of a row value that is used as a list of keys, as in GROUP BY; `null` if the
 * node is not a row.
 */
export function takeRowMembers(p: Parser, id: NodeId): readonly NodeId[] | null {
  const values = valuesOf(p, id);
  p.rows.delete(id);
  return values;
}

/** Compares two row values member by member; returns `null` if neither side is a row value. */
export function comparedRows(
  p: Parser,
  operator: BinaryOperator,
  left: NodeId,
  right: NodeId,
  operatorSpan: Span,
): NodeId | null {
  const [ours, theirs] = [valuesOf(p, left), valuesOf(p, right)];
  if (ours === null && theirs === null) {
    return null;
  }
  p.rows.delete(left);
  p.rows.delete(right);
  const rows = { ours: ours ?? [left], theirs: theirs ?? [right] };
  if (rows.ours.length !== rows.theirs.length) {
    const message = `cannot compare rows of length ${rows.ours.length} and ${rows.theirs.length}`;
    p.failAt(`${message}; both must have the same length`, operatorSpan.start, operatorSpan.end);
  }
  const span = { start: p.spanOf(left).start, end: p.spanOf(right).end };
  const pairs = rows.ours.map((value, at) => [value, rows.theirs[at] ?? value] as const);
  const compare = (
    by: BinaryOperator,
    [ourMember, theirMember]: (typeof pairs)[number],
  ): NodeId => {
    if (valuesOf(p, ourMember) !== null || valuesOf(p, theirMember) !== null) {
      p.failAt('nested row values are not supported: list all values', span.start, span.end);
    }
    const node = { left: ourMember, right: theirMember, operator_span: operatorSpan } as const;
    return p.add(
      { kind: 'Binary', operator: by, ...node },
      span.start,
      span.end,
      ourMember,
      theirMember,
    );
  };
  const each = (by: BinaryOperator): NodeId[] => pairs.map((pair) => compare(by, pair));
  if (operator === 'Equal' || operator === 'NotEqual') {
    return addLogical(p, operator === 'Equal' ? 'And' : 'Or', each(operator), span);
  }
  const order = ORDERS[operator];
  const [first] = pairs;
  if (order === undefined || first === undefined) {
    return p.failAt('row values support only =, <>, <, <=, >, >= and IN', span.start, span.end);
  }
  const [strict, loose] = order;
  // Built from the last member to the first. For `<`, a member must either be less, or be equal
  // while the condition on the following members holds.
  const comparison = pairs.slice(0, -1).reduceRight(
    (condition, pair) => {
      const equal = addLogical(p, 'And', [compare('Equal', pair), condition], span);
      return addLogical(p, 'Or', [compare(strict, pair), equal], span);
    },
    compare(operator, pairs.at(-1) ?? first),
  );
  // A redundant condition on the first member makes a time range or a zone map usable.
  return addLogical(p, 'And', [compare(loose, first), comparison], span);
}

/**
 * Returns the condition that a row value is in a list of row values; `null` if none of them is a
 * row.
 */
export function rowAmong(
  p: Parser,
  row: NodeId,
  items: readonly NodeId[],
  negated: boolean,
  operatorSpan: Span,
): NodeId | null {
  if (valuesOf(p, row) === null && items.every((item) => valuesOf(p, item) === null)) {
    return null;
  }
  const span = { start: p.spanOf(row).start, end: p.lastEnd() };
  if (items.length > 1 && !(valuesOf(p, row) ?? [row]).every((value) => isShort(p, value))) {
    const message = 'a row before IN can contain only columns, constants and their casts';
    p.failAt(`${message}; compute other values in a sub-query`, span.start, p.spanOf(row).end);
  }
  const equal = items.map((item) => comparedRows(p, 'Equal', row, item, operatorSpan) ?? item);
  const among = addLogical(p, 'Or', equal, span);
  return negated
    ? p.add({ kind: 'Unary', operator: 'Not', operand: among }, span.start, span.end, among)
    : among;
}

/** Returns whether a value is a column, a constant or a cast of one of these. */
function isShort(p: Parser, id: NodeId): boolean {
  const node = p.node(id);
  return node.kind === 'Cast' ? isShort(p, node.operand) : SHORT.has(node.kind);
}

/** Returns the members of a row value; `null` for any other expression. */
export function valuesOf(p: Parser, id: NodeId): readonly NodeId[] | null {
  const node = p.node(id);
  const isRow = node.kind === 'Call' && !node.name.quoted && node.name.text.toLowerCase() === NAME;
  return isRow && node.arguments.length > 1 ? node.arguments : null;
}

/** Operands with special syntax: names and calls, CASE, CAST, EXISTS, ARRAY, windows. */
import type {
  Anchor,
  AnchorPeriod,
  CallNode,
  Frame,
  FrameBound,
  Name,
  NodeId,
  WindowSpec,
} from '../ast.generated.js';
import { FRAME_UNITS } from '../lexer/keywords.js';
import { TokenKind } from '../lexer/lexer.js';
import { atOperand, atQuery, closeBracket, requireOperand, takeAll } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';
import { addStar } from './add-star.js';
import { atNamedArgument, namedArgument } from './named-argument.js';
import { parseOrderItems } from './order-items.js';
import { parseType } from './type-name.js';
import { addCall } from './add-call.js';
import { isFromTheTop, negative, orderedArguments, parseWithinGroup } from './within-group.js';

/** `a`, `t.a`, `f(…)`, `s.f(…)`. */
export function callOrColumn(p: Parser): NodeId {
  const start = p.start();
  const isKeyword = p.atColumnWord() && p.value(1) !== '(';
  const first = p.takeName(p.kind() === TokenKind.Quoted);
  const path = [isKeyword ? { ...first, quoted: true } : first];
  while (p.at('.')) {
    const kind = p.kind(1);
    if (kind !== TokenKind.Word && kind !== TokenKind.Quoted) {
      break;
    }
    p.advance();
    path.push(p.takeName(kind === TokenKind.Quoted));
  }
  if (p.at('(')) {
    return parseCall(p, joined(path), start);
  }
  if (p.at('.')) {
    p.advance();
    p.fail('column name expected');
  }
  return p.add({ kind: 'Column', path }, start, p.lastEnd());
}

function joined(path: readonly Name[]): Name {
  return {
    text: path.map((name) => name.text).join('.'),
    quoted: path.some((name) => name.quoted),
    span: { start: path[0]?.span.start ?? 0, end: path.at(-1)?.span.end ?? 0 },
  };
}

/** Parses a call, starting at its opening parenthesis. */
export function parseCall(p: Parser, name: Name, start: number): NodeId {
  const open = p.start();
  p.advance();
  const call: { -readonly [Key in keyof CallNode]: CallNode[Key] } = {
    name: trimName(p, name),
    arguments: [],
    distinct: p.take('DISTINCT'),
    order_by: [],
    filter: null,
    ignore_nulls: false,
    over: null,
  };
  if (!p.at(')')) {
    takeAll(p);
    call.arguments = callArguments(p, call.name.text.toUpperCase(), open);
    if (isPattern(p, call)) {
      call.name = { ...call.name, text: 'regexp_substr' };
    }
    if (p.take('ORDER', 'BY')) {
      call.order_by = parseOrderItems(p);
    }
  }
  p.close(open);
  if (!name.quoted && name.text.toUpperCase() === 'SWITCH' && call.arguments.length > 2) {
    return switchCase(p, call.arguments, start);
  }
  const item = parseWithinGroup(p, call.name.text);
  const isNegative = isFromTheTop(call.name.text, item);
  const fractions = item === null ? null : arrayItems(p, call.arguments);
  const written = call.arguments;
  callSuffixes(p, call);
  const callWith = (values: readonly NodeId[]): NodeId => {
    const list = item === null ? values : orderedArguments(p, call.name.text, values, item, start);
    const children = [...list, call.filter];
    const filled = { ...call, arguments: [...list] };
    const node = p.add({ kind: 'Call', ...filled }, start, p.lastEnd(), ...children);
    return isNegative ? negative(p, node, start) : node;
  };
  if (fractions === null) {
    return callWith(written);
  }
  const items = fractions.map((fraction) => callWith([fraction]));
  return p.add({ kind: 'Array', items }, start, p.lastEnd(), ...items);
}

/**
 * Returns the fractions in `percentile_cont(ARRAY[…])`, each of which becomes a separate call;
 * `null` if the argument is not an array.
 */
function arrayItems(p: Parser, list: readonly NodeId[]): readonly NodeId[] | null {
  const [only = null] = list;
  const node = only === null || list.length > 1 ? null : p.node(only);
  return node?.kind === 'Array' && node.items.length > 0 ? node.items : null;
}

/** Parses `switch(e, value, result, …, [otherwise])` into a CASE node. */
function switchCase(p: Parser, list: readonly NodeId[], start: number): NodeId {
  const [operand = null, ...remaining] = list;
  const branches: { when: NodeId; then: NodeId }[] = [];
  for (let at = 0; at + 1 < remaining.length; at += 2) {
    branches.push({ when: remaining[at] ?? 0, then: remaining[at + 1] ?? 0 });
  }
  const otherwise = remaining.length % 2 === 0 ? null : (remaining.at(-1) ?? null);
  return p.add({ kind: 'Case', operand, branches, otherwise }, start, p.lastEnd(), ...list);
}

const TRIMS: ReadonlySet<string> = new Set(['TRIM', 'LTRIM', 'RTRIM']);

/**
 * Parses `TRIM(LEADING 'x' FROM text)`. The side (here LEADING) is appended to the function's name.
 */
function trimName(p: Parser, name: Name): Name {
  const hasTrimSide = p.kind() === TokenKind.Word && p.value(1) !== ')' && p.value(1) !== ',';
  if (name.text.toUpperCase() !== 'TRIM' || !hasTrimSide) {
    return name;
  }
  const text = p.take('LEADING') ? 'ltrim' : p.take('TRAILING') ? 'rtrim' : name.text;
  p.take('BOTH');
  return { ...name, text };
}

function callArguments(p: Parser, name: string, open: number): NodeId[] {
  if (TRIMS.has(name) && p.take('FROM')) {
    return [callArgument(p, name, open)];
  }
  if (name === 'EXTRACT' && p.kind() <= TokenKind.String && p.value(1) === 'FROM') {
    return extractArguments(p);
  }
  if (name === 'POSITION' && atPosition(p)) {
    return positionArguments(p, open);
  }
  if (name === 'MAKE_INTERVAL') {
    return intervalArguments(p, open);
  }
  const list = p.list(() => callArgument(p, name, open));
  if (TRIMS.has(name) && p.take('FROM')) {
    list.unshift(callArgument(p, name, open));
  }
  if ((name === 'OVERLAY' && p.take('PLACING')) || (name === 'EXTRACT' && p.take('FROM'))) {
    list.push(callArgument(p, name, open));
  }
  if (name === 'SUBSTRING' && p.at('SIMILAR')) {
    list.push(similarSubstring(p));
  } else if (name === 'SUBSTRING' || name === 'OVERLAY') {
    list.push(...substringArguments(p, name, open));
  }
  if (name === 'UNNEST' && p.at('COLUMNS', '(')) {
    list.push(jsonColumns(p));
  }
  return list;
}

/** The arguments of `make_interval`, in order. */
const INTERVAL_FIELDS = ['YEARS', 'MONTHS', 'WEEKS', 'DAYS', 'HOURS', 'MINS', 'SECS'];

/** Parses `make_interval(days => 3)`; omitted arguments are 0. */
function intervalArguments(p: Parser, open: number): NodeId[] {
  const fields: (NodeId | undefined)[] = [];
  const first = p.start();
  let hasNames = false;
  p.list(() => {
    const at = INTERVAL_FIELDS.indexOf(p.value().toUpperCase());
    const isNamed = p.value(1) === '=>' || p.value(1) === ':=';
    if (isNamed ? at < 0 || fields[at] !== undefined : hasNames) {
      p.fail(
        `expected one or more of ${INTERVAL_FIELDS.join(', ').toLowerCase()}, each at most once`,
      );
    }
    if (isNamed) {
      p.advance();
      p.advance();
      hasNames = true;
    }
    fields[isNamed ? at : fields.length] = callArgument(p, 'MAKE_INTERVAL', open);
  });
  const nothing = (): NodeId => p.add({ kind: 'Integer', text: '0' }, first, first);
  const count = Math.max(fields.length, INTERVAL_FIELDS.length);
  return Array.from({ length: count }, (_, index) => fields[index] ?? nothing());
}

/**
 * Returns whether the second argument of `SUBSTRING(text FROM x)` is a pattern rather than a start
 * position, as in PostgreSQL.
 */
function isPattern(p: Parser, call: Pick<CallNode, 'name' | 'arguments'>): boolean {
  const [, from] = call.arguments;
  const isShortForm = call.name.text.toUpperCase() === 'SUBSTRING' && call.arguments.length === 2;
  if (!isShortForm || from === undefined) {
    return false;
  }
  const node = p.node(from);
  return node.kind === 'String' || (node.kind === 'Call' && node.name.text === SIMILAR_SUBSTRING);
}

/**
 * Name of the call that converts the pattern in `SUBSTRING(text SIMILAR …)` to a regular
 * expression.
 */
const SIMILAR_SUBSTRING = 'similar_substring';

/** Parses `SIMILAR pattern ESCAPE 'c'`. */
function similarSubstring(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  const pattern = p.grammar.expression(p);
  p.expect('ESCAPE');
  return similarCall(p, [pattern, p.grammar.expression(p)], start);
}

function similarCall(p: Parser, args: readonly NodeId[], start: number): NodeId {
  const name = { text: SIMILAR_SUBSTRING, quoted: false, span: { start, end: p.lastEnd() } };
  return addCall(p, name, start, args);
}

/** Parses `FROM start FOR length`; either may be omitted. */
function substringArguments(p: Parser, name: string, open: number): NodeId[] {
  const bounds: NodeId[] = [];
  const at = p.start();
  if (p.take('FROM')) {
    bounds.push(callArgument(p, name, open));
  }
  if (p.at('FOR')) {
    if (bounds.length === 0) {
      bounds.push(p.add({ kind: 'Integer', text: '1' }, at, at));
    }
    p.advance();
    bounds.push(callArgument(p, name, open));
  }
  const isText = bounds.every((bound) => p.node(bound).kind === 'String');
  return isText && bounds.length > 1 ? [similarCall(p, bounds, at)] : bounds;
}

function callArgument(p: Parser, name: string, open: number): NodeId {
  if (atQuery(p)) {
    const start = p.start();
    const query = p.grammar.query(p);
    return p.add({ kind: 'Subquery', query }, start, p.lastEnd(), query);
  }
  if (p.at('*') && (p.value(1) === ')' || p.value(1) === ',')) {
    if (name !== 'COUNT') {
      p.fail("too few arguments for '*' [found=0,expected=2]");
    }
    p.advance();
    return addStar(p, p.start(-1), p.end(-1));
  }
  if (atNamedArgument(p, name)) {
    return namedArgument(p);
  }
  if ((name === 'ROLLUP' || name === 'CUBE') && atRow(p)) {
    return rowArgument(p);
  }
  requireOperand(p, open);
  return p.grammar.expression(p);
}

/** Returns whether the parentheses contain more than one expression. */
function atRow(p: Parser): boolean {
  let depth = 0;
  for (let ahead = 0; p.kind(ahead) !== TokenKind.End; ahead += 1) {
    const token = p.value(ahead);
    depth += token === '(' ? 1 : token === ')' ? -1 : 0;
    if (depth <= 0 || (depth === 1 && token === ',')) {
      return depth === 1;
    }
  }
  return false;
}

/** Parses `(a, b)` into a single argument, which is a call to `ROW`. */
function rowArgument(p: Parser): NodeId {
  const start = p.start();
  const members = p.parenthesised(() => p.grammar.expression(p));
  const name = { text: 'ROW', quoted: false, span: { start, end: p.lastEnd() } };
  const defaults = { distinct: false, order_by: [], filter: null, ignore_nulls: false, over: null };
  const row = { kind: 'Call', name, arguments: members, ...defaults } as const;
  return p.add(row, start, p.lastEnd(), ...members);
}

/** Returns whether an argument has the form `part IN text`. */
function atPosition(p: Parser): boolean {
  let depth = 0;
  for (let ahead = 0; p.kind(ahead) !== TokenKind.End; ahead += 1) {
    const token = p.kind(ahead) === TokenKind.String ? '' : p.value(ahead);
    depth += token === '(' || token === '[' ? 1 : token === ')' || token === ']' ? -1 : 0;
    if (depth < 0 || (depth === 0 && (token === ',' || token === 'IN'))) {
      return token === 'IN';
    }
  }
  return false;
}

/** Parses `POSITION(part IN text)`. The text is passed as the call's first argument. */
function positionArguments(p: Parser, open: number): NodeId[] {
  requireOperand(p, open);
  const needle = p.grammar.operand(p);
  p.expect('IN');
  return [callArgument(p, 'POSITION', open), needle];
}

/** Parses `EXTRACT(part FROM e)`. The part, which is a word or a string, is passed as a string. */
function extractArguments(p: Parser): NodeId[] {
  const isText = p.kind() === TokenKind.String;
  const value = isText ? p.unquoted().toLowerCase() : p.written();
  const field = p.add({ kind: 'String', value }, p.start(), p.end());
  p.advance(2);
  return [field, p.grammar.expression(p)];
}

/** Parses `COLUMNS (name type, …)` in UNNEST into a call whose arguments are casts of the names. */
function jsonColumns(p: Parser): NodeId {
  const start = p.start();
  const name = p.takeName(false);
  const fields = p.parenthesised(() => {
    const from = p.start();
    const field = p.columnName('column name expected');
    const column = p.add({ kind: 'Column', path: [field] }, from, p.lastEnd());
    const typeName = parseType(p, 'column type expected');
    const node = {
      kind: 'Cast',
      operand: column,
      type_name: typeName,
      double_colon: true,
    } as const;
    return p.add(node, from, p.lastEnd(), column);
  });
  const defaults = { distinct: false, order_by: [], filter: null, ignore_nulls: false, over: null };
  return p.add(
    { kind: 'Call', name, arguments: fields, ...defaults },
    start,
    p.lastEnd(),
    ...fields,
  );
}

function callSuffixes(
  p: Parser,
  call: { ignore_nulls: boolean; filter: NodeId | null; over: WindowSpec | null },
): void {
  if (p.at('FILTER', '(')) {
    const open = p.start(1);
    p.advance(2);
    p.expect('WHERE');
    call.filter = p.grammar.expression(p);
    p.close(open);
  }
  if (p.take('IGNORE', 'NULLS')) {
    call.ignore_nulls = true;
  } else {
    p.take('RESPECT', 'NULLS');
  }
  if (!p.at('OVER')) {
    return;
  }
  p.advance();
  if (p.at('(')) {
    call.over = parseWindowSpec(p);
    return;
  }
  const name = p.name("'(' or window name expected");
  call.over = { name, partition_by: [], order_by: [], frame: null, anchor: null };
}

/** Parses `( [base] [PARTITION BY …] [ORDER BY …] [frame] )`. */
export function parseWindowSpec(p: Parser): WindowSpec {
  const open = p.start();
  p.advance();
  let name: Name | null = null;
  if (!p.at(')') && !p.atReserved() && !atFrame(p) && !atAnchor(p)) {
    name = p.name("')' expected");
  }
  const partitionBy = p.take('PARTITION') ? partitionList(p) : [];
  const orderBy = p.take('ORDER') ? (p.expect('BY'), parseOrderItems(p)) : [];
  const frame = atFrame(p) ? parseFrame(p) : null;
  const anchor = atAnchor(p) ? parseAnchor(p) : null;
  if (!p.take(')')) {
    if (p.atEnd()) {
      p.failAt('unbalanced (', open, open + 1);
    }
    p.fail(`unexpected token [${p.written()}]`);
  }
  return { name, partition_by: partitionBy, order_by: orderBy, frame, anchor };
}

/** Parses `ANCHOR DAILY 'HH:MM' ['zone']` or `ANCHOR EXPRESSION e`. */
function parseAnchor(p: Parser): Anchor {
  const start = p.start();
  p.advance();
  const period = anchorPeriod(p);
  return { period, span: { start, end: p.lastEnd() } };
}

function anchorPeriod(p: Parser): AnchorPeriod {
  const text = (): Name | null => (p.kind() === TokenKind.String ? p.takeName(true) : null);
  if (p.take('DAILY')) {
    const time = text() ?? p.fail("time of day expected, such as '09:30'");
    return { by: 'Daily', time, zone: text() };
  }
  p.expect('EXPRESSION', "'daily' or 'expression' expected");
  if (!atOperand(p)) {
    p.fail('expression expected');
  }
  return { by: 'Expression', value: p.grammar.expression(p) };
}

function partitionList(p: Parser): NodeId[] {
  p.expect('BY');
  return p.list(() => {
    if (!atOperand(p)) {
      p.fail('column name expected');
    }
    return p.grammar.expression(p);
  });
}

function atAnchor(p: Parser): boolean {
  return p.at('ANCHOR') && p.value(1) !== ')';
}

function atFrame(p: Parser): boolean {
  if (p.at('CUMULATIVE')) {
    return true;
  }
  return (p.at('ROWS') || p.at('RANGE') || p.at('GROUPS')) && p.value(1) !== ')';
}

function parseFrame(p: Parser): Frame {
  const start = p.start();
  const word = p.value();
  p.advance();
  if (word === 'CUMULATIVE') {
    const span = { start, end: p.lastEnd() };
    const bounds = {
      start: { bound: 'UnboundedPreceding' },
      end: { bound: 'CurrentRow' },
    } as const;
    return { mode: 'Cumulative', ...bounds, exclude_current_row: false, span };
  }
  const mode = word === 'ROWS' ? 'Rows' : word === 'RANGE' ? 'Range' : 'Groups';
  let low: FrameBound;
  let high: FrameBound | null = null;
  if (p.take('BETWEEN')) {
    low = parseFrameBound(p);
    p.expect('AND');
    high = parseFrameBound(p);
    checkFrameEnd(p, low, high);
  } else {
    low = parseFrameBound(p);
  }
  const exclude = frameExclusion(p);
  const span = { start, end: p.lastEnd() };
  return { mode, start: low, end: high, exclude_current_row: exclude, span };
}

function frameExclusion(p: Parser): boolean {
  if (!p.take('EXCLUDE')) {
    return false;
  }
  if (p.take('CURRENT', 'ROW')) {
    return true;
  }
  if (p.take('NO', 'OTHERS')) {
    return false;
  }
  return p.fail("'current row' or 'no others' expected");
}

function checkFrameEnd(p: Parser, low: FrameBound, high: FrameBound): void {
  if (low.bound === 'Following' && high.bound === 'Preceding') {
    const message = 'frame starting from FOLLOWING must end with FOLLOWING';
    p.failAt(message, p.start(-1), p.end(-1));
  }
}

/** Parses `UNBOUNDED PRECEDING`, `CURRENT ROW`, `n [unit] FOLLOWING`, … */
export function parseFrameBound(p: Parser): FrameBound {
  if (p.take('UNBOUNDED', 'PRECEDING')) {
    return { bound: 'UnboundedPreceding' };
  }
  if (p.take('UNBOUNDED', 'FOLLOWING')) {
    return { bound: 'UnboundedFollowing' };
  }
  if (p.take('CURRENT', 'ROW')) {
    return { bound: 'CurrentRow' };
  }
  if (!atOperand(p)) {
    p.fail("'unbounded', 'current row' or expression expected");
  }
  const value = p.grammar.expression(p);
  let unit: string | null = null;
  if (p.kind() === TokenKind.Word && FRAME_UNITS.has(p.value().replace(/S$/, ''))) {
    unit = p.written();
    p.advance();
  }
  if (p.take('PRECEDING')) {
    return { bound: 'Preceding', value, unit };
  }
  if (p.take('FOLLOWING')) {
    return { bound: 'Following', value, unit };
  }
  return p.fail("'preceding' or 'following' expected");
}

/** Parses `CASE [e] WHEN … THEN … [ELSE …] END`. */
export function parseCase(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  const unbalanced = (): never => p.failAt("unbalanced 'case'", start, start + 4);
  const operand = !p.at('WHEN') && atOperand(p) ? p.grammar.expression(p) : null;
  if (!p.at('WHEN')) {
    if (p.atEnd()) {
      unbalanced();
    }
    p.fail("'when' expected");
  }
  const branches: { when: NodeId; then: NodeId }[] = [];
  while (p.take('WHEN')) {
    p.countTerm(branches.length, start);
    if (!atOperand(p)) {
      unbalanced();
    }
    const when = p.grammar.expression(p);
    if (!p.take('THEN') || !atOperand(p)) {
      unbalanced();
    }
    branches.push({ when, then: p.grammar.expression(p) });
  }
  let otherwise: NodeId | null = null;
  if (p.take('ELSE')) {
    if (!atOperand(p)) {
      unbalanced();
    }
    otherwise = p.grammar.expression(p);
  }
  if (!p.take('END')) {
    unbalanced();
  }
  const children = [
    operand,
    otherwise,
    ...branches.flatMap((branch) => [branch.when, branch.then]),
  ];
  return p.add({ kind: 'Case', operand, branches, otherwise }, start, p.lastEnd(), ...children);
}

/** Parses `CAST(e AS type)`. */
export function parseCast(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  const open = p.start();
  p.advance();
  const fewer = (found: number): never =>
    p.failAt(`too few arguments for 'cast' [found=${found},expected=2]`, start, start + 4);
  if (p.at(')')) {
    fewer(0);
  }
  requireOperand(p, open);
  const operand = p.grammar.expression(p);
  if (p.at(')')) {
    fewer(1);
  }
  if (!p.take('AS')) {
    p.close(open);
  }
  if (p.at(')')) {
    fewer(1);
  }
  const typeName = parseType(p, 'type expected');
  p.close(open);
  const node = { kind: 'Cast', operand, type_name: typeName, double_colon: false } as const;
  return p.add(node, start, p.lastEnd(), operand);
}

/** Parses `EXISTS (query)`. */
export function parseExists(p: Parser): NodeId {
  const start = p.start();
  const open = p.start(1);
  p.advance(2);
  if (p.sees('SELECT', 'FROM')) {
    p.bareFrom = p.index + 1;
  }
  const query = p.grammar.query(p);
  p.close(open);
  return p.add({ kind: 'Exists', query }, start, p.lastEnd(), query);
}

/**
 * Parses `[a, b]`, after ARRAY or inside another array. The node's position is the bracket's
 * position.
 */
export function parseArray(p: Parser, start: number): NodeId {
  const open = p.start();
  p.advance();
  const items: NodeId[] = [];
  if (!p.at(']')) {
    if (p.atEnd()) {
      closeBracket(p, open);
    }
    items.push(...p.list(() => p.grammar.expression(p)));
  }
  closeBracket(p, open);
  return p.add({ kind: 'Array', items }, start, p.lastEnd(), ...items);
}

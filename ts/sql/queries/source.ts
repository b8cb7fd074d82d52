/** FROM: tables, table functions, subqueries, and every kind of join. */
import type {
  AsofTolerance,
  FrameBound,
  JoinKind,
  JoinOn,
  Name,
  Node,
  NodeId,
} from '../ast.generated.js';
import { addStar } from '../expressions/add-star.js';
import { parseCall, parseFrameBound } from '../expressions/call.js';
import { AFTER_SOURCE, SOFT_JOINS } from '../lexer/keywords.js';
import { TokenKind } from '../lexer/lexer.js';
import { atOperand } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';
import { atLocking } from './locking.js';
import { parseInterval } from './select-clauses.js';

/** Parses `a, b JOIN c ON …`: joins and commas from left to right. */
export function parseSources(p: Parser, missing: string): NodeId {
  const start = p.start();
  return joinChain(p, parseSource(p, missing), start);
}

/** A join without its left input. */
interface Joined extends Omit<Extract<Node, { kind: 'Join' }>, 'kind' | 'left'> {
  /** End offset of the join's text. */
  readonly end: number;
}

/** Parses the joins that follow a source. */
export function joinChain(p: Parser, first: NodeId, start: number): NodeId {
  /** For each item in the FROM list, the join for its comma and the joins that follow it. */
  const items: [comma: Joined | null, ...rest: Joined[]][] = [[null]];
  for (let terms = 1; ; terms += 1) {
    p.countTerm(terms, start);
    if (p.at(',')) {
      items.push([commaJoin(p)]);
    } else if (atJoin(p)) {
      items.at(-1)?.push(parseJoin(p));
    } else {
      break;
    }
  }
  let left = first;
  for (const [comma, ...item] of items) {
    if (comma !== null && item.some(bindsToItem) && !mayReadEarlierSources(p, comma.right)) {
      const right = addJoins(p, comma.right, p.spanOf(comma.right).start, item);
      left = addJoins(p, left, start, [{ ...comma, right, end: p.spanOf(right).end }]);
    } else {
      left = addJoins(p, left, start, comma === null ? item : [comma, ...item]);
    }
  }
  return left;
}

/**
 * Returns whether the join must apply only to the item after the last comma. For all other joins,
 * the result is the same either way, and their ON may refer to sources before the comma.
 */
function bindsToItem({ join, on }: Joined): boolean {
  return join.join === 'Right' || join.join === 'Full' || on?.on === 'Using';
}

const LITERALS: readonly Node['kind'][] = ['Integer', 'Float', 'String', 'Null', 'Parameter'];

/**
 * Returns whether a source may read columns of earlier sources. If so, it is joined to them
 * directly.
 */
function mayReadEarlierSources(p: Parser, source: NodeId): boolean {
  const node = p.node(source);
  if (node.kind === 'Derived') {
    return node.lateral;
  }
  const call = node.kind === 'TableFunction' ? p.node(node.call) : null;
  const values = call?.kind === 'Call' ? call.arguments : [];
  return values.some((value) => !LITERALS.includes(p.node(value).kind));
}

function addJoins(p: Parser, first: NodeId, start: number, joins: readonly Joined[]): NodeId {
  let left = first;
  for (const { end, ...join } of joins) {
    const condition = join.on?.on === 'Expression' ? join.on.condition : null;
    left = p.add({ kind: 'Join', left, ...join }, start, end, left, join.right, condition);
  }
  return left;
}

function atJoin(p: Parser): boolean {
  p.suggest(SOFT_JOINS);
  if (p.atAnyOf(SOFT_JOINS)) {
    return p.value(1) === 'JOIN' || p.at('SPLICE');
  }
  return (
    p.at('JOIN') ||
    p.at('INNER') ||
    p.at('LEFT') ||
    p.at('RIGHT') ||
    p.at('FULL') ||
    p.at('CROSS') ||
    p.at('ASOF') ||
    p.at('NATURAL')
  );
}

/** Parses a source with its alias and TIMESTAMP(column). */
function parseSource(p: Parser, missing: string): NodeId {
  const start = p.start();
  const lateral = takeLateral(p);
  if (p.at('(')) {
    p.advance();
    const query = p.nested(() => p.grammar.query(p));
    expectClose(p);
    return joinedSources(p, query) ?? derived(p, query, start, lateral);
  }
  if (p.kind() === TokenKind.Variable) {
    return table(p, p.takeName(false), start);
  }
  if (p.kind() === TokenKind.Word && p.value(1) === '(' && !p.atReserved()) {
    return tableFunction(p, p.takeName(false), start);
  }
  const name = p.tableName(missing);
  if (p.at('(') && !name.quoted) {
    return tableFunction(p, name, start);
  }
  return table(p, name, start);
}

/** Consumes LATERAL; before a table or function it has no effect. */
function takeLateral(p: Parser): boolean {
  const before = p.kind(1) === TokenKind.Word || p.kind(1) === TokenKind.Quoted;
  if (!p.at('LATERAL') || !(p.value(1) === '(' || (before && followsSource(p)))) {
    return false;
  }
  p.advance();
  if (p.atReserved()) {
    p.index -= 1;
    return false;
  }
  return p.at('(');
}

/** Returns whether a comma or JOIN precedes; elsewhere `lateral` may be a table name. */
function followsSource(p: Parser): boolean {
  return p.value(-1) === ',' || p.value(-1) === 'JOIN';
}

/**
 * Returns the join inside parentheses, `(a JOIN b ON …)`. Its table names are visible outside,
 * unless the parentheses have an alias. Returns `null` for any other query.
 */
export function joinedSources(p: Parser, query: NodeId): NodeId | null {
  const queryNode = p.node(query);
  const block = queryNode.kind === 'Query' ? p.node(queryNode.body) : queryNode;
  if (queryNode.kind !== 'Query' || block.kind !== 'Select' || block.from === null) {
    return null;
  }
  const { start, end } = p.spanOf(query);
  const isShort = p.spanOf(block.items[0]?.expression ?? query).end === start;
  const isPlain =
    queryNode.with.length + queryNode.declarations.length + queryNode.order_by.length === 0 &&
    queryNode.limit === null &&
    p.spanOf(block.from).end === end;
  const isJoin = isShort && isPlain && p.node(block.from).kind === 'Join';
  return isJoin && !atAlias(p) ? block.from : null;
}

/** Returns whether an alias follows. */
function atAlias(p: Parser): boolean {
  const from = p.index;
  const alias = tableAlias(p);
  p.index = from;
  return alias !== null || p.at('TIMESTAMP', '(');
}

function expectClose(p: Parser): void {
  if (!p.take(')')) {
    p.fail("')' expected");
  }
}

/** Parses what follows the closing parenthesis of a subquery in FROM. */
export function derived(p: Parser, query: NodeId, start: number, lateral: boolean): NodeId {
  const { alias, timestamp } = sourceSuffix(p);
  if (alias !== null && timestamp === null && p.at('(')) {
    const columns = p.parenthesised(() => p.columnName('column name expected'));
    const named = withColumns(p, query, alias, columns);
    const node = { kind: 'Derived', query: named, alias, timestamp, lateral } as const;
    return p.add(node, start, p.lastEnd(), named);
  }
  return p.add({ kind: 'Derived', query, alias, timestamp, lateral }, start, p.lastEnd(), query);
}

/**
 * Converts `(query) AS t(a, b)` into a CTE with these columns, and a query that reads all rows of
 * the CTE.
 */
export function withColumns(p: Parser, query: NodeId, name: Name, columns: Name[]): NodeId {
  const { start, end } = p.spanOf(query);
  const table = p.add({ kind: 'Table', name, alias: null, timestamp: null }, start, end);
  const star = addStar(p, start, start);
  const body = p.add(
    {
      kind: 'Select',
      distinct: false,
      distinct_on: [],
      items: [{ expression: star, alias: null }],
      from: table,
      hint: null,
      filter: null,
      latest_on: null,
      sample_by: null,
      group_by: [],
      group_by_all: false,
      having: null,
      windows: [],
      qualify: null,
      pivot: null,
    },
    start,
    end,
    table,
    star,
  );
  const common = { name, columns, query, recursive: false };
  const queryNode: Node = {
    kind: 'Query',
    declarations: [],
    with: [common],
    body,
    order_by: [],
    limit: null,
  };
  return p.add(queryNode, start, end, query, body);
}

/** Parses what follows the name of a table source. */
function table(p: Parser, name: Name, start: number): NodeId {
  const { alias, timestamp } = sourceSuffix(p);
  return p.add({ kind: 'Table', name, alias, timestamp }, start, p.lastEnd());
}

function tableFunction(p: Parser, name: Name, start: number): NodeId {
  const call = parseCall(p, name, start);
  const ordinality = p.take('WITH', 'ORDINALITY');
  const { alias, timestamp } = sourceSuffix(p);
  const columns =
    alias !== null && p.at('(') ? p.parenthesised(() => p.columnName('column name expected')) : [];
  const node = { kind: 'TableFunction', call, alias, columns, timestamp, ordinality } as const;
  return p.add(node, start, p.lastEnd(), call);
}

interface SourceSuffix {
  readonly alias: Name | null;
  readonly timestamp: Name | null;
}

/** Parses `[AS] alias` and `TIMESTAMP(column)`, in either order. */
function sourceSuffix(p: Parser): SourceSuffix {
  let timestamp = designation(p);
  const alias = tableAlias(p);
  timestamp ??= designation(p);
  return { alias, timestamp };
}

function designation(p: Parser): Name | null {
  if (!p.at('TIMESTAMP', '(')) {
    return null;
  }
  p.advance();
  return p.parenthesised(() => p.columnName('column name expected'))[0] ?? null;
}

function tableAlias(p: Parser): Name | null {
  if (p.at('AS') && !(p.value(1) === '(')) {
    p.advance();
    return p.kind() === TokenKind.String ? p.takeName(true) : p.name('table alias expected');
  }
  if (p.kind() === TokenKind.Quoted) {
    return p.takeName(true);
  }
  if (p.kind() !== TokenKind.Word || p.at('TIMESTAMP', '(')) {
    return null;
  }
  if (p.atAnyOf(SOFT_JOINS) && (p.value(1) === 'JOIN' || p.sees('SPLICE'))) {
    return null;
  }
  if (p.sees('WINDOW') && p.value(2) === 'AS') {
    return null;
  }
  if (p.sees('PIVOT', '(') || p.sees('RANGE', 'BETWEEN') || p.sees('RANGE', 'FROM')) {
    return null;
  }
  if (p.sees('LIST', '(') || (p.sees('OFFSET') && p.kind(1) >= TokenKind.String)) {
    return null;
  }
  if (p.sees('FETCH', 'FIRST') || p.sees('FETCH', 'NEXT') || atLocking(p)) {
    return null;
  }
  if (p.sees('INTO')) {
    p.failReserved();
  }
  return p.atAnyOf(AFTER_SOURCE) ? null : p.takeName(false);
}

function commaJoin(p: Parser): Joined {
  const keywordSpan = { start: p.start(), end: p.end() };
  p.advance();
  const right = parseSource(p, 'table name or sub-query expected');
  const clauses = { on: null, tolerance: null, keyword_span: keywordSpan };
  return { join: { join: 'Comma' }, right, ...clauses, end: p.lastEnd() };
}

function parseJoin(p: Parser): Joined {
  const keywordStart = p.start();
  const natural = p.take('NATURAL');
  const word = p.value();
  const outer = takeJoinKeywords(p, word);
  const keywordSpan = { start: keywordStart, end: p.lastEnd() };
  const right = parseSource(p, 'table name or sub-query expected');
  const on = natural ? NATURAL : word === 'CROSS' ? null : parseOn(p);
  let join: JoinKind = outer;
  if (word === 'WINDOW') {
    join = windowRange(p);
  } else if (word === 'HORIZON') {
    join = horizonRange(p);
  }
  const tolerance = parseTolerance(p, word);
  return { join, right, on, tolerance, keyword_span: keywordSpan, end: p.lastEnd() };
}

/** The join condition for NATURAL: all columns that have the same name on both sides. */
const NATURAL: JoinOn = { on: 'Using', columns: [] };

const PLAIN_JOINS: Readonly<Record<string, JoinKind>> = {
  JOIN: { join: 'Inner' },
  INNER: { join: 'Inner' },
  LEFT: { join: 'Left' },
  RIGHT: { join: 'Right' },
  FULL: { join: 'Full' },
  CROSS: { join: 'Cross' },
  ASOF: { join: 'Asof' },
  LT: { join: 'Lt' },
  SPLICE: { join: 'Splice' },
};

/** Consumes the keywords up to JOIN. */
function takeJoinKeywords(p: Parser, word: string): JoinKind {
  const start = p.start();
  p.advance();
  if (word === 'LEFT' || word === 'RIGHT' || word === 'FULL') {
    p.take('OUTER');
  }
  if (word !== 'JOIN' && !p.take('JOIN')) {
    p.failAt("'join' expected", start, p.lastEnd());
  }
  return PLAIN_JOINS[word] ?? { join: 'Inner' };
}

function parseOn(p: Parser): JoinOn | null {
  if (p.take('USING')) {
    return { on: 'Using', columns: p.parenthesised(() => p.columnName('column name expected')) };
  }
  if (!p.at('ON')) {
    return null;
  }
  const start = p.start();
  p.advance();
  const columns = columnList(p);
  if (columns !== null) {
    return { on: 'Columns', columns };
  }
  if (!atOperand(p)) {
    p.failAt('Expression expected', start, start + 2);
  }
  return { on: 'Expression', condition: p.grammar.expression(p) };
}

const CONTINUES_EXPRESSION: ReadonlySet<string> = new Set([
  'AND',
  'OR',
  'NOT',
  'IS',
  'IN',
  'BETWEEN',
  'LIKE',
  'ILIKE',
  'SIMILAR',
  'WITHIN',
]);

/**
 * Parses `sym`, `(sym)` or `(a, b)`: names that are not part of an expression. Returns `null` for
 * anything else.
 */
function columnList(p: Parser): Name[] | null {
  const from = p.index;
  const enclosed = p.take('(');
  const names: Name[] = [];
  do {
    const isColumnWord = p.atColumnWord();
    const plain = p.kind() === TokenKind.Word && !p.atReserved();
    const truth = plain && (p.at('TRUE') || p.at('FALSE'));
    if (truth || (!plain && !isColumnWord && p.kind() !== TokenKind.Quoted)) {
      break;
    }
    names.push(isColumnWord ? p.columnName('column name expected') : p.takeName(!plain));
  } while (enclosed && p.take(','));
  const closed = !enclosed || p.take(')');
  const ends = [')', ',', ';'].includes(p.value()) || p.kind() !== TokenKind.Mark;
  if (names.length > 0 && closed && ends && !p.atAnyOf(CONTINUES_EXPRESSION)) {
    return names;
  }
  p.index = from;
  return null;
}

function parseTolerance(p: Parser, word: string): AsofTolerance | null {
  if (!p.at('TOLERANCE')) {
    return null;
  }
  const start = p.start();
  p.advance();
  if (!p.at('-') && p.kind() !== TokenKind.Duration && p.kind() !== TokenKind.Variable) {
    p.failAt(`${word} JOIN TOLERANCE period expected`, start, p.lastEnd());
  }
  const interval = parseInterval(p);
  return { interval, span: { start, end: p.lastEnd() } };
}

/** Parses `RANGE BETWEEN a AND b [INCLUDE | EXCLUDE PREVAILING]`. */
function windowRange(p: Parser): JoinKind {
  if (!p.take('RANGE')) {
    p.failAtNearestToken("'range' expected");
  }
  p.expect('BETWEEN');
  const low = windowBound(p);
  p.expect('AND');
  const high = windowBound(p);
  if (low.bound === 'Following' && high.bound === 'Preceding') {
    const message = 'start row is FOLLOWING, end row must not be PRECEDING';
    p.failAt(message, p.start(-1), p.end(-1));
  }
  const exclude = p.take('EXCLUDE', 'PREVAILING');
  if (!exclude) {
    p.take('INCLUDE', 'PREVAILING');
  }
  return { join: 'Window', low, high, include_prevailing: !exclude };
}

function windowBound(p: Parser): FrameBound {
  const bound = parseFrameBound(p);
  if (bound.bound === 'UnboundedPreceding' || bound.bound === 'UnboundedFollowing') {
    const message = 'unbounded preceding/following is not supported in WINDOW joins';
    p.failAt(message, p.start(-1), p.end(-1));
  }
  return bound;
}

/**
 * Parses `RANGE FROM a TO b STEP c AS alias` or `LIST (a, b) AS alias`. The result is empty if the
 * range is given by a later HORIZON.
 */
function horizonRange(p: Parser): JoinKind {
  const none = {
    join: 'Horizon',
    from: null,
    to: null,
    step: null,
    list: [],
    alias: null,
  } as const;
  if (p.at('HORIZON', 'JOIN')) {
    return { ...none, list: [] };
  }
  if (p.take('LIST')) {
    const list = p.parenthesised(() => parseInterval(p));
    return { ...none, list, alias: horizonAlias(p) };
  }
  if (!p.take('RANGE')) {
    p.failAtNearestToken("'range' or 'list' expected");
  }
  p.expect('FROM');
  const from = parseInterval(p);
  p.expect('TO');
  const to = parseInterval(p);
  p.expect('STEP');
  const step = parseInterval(p);
  return { join: 'Horizon', from, to, step, list: [], alias: horizonAlias(p) };
}

function horizonAlias(p: Parser): Name {
  p.expect('AS');
  return p.name('horizon alias expected');
}

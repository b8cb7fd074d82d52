/** Queries: WITH, DECLARE, SELECT blocks, the short form `t WHERE …`, set operations, VALUES. */
import type {
  Cte,
  Declaration,
  LatestOn,
  NodeId,
  OrderItem,
  PivotNode,
  SampleBy,
  SelectItem,
  SelectNode,
  SetOperator,
} from '../ast.generated.js';
import { addStar, parseStar } from '../expressions/add-star.js';
import { parseOrderItems } from '../expressions/order-items.js';
import { AFTER_SOURCE } from '../lexer/keywords.js';
import { TokenKind } from '../lexer/lexer.js';
import { atOperand, atQuery, takeAll } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';
import {
  atFetch,
  atGrouping,
  parseGroupBy,
  parseInterval,
  parseLatest,
  parseLimit,
  parseNamedWindows,
  parsePivot,
  parseSampleBy,
} from './select-clauses.js';
import { parseShow } from './show.js';
import { atLocking, parseLocking } from './locking.js';
import { derived, joinChain, joinedSources, parseSources } from './source.js';
import { parseValues } from './values.js';

/** Clauses before a query's body. */
export interface Preamble {
  readonly start: number;
  readonly declarations: Declaration[];
  readonly with: Cte[];
}

/** Parses a complete query. */
export function parseQuery(p: Parser): NodeId {
  return p.nested(() => queryAfter(p, parsePreamble(p)));
}

/** Parses DECLARE and WITH. */
export function parsePreamble(p: Parser): Preamble {
  const start = p.start();
  const declarations = p.take('DECLARE') ? p.list(() => declaration(p)) : [];
  return { start, declarations, with: p.take('WITH') ? commonTables(p) : [] };
}

/** Parses the query after its preamble. */
export function queryAfter(p: Parser, preamble: Preamble): NodeId {
  const body = setOperations(p);
  const orderBy = p.take('ORDER') ? orderItems(p) : [];
  parseLocking(p, body);
  const limit = parseLimit(p);
  parseLocking(p, body);
  const { declarations, with: ctes } = preamble;
  const node = { kind: 'Query', declarations, with: ctes, body, order_by: orderBy, limit } as const;
  const children = [
    body,
    ...declarations.map((entry) => entry.value),
    ...ctes.map((entry) => entry.query),
  ];
  return p.add(node, preamble.start, p.lastEnd(), ...children);
}

function orderItems(p: Parser): OrderItem[] {
  p.expect('BY');
  return parseOrderItems(p);
}

function declaration(p: Parser): Declaration {
  const overridable = p.take('OVERRIDABLE');
  if (p.kind() !== TokenKind.Variable) {
    if (p.kind() === TokenKind.Word) {
      p.advance();
    }
    p.fail('function, literal or constant is expected');
  }
  const span = { start: p.start(), end: p.end() };
  const name = { text: p.written().slice(1), quoted: false, span };
  p.advance();
  if (!p.take(':=')) {
    p.fail('expected variable assignment operator :=');
  }
  return { name, value: declaredValue(p), overridable };
}

function declaredValue(p: Parser): NodeId {
  const next = p.value(1);
  const alone = next === ',' || p.kind(1) === TokenKind.Word || p.kind(1) === TokenKind.End;
  if (p.kind() === TokenKind.Duration && alone) {
    return parseInterval(p);
  }
  if (p.at('(')) {
    const from = p.index;
    const open = p.start();
    p.advance();
    if (atQuery(p)) {
      const query = parseQuery(p);
      p.close(open);
      return query;
    }
    p.index = from;
  }
  if (!atOperand(p)) {
    p.fail('function, literal or constant is expected');
  }
  return p.grammar.expression(p);
}

/** Parses the CTEs after WITH; a CTE may be named `recursive`. */
function commonTables(p: Parser): Cte[] {
  const recursive = p.at('RECURSIVE') && p.value(1) !== 'AS' && p.value(1) !== '(';
  if (recursive) {
    p.advance();
  }
  return p.list(() => cte(p, recursive));
}

function cte(p: Parser, recursive: boolean): Cte {
  const name = p.name('common table expression name expected');
  const hasColumns = p.at('(') && !(p.value(1) === 'SELECT' || p.value(1) === 'WITH');
  const columns = hasColumns ? p.parenthesised(() => p.columnName('column name expected')) : [];
  p.expect('AS');
  // The hint has no effect: the planner decides whether a CTE is materialized or inlined.
  if (!p.take('MATERIALIZED')) {
    p.take('NOT', 'MATERIALIZED');
  }
  p.expect('(');
  const query = parseQuery(p);
  if (!p.take(')')) {
    p.fail("')' expected");
  }
  return { name, columns, query, recursive };
}

const SET_OPERATORS: Readonly<Record<string, SetOperator>> = {
  UNION: 'Union',
  EXCEPT: 'Except',
  INTERSECT: 'Intersect',
};

function setOperations(p: Parser): NodeId {
  const start = p.start();
  let left = branch(p);
  for (let terms = 1; ; terms += 1) {
    p.suggest(Object.keys(SET_OPERATORS));
    const operator = p.kind() === TokenKind.Word ? SET_OPERATORS[p.value()] : undefined;
    if (operator === undefined) {
      return left;
    }
    p.countTerm(terms, start);
    p.advance();
    const all = p.take('ALL');
    if (!all) {
      p.take('DISTINCT');
    }
    const right = branch(p);
    const node = { kind: 'SetOperation', operator, all, left, right } as const;
    left = p.add(node, start, p.lastEnd(), left, right);
  }
}

/** Parses an operand of a set operation. */
function branch(p: Parser): NodeId {
  if (p.at('SELECT')) {
    return selectBlock(p);
  }
  if (p.at('VALUES', '(')) {
    const start = p.start();
    p.advance();
    return p.add({ kind: 'Values', rows: parseValues(p) }, start, p.lastEnd());
  }
  if (p.at('TABLE') && (p.kind(1) === TokenKind.Word || p.kind(1) === TokenKind.Quoted)) {
    p.advance();
    return shortForm(p);
  }
  if (p.at('SHOW') && p.kind(1) === TokenKind.Word) {
    return parseShow(p);
  }
  return shortForm(p);
}

/** Parses `t WHERE …`, `(query) LATEST ON …`, or just `(query)`. */
function shortForm(p: Parser): NodeId {
  const start = p.start();
  let from: NodeId;
  if (p.at('(')) {
    p.advance();
    const query = parseQuery(p);
    if (!p.take(')')) {
      p.fail("')' expected");
    }
    if (!atContinuation(p)) {
      return query;
    }
    from = joinChain(p, joinedSources(p, query) ?? derived(p, query, start, false), start);
  } else {
    from = parseSources(p, missingTable(p));
  }
  const star = addStar(p, start, start);
  const items = [{ expression: star, alias: null }];
  return selectTail(p, start, { distinct: false, distinct_on: [], items, from, hint: null });
}

function missingTable(p: Parser): string {
  return p.index === 0
    ? 'table name expected'
    : "'select', 'with', 'declare' or table name expected expected";
}

/** Returns whether a clause of a SELECT block follows a parenthesised query. */
function atContinuation(p: Parser): boolean {
  if (p.kind() === TokenKind.Quoted || p.at(',')) {
    return p.kind() === TokenKind.Quoted;
  }
  if (p.kind() !== TokenKind.Word) {
    return false;
  }
  if (p.sees('OFFSET') || atFetch(p) || atLocking(p)) {
    return false;
  }
  return !p.atAnyOf(NOT_CONTINUING);
}

const NOT_CONTINUING: ReadonlySet<string> = new Set([
  'UNION',
  'EXCEPT',
  'INTERSECT',
  'ORDER',
  'LIMIT',
  'ON',
  'USING',
  'FROM',
  'SELECT',
  'BY',
  'AND',
  'OR',
  'THEN',
  'ELSE',
  'WHEN',
  'END',
  'SET',
  'INTO',
  'RETURNING',
  'FILL',
  'ALIGN',
  'WITH',
]);

/** Parses `SELECT …`. */
function selectBlock(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  const hint = p.kind() === TokenKind.Hint ? p.written().slice(3, -2).trim() : null;
  if (hint !== null) {
    p.advance();
  }
  const distinct = p.take('DISTINCT');
  if (!distinct) {
    takeAll(p);
  }
  const distinctOn =
    distinct && p.at('ON', '(')
      ? (p.advance(), p.parenthesised(() => p.grammar.expression(p)))
      : [];
  const items = p.index === p.bareFrom ? noItems(p) : selectItems(p);
  const star = items.some((item) => p.node(item.expression).kind === 'Star');
  let from: NodeId | null = null;
  if (p.take('FROM')) {
    from = parseSources(p, 'table name or sub-query expected');
  } else if (star) {
    p.failAtNearestToken("'from' expected");
  }
  return selectTail(p, start, { distinct, distinct_on: distinctOn, items, from, hint });
}

function requireItems(p: Parser): void {
  p.suggestContext('expression');
  if (p.atEnd()) {
    p.fail('[distinct] column expected');
  }
  if (p.at(')')) {
    p.failAt('[distinct] column expected', p.end(), p.end());
  }
  if (p.sees('FROM')) {
    p.fail('column expression expected');
  }
}

/** Returns the select list of `EXISTS (SELECT FROM …)`: a constant, which is never read. */
function noItems(p: Parser): SelectItem[] {
  const at = p.start();
  return [{ expression: p.add({ kind: 'Integer', text: '1' }, at, at), alias: null }];
}

function selectItems(p: Parser): SelectItem[] {
  requireItems(p);
  let count = 0;
  const items = p.list(() => {
    count += 1;
    if (count > 1 && p.at('FROM')) {
      // The current comma was a trailing comma.
      return null;
    }
    const item = selectItem(p);
    if (p.at(',') || p.at('FROM') || p.at(')') || p.at(';') || p.atEnd()) {
      return item;
    }
    if (p.kind() === TokenKind.Word && (p.atAnyOf(AFTER_SOURCE) || atLocking(p))) {
      return item;
    }
    const written = p.written();
    if (p.kind() !== TokenKind.Word) {
      p.fail(`unexpected token [${written}]`);
    }
    return p.fail(`found [tok='${written}', len=${written.length}] ',', 'from' or 'over' expected`);
  });
  return items.filter((item) => item !== null);
}

function selectItem(p: Parser): SelectItem {
  const star = selectStar(p);
  if (star !== null) {
    if (p.at('AS') || (p.kind() === TokenKind.Word && !p.atAnyOf(AFTER_SOURCE))) {
      p.fail('wildcard cannot have alias');
    }
    return { expression: star, alias: null };
  }
  if (p.at(',')) {
    p.fail('missing expression');
  }
  if (!atOperand(p)) {
    if (p.atReserved() && !p.sees('FROM')) {
      p.failReserved();
    }
    p.fail('column expression expected');
  }
  const expression = p.grammar.expression(p);
  return { expression, alias: columnAlias(p) };
}

/** Parses `*` or `t.*`; returns null for anything else. */
export function selectStar(p: Parser): NodeId | null {
  const start = p.start();
  if (p.take('*')) {
    return parseStar(p, start, null);
  }
  const named = p.kind() === TokenKind.Word || p.kind() === TokenKind.Quoted;
  if (!named || p.value(1) !== '.' || p.value(2) !== '*') {
    return null;
  }
  const qualifier = p.takeName(p.kind() === TokenKind.Quoted);
  p.advance(2);
  return parseStar(p, start, qualifier);
}

/**
 * Returns whether a reserved word after AS is an alias. It is one if the item ends after the word:
 * `roles AS using`.
 */
function atKeywordAlias(p: Parser): boolean {
  const isName = p.atReserved() && !p.at('SELECT', 'FROM') && !p.at('FROM');
  return isName && (p.kind(1) === TokenKind.End || [',', ')', ';', 'FROM'].includes(p.value(1)));
}

/** Parses `[AS] alias`; returns null if there is none. */
export function columnAlias(p: Parser): SelectItem['alias'] {
  if (p.take('AS')) {
    if (p.kind() === TokenKind.String) {
      return p.takeName(true);
    }
    return atKeywordAlias(p)
      ? { ...p.takeName(false), quoted: true }
      : p.columnName('column alias expected');
  }
  const kind = p.kind();
  if (kind === TokenKind.Quoted || kind === TokenKind.String) {
    return p.takeName(true);
  }
  if (kind >= TokenKind.Integer && kind <= TokenKind.Duration) {
    return p.name('');
  }
  if (kind !== TokenKind.Word || (p.atAnyOf(AFTER_SOURCE) && !isLastOfItem(p))) {
    return null;
  }
  if (atLocking(p)) {
    return null;
  }
  const isKeyword = p.atAnyOf(AFTER_SOURCE);
  const name = p.takeName(false);
  return isKeyword ? { ...name, quoted: true } : name;
}

/**
 * Returns whether the current word is the last one of its item. A word that usually starts a clause
 * is then the item's name: `1 left, 2 group`.
 */
function isLastOfItem(p: Parser): boolean {
  return NAMES_TOO.has(p.value()) && ENDS_OF_ITEMS.has(p.value(1));
}

const NAMES_TOO: ReadonlySet<string> = new Set(['GROUP', 'LATEST', 'LEFT', 'RIGHT', 'SAMPLE']);
const ENDS_OF_ITEMS: ReadonlySet<string> = new Set([',', ')', 'FROM', ';', '']);

type SelectHead = Pick<SelectNode, 'distinct' | 'distinct_on' | 'items' | 'from' | 'hint'>;

/** Parses the clauses of a SELECT block between its sources and ORDER BY. */
function selectTail(p: Parser, start: number, head: SelectHead): NodeId {
  let latest: LatestOn | null = null;
  if (p.at('LATEST')) {
    latest = parseLatest(p);
  }
  const filter = whereClause(p);
  if (latest === null && p.at('LATEST')) {
    latest = parseLatest(p);
  }
  const sample: SampleBy | null = p.at('SAMPLE') ? parseSampleBy(p) : null;
  const groupByAll = sample === null && p.take('GROUP', 'BY', 'ALL');
  const groupBy = groupByAll ? [] : groupClause(p, sample);
  const having = p.take('HAVING') ? p.grammar.expression(p) : null;
  const windows = p.at('WINDOW') && p.value(2) === 'AS' ? (p.advance(), parseNamedWindows(p)) : [];
  const qualify = p.take('QUALIFY') ? p.grammar.expression(p) : null;
  const pivot: PivotNode | null = p.at('PIVOT', '(') ? (p.advance(), parsePivot(p)) : null;
  if (pivot !== null) {
    pivotAlias(p);
  }
  const { distinct, distinct_on, items, from, hint } = head;
  // The members are listed one by one, because spreading objects took half of the time when parsing
  // 9,000 CTEs.
  const node: SelectNode & { readonly kind: 'Select' } = {
    kind: 'Select',
    distinct,
    distinct_on,
    items,
    from,
    hint,
    filter,
    latest_on: latest,
    sample_by: sample,
    group_by: groupBy,
    group_by_all: groupByAll,
    having,
    windows,
    qualify,
    pivot,
  };
  const children = [
    from,
    filter,
    having,
    qualify,
    ...groupBy,
    ...items.map((item) => item.expression),
  ];
  return p.add(node, start, p.lastEnd(), ...children);
}

/** Parses the WHERE condition of a query, UPDATE or DELETE; returns `null` if there is none. */
export function whereClause(p: Parser): NodeId | null {
  if (!p.at('WHERE')) {
    return null;
  }
  const start = p.start();
  p.advance();
  if (!atOperand(p)) {
    p.failAt('empty where clause', start, start + 5);
  }
  return p.grammar.expression(p);
}

function groupClause(p: Parser, sample: SampleBy | null): NodeId[] {
  if (sample !== null && atGrouping(p)) {
    return parseGroupBy(p);
  }
  if (!p.take('GROUP')) {
    return [];
  }
  p.expect('BY');
  if (sample !== null && !atGrouping(p)) {
    p.fail('SELECT query must not contain both GROUP BY and SAMPLE BY');
  }
  return parseGroupBy(p);
}

/**
 * Parses an alias for the pivoted rows. The alias has no effect, because nothing at this level can
 * refer to it.
 */
function pivotAlias(p: Parser): void {
  if (p.take('AS')) {
    p.name('alias expected');
  } else if (p.kind() === TokenKind.Word && !p.atAnyOf(AFTER_SOURCE)) {
    p.advance();
  }
}

/** SELECT block clauses that have their own syntax. */
import type {
  Fill,
  LatestOn,
  Limit,
  NamedWindow,
  NodeId,
  PivotNode,
  SampleAlign,
  SampleBy,
  SelectItem,
  Span,
} from '../ast.generated.js';
import { addCall } from '../expressions/add-call.js';
import { parseWindowSpec } from '../expressions/call.js';
import { takeRowMembers } from '../expressions/row.js';
import { INTERVAL_UNITS } from '../lexer/keywords.js';
import { TokenKind } from '../lexer/lexer.js';
import { atOperand, atQuery } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';

/** Parses an interval in TOLERANCE, HORIZON or SAMPLE BY: `90s`, `-2m`, `0`, `@unit`, `$1`. */
export function parseInterval(p: Parser): NodeId {
  const start = p.start();
  const signed = p.at('-') && (p.kind(1) === TokenKind.Duration || p.kind(1) === TokenKind.Integer);
  const kind = p.kind(signed ? 1 : 0);
  if (kind !== TokenKind.Duration && kind !== TokenKind.Integer) {
    if (!atOperand(p)) {
      p.fail('time interval expected');
    }
    return p.grammar.expression(p);
  }
  if (signed) {
    p.advance();
  }
  const text = p.written();
  const interval = kind === TokenKind.Integer || isInterval(text);
  if (!interval) {
    p.failAt(`Invalid unit: ${text}`, start, p.end());
  }
  p.advance();
  const node = { kind: 'Duration', text: signed ? `-${text}` : text } as const;
  return p.add(node, start, p.lastEnd());
}

function isInterval(text: string): boolean {
  return (
    text.replaceAll(/[0-9][0-9_]*([a-zA-Z]+)/g, (match, unit: string) =>
      INTERVAL_UNITS.has(unit) ? '' : match,
    ) === ''
  );
}

/** Parses `LATEST ON ts PARTITION BY a, b` or `LATEST BY a, b`. */
export function parseLatest(p: Parser): LatestOn {
  const start = p.start();
  p.advance();
  if (p.take('BY')) {
    const keys = expressions(p);
    return { timestamp: null, keys, span: { start, end: p.lastEnd() } };
  }
  p.expect('ON', "'on' or 'by' expected");
  if (p.atReserved()) {
    p.failReserved();
  }
  const timestamp = p.grammar.expression(p);
  p.expect('PARTITION');
  p.expect('BY');
  const keys = expressions(p);
  if (p.at('WHERE')) {
    p.fail("unexpected where clause after 'latest on'");
  }
  return { timestamp, keys, span: { start, end: p.lastEnd() } };
}

/** Parses a comma-separated list of expressions. */
export function expressions(p: Parser, missing = 'column name expected'): NodeId[] {
  return p.list(() => {
    if (!atOperand(p)) {
      p.fail(missing);
    }
    return p.grammar.expression(p);
  });
}

/** Parses `SAMPLE BY 1h [FROM …] [TO …] [FILL(…)] [ALIGN TO …]`. */
export function parseSampleBy(p: Parser): SampleBy {
  const start = p.start();
  p.advance();
  p.expect('BY');
  if (p.atEnd()) {
    p.fail('time interval unit expected');
  }
  const interval = sampleInterval(p);
  const from = p.take('FROM') ? bound(p) : null;
  const to = p.take('TO') ? bound(p) : null;
  const fill = p.take('FILL') ? parseFill(p) : [];
  const align = p.take('ALIGN') ? parseAlign(p) : null;
  return { interval, from, to, fill, align, span: { start, end: p.lastEnd() } };
}

function bound(p: Parser): NodeId {
  if (!atOperand(p)) {
    p.fail('timestamp expected');
  }
  return p.grammar.expression(p);
}

function sampleInterval(p: Parser): NodeId {
  if (p.kind() === TokenKind.String) {
    p.fail(`Invalid unit: ${p.written()}`);
  }
  if (p.kind() === TokenKind.Duration && !/[1-9]/.test(p.written())) {
    p.fail(`positive number expected: ${p.written()}`);
  }
  if (p.kind() === TokenKind.Integer && p.kind(1) === TokenKind.Word) {
    spacedUnit(p);
  }
  return parseInterval(p);
}

/** Reports the unit in `SAMPLE BY 1 h` as invalid, because an interval must not contain a space. */
function spacedUnit(p: Parser): never {
  p.fail(`Invalid unit: ${p.written()}`);
}

function parseFill(p: Parser): Fill[] {
  const negative: Span[] = [];
  const fills = p.parenthesised((): Fill => {
    const span = { start: p.start(), end: p.end() };
    if (p.take('NONE')) {
      return { fill: 'None', span };
    }
    if (p.take('NULL')) {
      return { fill: 'Null', span };
    }
    if (p.take('LINEAR')) {
      return { fill: 'Linear', span };
    }
    if (p.take('PREV')) {
      const of = p.at('(') ? p.parenthesised(() => p.columnName('column alias expected')) : [];
      return { fill: 'Prev', of: of[0] ?? null, span: { start: span.start, end: p.lastEnd() } };
    }
    if (p.at('-')) {
      negative.push(span);
    } else if (!atOperand(p)) {
      p.fail('fill value expected');
    }
    return { fill: 'Constant', value: p.grammar.expression(p) };
  });
  const [first] = negative;
  // QuestDB accepts a negative fill value only on its own, never in a list.
  if (first !== undefined && fills.length > 1) {
    p.failAt('invalid fill value: -', first.start, first.end);
  }
  return fills;
}

function parseAlign(p: Parser): SampleAlign {
  p.expect('TO');
  if (p.take('FIRST', 'OBSERVATION')) {
    return { align: 'FirstObservation' };
  }
  if (!p.take('CALENDAR')) {
    p.fail("'calendar' or 'first observation' expected");
  }
  const timeZone = p.take('TIME', 'ZONE') ? bound(p) : null;
  const offset = p.take('WITH', 'OFFSET') ? bound(p) : null;
  return { align: 'Calendar', time_zone: timeZone, offset };
}

/** Parses the members of `GROUP BY` after the keywords, including ROLLUP and GROUPING SETS. */
export function parseGroupBy(p: Parser): NodeId[] {
  const members = p.list(() => {
    if (p.at('GROUPING', 'SETS', '(')) {
      return groupingSets(p);
    }
    if (p.at('(', ')')) {
      return onlyGroup(p);
    }
    if (!atOperand(p)) {
      p.fail('Expression expected');
    }
    return p.grammar.expression(p);
  });
  return members.flatMap((member) => takeRowMembers(p, member) ?? [member]);
}

/**
 * Returns whether ROLLUP, CUBE or GROUPING SETS follows, which SAMPLE BY accepts without GROUP BY.
 */
export function atGrouping(p: Parser): boolean {
  return p.at('ROLLUP', '(') || p.at('CUBE', '(') || p.at('GROUPING', 'SETS', '(');
}

function groupingSets(p: Parser): NodeId {
  const start = p.start();
  p.advance(2);
  const name = { text: 'GROUPING SETS', quoted: false, span: { start, end: p.lastEnd() } };
  return addCall(
    p,
    name,
    start,
    p.parenthesised(() => groupingSet(p)),
  );
}

/** Parses `a`, `(a, b)` or `()` into a call named `ROW`. */
function groupingSet(p: Parser): NodeId {
  const start = p.start();
  let members: NodeId[] = [];
  if (p.at('(', ')')) {
    p.advance(2);
  } else if (p.at('(')) {
    members = p.parenthesised(() => p.grammar.expression(p));
  } else {
    members = [p.grammar.expression(p)];
  }
  const name = { text: 'ROW', quoted: false, span: { start, end: p.lastEnd() } };
  return addCall(p, name, start, members);
}

/** Parses `()` in GROUP BY, a single group that contains all rows. */
function onlyGroup(p: Parser): NodeId {
  const start = p.start();
  const set = groupingSet(p);
  const name = { text: 'GROUPING SETS', quoted: false, span: { start, end: p.lastEnd() } };
  return addCall(p, name, start, [set]);
}

/** Parses `WINDOW w AS (…), v AS (…)`. */
export function parseNamedWindows(p: Parser): NamedWindow[] {
  return p.list(() => {
    const name = p.name('window name expected');
    p.expect('AS');
    if (!p.at('(')) {
      p.fail("'(' expected");
    }
    return { name, spec: parseWindowSpec(p) };
  });
}

/** Parses `PIVOT (…)`, after the keyword. */
export function parsePivot(p: Parser): PivotNode {
  const open = p.start();
  p.advance();
  const aggregates = p.list(() => aliased(p, 'aggregate function expected'));
  if (!p.take('FOR')) {
    p.fail('expected FOR');
  }
  const axes: [NodeId, SelectItem[]][] = [];
  do {
    p.countTerm(axes.length, open);
    axes.push(pivotAxis(p));
  } while (!p.at(')') && !p.at('GROUP') && !p.atEnd());
  const groupBy = p.take('GROUP') ? (p.expect('BY'), expressions(p)) : [];
  p.close(open);
  return { aggregates, axes, group_by: groupBy };
}

function pivotAxis(p: Parser): [NodeId, SelectItem[]] {
  const from = p.start();
  const name = p.columnName('column name expected');
  const path = [name];
  while (p.at('.')) {
    p.advance();
    path.push(p.columnName('column name expected'));
  }
  const column = p.add({ kind: 'Column', path }, from, p.lastEnd());
  p.expect('IN');
  const open = p.start();
  p.expect('(');
  if (atQuery(p)) {
    const query = p.grammar.query(p);
    p.close(open);
    return [column, [{ expression: query, alias: null }]];
  }
  const values = p.list(() => aliased(p, 'missing constant'));
  p.close(open);
  return [column, values];
}

function aliased(p: Parser, missing: string): SelectItem {
  if (!atOperand(p)) {
    p.fail(missing);
  }
  const expression = p.grammar.expression(p);
  const named = p.take('AS') || p.kind() === TokenKind.Quoted;
  if (named) {
    return { expression, alias: p.name('alias expected') };
  }
  const stops = p.kind() !== TokenKind.Word || p.atReserved() || p.at('FOR');
  return { expression, alias: stops ? null : p.takeName(false) };
}

/**
 * Parses `LIMIT n`, `LIMIT a, b`, `LIMIT n OFFSET m`, `OFFSET m` or `FETCH FIRST n ROWS ONLY`;
 * returns `null` if there is none.
 */
export function parseLimit(p: Parser): Limit | null {
  const start = p.start();
  let first: NodeId | null = null;
  let second: NodeId | null = null;
  let offset: NodeId | null = null;
  if (p.at('OFFSET')) {
    offset = parseOffset(p);
  }
  if (p.at('LIMIT', 'ALL')) {
    p.advance(2);
    offset ??= p.at('OFFSET') ? parseOffset(p) : null;
  } else if (p.take('LIMIT')) {
    if (!p.at(',')) {
      first = limitBound(p);
    }
    if (p.take(',') && (first === null || atOperand(p))) {
      second = limitBound(p);
    }
    if (offset === null && p.at('OFFSET')) {
      offset = parseOffset(p);
    }
  } else if (atFetch(p)) {
    first = parseFetch(p);
  }
  if (first === null && second === null && offset === null) {
    return null;
  }
  return { first, second, offset, span: { start, end: p.lastEnd() } };
}

/** Returns whether the standard syntax for LIMIT follows. */
export function atFetch(p: Parser): boolean {
  return p.at('FETCH', 'FIRST') || p.at('FETCH', 'NEXT');
}

/** Parses `FETCH FIRST [n] ROWS ONLY` and returns the number, which is 1 by default. */
function parseFetch(p: Parser): NodeId {
  p.advance(2);
  const unsaid = p.at('ROW') || p.at('ROWS');
  const count = unsaid
    ? p.add({ kind: 'Integer', text: '1' }, p.start(), p.start())
    : limitBound(p);
  if (!p.take('ROWS')) {
    p.expect('ROW', "'row' or 'rows' expected");
  }
  p.expect('ONLY');
  return count;
}

function limitBound(p: Parser): NodeId {
  if (!atOperand(p)) {
    p.fail('limit expression expected');
  }
  return p.grammar.expression(p);
}

function parseOffset(p: Parser): NodeId {
  p.advance();
  const offset = limitBound(p);
  if (!p.take('ROWS')) {
    p.take('ROW');
  }
  return offset;
}

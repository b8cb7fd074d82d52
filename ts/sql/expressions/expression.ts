/**
 * Expressions: precedence climbing for operators; operands are in `operand.ts`.
 *
 * The precedence levels are those of the language reference; a smaller number binds tighter. They
 * differ from PostgreSQL's: `||` binds tighter than `&`, `^` and `|`, and comparison binds tighter
 * than equality.
 */
import type { BinaryOperator, NodeId, Span } from '../ast.generated.js';
import { TokenKind } from '../lexer/lexer.js';
import { atOperand, atQuery } from '../parser/lookahead.js';
import { addCall } from './add-call.js';
import { addLogical } from './add-logical.js';
import { failMissing, postfix, primary } from './operand.js';
import type { Parser } from '../parser/parser.js';
import { comparedRows, overlapping, rowAmong, valuesOf } from './row.js';

const LEVEL_CONCAT = 7;
const LEVEL_RANGE = 11;
const LEVEL_EQUALITY = 13;

const MARK_OPERATORS = new Map<string, readonly [BinaryOperator, number]>([
  ['*', ['Multiply', 4]],
  ['/', ['Divide', 4]],
  ['%', ['Modulo', 4]],
  ['+', ['Add', 5]],
  ['-', ['Subtract', 5]],
  ['<<', ['ContainedBy', 6]],
  ['<<=', ['ContainedByOrEqual', 6]],
  ['>>', ['Contains', 6]],
  ['>>=', ['ContainsOrEqual', 6]],
  ['&', ['BitAnd', 8]],
  ['^', ['BitXor', 9]],
  ['|', ['BitOr', 10]],
  ['<', ['Less', 12]],
  ['<=', ['LessOrEqual', 12]],
  ['>', ['Greater', 12]],
  ['>=', ['GreaterOrEqual', 12]],
  ['=', ['Equal', LEVEL_EQUALITY]],
  ['!=', ['NotEqual', LEVEL_EQUALITY]],
  ['<>', ['NotEqual', LEVEL_EQUALITY]],
  ['~', ['Matches', LEVEL_EQUALITY]],
  ['!~', ['NotMatches', LEVEL_EQUALITY]],
  ['~*', ['Matches', LEVEL_EQUALITY]],
  ['!~*', ['NotMatches', LEVEL_EQUALITY]],
  ['~~', ['Like', LEVEL_EQUALITY]],
  ['!~~', ['NotLike', LEVEL_EQUALITY]],
  ['~~*', ['ILike', LEVEL_EQUALITY]],
  ['!~~*', ['NotILike', LEVEL_EQUALITY]],
]);

const WORD_LEVELS = new Map<string, number>([
  ['IN', LEVEL_RANGE],
  ['BETWEEN', LEVEL_RANGE],
  ['WITHIN', LEVEL_RANGE],
  ['OVERLAPS', LEVEL_RANGE],
  ['LIKE', LEVEL_EQUALITY],
  ['ILIKE', LEVEL_EQUALITY],
  ['SIMILAR', LEVEL_EQUALITY],
  ['IS', LEVEL_EQUALITY],
]);

/** Parses any expression. */
export function parseExpression(p: Parser): NodeId {
  return p.nested(() => logical(p, 'OR'));
}

/** Parses an expression in which all operators bind tighter than IN. */
export function parseOperand(p: Parser): NodeId {
  return p.nested(() => binary(p, LEVEL_RANGE - 1));
}

/** Parses a chain of AND or OR, which becomes a single node. */
function logical(p: Parser, word: 'AND' | 'OR'): NodeId {
  const start = p.start();
  const operand = (): NodeId => (word === 'OR' ? logical(p, 'AND') : binary(p, LEVEL_EQUALITY));
  const operands = [operand()];
  while (p.at(word)) {
    p.countTerm(operands.length, start);
    const at = p.start();
    p.advance();
    if (!atOperand(p)) {
      failMissing(p, word.toLowerCase(), at, 1, 2);
    }
    operands.push(operand());
  }
  const span = { start, end: p.lastEnd() };
  return addLogical(p, word === 'OR' ? 'Or' : 'And', operands, span);
}

/** Parses operators up to a precedence level; they are left-associative. */
function binary(p: Parser, level: number): NodeId {
  const start = p.start();
  let left = unary(p);
  let terms = 1;
  for (;;) {
    const next = operatorLevel(p);
    if (next === 0 || next > level) {
      return left;
    }
    p.countTerm(terms, start);
    terms += 1;
    if (p.at('||')) {
      left = concat(p, left, start);
    } else if (p.kind() === TokenKind.Mark) {
      left = markOperator(p, left, start);
    } else {
      left = wordOperator(p, left, start);
    }
  }
}

/**
 * Returns the precedence level of the operator at the current token; 0 if the token is not an
 * operator.
 */
function operatorLevel(p: Parser): number {
  p.suggest(WORD_LEVELS.keys());
  p.suggest(['NOT']);
  if (p.kind() === TokenKind.Mark) {
    if (p.value() === '||') {
      return LEVEL_CONCAT;
    }
    return MARK_OPERATORS.get(p.value())?.[1] ?? 0;
  }
  if (p.kind() !== TokenKind.Word) {
    return 0;
  }
  if (p.sees('OPERATOR', '(')) {
    return LEVEL_EQUALITY;
  }
  const negated = p.at('NOT');
  const word = p.value(negated ? 1 : 0);
  if (negated && word === 'IS') {
    return 0;
  }
  if (word === 'SIMILAR' && p.value(negated ? 2 : 1) !== 'TO') {
    // Here SIMILAR is a name.
    return 0;
  }
  if (word === 'OVERLAPS' && (negated || p.value(1) !== '(')) {
    // Here OVERLAPS is a name.
    return 0;
  }
  return WORD_LEVELS.get(word) ?? 0;
}

function markOperator(p: Parser, left: NodeId, start: number): NodeId {
  const operatorSpan = { start: p.start(), end: p.end() };
  const text = p.value();
  const [operator, level] = MARK_OPERATORS.get(text) ?? p.fail('operator expected');
  p.advance();
  if (!atOperand(p)) {
    failMissing(p, text, operatorSpan.start, 1, 2);
  }
  const right = matched(p, text, binary(p, level - 1));
  return (
    comparedRows(p, operator, left, right, operatorSpan) ??
    addBinary(p, operator, left, right, operatorSpan, start)
  );
}

/**
 * Returns the right operand of an operator; for `~*` and `!~*`, converts it to a case-insensitive
 * pattern.
 */
function matched(p: Parser, mark: string, right: NodeId): NodeId {
  if (mark !== '~*' && mark !== '!~*') {
    return right;
  }
  const { start, end } = p.spanOf(right);
  const flag = p.add({ kind: 'String', value: '(?i)' }, start, start);
  const operands = [flag, right];
  const node = { kind: 'Concat', operands, operator_span: { start, end } } as const;
  return p.add(node, start, end, ...operands);
}

function addBinary(
  p: Parser,
  operator: BinaryOperator,
  left: NodeId,
  right: NodeId,
  operatorSpan: Span,
  start: number,
): NodeId {
  const node = { kind: 'Binary', operator, left, right, operator_span: operatorSpan } as const;
  return p.add(node, start, p.lastEnd(), left, right);
}

function concat(p: Parser, first: NodeId, start: number): NodeId {
  const operatorSpan = { start: p.start(), end: p.end() };
  const operands = [first];
  while (p.at('||')) {
    p.countTerm(operands.length, start);
    const at = p.start();
    p.advance();
    if (!atOperand(p)) {
      failMissing(p, '||', at, 1, 2);
    }
    operands.push(binary(p, LEVEL_CONCAT - 1));
  }
  const node = { kind: 'Concat', operands, operator_span: operatorSpan } as const;
  return p.add(node, start, p.lastEnd(), ...operands);
}

/** Parses `[NOT] IN`, `[NOT] BETWEEN`, `[NOT] LIKE`, `WITHIN`, `IS` or `OPERATOR(…)`. */
function wordOperator(p: Parser, left: NodeId, start: number): NodeId {
  if (p.at('OPERATOR')) {
    return qualifiedOperator(p, left, start);
  }
  const from = p.start();
  const negated = p.take('NOT');
  const word = p.value();
  const operatorSpan = { start: from, end: p.end() };
  const at = p.start();
  p.advance();
  if (word === 'IS') {
    return isOperator(p, left, start, operatorSpan);
  }
  if (word === 'SIMILAR') {
    p.expect('TO');
    return similarOperator(p, left, start, negated, operatorSpan);
  }
  if (!atOperand(p)) {
    failMissing(p, word.toLowerCase(), at, 1, word === 'BETWEEN' ? 3 : 2);
  }
  switch (word) {
    case 'IN':
      return inOperator(p, left, start, negated, operatorSpan);
    case 'BETWEEN':
      return between(p, left, start, negated, operatorSpan, at);
    case 'OVERLAPS':
      return overlapping(p, left, binary(p, LEVEL_RANGE - 1), operatorSpan, start);
    case 'WITHIN': {
      const items = p.parenthesised(() => parseExpression(p));
      const node = { kind: 'Within', operand: left, items, operator_span: operatorSpan } as const;
      const within = p.add(node, start, p.lastEnd(), left, ...items);
      if (!negated) {
        return within;
      }
      return p.add({ kind: 'Unary', operator: 'Not', operand: within }, start, p.lastEnd(), within);
    }
    default: {
      const from = p.start();
      const right = escapedPattern(p, binary(p, LEVEL_EQUALITY - 1), from);
      const operator = word === 'LIKE' ? 'Like' : 'ILike';
      return addBinary(p, negated ? `Not${operator}` : operator, left, right, operatorSpan, start);
    }
  }
}

/**
 * Parses `SIMILAR TO pattern [ESCAPE 'c']`. A call converts the pattern to a regular expression.
 */
function similarOperator(
  p: Parser,
  left: NodeId,
  start: number,
  negated: boolean,
  operatorSpan: Span,
): NodeId {
  if (!atOperand(p)) {
    failMissing(p, 'similar to', operatorSpan.start, 1, 2);
  }
  const from = p.start();
  const arguments_ = [binary(p, LEVEL_EQUALITY - 1)];
  if (p.at('ESCAPE') && atText(p, 1)) {
    p.advance();
    arguments_.push(primary(p));
  }
  const name = { text: 'similar_pattern', quoted: false, span: operatorSpan };
  const pattern = addCall(p, name, from, arguments_);
  const operator = negated ? 'NotMatches' : 'Matches';
  return addBinary(p, operator, left, pattern, operatorSpan, start);
}

/**
 * Parses `pattern ESCAPE 'c'` into a call that returns the pattern with the default escape
 * character.
 */
function escapedPattern(p: Parser, pattern: NodeId, start: number): NodeId {
  if (!p.at('ESCAPE') || !atText(p, 1)) {
    return pattern;
  }
  const span = { start: p.start(), end: p.end() };
  p.advance();
  const at = p.start();
  const escape = primary(p);
  const literal = p.node(escape);
  if (literal.kind === 'String' && Array.from(literal.value).length > 1) {
    p.failAt('ESCAPE must be empty or one character', at, p.lastEnd());
  }
  return addCall(p, { text: 'like_escape', quoted: false, span }, start, [pattern, escape]);
}

/**
 * Returns whether the token `ahead` tokens further on is a string or a placeholder for a string.
 */
function atText(p: Parser, ahead: number): boolean {
  const kind = p.kind(ahead);
  return (
    kind === TokenKind.String ||
    kind === TokenKind.Parameter ||
    kind === TokenKind.NamedParameter ||
    kind === TokenKind.Variable ||
    p.value(ahead) === '?' ||
    (p.value(ahead) === 'E' && p.kind(ahead + 1) === TokenKind.String)
  );
}

function inOperator(
  p: Parser,
  operand: NodeId,
  start: number,
  negated: boolean,
  operatorSpan: Span,
): NodeId {
  const common = { operand, negated, operator_span: operatorSpan };
  if (!p.at('(')) {
    const items = [binary(p, LEVEL_RANGE - 1)];
    const node = { kind: 'InList', ...common, items, bare: true } as const;
    return p.add(node, start, p.lastEnd(), operand, ...items);
  }
  const open = p.start();
  p.advance();
  if (atQuery(p) || p.at('VALUES', '(')) {
    if (valuesOf(p, operand) !== null) {
      const { end } = p.spanOf(operand);
      p.failAt('a row value cannot be compared with a sub-query; use a join instead', start, end);
    }
    const query = p.grammar.query(p);
    p.close(open);
    return p.add({ kind: 'InQuery', ...common, query }, start, p.lastEnd(), operand, query);
  }
  const items = p.list(() => parseExpression(p));
  p.close(open);
  const among = rowAmong(p, operand, items, negated, operatorSpan);
  if (among !== null) {
    return among;
  }
  const node = { kind: 'InList', ...common, items, bare: false } as const;
  return p.add(node, start, p.lastEnd(), operand, ...items);
}

function between(
  p: Parser,
  operand: NodeId,
  start: number,
  negated: boolean,
  operatorSpan: Span,
  at: number,
): NodeId {
  const low = binary(p, LEVEL_RANGE - 1);
  if (!p.take('AND') || !atOperand(p)) {
    failMissing(p, 'between', at, 2, 3);
  }
  const high = binary(p, LEVEL_RANGE - 1);
  const node = {
    kind: 'Between',
    operand,
    low,
    high,
    negated,
    operator_span: operatorSpan,
  } as const;
  return p.add(node, start, p.lastEnd(), operand, low, high);
}

/**
 * Parses `IS [NOT] NULL | TRUE | FALSE | DISTINCT FROM e`. All forms except NULL are equivalent to
 * `=`, because null equals null.
 */
function isOperator(p: Parser, left: NodeId, start: number, operatorSpan: Span): NodeId {
  const negated = p.take('NOT');
  if (p.take('NULL')) {
    return p.add({ kind: 'IsNull', operand: left, negated }, start, p.lastEnd(), left);
  }
  if (p.at('TRUE') || p.at('FALSE')) {
    const right = primary(p);
    return addBinary(p, negated ? 'NotEqual' : 'Equal', left, right, operatorSpan, start);
  }
  if (p.take('DISTINCT', 'FROM')) {
    if (!atOperand(p)) {
      failMissing(p, 'is distinct from', operatorSpan.start, 1, 2);
    }
    const right = binary(p, LEVEL_EQUALITY - 1);
    return addBinary(p, negated ? 'Equal' : 'NotEqual', left, right, operatorSpan, start);
  }
  return p.fail("'null' expected");
}

/** Parses `a OPERATOR(pg_catalog.~) b`, which psql sends. */
function qualifiedOperator(p: Parser, left: NodeId, start: number): NodeId {
  const at = p.start();
  p.advance(2);
  if (p.kind() === TokenKind.Word && p.value(1) === '.') {
    p.advance(2);
  }
  const mark = p.value();
  const operator = MARK_OPERATORS.get(mark)?.[0];
  if (operator === undefined) {
    p.fail(`unexpected token [${p.written()}]`);
  }
  p.advance();
  p.expect(')');
  const operatorSpan = { start: at, end: p.lastEnd() };
  const right = matched(p, mark, binary(p, LEVEL_EQUALITY - 1));
  return addBinary(p, operator, left, right, operatorSpan, start);
}

/** Parses prefix operators. */
function unary(p: Parser): NodeId {
  const start = p.start();
  const mark = p.kind() === TokenKind.Mark ? p.value() : '';
  const operator =
    mark === '-' ? 'Minus' : mark === '+' ? 'Plus' : /^~~?$/.test(mark) ? 'BitNot' : undefined;
  if (operator === undefined && !p.at('NOT')) {
    return postfix(p);
  }
  const name = p.written().toLowerCase();
  p.advance();
  if (!atOperand(p)) {
    failMissing(p, name, start, 0, 1);
  }
  const operand = p.nested(() => (operator === undefined ? binary(p, LEVEL_EQUALITY) : unary(p)));
  const apply = (to: NodeId, from: number): NodeId => {
    const node = { kind: 'Unary', operator: operator ?? 'Not', operand: to } as const;
    return p.add(node, from, p.lastEnd(), to);
  };
  // Two prefix operators are one mark, which is LIKE between operands.
  return mark === '~~' ? apply(apply(operand, start + 1), start) : apply(operand, start);
}

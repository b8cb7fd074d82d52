/** Operands, parsed by recursive descent. Inside brackets they can contain any expression. */
import type { NodeId } from '../ast.generated.js';
import { addCall } from './add-call.js';
import { callOrColumn, parseArray, parseCase, parseCast, parseExists } from './call.js';
import { escapedText } from './escapes.js';
import { CALLABLE, INTERVAL_WORDS, LITERAL_TYPES } from '../lexer/keywords.js';
import { TokenKind } from '../lexer/lexer.js';
import { atOperand, atQuery, closeBracket, requireOperand } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';
import { remainingRow } from './row.js';
import { parseType } from './type-name.js';

/**
 * Parses postfix operators, which bind tighter than any prefix: `::type`, `[…]`, COLLATE;
 * `(row).field`.
 */
export function postfix(p: Parser): NodeId {
  const start = p.start();
  const isRow = p.at('(');
  let operand = primary(p);
  for (;;) {
    if (p.take('::')) {
      const typeName = parseType(p, 'type expected');
      const node = { kind: 'Cast', operand, type_name: typeName, double_colon: true } as const;
      operand = p.add(node, start, p.lastEnd(), operand);
    } else if (p.at('[')) {
      operand = indexed(p, operand, start);
    } else if (p.at('AT', 'TIME', 'ZONE')) {
      operand = atTimeZone(p, operand, start);
    } else if (p.take('COLLATE')) {
      // psql's catalog queries specify a collation, which has no effect because strings have only
      // one.
      p.qualified(p.name('collation name expected'));
    } else if (isRow && p.at('.') && p.kind(1) === TokenKind.Word) {
      operand = rowField(p, operand, start);
    } else {
      return operand;
    }
  }
}

/** Parses `time AT TIME ZONE zone`, which returns the local time in the zone. */
function atTimeZone(p: Parser, time: NodeId, start: number): NodeId {
  const at = p.start();
  p.advance(3);
  if (!atOperand(p)) {
    p.fail('time zone expected');
  }
  const zone = primary(p);
  const name = { text: 'timezone', quoted: false, span: { start: at, end: p.lastEnd() } };
  return addCall(p, name, start, [zone, time]);
}

/** Parses `(row).field` as an ordinary call. */
function rowField(p: Parser, row: NodeId, start: number): NodeId {
  const dot = p.start();
  p.advance();
  const field = p.add({ kind: 'String', value: p.written().toLowerCase() }, p.start(), p.end());
  p.advance();
  const name = { text: 'row_field', quoted: false, span: { start: dot, end: p.lastEnd() } };
  return addCall(p, name, start, [row, field]);
}

function indexed(p: Parser, operand: NodeId, start: number): NodeId {
  const open = p.start();
  p.advance();
  const children: NodeId[] = [operand];
  const selectors = p.list(() => {
    const low = p.grammar.expression(p);
    children.push(low);
    if (!p.take(':')) {
      return { selector: 'Item', index: low } as const;
    }
    const high = atOperand(p) ? p.grammar.expression(p) : null;
    if (high !== null) {
      children.push(high);
    }
    return { selector: 'Slice', low, high } as const;
  });
  closeBracket(p, open);
  return p.add({ kind: 'Index', operand, selectors }, start, p.lastEnd(), ...children);
}

/** Parses an operand without operators. */
export function primary(p: Parser): NodeId {
  switch (p.kind()) {
    case TokenKind.Word:
      return wordOperand(p);
    case TokenKind.Quoted:
      return callOrColumn(p);
    case TokenKind.String:
      return literal(p, { kind: 'String', value: p.unquoted() });
    case TokenKind.Integer:
      return literal(p, { kind: 'Integer', text: p.written() });
    case TokenKind.Float:
      return literal(p, { kind: 'Float', text: p.written() });
    case TokenKind.Decimal:
      return literal(p, { kind: 'Decimal', text: p.written() });
    case TokenKind.Long256:
      return literal(p, { kind: 'Long256', text: p.written() });
    case TokenKind.Geohash:
      return literal(p, { kind: 'Geohash', text: p.written() });
    case TokenKind.Duration:
      return suffixedNumber(p);
    case TokenKind.Parameter:
      return literal(p, { kind: 'Parameter', index: parameterIndex(p) });
    case TokenKind.NamedParameter:
    case TokenKind.Variable: {
      const kind = p.kind() === TokenKind.Variable ? 'Variable' : 'NamedParameter';
      const span = { start: p.start(), end: p.end() };
      return literal(p, { kind, name: { text: p.written().slice(1), quoted: false, span } });
    }
    case TokenKind.Mark:
      return markOperand(p);
    default:
      return p.fail('expression expected');
  }
}

type Leaf = Parameters<Parser['add']>[0];

function literal(p: Parser, node: Leaf): NodeId {
  const start = p.start();
  const end = p.end();
  p.advance();
  return p.add(node, start, end);
}

function parameterIndex(p: Parser): number {
  const index = Number(p.written().slice(1));
  if (index < 1 || index > 65_535) {
    p.fail(`parameter number is out of range [${p.written()}]`);
  }
  return index;
}

/**
 * Parses a number with a suffix. In an expression, `3d` and `3m` are numbers; with any other unit,
 * the token is a duration.
 */
function suffixedNumber(p: Parser): NodeId {
  const text = p.written();
  if (/^[0-9_]+[dD]$/.test(text)) {
    return literal(p, { kind: 'Float', text });
  }
  if (/^[0-9_]+m$/.test(text)) {
    return literal(p, { kind: 'Decimal', text });
  }
  if (!/^(?:[0-9][0-9_]*[a-zA-Z]{1,2})+$/.test(text)) {
    p.fail(`invalid constant: ${text}`);
  }
  return literal(p, { kind: 'Duration', text });
}

function markOperand(p: Parser): NodeId {
  const start = p.start();
  switch (p.value()) {
    case '(':
      return parenthesis(p);
    case '[':
      return parseArray(p, start);
    case '?':
      return literal(p, { kind: 'Parameter', index: p.nextQuestionMark() });
    case '*':
      return failMissing(p, '*', start, 0, 2);
    default:
      return p.fail(`unexpected token [${p.written()}]`);
  }
}

function parenthesis(p: Parser): NodeId {
  const open = p.start();
  p.advance();
  if (atQuery(p)) {
    const query = p.grammar.query(p);
    p.close(open);
    return p.add({ kind: 'Subquery', query }, open, p.lastEnd(), query);
  }
  requireOperand(p, open);
  const inner = p.grammar.expression(p);
  if (p.at(',')) {
    return remainingRow(p, inner, open);
  }
  p.close(open);
  return inner;
}

function wordOperand(p: Parser): NodeId {
  const word = p.value();
  const followed = p.value(1);
  switch (word) {
    case 'NULL':
      return literal(p, { kind: 'Null' });
    case 'TRUE':
    case 'FALSE':
      if (followed === '.' || followed === '(') {
        break;
      }
      return literal(p, { kind: 'Boolean', value: word === 'TRUE' });
    case 'CASE':
      return p.inCase(() => parseCase(p));
    case 'CAST':
      if (followed !== '(') {
        p.failReserved();
      }
      return parseCast(p);
    case 'EXISTS':
      if (followed === '(' && p.kind(2) === TokenKind.Word) {
        return parseExists(p);
      }
      break;
    case 'E':
      if (p.kind(1) === TokenKind.String && p.start(1) === p.end()) {
        p.advance();
        return literal(p, { kind: 'String', value: escapedText(p) });
      }
      break;
    case 'ARRAY':
      if (followed === '(' && ['SELECT', 'WITH', 'VALUES'].includes(p.value(2))) {
        const start = p.start();
        p.advance();
        return arrayOfQuery(p, start);
      }
      if (followed === '[') {
        p.advance();
        return parseArray(p, p.start());
      }
      break;
    default:
  }
  if (LITERAL_TYPES.has(word)) {
    const typed = typedString(p);
    if (typed !== null) {
      return typed;
    }
  }
  if (p.atReserved() && !p.atColumnWord() && !(CALLABLE.has(word) && followed === '(')) {
    p.failReserved();
  }
  return callOrColumn(p);
}

/** Parses `ARRAY(SELECT e …)` into a call with the query as its argument. */
function arrayOfQuery(p: Parser, start: number): NodeId {
  const span = { start, end: p.lastEnd() };
  const open = p.start();
  const query = parenthesis(p);
  if (p.node(query).kind !== 'Subquery') {
    return p.failAt('ARRAY requires a SELECT of one column', open, p.lastEnd());
  }
  return addCall(p, { text: 'array', quoted: false, span }, start, [query]);
}

/**
 * Parses `timestamp '…'` and `timestamp with time zone '…'`; returns `null` if the word is a name.
 */
function typedString(p: Parser): NodeId | null {
  const isNarrowed = p.value(1) === '(' && p.kind(2) === TokenKind.Integer && p.value(3) === ')';
  const digits = isNarrowed ? 3 : 0;
  const next = p.value(1 + digits);
  const zoned = next === 'WITH' || next === 'WITHOUT';
  if (p.kind(digits + (zoned ? 4 : 1)) !== TokenKind.String) {
    return null;
  }
  const start = p.start();
  const typeName = parseType(p, 'type expected');
  let value = p.unquoted();
  p.advance();
  if (
    typeName.name.toUpperCase() === 'INTERVAL' &&
    INTERVAL_WORDS.has(p.value().replace(/S$/, ''))
  ) {
    value += ` ${p.written()}`;
    p.advance();
  }
  return p.add({ kind: 'TypedString', type_name: typeName, value }, start, p.lastEnd());
}

/** Reports that the operator at `at` lacks operands. */
export function failMissing(
  p: Parser,
  name: string,
  at: number,
  found: number,
  expected: number,
): never {
  const message = `too few arguments for '${name}' [found=${found},expected=${expected}]`;
  return p.failAt(message, at, at + name.length);
}

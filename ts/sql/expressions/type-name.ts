/** Type names: one or several words, arguments and array brackets. */
import type { TypeName } from '../ast.generated.js';
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from '../parser/parser.js';

/** Maximum number of fractional digits that TIMESTAMP stores. */
const MICROSECOND_DIGITS = 6;

/**
 * Parses a type as written in SQL: `GEOHASH(5c)`, `DOUBLE[][]`, `double precision`,
 * `pg_catalog.text`.
 */
export function parseType(p: Parser, missing: string): TypeName {
  p.suggestContext('type');
  if (p.kind() !== TokenKind.Word && p.kind() !== TokenKind.Quoted) {
    p.fail(missing);
  }
  if (p.value(1) === '.' && p.kind(2) === TokenKind.Word) {
    p.advance(2);
  }
  const start = p.start();
  let name = typeWords(p);
  const open = p.start();
  const args = p.at('(') ? typeArguments(p) : [];
  checkPrecision(p, name.toUpperCase(), args[0], open);
  if (/^timestamp(?:tz)?$/i.test(name) && /^[0-9]$/.test(args[0] ?? '')) {
    // More than six fractional digits select the nanosecond type.
    name = Number(args[0]) > MICROSECOND_DIGITS ? 'timestamp_ns' : name;
  }
  if (/^time(?:stamp)?$/i.test(name)) {
    name += zoneWords(p);
  }
  let dimensions = 0;
  while (p.at('[') && (p.value(1) === ']' || p.value(2) === ']')) {
    p.advance(p.value(1) === ']' ? 2 : 3);
    dimensions += 1;
  }
  return { name, arguments: args, dimensions, span: { start, end: p.lastEnd() } };
}

function typeWords(p: Parser): string {
  const start = p.start();
  const first = p.takeName(p.kind() === TokenKind.Quoted).text;
  if (!/^[\p{L}\p{N}_]+$/u.test(first)) {
    p.failAt('type expected', start, p.lastEnd());
  }
  if (/^double$/i.test(first) && p.take('PRECISION')) {
    return `${first} precision`;
  }
  if (/^character$/i.test(first) && p.take('VARYING')) {
    return `${first} varying`;
  }
  return first;
}

function zoneWords(p: Parser): string {
  if (p.take('WITH', 'TIME', 'ZONE')) {
    return ' with time zone';
  }
  if (p.take('WITHOUT', 'TIME', 'ZONE')) {
    return ' without time zone';
  }
  return '';
}

function typeArguments(p: Parser): string[] {
  return p.parenthesised(() => {
    const kind = p.kind();
    if (kind !== TokenKind.Integer && kind !== TokenKind.Duration && kind !== TokenKind.Word) {
      p.fail('type argument expected');
    }
    const text = p.written();
    p.advance();
    return text;
  });
}

/** Checks the limits of GEOHASH and DECIMAL, which are part of the type syntax. */
function checkPrecision(p: Parser, name: string, argument: string | undefined, at: number): void {
  if (argument === undefined) {
    return;
  }
  const number = Number.parseInt(argument, 10);
  if (name === 'GEOHASH') {
    const bits = number * (/c$/i.test(argument) ? 5 : 1);
    if (bits >= 1 && bits <= 60) {
      return;
    }
    const range = 'invalid GEOHASH type precision range, must be [1, 60] bits';
    p.failAt(`${range}, provided=${bits}`, at, p.lastEnd());
  }
  if ((name === 'DECIMAL' || name === 'NUMERIC') && !(number >= 1 && number <= 76)) {
    const message = `Invalid decimal type. The precision (${argument}) must be less than 76`;
    p.failAt(message, at, p.lastEnd());
  }
}

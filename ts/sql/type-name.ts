/** Type names: one word or several, arguments, array brackets. */
import type { TypeName } from './ast.generated.js';
import { TokenKind } from './lexer.js';
import type { Parser } from './parser.js';

/** A type as written: `GEOHASH(5c)`, `DOUBLE[][]`, `double precision`, `pg_catalog.text`. */
export function parseType(p: Parser, missing: string): TypeName {
  if (p.kind() !== TokenKind.Word && p.kind() !== TokenKind.Quoted) p.fail(missing);
  if (p.value(1) === '.' && p.kind(2) === TokenKind.Word) p.advance(2);
  const start = p.start();
  let name = typeWords(p);
  const args = p.at('(') ? typeArguments(p) : [];
  if (/^time(?:stamp)?$/i.test(name)) name += zoneWords(p);
  let dimensions = 0;
  while (p.at('[') && (p.value(1) === ']' || p.value(2) === ']')) {
    p.advance(p.value(1) === ']' ? 2 : 3);
    dimensions += 1;
  }
  return { name, arguments: args, dimensions, span: { start, end: p.lastEnd() } };
}

function typeWords(p: Parser): string {
  const first = p.takeName(p.kind() === TokenKind.Quoted).text;
  if (/^double$/i.test(first) && p.take('PRECISION')) return `${first} precision`;
  if (/^character$/i.test(first) && p.take('VARYING')) return `${first} varying`;
  return first;
}

function zoneWords(p: Parser): string {
  if (p.take('WITH', 'TIME', 'ZONE')) return ' with time zone';
  if (p.take('WITHOUT', 'TIME', 'ZONE')) return ' without time zone';
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

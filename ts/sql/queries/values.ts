/**
 * The rows of VALUES. Literals never become nodes; each cell takes up four array entries instead.
 * The cells of long inserts therefore do not count as terms and are not passed to the engine as
 * objects.
 */
import type { PlainRows, ValuesBlock } from '../ast.generated.js';
import { TokenKind } from '../lexer/lexer.js';
import { requireOperand } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';

interface Rows {
  readonly widths: number[];
  readonly kinds: string[];
  readonly texts: string[];
  readonly starts: number[];
  readonly row_starts: number[];
  readonly row_ends: number[];
}

/** The rows of an INSERT: first the plain rows as SQL text, then all other rows. */
export interface InsertedRows {
  readonly plain: PlainRows | null;
  readonly values: ValuesBlock | null;
}

/** Parses `(…), (…)` after the VALUES of an INSERT. */
export function parseInsertedRows(p: Parser): InsertedRows {
  const plain = p.takePlainRows();
  const isOnlyPlain = plain !== null && !p.take(',');
  return { plain, values: isOnlyPlain ? null : parseValues(p) };
}

/** Parses `(…), (…)` after VALUES. */
export function parseValues(p: Parser): ValuesBlock {
  const rows: Rows = { widths: [], kinds: [], texts: [], starts: [], row_starts: [], row_ends: [] };
  parseRows(p, rows);
  const { widths, kinds, texts, starts, row_starts, row_ends } = rows;
  const cells = { widths, kinds: kinds.join(''), texts, starts, row_starts, row_ends };
  return { ...cells, rows: widths.length };
}

function parseRows(p: Parser, rows: Rows): void {
  do {
    if (!p.at('(')) {
      p.fail("'(' expected");
    }
    parseRow(p, rows);
  } while (p.take(','));
}

function parseRow(p: Parser, rows: Rows): void {
  const open = p.start();
  p.advance();
  let width = 0;
  do {
    rows.starts.push(p.start());
    if (!literalCell(p, rows)) {
      requireOperand(p, open);
      rows.kinds.push('x');
      rows.texts.push(String(p.grammar.expression(p)));
    }
    width += 1;
  } while (p.take(','));
  rows.row_starts.push(open);
  rows.row_ends.push(p.start());
  rows.widths.push(width);
  p.close(open);
}

/**
 * Parses a cell that is a single literal, optionally with a sign. Returns false if it is anything
 * else.
 */
function literalCell(p: Parser, rows: Rows): boolean {
  const signed = p.at('-') || p.at('+') ? 1 : 0;
  const next = p.value(signed + 1);
  if (p.kind(signed + 1) !== TokenKind.Mark || (next !== ',' && next !== ')')) {
    return false;
  }
  const letter = literalLetter(p, signed);
  if (letter === '') {
    return false;
  }
  rows.kinds.push(letter);
  if (letter === 's') {
    rows.texts.push(p.unquoted());
  } else {
    rows.texts.push(signed === 1 && p.at('-') ? `-${p.written(1)}` : p.written(signed));
  }
  p.advance(signed + 1);
  return true;
}

function literalLetter(p: Parser, signed: number): string {
  switch (p.kind(signed)) {
    case TokenKind.Integer:
      return 'i';
    case TokenKind.Float:
      return 'd';
    case TokenKind.String:
      return signed === 0 ? 's' : '';
    case TokenKind.Word:
      if (signed === 1) {
        return '';
      }
      if (p.at('NULL')) {
        return 'n';
      }
      if (p.at('TRUE')) {
        return 't';
      }
      if (p.at('DEFAULT')) {
        return 'v';
      }
      return p.at('FALSE') ? 'f' : '';
    default:
      return '';
  }
}

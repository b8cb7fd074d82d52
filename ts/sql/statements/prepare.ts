/** PREPARE and EXECUTE. */
import type { TypeName } from '../ast.generated.js';
import { parseType } from '../expressions/type-name.js';
import type { StatementText } from '../lexer/split.js';
import type { Parser } from '../parser/parser.js';
import { atCommand, foldedName, remainingText, skipping } from './words.js';

/** `PREPARE name (types) AS statement`. */
export interface PrepareStatement {
  readonly kind: 'Prepare';
  readonly name: string;
  readonly types: readonly TypeName[];
  readonly statement: StatementText;
}

/** `EXECUTE name (values)`; each value is an expression. */
export interface ExecuteStatement {
  readonly kind: 'Execute';
  readonly name: string;
  readonly values: readonly StatementText[];
}

interface TwoPhase {
  readonly kind: 'TwoPhase';
}

/** Parses the words after PREPARE; returns `null` for a query on a table named `prepare`. */
export function parsePrepare(p: Parser): PrepareStatement | TwoPhase | null {
  if (p.value(1) !== 'AS' && p.value(1) !== '(' && p.take('TRANSACTION')) {
    skipping(p, { kind: 'TwoPhase' });
    return { kind: 'TwoPhase' };
  }
  if (!atCommand(p)) {
    return null;
  }
  const name = foldedName(p, 'prepared statement name');
  const types = p.at('(') ? p.parenthesised(() => parseType(p, 'type expected')) : [];
  p.expect('AS');
  if (p.sees('SHOW') || p.sees('EXPLAIN')) {
    p.fail('query, INSERT, UPDATE or DELETE expected');
  }
  return { kind: 'Prepare', name, types, statement: remainingText(p, 'statement expected') };
}

/** Parses the words after EXECUTE; returns `null` for a query on a table named `execute`. */
export function parseExecute(p: Parser): ExecuteStatement | null {
  if (!atCommand(p)) {
    return null;
  }
  const name = foldedName(p, 'prepared statement name');
  const values = p.at('(') ? p.parenthesised(() => valueText(p)) : [];
  return { kind: 'Execute', name, values };
}

/** Skips an expression, up to the next comma or parenthesis outside brackets. */
function valueText(p: Parser): StatementText {
  const start = p.start();
  let depth = 0;
  while (depth > 0 || !(p.at(',') || p.at(')'))) {
    if (p.atEnd()) {
      p.fail("')' expected");
    }
    if (p.sees('(') || p.sees('[')) {
      depth += 1;
    } else if (p.sees(')') || p.sees(']')) {
      depth -= 1;
    }
    p.advance();
  }
  if (p.lastEnd() <= start) {
    p.fail('expression expected');
  }
  return { text: p.text.slice(start, p.lastEnd()), start };
}

/** LOCK TABLE. */
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from '../parser/parser.js';
import { atCommand } from './words.js';

/** `LOCK TABLE`, which has no effect. */
export interface LockTable {
  readonly kind: 'LockTable';
  readonly tables: readonly string[];
}

const MODES = [
  ['ACCESS', 'SHARE'],
  ['ROW', 'SHARE'],
  ['ROW', 'EXCLUSIVE'],
  ['SHARE', 'UPDATE', 'EXCLUSIVE'],
  ['SHARE', 'ROW', 'EXCLUSIVE'],
  ['SHARE'],
  ['EXCLUSIVE'],
  ['ACCESS', 'EXCLUSIVE'],
] as const;

/** Parses the words after LOCK; returns `null` for a query on a table named `lock`. */
export function parseLockTable(p: Parser): LockTable | null {
  if (!atCommand(p)) {
    return null;
  }
  if (p.kind(1) !== TokenKind.End && p.value(1) !== ';') {
    p.take('TABLE');
  }
  const tables = p.list(() => {
    if (p.kind(1) === TokenKind.Word || p.kind(1) === TokenKind.Quoted) {
      p.take('ONLY');
    }
    const { text } = p.tableName('table name expected');
    p.take('*');
    return text;
  });
  if (p.take('IN')) {
    if (!MODES.some((words) => p.take(...words))) {
      p.fail('lock mode expected: SHARE, EXCLUSIVE, ACCESS EXCLUSIVE, …');
    }
    p.expect('MODE');
  }
  p.take('NOWAIT');
  return { kind: 'LockTable', tables };
}

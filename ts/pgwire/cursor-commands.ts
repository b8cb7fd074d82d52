/** DECLARE, FETCH and MOVE: cursors of SQL are portals that a client reads in steps, forward. */
import { ProtocolError } from './protocol-error.js';

/** `DECLARE name CURSOR FOR query`. */
export interface Declaration {
  readonly name: string;
  /** Rows are binary, whatever a FETCH asks for. */
  readonly binary: boolean;
  /** Outlives its block. */
  readonly hold: boolean;
  readonly query: string;
  /** Where `query` begins in the statement's text. */
  readonly start: number;
}

export interface FetchCommand {
  readonly command: 'fetch' | 'move';
  readonly name: string;
  /** Rows; null for all that are left. */
  readonly rows: number | null;
}

const NAME = '"(?:[^"]|"")*"|[^\\s";]+';
const DECLARE = new RegExp(
  `^declare\\s+(${NAME})((?:\\s+(?:binary|insensitive|asensitive|no\\s+scroll|scroll))*)` +
    '\\s+cursor(\\s+with(?:out)?\\s+hold)?\\s+for\\s+',
  'i',
);
const MOST_ROWS = 2_147_483_647;

/** A name without its quotes, folded as PostgreSQL folds it. */
export function unquoted(word: string): string {
  return /^".*"$/s.test(word) ? word.slice(1, -1).replaceAll('""', '"') : word.toLowerCase();
}

/** The cursor a text declares; null when it is another statement. */
export function declaration(text: string): Declaration | null {
  if (!/^declare\s/i.test(text)) {
    return null;
  }
  const match = DECLARE.exec(text);
  if (match === null) {
    // QuestDB's DECLARE @variable := … SELECT.
    return null;
  }
  const [head, name = '', options = '', hold = ''] = match;
  if (/(?<!no\s+)\bscroll/i.test(options)) {
    throw new ProtocolError('0A000', 'cursors that scroll back are not supported: use NO SCROLL');
  }
  return {
    name: unquoted(name),
    binary: /binary/i.test(options),
    hold: /with\s+hold/i.test(hold),
    query: text.slice(head.length),
    start: head.length,
  };
}

/** The FETCH or MOVE a text is, or null. */
export function fetchCommand(text: string): FetchCommand | null {
  const match = /^(fetch|move)\s+(.*)$/is.exec(text.trim());
  if (match === null) {
    return null;
  }
  const words = match[2]?.match(new RegExp(NAME, 'g')) ?? [];
  const name = words.pop() ?? '';
  if (/^(?:from|in)$/i.test(words.at(-1) ?? '')) {
    words.pop();
  }
  const command = match[1]?.toLowerCase() === 'move' ? 'move' : 'fetch';
  return { command, name: unquoted(name), rows: rowsOf(words) };
}

/** `NEXT`, `5`, `ALL`, `FORWARD`, `FORWARD 5`, `FORWARD ALL`. */
function rowsOf(words: readonly string[]): number | null {
  const [first = 'NEXT', second, ...others] = words.map((word) => word.toUpperCase());
  const isForward = first === 'FORWARD';
  const count = isForward ? (second ?? 'NEXT') : first;
  const isLong = others.length > 0 || (!isForward && second !== undefined);
  if (count === 'NEXT' && !isLong) {
    return 1;
  }
  if (count === 'ALL' && !isLong) {
    return null;
  }
  if (/^\d{1,10}$/.test(count) && Number(count) > 0 && !isLong) {
    return Math.min(Number(count), MOST_ROWS);
  }
  const known = 'NEXT, a number, ALL, FORWARD';
  throw new ProtocolError('55000', `cursor can only scan forward [expected=${known}]`);
}

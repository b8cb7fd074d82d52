/**
 * Statements of the session that the protocol answers itself: blocks, prepared statements and
 * settings of a connection. Told apart by their first words; everything else goes to the engine.
 */
import { type FetchCommand, fetchCommand, unquoted } from './cursor-commands.js';
import { ProtocolError } from './protocol-error.js';

export type SessionCommand =
  | FetchCommand
  | { readonly command: 'begin' | 'commit' | 'rollback' }
  | { readonly command: 'savepoint' | 'release' | 'rollbackTo'; readonly name: string }
  | { readonly command: 'unsupported'; readonly what: string }
  | { readonly command: 'deallocate'; readonly name: string | null }
  | { readonly command: 'close'; readonly name: string | null }
  | { readonly command: 'discard' | 'ignore'; readonly tag: string }
  | { readonly command: 'set'; readonly name: string; readonly value: string | null }
  /** `name`: the service account to become; null: whoever logged in. */
  | { readonly command: 'role'; readonly name: string | null; readonly tag: string };

/** The session command a text is, or null. `text` has no semicolon and no leading comment. */
export function sessionCommand(text: string): SessionCommand | null {
  const words = text
    .trim()
    .split(/\s+/, 2)
    .map((word) => word.toUpperCase());
  const [first, second] = words;
  switch (first) {
    case 'BEGIN':
      return { command: 'begin' };
    case 'START':
      return second === 'TRANSACTION' ? { command: 'begin' } : null;
    case 'COMMIT':
    case 'END':
    case 'ROLLBACK':
    case 'ABORT':
      return endOfBlock(text, first === 'COMMIT' || first === 'END' ? 'commit' : 'rollback');
    case 'SAVEPOINT':
    case 'RELEASE':
      return savepointCommand(text);
    case 'PREPARE':
      return second === 'TRANSACTION' ? TWO_PHASES : null;
    case 'FETCH':
    case 'MOVE':
      return fetchCommand(text);
    case 'LISTEN':
    case 'NOTIFY':
      return { command: 'unsupported', what: 'notifications' };
    case 'UNLISTEN':
      return { command: 'ignore', tag: 'UNLISTEN' };
    case 'DISCARD':
      return { command: 'discard', tag: `DISCARD ${second ?? 'ALL'}` };
    case 'RESET':
      return second === 'ROLE' || second === 'SESSION'
        ? { command: 'role', name: null, tag: 'RESET' }
        : { command: 'ignore', tag: 'RESET' };
    default:
      return namedCommand(text, first ?? '');
  }
}

const TWO_PHASES: SessionCommand = { command: 'unsupported', what: 'two-phase commits' };
const NAME = '("(?:[^"]|"")*"|[^\\s"]+)';
const END = /^\w+(?:\s+(?:work|transaction))?(?:\s+and\s+no\s+chain)?$/i;
const ROLLBACK_TO = new RegExp(
  `^\\w+(?:\\s+(?:work|transaction))?\\s+to\\s+(?:savepoint\\s+)?${NAME}$`,
  'i',
);
const SAVEPOINT = new RegExp(`^(?:savepoint|release(?:\\s+savepoint)?)\\s+${NAME}$`, 'i');

/** COMMIT and ROLLBACK in all their forms. */
function endOfBlock(text: string, command: 'commit' | 'rollback'): SessionCommand {
  const trimmed = text.trim();
  const savepoint = command === 'rollback' ? ROLLBACK_TO.exec(trimmed)?.[1] : undefined;
  if (savepoint !== undefined) {
    return { command: 'rollbackTo', name: unquoted(savepoint) };
  }
  if (END.test(trimmed)) {
    return { command };
  }
  return /\sprepared\s/i.test(trimmed) ? TWO_PHASES : { command: 'unsupported', what: trimmed };
}

function savepointCommand(text: string): SessionCommand {
  const name = SAVEPOINT.exec(text.trim())?.[1];
  if (name === undefined) {
    throw new ProtocolError('42601', 'name of a savepoint expected');
  }
  const command = /^release/i.test(text.trim()) ? 'release' : 'savepoint';
  return { command, name: unquoted(name) };
}

function namedCommand(text: string, first: string): SessionCommand | null {
  if (first === 'DEALLOCATE') {
    const name = /^deallocate\s+(?:prepare\s+)?("(?:[^"]|"")*"|\S+)$/i.exec(text.trim())?.[1];
    return { command: 'deallocate', name: targetName(name) };
  }
  if (first === 'CLOSE') {
    const name = /^close\s+("(?:[^"]|"")*"|\S+)$/i.exec(text.trim())?.[1];
    return { command: 'close', name: targetName(name) };
  }
  if (first !== 'SET') {
    return null;
  }
  const role = ROLE.exec(text.trim());
  if (role !== null) {
    return roleCommand(role);
  }
  const match = /^set\s+(?:session\s+|local\s+)?([\w."]+)(?:\s*=\s*|\s+to\s+)(.*)$/is.exec(
    text.trim(),
  );
  const value = match?.[2]?.trim().replace(/^'(.*)'$/s, '$1') ?? null;
  return { command: 'set', name: (match?.[1] ?? '').toLowerCase(), value };
}

const ROLE = new RegExp(
  '^set\\s+(?:(?:session\\s+|local\\s+)?(role)|session\\s+authorization)' +
    `(?:\\s*=\\s*|\\s+(?:to\\s+)?)('(?:[^']|'')*'|"(?:[^"]|"")*"|[^\\s"']+)$`,
  'i',
);

/** Who does not know it asks for a role and goes on with the rights it had before. */
function roleCommand([, role, written = '']: readonly string[]): SessionCommand {
  const isNobody = /^(?:none|default)$/i.test(written);
  if (role === undefined && !isNobody) {
    return { command: 'unsupported', what: 'SET SESSION AUTHORIZATION, use SET ROLE' };
  }
  const name = written.startsWith("'")
    ? written.slice(1, -1).replaceAll("''", "'")
    : unquoted(written);
  return { command: 'role', name: isNobody ? null : name, tag: 'SET' };
}

/** A name without its quotes, folded as PostgreSQL folds it; null for ALL. */
function targetName(word: string | undefined): string | null {
  if (word === undefined) {
    return '';
  }
  if (word.toUpperCase() === 'ALL') {
    return null;
  }
  return unquoted(word);
}

/** The tag that completes an engine's statement. */
export function commandTag(kind: string, command: string, rows: number): string {
  const word = command.toUpperCase();
  switch (kind) {
    case 'select':
      return word === 'EXPLAIN' ? 'EXPLAIN' : `SELECT ${rows}`;
    case 'insert':
      return `INSERT 0 ${rows}`;
    case 'update':
      return `${word === 'DELETE' ? 'DELETE' : 'UPDATE'} ${rows}`;
    default:
      return word === '' ? 'OK' : word;
  }
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, min: 60_000, h: 3_600_000 };

/** Milliseconds of a `statement_timeout`, with or without a unit. */
export function timeoutOf(value: string): number {
  const match = /^(\d{1,9})\s*(ms|s|min|h)?$/.exec(value.trim());
  if (match === null) {
    const message = `invalid value for parameter "statement_timeout": "${value}"`;
    throw new ProtocolError('22023', message);
  }
  return Number(match[1]) * (UNIT_MS[match[2] ?? 'ms'] ?? 1);
}

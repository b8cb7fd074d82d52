/**
 * Session statements: transaction blocks, savepoints, cursors, settings, and COPY over the
 * connection. The engine never receives them. The session handles these trees, and they have no
 * counterpart in Rust.
 */
import { type LockTable, parseLockTable } from './lock-table.js';
import {
  type ExecuteStatement,
  parseExecute,
  parsePrepare,
  type PrepareStatement,
} from './prepare.js';
import { parseCopyStream, type CopyStream } from './copy-stream.js';
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from '../parser/parser.js';
import type { StatementText } from '../lexer/split.js';
import {
  atCommand,
  ended,
  foldedName,
  isLast,
  isWord,
  remainingText,
  skipping,
  takeBeforeName,
} from './words.js';

export type SessionStatement =
  | { readonly kind: 'Begin'; readonly modes: TransactionModes }
  | { readonly kind: 'Commit' | 'Rollback' }
  | { readonly kind: 'Savepoint' | 'Release' | 'RollbackTo'; readonly name: string }
  /** `name` is `null` for ALL. */
  | { readonly kind: 'Deallocate' | 'CloseCursor'; readonly name: string | null }
  /** `what` is the object to discard, such as ALL or PLANS. */
  | { readonly kind: 'Discard'; readonly what: string }
  /**
   * `local` states whether the value applies only to the current transaction block. `name` is empty
   * for settings with a different syntax that have no effect, such as SET NAMES. `value` is `null`
   * for DEFAULT.
   */
  | {
      readonly kind: 'Set';
      readonly name: string;
      readonly value: string | null;
      readonly local: boolean;
    }
  /** SET TRANSACTION; `defaults` states whether the modes are those of all later blocks. */
  | {
      readonly kind: 'SetTransaction';
      readonly modes: TransactionModes;
      readonly defaults: boolean;
    }
  /** `name` is `null` for NONE and DEFAULT. */
  | { readonly kind: 'SetRole'; readonly name: string | null; readonly local: boolean }
  | { readonly kind: 'SetAuthorization'; readonly name: string | null }
  /** RESET; without `name`, RESET ALL. */
  | { readonly kind: 'Reset'; readonly name?: string }
  | { readonly kind: 'ResetRole' }
  | { readonly kind: 'Listen'; readonly channel: string }
  /** `channel` is `null` for all channels. */
  | { readonly kind: 'Unlisten'; readonly channel: string | null }
  | { readonly kind: 'Notify'; readonly channel: string; readonly payload: string }
  | LockTable
  | PrepareStatement
  | ExecuteStatement
  /** PREPARE TRANSACTION, COMMIT PREPARED, ROLLBACK PREPARED. */
  | { readonly kind: 'TwoPhase' }
  /** COMMIT AND CHAIN, ROLLBACK AND CHAIN. */
  | { readonly kind: 'Chain' }
  | DeclareCursor
  | FetchCursor
  | CopyStream;

/** The modes of a transaction block; absent modes keep their value. */
export interface TransactionModes {
  readonly isolation?: string;
  readonly readOnly?: boolean;
  readonly deferrable?: boolean;
}

/** `DECLARE name CURSOR FOR query`. */
export interface DeclareCursor {
  readonly kind: 'DeclareCursor';
  readonly name: string;
  /** Whether rows are sent in binary, regardless of the format that FETCH requests. */
  readonly binary: boolean;
  /** Whether the cursor can be read backwards. */
  readonly scroll: boolean;
  /** Whether the cursor outlives its block. */
  readonly hold: boolean;
  readonly query: StatementText;
}

/** FETCH, or MOVE, which does not return rows. */
export interface FetchCursor {
  readonly kind: 'Fetch' | 'Move';
  readonly name: string;
  readonly step: CursorStep;
}

/** A cursor step: over `rows` rows (all rows if infinite), or to a single row. */
export interface CursorStep {
  /** Direction. `absolute` counts from the first row; a negative number counts from the last. */
  readonly way: 'forward' | 'backward' | 'absolute' | 'relative';
  readonly rows: number;
}

type Production = (p: Parser) => SessionStatement | null;

/**
 * Parsers of session statements, keyed by first word. A parser returns `null` if it finds a
 * different kind of statement.
 */
const PRODUCTIONS: ReadonlyMap<string, Production> = new Map<string, Production>([
  ['BEGIN', begin],
  ['START', startOfBlock],
  ['COMMIT', (p) => endOfBlock(p, 'Commit')],
  ['END', (p) => endOfBlock(p, 'Commit')],
  ['ROLLBACK', (p) => endOfBlock(p, 'Rollback')],
  ['ABORT', (p) => endOfBlock(p, 'Rollback')],
  ['SAVEPOINT', (p) => ({ kind: 'Savepoint', name: savepointName(p) })],
  ['RELEASE', release],
  ['PREPARE', parsePrepare],
  ['EXECUTE', parseExecute],
  ['LOCK', parseLockTable],
  ['DECLARE', declareCursor],
  ['FETCH', (p) => fetchCursor(p, 'Fetch')],
  ['MOVE', (p) => fetchCursor(p, 'Move')],
  ['CLOSE', (p) => ({ kind: 'CloseCursor', name: target(p, 'cursor name') })],
  ['DEALLOCATE', deallocate],
  ['DISCARD', discard],
  ['LISTEN', listen],
  ['NOTIFY', (p) => (atCommand(p) ? notify(p) : null)],
  ['UNLISTEN', unlisten],
  ['RESET', reset],
  ['SET', set],
  ['COPY', parseCopyStream],
]);

export const ISOLATION_LEVELS = [
  'serializable',
  'repeatable read',
  'read committed',
  'read uncommitted',
] as const;

/** Parses the session statement at the cursor; returns `null` for any other statement. */
export function parseSessionStatement(p: Parser): SessionStatement | null {
  const production = p.kind() === TokenKind.Word ? PRODUCTIONS.get(p.value()) : undefined;
  if (production === undefined) {
    return null;
  }
  const from = p.index;
  p.advance();
  const statement = production(p);
  if (statement === null) {
    p.index = from;
  }
  return statement;
}

function listen(p: Parser): SessionStatement {
  return { kind: 'Listen', channel: foldedName(p, 'channel name') };
}

function unlisten(p: Parser): SessionStatement {
  const channel = p.take('*') ? null : foldedName(p, "channel name or '*'");
  return { kind: 'Unlisten', channel };
}

/** Parses `NOTIFY channel [, 'payload']`. */
function notify(p: Parser): SessionStatement {
  const channel = foldedName(p, 'channel name');
  if (!p.take(',')) {
    return { kind: 'Notify', channel, payload: '' };
  }
  if (p.kind() !== TokenKind.String) {
    p.fail('payload expected: a quoted string');
  }
  return { kind: 'Notify', channel, payload: p.takeName(true).text };
}

/** Parses a name; returns `null` for ALL. */
function target(p: Parser, missing: string): string | null {
  return p.take('ALL') ? null : foldedName(p, missing);
}

// ---- blocks ----

function begin(p: Parser): SessionStatement {
  if (!p.take('WORK')) {
    p.take('TRANSACTION');
  }
  return { kind: 'Begin', modes: transactionModes(p) };
}

function startOfBlock(p: Parser): SessionStatement {
  p.expect('TRANSACTION');
  return { kind: 'Begin', modes: transactionModes(p) };
}

/** Parses transaction modes up to the end of the statement; the last of each kind applies. */
function transactionModes(p: Parser): TransactionModes {
  let modes: TransactionModes = {};
  for (let isFirst = true; !ended(p); isFirst = false) {
    if (!isFirst) {
      p.take(',');
    }
    modes = { ...modes, ...transactionMode(p) };
  }
  return modes;
}

function transactionMode(p: Parser): TransactionModes {
  if (p.take('ISOLATION', 'LEVEL')) {
    return { isolation: isolationLevel(p) };
  }
  if (p.take('READ', 'ONLY')) {
    return { readOnly: true };
  }
  if (p.take('READ', 'WRITE')) {
    return { readOnly: false };
  }
  if (p.take('DEFERRABLE')) {
    return { deferrable: true };
  }
  if (p.take('NOT', 'DEFERRABLE')) {
    return { deferrable: false };
  }
  return p.fail('transaction mode expected: ISOLATION LEVEL, READ WRITE, READ ONLY or DEFERRABLE');
}

function isolationLevel(p: Parser): string {
  const level = ISOLATION_LEVELS.find((words) => p.take(...words.toUpperCase().split(' ')));
  return (
    level ?? p.fail('isolation level expected: SERIALIZABLE, REPEATABLE READ or READ COMMITTED')
  );
}

/** Parses COMMIT and ROLLBACK in all their forms. */
function endOfBlock(p: Parser, kind: 'Commit' | 'Rollback'): SessionStatement {
  if (p.take('PREPARED')) {
    return skipping(p, { kind: 'TwoPhase' });
  }
  if (!p.take('WORK')) {
    p.take('TRANSACTION');
  }
  if (kind === 'Rollback' && p.take('TO')) {
    takeBeforeName(p, 'SAVEPOINT');
    return { kind: 'RollbackTo', name: savepointName(p) };
  }
  if (p.take('AND', 'CHAIN')) {
    return { kind: 'Chain' };
  }
  p.take('AND', 'NO', 'CHAIN');
  return { kind };
}

function savepointName(p: Parser): string {
  return foldedName(p, 'savepoint name');
}

function release(p: Parser): SessionStatement {
  takeBeforeName(p, 'SAVEPOINT');
  return { kind: 'Release', name: savepointName(p) };
}

// ---- cursors and prepared statements ----

/** Parses DECLARE CURSOR; returns `null` for DECLARE @variable := … SELECT. */
function declareCursor(p: Parser): SessionStatement | null {
  if (!isWord(p) && p.kind() !== TokenKind.Quoted) {
    return null;
  }
  const name = foldedName(p, 'cursor name');
  let binary = false;
  let scroll = false;
  while (!p.take('CURSOR')) {
    if (p.take('BINARY')) {
      binary = true;
    } else if (p.take('SCROLL')) {
      scroll = true;
    } else if (!p.take('NO', 'SCROLL') && !p.take('INSENSITIVE') && !p.take('ASENSITIVE')) {
      return null;
    }
  }
  const hold = p.take('WITH', 'HOLD');
  p.take('WITHOUT', 'HOLD');
  p.expect('FOR');
  return {
    kind: 'DeclareCursor',
    name,
    binary,
    scroll,
    hold,
    query: remainingText(p, 'query expected'),
  };
}

/** Maximum number of rows in a FETCH. */
const MAX_ROWS = 2_147_483_647;

/** Parses `FETCH [direction] [FROM | IN] name`; the last word is the cursor's name. */
function fetchCursor(p: Parser, kind: 'Fetch' | 'Move'): SessionStatement | null {
  if (!atCommand(p)) {
    return null;
  }
  const start = p.start();
  const words: string[] = [];
  while (!isLast(p)) {
    words.push(isWord(p) ? p.value() : p.written());
    p.advance();
  }
  const end = p.lastEnd();
  const name = foldedName(p, 'cursor name');
  if (words.at(-1) === 'FROM' || words.at(-1) === 'IN') {
    words.pop();
  }
  const step = stepOf(words);
  if (step === null) {
    const known = 'NEXT, PRIOR, FIRST, LAST, ABSOLUTE n, RELATIVE n, n, ALL, FORWARD, BACKWARD';
    p.failAt(`cursor direction expected: ${known}`, start, end);
  }
  return { kind, name, step };
}

/** Cursor directions without a number. */
const STEPS: ReadonlyMap<string, CursorStep> = new Map([
  ['', { way: 'forward', rows: 1 }],
  ['NEXT', { way: 'forward', rows: 1 }],
  ['PRIOR', { way: 'backward', rows: 1 }],
  ['FIRST', { way: 'absolute', rows: 1 }],
  ['LAST', { way: 'absolute', rows: -1 }],
  ['ALL', { way: 'forward', rows: Infinity }],
  ['FORWARD', { way: 'forward', rows: 1 }],
  ['FORWARD ALL', { way: 'forward', rows: Infinity }],
  ['BACKWARD', { way: 'backward', rows: 1 }],
  ['BACKWARD ALL', { way: 'backward', rows: Infinity }],
]);

/** Parses `PRIOR`, `-3`, `FORWARD 5` or `ABSOLUTE -1`; returns `null` if it is not a direction. */
function stepOf(words: readonly string[]): CursorStep | null {
  const known = STEPS.get(words.join(' '));
  if (known !== undefined) {
    return known;
  }
  const [word = '', ...remainingWords] = words;
  const way = /^(?:FORWARD|BACKWARD|ABSOLUTE|RELATIVE)$/.test(word) ? word.toLowerCase() : null;
  const written = (way === null ? words : remainingWords).join('');
  const rows = Number(written);
  if (!/^[+-]?\d+$/.test(written) || Math.abs(rows) > MAX_ROWS) {
    return null;
  }
  if (way === 'absolute' || way === 'relative') {
    return { way, rows };
  }
  const isBack = (way === 'backward') !== rows < 0;
  return { way: isBack ? 'backward' : 'forward', rows: Math.abs(rows) };
}

function deallocate(p: Parser): SessionStatement {
  takeBeforeName(p, 'PREPARE');
  return { kind: 'Deallocate', name: target(p, 'prepared statement name') };
}

function discard(p: Parser): SessionStatement {
  const what = isWord(p) ? p.value() : 'ALL';
  return skipping(p, { kind: 'Discard', what });
}

// ---- settings ----

function reset(p: Parser): SessionStatement {
  if (p.at('ROLE') || p.at('SESSION', 'AUTHORIZATION')) {
    return skipping(p, { kind: 'ResetRole' });
  }
  const isNamed = !p.at('ALL') && isWord(p);
  return skipping(p, isNamed ? { kind: 'Reset', name: foldedName(p, 'name') } : { kind: 'Reset' });
}

function set(p: Parser): SessionStatement {
  if (p.take('SESSION', 'AUTHORIZATION')) {
    return { kind: 'SetAuthorization', name: roleName(p) };
  }
  if (p.take('SESSION', 'CHARACTERISTICS')) {
    p.expect('AS');
    p.expect('TRANSACTION');
    return { kind: 'SetTransaction', modes: requiredModes(p), defaults: true };
  }
  let local = false;
  if (isWord(p) && p.value(1) !== '=' && p.value(1) !== 'TO' && p.value(1) !== '.') {
    if (!p.take('SESSION')) {
      local = p.take('LOCAL');
    }
  }
  return setOne(p, local);
}

function setOne(p: Parser, local: boolean): SessionStatement {
  if (p.take('ROLE')) {
    return { kind: 'SetRole', name: roleName(p), local };
  }
  if (p.value(1) !== '=' && p.value(1) !== 'TO' && p.take('TRANSACTION')) {
    return { kind: 'SetTransaction', modes: requiredModes(p), defaults: false };
  }
  if (p.take('TIME', 'ZONE')) {
    return { kind: 'Set', name: 'timezone', value: settingValues(p), local };
  }
  const names: string[] = [];
  do {
    names.push(foldedName(p, 'setting name'));
  } while (p.take('.'));
  if (!p.take('=') && !p.take('TO')) {
    return skipping(p, { kind: 'Set', name: '', value: '', local });
  }
  return { kind: 'Set', name: names.join('.'), value: settingValues(p), local };
}

function requiredModes(p: Parser): TransactionModes {
  return ended(p) ? p.fail('transaction mode expected') : transactionModes(p);
}

/**
 * Parses a value, or a list of values; the members of a list are separated by `, `. Returns `null`
 * for DEFAULT.
 */
function settingValues(p: Parser): string | null {
  if (isLast(p) && p.take('DEFAULT')) {
    return null;
  }
  const values = [settingValue(p)];
  while (p.take(',')) {
    values.push(settingValue(p));
  }
  const [only = ''] = values;
  return values.length === 1 ? only : values.map(asListMember).join(', ');
}

/** Parses a value: a string, or the words and numbers up to the next comma. */
function settingValue(p: Parser): string {
  const isAlone = isLast(p) || p.value(1) === ',';
  if (isAlone && (p.kind() === TokenKind.String || p.kind() === TokenKind.Quoted)) {
    return p.takeName(true).text;
  }
  const start = p.start();
  while (!ended(p) && !p.at(',')) {
    p.advance();
  }
  return p.text.slice(start, Math.max(start, p.lastEnd()));
}

/** A member of a list of names, in double quotes unless it is a plain name. */
function asListMember(value: string): string {
  const isPlain = /^[a-z_][a-z0-9_$]*$/i.test(value);
  return isPlain ? value : `"${value.replaceAll('"', '""')}"`;
}

/** Parses `[= | TO] name`; returns `null` for NONE and DEFAULT. */
function roleName(p: Parser): string | null {
  if (!p.take('=')) {
    p.take('TO');
  }
  if (p.take('NONE') || p.take('DEFAULT')) {
    return null;
  }
  if (p.kind() === TokenKind.String) {
    return p.takeName(true).text;
  }
  return foldedName(p, 'role name');
}

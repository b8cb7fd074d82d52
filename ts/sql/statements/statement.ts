/**
 * Parses a statement: selects its production, and contains the productions for small statements.
 */
import type { AlterAction, ExplainStage, Name, NodeId, ViewKind } from '../ast.generated.js';
import { atPrincipal, parseAssume, parseGrant, parseMembership, parsePrincipal } from './access.js';
import { parseBackup, parseCopy } from './administration.js';
import { parseAlter } from './alter.js';
import { parseDelete, parseInsert, parseUpdate } from './change.js';
import { parseCreate } from './create.js';
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from '../parser/parser.js';
import { parsePreamble, queryAfter, type Preamble } from '../queries/query.js';
import { parseSessionStatement, type SessionStatement } from './session-statement.js';
import { parseDescribe, parseShow, words } from '../queries/show.js';
import { parseAlterLive, parseAlterMaterial, parseCompile, parseRefreshView } from './view.js';

/**
 * Statements whose first word could also be a table name. The listed words are those that may
 * follow the first word; if none are listed, any word may follow.
 */
const SOFT: ReadonlyMap<string, readonly [(p: Parser) => NodeId, ...string[]]> = new Map([
  ['ADD', [parseMembership, 'USER']],
  ['ASSUME', [parseAssume]],
  ['BACKUP', [parseBackup]],
  ['CHECKPOINT', [parseBackup]],
  ['COMPILE', [parseCompile]],
  ['EXIT', [parseAssume, 'SERVICE']],
  ['GRANT', [parseGrant]],
  ['REFRESH', [parseRefreshView]],
  ['REMOVE', [parseMembership, 'USER']],
  ['REVOKE', [parseGrant]],
  ['SNAPSHOT', [parseBackup]],
]);

/** Words that begin a statement. */
export const FIRST_WORDS: readonly string[] = [
  'ALTER',
  'CREATE',
  'DECLARE',
  'DELETE',
  'DROP',
  'EXPLAIN',
  'INSERT',
  'RENAME',
  'SELECT',
  'SHOW',
  'TRUNCATE',
  'UPDATE',
  'WITH',
];

/** Parsed SQL text. */
interface StatementRoot {
  readonly root: NodeId;
  /** The session statement; `null` for other statements. */
  readonly session: SessionStatement | null;
}

/** Parses the complete text: one statement, optionally followed by semicolons. */
export function parseStatement(p: Parser): StatementRoot {
  while (p.take(';')) {}
  if (p.atEnd()) {
    return { root: p.add({ kind: 'Empty' }, 0, p.text.length), session: null };
  }
  const from = p.index;
  const session = parseSessionStatement(p);
  const root = session === null ? statement(p) : sessionWords(p, from);
  while (p.take(';')) {}
  if (!p.atEnd()) {
    p.fail(`unexpected token [${p.written()}]`);
  }
  return { root, session };
}

function statement(p: Parser): NodeId {
  p.suggest(FIRST_WORDS);
  const preamble = parsePreamble(p);
  if (preamble.with.length > 0 || preamble.declarations.length > 0) {
    return prefixed(p, preamble);
  }
  const word = p.kind() === TokenKind.Word ? p.value() : '';
  switch (word) {
    case 'SELECT':
      return queryAfter(p, preamble);
    case 'INSERT':
      return parseInsert(p, preamble);
    case 'UPDATE':
      return parseUpdate(p, preamble);
    case 'DELETE':
      return parseDelete(p, preamble);
    case 'CREATE':
      return atPrincipal(p) ? parsePrincipal(p) : parseCreate(p);
    case 'ALTER':
      return alteration(p);
    case 'DROP':
      return atPrincipal(p) ? parsePrincipal(p) : parseDrop(p);
    case 'TRUNCATE':
      return parseTruncate(p);
    case 'RENAME':
      return parseRename(p);
    case 'SHOW':
      return parseShow(p);
    case 'EXPLAIN':
      return parseExplain(p);
    default:
      return rarely(p, word, preamble);
  }
}

function alteration(p: Parser): NodeId {
  if (atPrincipal(p)) {
    return parsePrincipal(p);
  }
  if (p.at('ALTER', 'MATERIALIZED', 'VIEW')) {
    return parseAlterMaterial(p);
  }
  if (p.at('ALTER', 'LIVE', 'VIEW')) {
    return parseAlterLive(p);
  }
  return parseAlter(p);
}

function rarely(p: Parser, word: string, preamble: Preamble): NodeId {
  if (word === 'VACUUM' || word === 'REINDEX') {
    return parseMaintenance(p, word);
  }
  if (word === 'ANALYZE' && atAnalyzed(p)) {
    return parseAnalyze(p);
  }
  if (word === 'CHECK' && (p.value(1) === 'DATABASE' || p.value(1) === 'TABLE')) {
    return parseCheck(p);
  }
  if (word === 'RECOVER' && p.value(1) === 'TABLE') {
    return parseRecover(p);
  }
  if (word === 'CANCEL' && p.value(1) === 'QUERY') {
    return parseCancel(p);
  }
  if (word === 'DESCRIBE' && p.kind(1) <= TokenKind.String) {
    return parseDescribe(p);
  }
  if (word === 'COPY') {
    return parseCopy(p);
  }
  if (word === 'COMMENT' && p.value(1) === 'ON') {
    return parseComment(p);
  }
  const soft = SOFT.get(word);
  if (soft !== undefined && p.kind(1) === TokenKind.Word) {
    const [production, ...next] = soft;
    if (next.length === 0 || next.includes(p.value(1))) {
      return production(p);
    }
  }
  if (isLiteral(p)) {
    return literalTable(p);
  }
  return queryAfter(p, preamble);
}

/** Returns whether the statement is a literal (`1`, `'x'`, `?`), which cannot be a table name. */
function isLiteral(p: Parser): boolean {
  return p.at('?') || (p.kind() >= TokenKind.Integer && p.kind() <= TokenKind.NamedParameter);
}

function literalTable(p: Parser): never {
  return p.fail(`table does not exist [table=${p.written()}]`);
}

/** Parses the statement that follows WITH and DECLARE. */
function prefixed(p: Parser, preamble: Preamble): NodeId {
  if (p.at('INSERT')) {
    return parseInsert(p, preamble);
  }
  if (p.at('UPDATE')) {
    return parseUpdate(p, preamble);
  }
  if (p.at('DELETE')) {
    return parseDelete(p, preamble);
  }
  if (p.atEnd()) {
    p.fail("'select', 'update' or name expected expected");
  }
  return queryAfter(p, preamble);
}

/** Represents a session statement for the engine as a list of words that has no effect. */
function sessionWords(p: Parser, from: number): NodeId {
  const after = p.index;
  const all: string[] = [];
  p.index = from;
  while (p.index < after) {
    const isQuoted = p.kind() === TokenKind.String || p.kind() === TokenKind.Quoted;
    all.push(isQuoted ? p.unquoted() : p.written());
    p.advance();
  }
  return p.add({ kind: 'Session', words: all }, p.start(from - after), p.lastEnd());
}

/** Parses `COMMENT ON … IS 'text'`. It is accepted for migrations, but comments are not stored. */
function parseComment(p: Parser): NodeId {
  const start = p.start();
  p.advance(2);
  p.take('MATERIALIZED');
  p.name('object kind expected');
  const name = p.dottedName('name expected');
  if (p.take('ON')) {
    p.dottedName('table name expected');
  }
  p.expect('IS');
  if (!p.take('NULL')) {
    if (p.kind() !== TokenKind.String) {
      p.fail('quoted string expected');
    }
    p.advance();
  }
  const words = ['COMMENT', 'ON', name.text];
  return p.add({ kind: 'Session', words }, start, p.lastEnd());
}

/** Parses `DROP INDEX [CONCURRENTLY] [IF EXISTS] i, …`. */
function droppedIndex(p: Parser, start: number): NodeId {
  p.take('CONCURRENTLY');
  const if_exists = ifExists(p);
  const names = p.list(() => p.tableName('index name expected'));
  if (!p.take('CASCADE')) {
    p.take('RESTRICT');
  }
  return p.add({ kind: 'DropIndex', names, if_exists }, start, p.lastEnd());
}

/**
 * Parses VACUUM and REINDEX. They name a table, which must exist; otherwise they have no effect.
 */
function parseMaintenance(p: Parser, word: string): NodeId {
  const start = p.start();
  const end = p.end();
  p.advance();
  const isNamed = p.take('TABLE') || (word === 'VACUUM' && p.take('PARTITIONS'));
  if (!isNamed && word === 'VACUUM') {
    vacuumOptions(p);
  } else if (!isNamed) {
    p.failAt('TABLE expected', start, end);
  }
  const table = p.tableName('table name expected');
  const from = p.index;
  if (word === 'REINDEX') {
    reindexTarget(p);
    p.index = from;
  }
  const action: AlterAction = { action: 'Other', words: [word, ...words(p)], span: { start, end } };
  return addAction(p, start, table, action);
}

/** Adds an ALTER TABLE node for an action that has a statement of its own. */
function addAction(p: Parser, start: number, table: Name, action: AlterAction): NodeId {
  const actions = [action];
  return p.add({ kind: 'AlterTable', table, if_exists: false, actions }, start, p.lastEnd());
}

const VACUUM_WORDS = ['FULL', 'FREEZE', 'VERBOSE', 'ANALYZE'] as const;

/**
 * Parses `(ANALYZE, VERBOSE false)` or `FULL VERBOSE ANALYZE`, PostgreSQL's options before a table.
 */
function vacuumOptions(p: Parser): void {
  if (p.at('(')) {
    p.parenthesised(() => {
      do {
        p.advance();
      } while (!p.atEnd() && !p.at(',') && !p.at(')'));
    });
  }
  while (VACUUM_WORDS.some((option) => p.take(option))) {
    // The options have no effect.
  }
  if (p.atEnd()) {
    p.fail("'table' expected");
  }
}

/** Returns whether ANALYZE is followed by a table name, rather than being a table name itself. */
function atAnalyzed(p: Parser): boolean {
  const nameAt = p.value(1) === 'VERBOSE' ? 2 : 1;
  const isName = p.kind(nameAt) === TokenKind.Word || p.kind(nameAt) === TokenKind.Quoted;
  const after = p.value(nameAt + 1);
  return isName && (p.kind(nameAt + 1) === TokenKind.End || ['.', '(', ';'].includes(after));
}

/**
 * Parses `ANALYZE [VERBOSE] t [(a, b)]`. Statistics are always current, so it is treated like
 * VACUUM.
 */
function parseAnalyze(p: Parser): NodeId {
  const start = p.start();
  const end = p.end();
  p.advance();
  p.take('VERBOSE');
  const table = p.tableName('table name expected');
  if (p.at('(')) {
    p.parenthesised(() => p.list(() => p.columnName('column name expected')));
  }
  const action: AlterAction = { action: 'Other', words: ['VACUUM'], span: { start, end } };
  return addAction(p, start, table, action);
}

/**
 * Parses `[COLUMN c] [PARTITION 'p'] LOCK EXCLUSIVE`, where COLUMN and PARTITION accept one or more
 * names.
 */
function reindexTarget(p: Parser): void {
  if (p.take('COLUMN')) {
    p.list(() => p.columnName('column name expected'));
  }
  if (p.take('PARTITION')) {
    p.list(() => {
      if (p.kind() !== TokenKind.String) {
        p.fail('partition name expected');
      }
      p.advance();
    });
  }
  p.expect('LOCK', "'column', 'partition' or 'lock exclusive' expected");
  p.expect('EXCLUSIVE');
}

function parseCheck(p: Parser): NodeId {
  const start = p.start();
  const isTable = p.value(1) === 'TABLE';
  p.advance(2);
  const table = isTable ? p.tableName('table name expected') : null;
  return p.add({ kind: 'Check', table }, start, p.lastEnd());
}

function parseRecover(p: Parser): NodeId {
  const start = p.start();
  p.advance(2);
  const table = p.tableName('table name expected');
  const skip = p.take('SKIP');
  return p.add({ kind: 'Recover', table, skip }, start, p.lastEnd());
}

function parseCancel(p: Parser): NodeId {
  const start = p.start();
  p.advance(2);
  const id = p.grammar.expression(p);
  return p.add({ kind: 'CancelQuery', id }, start, p.lastEnd(), id);
}

function ifExists(p: Parser): boolean {
  if (!p.at('IF')) {
    return false;
  }
  p.advance();
  p.expect('EXISTS');
  return true;
}

function parseDrop(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  if (p.take('ALL')) {
    p.take('TABLES');
    return p.add({ kind: 'DropAllTables' }, start, p.lastEnd());
  }
  if (p.sees('INDEX')) {
    p.advance();
    return droppedIndex(p, start);
  }
  let what: ViewKind;
  if (p.take('TABLE')) {
    what = 'Table';
  } else if (p.take('VIEW')) {
    what = 'View';
  } else if (p.take('MATERIALIZED', 'VIEW')) {
    what = 'MaterializedView';
  } else if (p.take('LIVE', 'VIEW')) {
    what = 'LiveView';
  } else {
    return p.fail("'table' or 'view' or 'materialized view' or 'live view' or 'all' expected");
  }
  const conditional = ifExists(p);
  const missing = what === 'Table' ? 'table name expected' : 'view name expected';
  const names = p.list(() => p.tableName(missing));
  // CASCADE has no other effect: views are not dropped with their tables and report an error when
  // they are read.
  if (!p.take('CASCADE', 'PERMISSIONS') && !p.take('CASCADE')) {
    p.take('RESTRICT');
  }
  return p.add({ kind: 'Drop', what, names, if_exists: conditional }, start, p.lastEnd());
}

function parseTruncate(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  const isNamed = p.kind() === TokenKind.Word || p.kind() === TokenKind.Quoted;
  const isOther = p.atReserved() || p.kind(1) === TokenKind.Word;
  if (p.at('TABLE') || !isNamed || (isOther && !p.at(p.value(), 'RESTART', 'IDENTITY'))) {
    p.expect('TABLE');
  }
  const if_exists = ifExists(p);
  p.take('ONLY');
  const tables = p.list(() => p.tableName('table name expected'));
  const keep_symbols = p.take('KEEP', 'SYMBOL', 'MAPS');
  const restart_identity = p.take('RESTART', 'IDENTITY');
  if (!restart_identity) {
    p.take('CONTINUE', 'IDENTITY');
  }
  const cascade = p.take('CASCADE');
  if (!cascade) {
    p.take('RESTRICT');
  }
  const node = { tables, if_exists, keep_symbols, restart_identity, cascade };
  return p.add({ kind: 'Truncate', ...node }, start, p.lastEnd());
}

function parseRename(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  p.expect('TABLE');
  const table = p.tableName('table name expected');
  if (!p.take('TO')) {
    p.fail("'to' expected");
  }
  const to: Name = p.tableName('table name expected');
  return p.add({ kind: 'Rename', table, to, if_exists: false }, start, p.lastEnd());
}

const STAGES = new Map<string, ExplainStage>([
  ['AST', 'Ast'],
  ['BOUND', 'Bound'],
  ['LOGICAL', 'Logical'],
  ['PHYSICAL', 'Physical'],
]);

/** Parses `EXPLAIN [ANALYZE] [FORMAT …] [(stage)] statement`. */
function parseExplain(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  let stage: ExplainStage = 'Default';
  let analyze = p.take('ANALYZE');
  if (p.take('FORMAT')) {
    p.name('format expected');
  }
  if (atExplainOptions(p)) {
    for (const word of p.parenthesised(() => explainOption(p))) {
      if (word === 'ANALYZE') {
        analyze = true;
      }
      stage = STAGES.get(word) ?? stage;
    }
  }
  if (p.atEnd()) {
    p.fail("'create', 'insert', 'update', 'select', 'with' or '(' expected");
  }
  const refused = ['ALTER', 'DROP', 'TRUNCATE', 'RENAME', 'SHOW', 'EXPLAIN', 'SET', 'BEGIN'];
  if (p.kind() === TokenKind.Word && refused.includes(p.value())) {
    p.fail("'create', 'format', 'insert', 'update', 'select' or 'with' expected");
  }
  const inner = p.nested(() => statement(p));
  return p.add({ kind: 'Explain', stage, analyze, statement: inner }, start, p.lastEnd(), inner);
}

function atExplainOptions(p: Parser): boolean {
  if (!p.at('(') || p.kind(1) !== TokenKind.Word) {
    return false;
  }
  return STAGES.has(p.value(1)) || ['ANALYZE', 'FORMAT', 'VERBOSE', 'COSTS'].includes(p.value(1));
}

function explainOption(p: Parser): string {
  const word = p.value();
  p.advance();
  if (p.kind() === TokenKind.Word) {
    p.advance();
  }
  return word;
}

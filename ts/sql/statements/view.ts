/** Views, materialized and live views: CREATE, ALTER, REFRESH, COMPILE. */
import type {
  ExpireRows,
  ExpireRule,
  LiveClauses,
  LiveStart,
  MaterialClauses,
  Name,
  NodeId,
  OptionValue,
  RefreshMode,
  RefreshPeriod,
  RefreshPolicy,
  RefreshTrigger,
  ViewAction,
  ViewKind,
} from '../ast.generated.js';
import { ifNotExists, indexOptions, parseTtl, partitionUnit } from './table-clauses.js';
import { TokenKind } from '../lexer/lexer.js';
import { atOperand, atQuery } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';
import { expressions } from '../queries/select-clauses.js';

/** Parses `CREATE [OR REPLACE] [MATERIALIZED | LIVE] VIEW`, starting at VIEW. */
export function parseView(
  p: Parser,
  start: number,
  what: ViewKind,
  replace: boolean,
  temporary: OptionValue | null = null,
): NodeId {
  p.advance();
  if (temporary !== null && p.at('IF')) {
    p.fail("'if not exists' is not supported for temporary views");
  }
  const conditional = ifNotExists(p);
  const name = p.tableName("view name or 'if' expected");
  const material = what === 'MaterializedView' ? materialHead(p) : null;
  const live = what === 'LiveView' ? liveHead(p) : null;
  p.expect('AS', live ? "'in memory', 'partition by', 'start from' or 'as' expected" : undefined);
  const { query, text } = viewQuery(p);
  const options: OptionValue[] = temporary === null ? [] : [temporary];
  if (material !== null) {
    materialTail(p, material);
  } else if (live !== null) {
    live.owner = owner(p);
  } else if (temporary === null && p.at('OWNED', 'BY')) {
    const word = p.takeName(false);
    p.advance();
    options.push({ name: word, value: p.dottedName('owner expected') });
  }
  const node = { what, name, query, query_text: text, if_not_exists: conditional } as const;
  const common = { or_replace: replace, options, material, live } as const;
  const full = { kind: 'CreateView', ...node, ...common } as const;
  return p.add(full, start, p.lastEnd(), query, ...expireChildren(material?.expire ?? null));
}

/** Parses a view's query and its SQL text; parentheses are optional. */
export function viewQuery(p: Parser): { readonly query: NodeId; readonly text: string } {
  const enclosed = p.at('(');
  if (enclosed) {
    p.advance();
  } else if (!atQuery(p)) {
    p.fail("'(' or 'select' expected");
  }
  const from = p.start();
  const query = p.grammar.query(p);
  const text = p.text.slice(from, p.lastEnd());
  if (enclosed && !p.take(')')) {
    p.fail("')' expected");
  }
  return { query, text };
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

function materialHead(p: Parser): Mutable<MaterialClauses> {
  return {
    base: p.take('WITH', 'BASE') ? p.tableName('base table name expected') : null,
    refresh: p.at('REFRESH') ? parseRefresh(p) : null,
    timestamp: null,
    partition_by: null,
    ttl: null,
    expire: null,
    volume: null,
    owner: null,
  };
}

function materialTail(p: Parser, material: Mutable<MaterialClauses>): void {
  if (p.take('TIMESTAMP')) {
    material.timestamp = p.parenthesised(() => p.columnName('column name expected'))[0] ?? null;
  }
  if (p.take('PARTITION')) {
    p.expect('BY');
    material.partition_by = partitionUnit(p);
  }
  if (p.at('TTL')) {
    material.ttl = parseTtl(p);
  }
  if (p.at('EXPIRE')) {
    material.expire = parseExpire(p);
  }
  if (p.take('IN')) {
    p.expect('VOLUME');
    material.volume = p.dottedName('volume alias expected');
  }
  material.owner = owner(p);
}

/** Parses `[OWNED BY e]`. */
function owner(p: Parser): Name | null {
  if (!p.take('OWNED')) {
    return null;
  }
  p.expect('BY');
  return p.dottedName('owner expected');
}

/**
 * Parses `FLUSH EVERY d [IN MEMORY d] [PARTITION BY u] START FROM s`; the last three may be in any
 * order.
 */
function liveHead(p: Parser): Mutable<LiveClauses> {
  p.expect('FLUSH', "'flush every' expected");
  p.expect('EVERY', "'every' expected");
  const flush_every = duration(p);
  let in_memory: Name | null = null;
  let partition_by: Name | null = null;
  let begin: LiveStart | null = null;
  for (;;) {
    const at = p.start();
    const once = (known: unknown, clause: string): void => {
      if (known !== null) {
        p.failAt(`duplicate ${clause} clause`, at, p.lastEnd());
      }
    };
    if (p.take('IN', 'MEMORY')) {
      once(in_memory, 'IN MEMORY');
      in_memory = duration(p);
    } else if (p.take('PARTITION', 'BY')) {
      once(partition_by, 'PARTITION BY');
      partition_by = partitionUnit(p);
    } else if (p.take('START', 'FROM')) {
      once(begin, 'START FROM');
      begin = liveStart(p);
    } else {
      break;
    }
  }
  const start = begin ?? p.fail("'start from' expected");
  return { flush_every, in_memory, partition_by, start, owner: null };
}

function liveStart(p: Parser): LiveStart {
  if (p.take('NOW')) {
    return { start: 'Now' };
  }
  if (p.take('BEGINNING')) {
    return { start: 'Beginning' };
  }
  return { start: 'At', instant: text(p, "'now', 'beginning' or timestamp expected") };
}

/**
 * Parses `REFRESH [IMMEDIATE | MANUAL | EVERY i] [DEFERRED] [START t] [TIME ZONE z] [PERIOD (…)]`.
 */
function parseRefresh(p: Parser): RefreshPolicy {
  const start = p.start();
  p.advance();
  const trigger = refreshTrigger(p);
  const deferred = p.take('DEFERRED');
  const begin = p.take('START') ? text(p, 'start time expected') : null;
  const time_zone = p.take('TIME', 'ZONE') ? text(p, 'time zone expected') : null;
  const period = p.take('PERIOD') ? refreshPeriod(p) : null;
  const span = { start, end: p.lastEnd() };
  return { trigger, deferred, start: begin, time_zone, period, span };
}

function refreshTrigger(p: Parser): RefreshTrigger | null {
  if (p.take('IMMEDIATE')) {
    return { trigger: 'Immediate' };
  }
  if (p.take('MANUAL')) {
    return { trigger: 'Manual' };
  }
  return p.take('EVERY') ? { trigger: 'Every', interval: duration(p) } : null;
}

/** Parses a time or a time zone, which must be a string. */
function text(p: Parser, missing: string): Name {
  if (p.kind() !== TokenKind.String) {
    p.fail(missing);
  }
  return p.takeName(true);
}

function duration(p: Parser): Name {
  if (p.kind() !== TokenKind.Duration) {
    p.fail('interval expected, such as 10m');
  }
  return p.takeName(false);
}

function refreshPeriod(p: Parser): RefreshPeriod {
  const open = p.start();
  p.expect('(');
  if (p.take('SAMPLE')) {
    p.expect('BY');
    p.expect('INTERVAL');
    p.close(open);
    return { period: 'SampleByInterval' };
  }
  p.expect('LENGTH', "'length' or 'sample by interval' expected");
  const length = duration(p);
  const time_zone = p.take('TIME', 'ZONE') ? text(p, 'time zone expected') : null;
  const delay = p.take('DELAY') ? duration(p) : null;
  p.close(open);
  return { period: 'Length', length, time_zone, delay };
}

/** Parses `EXPIRE ROWS … [CLEANUP EVERY d]`. */
function parseExpire(p: Parser): ExpireRows {
  const start = p.start();
  p.advance();
  p.expect('ROWS');
  const from = p.start();
  const rule = expireRule(p);
  const text = p.text.slice(from, p.lastEnd());
  let cleanup: Name | null = null;
  if (p.take('CLEANUP')) {
    p.expect('EVERY');
    cleanup = duration(p);
  }
  return { rule, text, cleanup, span: { start, end: p.lastEnd() } };
}

function expireRule(p: Parser): ExpireRule {
  if (p.take('WHEN')) {
    if (!atOperand(p)) {
      p.fail('boolean expression expected');
    }
    return { rule: 'When', condition: p.grammar.expression(p) };
  }
  p.expect('KEEP', "'when' or 'keep' expected");
  if (p.take('LATEST')) {
    const timestamp = p.take('ON') ? column(p) : null;
    return { rule: 'KeepLatest', timestamp, keys: keyList(p, true) };
  }
  let count: NodeId | null = null;
  if (p.kind() === TokenKind.Integer) {
    count = p.add({ kind: 'Integer', text: p.written() }, p.start(), p.end());
    p.advance();
  }
  const highest = p.take('HIGHEST');
  if (!highest) {
    p.expect('LOWEST', "'latest', 'highest' or 'lowest' expected");
  }
  p.expect('ON');
  return { rule: 'KeepExtreme', count, highest, column: column(p), keys: keyList(p, false) };
}

function column(p: Parser): NodeId {
  const path = [p.columnName('column name expected')];
  const { start, end } = path[0]?.span ?? { start: p.start(), end: p.start() };
  return p.add({ kind: 'Column', path }, start, end);
}

function keyList(p: Parser, required: boolean): NodeId[] {
  if (!required && !p.at('PARTITION')) {
    return [];
  }
  p.expect('PARTITION');
  p.expect('BY');
  return expressions(p);
}

function expireChildren(expire: ExpireRows | null): (NodeId | null)[] {
  switch (expire?.rule.rule) {
    case 'When':
      return [expire.rule.condition];
    case 'KeepLatest':
      return [expire.rule.timestamp, ...expire.rule.keys];
    case 'KeepExtreme':
      return [expire.rule.count, expire.rule.column, ...expire.rule.keys];
    default:
      return [];
  }
}

/** Parses `ALTER MATERIALIZED VIEW v …`, starting at ALTER. */
export function parseAlterMaterial(p: Parser): NodeId {
  const start = p.start();
  p.advance(3);
  const view = p.tableName('view name expected');
  const action = viewAction(p);
  const children = action.action === 'SetExpire' ? expireChildren(action.expire) : [];
  return p.add({ kind: 'AlterView', view, action }, start, p.lastEnd(), ...children);
}

function viewAction(p: Parser): ViewAction {
  if (p.take('SET', 'REFRESH', 'LIMIT')) {
    p.index -= 1;
    return { action: 'SetRefreshLimit', limit: parseTtl(p) };
  }
  if (p.at('SET')) {
    return settings(p);
  }
  if (p.take('DROP')) {
    p.expect('EXPIRE');
    return { action: 'DropExpire' };
  }
  if (p.take('RESUME')) {
    p.expect('WAL');
    return { action: 'ResumeWal', from: p.take('FROM') ? transaction(p) : null };
  }
  if (!p.take('ALTER')) {
    p.fail("'alter', 'set', 'drop' or 'resume' expected");
  }
  p.expect('COLUMN');
  const name = p.columnName('column name expected');
  if (p.take('ADD')) {
    p.expect('INDEX');
    return { action: 'AddIndex', column: name, options: indexOptions(p) };
  }
  p.expect('DROP', "'add index' or 'drop index' expected");
  p.expect('INDEX');
  return { action: 'DropIndex', column: name };
}

function settings(p: Parser): ViewAction {
  p.advance();
  if (p.at('REFRESH')) {
    return { action: 'SetRefresh', refresh: parseRefresh(p) };
  }
  if (p.at('TTL')) {
    return { action: 'SetTtl', ttl: parseTtl(p) };
  }
  if (p.at('EXPIRE')) {
    return { action: 'SetExpire', expire: parseExpire(p) };
  }
  return p.fail("'refresh', 'ttl' or 'expire' expected");
}

/** Parses `TRANSACTION n` or `TXN n`. */
function transaction(p: Parser): Name {
  if (!p.take('TXN')) {
    p.expect('TRANSACTION');
  }
  if (p.kind() !== TokenKind.Integer) {
    p.fail('transaction number expected');
  }
  return p.takeName(false);
}

/** Parses `ALTER LIVE VIEW v RESUME WAL | SUSPEND WAL`, starting at ALTER. */
export function parseAlterLive(p: Parser): NodeId {
  const start = p.start();
  p.advance(3);
  const view = p.tableName('view name expected');
  const suspend = p.take('SUSPEND');
  if (!suspend) {
    p.expect('RESUME', "'resume' or 'suspend' expected");
  }
  p.expect('WAL');
  return p.add({ kind: 'AlterLiveView', view, suspend }, start, p.lastEnd());
}

/** Parses `REFRESH MATERIALIZED VIEW v [FULL | INCREMENTAL | RANGE FROM a TO b]`. */
export function parseRefreshView(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  p.expect('MATERIALIZED', "'materialized view' expected");
  p.expect('VIEW');
  const view = p.tableName('view name expected');
  let mode: RefreshMode = { mode: 'Default' };
  const children: NodeId[] = [];
  if (p.take('FULL')) {
    mode = { mode: 'Full' };
  } else if (p.take('INCREMENTAL')) {
    mode = { mode: 'Incremental' };
  } else if (p.take('RANGE')) {
    p.expect('FROM');
    const from = p.grammar.expression(p);
    p.expect('TO');
    const to = p.grammar.expression(p);
    children.push(from, to);
    mode = { mode: 'Range', from, to };
  }
  return p.add({ kind: 'RefreshView', view, mode }, start, p.lastEnd(), ...children);
}

/** Parses `COMPILE VIEW v`. */
export function parseCompile(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  p.expect('VIEW');
  const view = p.tableName('view name expected');
  return p.add({ kind: 'CompileView', view }, start, p.lastEnd());
}

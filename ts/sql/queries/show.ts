/** SHOW and DESCRIBE. */
import type { AccessList, Name, NodeId, ShowSubject } from '../ast.generated.js';
import { TokenKind } from '../lexer/lexer.js';
import type { Parser } from '../parser/parser.js';

/** Parses `SHOW …`. */
export function parseShow(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  return p.add({ kind: 'Show', subject: subject(p) }, start, p.lastEnd());
}

function subject(p: Parser): ShowSubject {
  if (p.atEnd() || p.at(';')) {
    p.fail("expected 'TABLES', 'COLUMNS', 'PARTITIONS', 'CREATE' or a setting");
  }
  if (p.take('TABLES')) {
    return { subject: 'Tables' };
  }
  if (p.take('COLUMNS')) {
    return { subject: 'Columns', table: fromTable(p) };
  }
  if (p.take('PARTITIONS')) {
    return { subject: 'Partitions', table: fromTable(p) };
  }
  if (p.take('PARAMETERS')) {
    return { subject: 'Parameters' };
  }
  if (p.at('CREATE')) {
    return creation(p);
  }
  const list = accessList(p);
  if (list !== null) {
    const named = !p.atEnd() && !p.at(';') && !p.at(')');
    return { subject: 'Access', list, of: named ? entityName(p) : null };
  }
  return { subject: 'Setting', words: words(p) };
}

function fromTable(p: Parser): ReturnType<Parser['tableName']> {
  if (!p.take('FROM')) {
    p.failAtNearestToken("expected 'from'");
  }
  return p.tableName('table name expected');
}

function creation(p: Parser): ShowSubject {
  const known = ['TABLE', 'VIEW', 'MATERIALIZED', 'LIVE', 'DATABASE'];
  if (p.kind(1) !== TokenKind.Word || !known.includes(p.value(1))) {
    p.fail("expected 'TABLE' or 'VIEW' or 'MATERIALIZED VIEW' or 'LIVE VIEW'");
  }
  if (p.take('CREATE', 'TABLE')) {
    return { subject: 'CreateTable', table: p.tableName('table name expected') };
  }
  p.advance();
  if (p.take('DATABASE')) {
    return database(p);
  }
  const live = p.take('LIVE') ? 'LiveView' : null;
  const what = live ?? (p.take('MATERIALIZED') ? 'MaterializedView' : 'View');
  p.expect('VIEW');
  return { subject: 'CreateView', what, view: p.tableName('view name expected') };
}

/** Parses `INCLUDE | EXCLUDE ALL | (categories)`. */
function database(p: Parser): ShowSubject {
  const exclude = p.take('EXCLUDE');
  if (!exclude && !p.take('INCLUDE')) {
    return { subject: 'CreateDatabase', exclude, categories: [] };
  }
  const category = (): Name => p.name('category expected');
  const categories = p.at('(') ? p.parenthesised(category) : [category()];
  return { subject: 'CreateDatabase', exclude, categories };
}

/** Consumes an access control list in SHOW; `null` for any other subject. */
function accessList(p: Parser): AccessList | null {
  if (p.take('USERS')) {
    return 'Users';
  }
  // USER alone refers to the session's user, because no setting starts with this word.
  if (p.take('USER')) {
    return 'User';
  }
  if (p.take('GROUPS')) {
    return 'Groups';
  }
  if (p.take('SERVICE', 'ACCOUNTS')) {
    return 'ServiceAccounts';
  }
  if (p.take('SERVICE', 'ACCOUNT')) {
    return 'ServiceAccount';
  }
  return p.take('PERMISSIONS') ? 'Permissions' : null;
}

function entityName(p: Parser): Name {
  return p.kind() === TokenKind.String
    ? p.takeName(true)
    : p.qualified(p.name('user, group or service account name expected'));
}

/** Returns the words up to the end of the statement; strings are unquoted. */
export function words(p: Parser): string[] {
  const all: string[] = [];
  while (!p.atEnd() && !p.at(';') && !p.at(')')) {
    const quoted = p.kind() === TokenKind.String || p.kind() === TokenKind.Quoted;
    all.push(quoted ? p.unquoted() : p.written());
    p.advance();
  }
  return all;
}

/** Parses `DESCRIBE t`, which lists a table's columns. */
export function parseDescribe(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  const table = p.tableName('table name expected');
  return p.add({ kind: 'Show', subject: { subject: 'Columns', table } }, start, p.lastEnd());
}

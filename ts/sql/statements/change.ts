/** Parses INSERT, UPDATE and DELETE. */
import type { Conflict, InsertNode, Name, NodeId, SelectItem } from '../ast.generated.js';
import { TokenKind } from '../lexer/lexer.js';
import { atOperand } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';
import {
  columnAlias,
  parsePreamble,
  type Preamble,
  queryAfter,
  selectStar,
  whereClause,
} from '../queries/query.js';
import { parseSources } from '../queries/source.js';
import { type InsertedRows, parseInsertedRows } from '../queries/values.js';

/** Parses `INSERT …`; a preceding WITH or DECLARE is part of its query. */
export function parseInsert(p: Parser, preamble: Preamble): NodeId {
  p.advance();
  const mode = batchMode(p, 'atomic or into or batch expected');
  p.expect('INTO', mode.isPresent ? "'into' expected" : 'atomic or into or batch expected');
  const table = p.tableName('table name expected');
  const alias = p.take('AS') ? p.name('table alias expected') : null;
  const columns = atColumnList(p) ? columnNames(p) : [];
  // An explicit value always overrides a sequence value, because the sequence value is only a
  // default.
  p.take('OVERRIDING', 'SYSTEM', 'VALUE');
  const rows = insertedRows(p, columns.length > 0);
  let query: NodeId | null = null;
  if (rows === null) {
    query = insertQuery(p, preamble);
  } else if (!p.atEnd() && !p.at(';') && !p.at('RETURNING') && !p.at('ON', 'CONFLICT')) {
    p.fail("',' expected");
  }
  const conflict = p.at('ON', 'CONFLICT') ? conflictClause(p) : null;
  const returning = p.take('RETURNING') ? returningList(p) : [];
  const node: InsertNode = {
    table,
    alias,
    columns,
    plain: rows?.plain ?? null,
    values: rows?.values ?? null,
    query,
    atomic: mode.atomic,
    batch: mode.batch,
    o3_max_lag: mode.o3MaxLag,
    returning,
    conflict,
  };
  const children = conflict?.assignments.map(([, value]) => value) ?? [];
  const filter = conflict?.filter ?? null;
  return p.add(
    { kind: 'Insert', ...node },
    preamble.start,
    p.lastEnd(),
    query,
    ...children,
    filter,
  );
}

/**
 * Parses `VALUES (…), …`, or DEFAULT VALUES, which is a row without cells. Returns `null` if a
 * query follows.
 */
function insertedRows(p: Parser, hasColumns: boolean): InsertedRows | null {
  const start = p.start();
  if (!hasColumns && p.take('DEFAULT', 'VALUES')) {
    const places = { starts: [], row_starts: [start], row_ends: [p.lastEnd()] };
    return { plain: null, values: { rows: 1, widths: [0], kinds: '', texts: [], ...places } };
  }
  return p.take('VALUES') ? parseInsertedRows(p) : null;
}

/** Parses `ON CONFLICT [(keys)] DO NOTHING` or `… DO UPDATE SET … [WHERE …]`. */
function conflictClause(p: Parser): Conflict {
  const start = p.start();
  p.advance(2);
  const keys = p.at('(') ? columnNames(p) : [];
  p.expect('DO', keys.length > 0 ? "'do' expected" : "'(' or 'do' expected");
  if (p.take('NOTHING')) {
    return { keys, assignments: [], filter: null, span: { start, end: p.lastEnd() } };
  }
  p.expect('UPDATE', "'nothing' or 'update' expected");
  p.expect('SET');
  const assignments = p.list(() => assignment(p));
  return { keys, assignments, filter: whereClause(p), span: { start, end: p.lastEnd() } };
}

interface BatchMode {
  readonly isPresent: boolean;
  readonly atomic: boolean;
  readonly batch: NodeId | null;
  readonly o3MaxLag: Name | null;
}

/** Parses `ATOMIC`, `BATCH n [o3MaxLag d]`, or nothing. */
export function batchMode(p: Parser, missing: string): BatchMode {
  if (p.take('ATOMIC')) {
    return { isPresent: true, atomic: true, batch: null, o3MaxLag: null };
  }
  if (!p.at('BATCH') || p.kind(1) !== TokenKind.Integer) {
    if (p.atEnd()) {
      p.fail(missing);
    }
    return { isPresent: false, atomic: false, batch: null, o3MaxLag: null };
  }
  p.advance();
  const batch = p.add({ kind: 'Integer', text: p.written() }, p.start(), p.end());
  p.advance();
  let o3MaxLag: Name | null = null;
  if (p.take('O3MAXLAG')) {
    if (p.atEnd()) {
      p.fail('duration expected');
    }
    o3MaxLag = p.takeName(p.kind() === TokenKind.String);
  }
  return { isPresent: true, atomic: false, batch, o3MaxLag };
}

function atColumnList(p: Parser): boolean {
  if (!p.at('(')) {
    return false;
  }
  return !['SELECT', 'WITH', 'DECLARE', '('].includes(p.value(1));
}

function columnNames(p: Parser): Name[] {
  return p.parenthesised(() => p.columnName('column name expected'));
}

function insertQuery(p: Parser, outer: Preamble): NodeId {
  const begins = p.at('(') || p.at('SELECT') || p.at('WITH') || p.at('DECLARE');
  const named = p.kind() === TokenKind.Word && !p.atReserved();
  if (!begins && !named) {
    p.fail("'(' or 'select' expected");
  }
  const inner = parsePreamble(p);
  return queryAfter(p, {
    start: inner.start,
    declarations: [...outer.declarations, ...inner.declarations],
    with: [...outer.with, ...inner.with],
  });
}

function returningList(p: Parser): SelectItem[] {
  return p.list(() => {
    const star = selectStar(p);
    if (star !== null) {
      return { expression: star, alias: null };
    }
    if (!atOperand(p)) {
      p.fail('column expression expected');
    }
    const expression = p.grammar.expression(p);
    return { expression, alias: columnAlias(p) };
  });
}

/** Parses `UPDATE …`. */
export function parseUpdate(p: Parser, preamble: Preamble): NodeId {
  if (preamble.declarations.length > 0) {
    p.fail("'select' expected");
  }
  p.advance();
  const table = p.tableName('table name expected');
  let alias: Name | null = null;
  if (p.take('AS') || !p.at('SET')) {
    alias = p.name('AS, SET or table alias expected expected');
  }
  if (!p.take('SET')) {
    p.fail("'set' expected");
  }
  const assignments = p.list(() => assignment(p));
  const from = p.take('FROM') ? parseSources(p, 'table name or sub-query expected') : null;
  const filter = whereClause(p);
  const returning = p.take('RETURNING') ? returningList(p) : [];
  const node = { table, alias, assignments, from, filter, with: preamble.with, returning };
  const children = [...assignments.map(([, value]) => value), from, filter];
  return p.add({ kind: 'Update', ...node }, preamble.start, p.lastEnd(), ...children);
}

function assignment(p: Parser): [Name, NodeId] {
  const column = p.columnName('column name expected');
  p.expect('=');
  if (!atOperand(p)) {
    p.fail('expression expected');
  }
  return [column, p.grammar.expression(p)];
}

/** Words after the table in a DELETE that are not its alias. */
const AFTER_TARGET: ReadonlySet<string> = new Set(['USING', 'WHERE', 'RETURNING']);

/** Parses `DELETE FROM t [[AS] alias] [USING …] [WHERE …] [RETURNING …]`. */
export function parseDelete(p: Parser, preamble: Preamble): NodeId {
  if (preamble.declarations.length > 0) {
    p.fail("'select' expected");
  }
  p.advance();
  p.expect('FROM');
  const table = p.tableName('table name expected');
  const named = p.take('AS') || (p.kind() === TokenKind.Word && !p.atAnyOf(AFTER_TARGET));
  const alias = named ? p.name('table alias expected') : null;
  const using = p.take('USING') ? parseSources(p, 'table name or sub-query expected') : null;
  const filter = whereClause(p);
  const returning = p.take('RETURNING') ? returningList(p) : [];
  const node = { table, alias, using, filter, with: preamble.with, returning };
  return p.add({ kind: 'Delete', ...node }, preamble.start, p.lastEnd(), using, filter);
}

/** Parses CREATE TABLE, and selects the production for each CREATE statement. */
import type {
  ColumnDefinition,
  CreateTableNode,
  Name,
  NodeId,
  OptionValue,
  TypeName,
} from '../ast.generated.js';
import { batchMode } from './change.js';
import { TokenKind } from '../lexer/lexer.js';
import { atQuery } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';
import {
  enclosedText,
  ifNotExists,
  indexOptions,
  parquetSettings,
  parseTtl,
  partitionUnit,
  policyStages,
} from './table-clauses.js';
import { parseType } from '../expressions/type-name.js';
import {
  Constraints,
  isSerial,
  nextNumber,
  parseIndex,
  serialType,
  takeIdentity,
} from './constraints.js';
import { withColumns } from '../queries/source.js';
import { parseView } from './view.js';

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Parses `CREATE …`. */
export function parseCreate(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  const everything =
    "'atomic' or 'table' or 'batch' or 'materialized' or 'live' or 'view' or 'or replace' " +
    'expected';
  if (p.atEnd()) {
    p.fail(everything);
  }
  if (p.at('LIVE', 'VIEW')) {
    p.advance();
    return parseView(p, start, 'LiveView', false);
  }
  if (p.at('OR')) {
    p.advance();
    p.expect('REPLACE');
    const temporary = temporaryWord(p);
    if (!p.at('VIEW')) {
      p.fail("'view' expected");
    }
    return parseView(p, start, 'View', true, temporary);
  }
  if (p.at('VIEW')) {
    return parseView(p, start, 'View', false);
  }
  if (p.sees('INDEX') || p.sees('UNIQUE', 'INDEX')) {
    return parseIndex(p, start);
  }
  if (p.at('SCHEMA')) {
    return parseSchema(p, start);
  }
  if (p.at('EXTENSION')) {
    return parseExtension(p, start);
  }
  if (p.take('MATERIALIZED')) {
    if (!p.at('VIEW')) {
      p.fail("'view' expected");
    }
    return parseView(p, start, 'MaterializedView', false);
  }
  const options: OptionValue[] = [];
  const temporary = temporaryWord(p);
  if (temporary !== null) {
    if (p.at('VIEW')) {
      return parseView(p, start, 'View', false, temporary);
    }
    options.push(temporary);
  } else if (p.at('UNLOGGED')) {
    options.push({ name: p.takeName(false), value: null });
  }
  const word = atomicName(p);
  const mode = batchMode(p, everything);
  if (mode.isPresent && word !== null) {
    options.push({ name: word, value: null });
  }
  if (mode.batch !== null) {
    options.push(option(p, 'BATCH', p.spanOf(mode.batch)));
  }
  if (mode.o3MaxLag !== null) {
    const name = { ...mode.o3MaxLag, text: 'BATCH o3MaxLag', quoted: false };
    options.push({ name, value: mode.o3MaxLag });
  }
  if (!p.take('TABLE')) {
    p.fail("'atomic' or 'table' or 'batch' expected");
  }
  return parseTable(p, start, options);
}

/**
 * Parses `CREATE SCHEMA IF NOT EXISTS public`, which many migrations start with; no other schema
 * exists.
 */
function parseSchema(p: Parser, start: number): NodeId {
  p.advance();
  const conditional = ifNotExists(p);
  const { text, span } = p.name('schema name expected');
  if (text.toLowerCase() !== 'public') {
    p.failAt(`schema '${text}' cannot be created, all tables are in public`, span.start, span.end);
  }
  if (!conditional) {
    p.failAt("schema 'public' already exists", span.start, span.end);
  }
  if (p.take('AUTHORIZATION')) {
    p.name('owner name expected');
  }
  const words = ['CREATE', 'SCHEMA', 'IF', 'NOT', 'EXISTS', 'public'];
  return p.add({ kind: 'Session', words }, start, p.lastEnd());
}

/**
 * Parses `CREATE EXTENSION [IF NOT EXISTS] name …`, which many migrations start with. No extension
 * is loaded.
 */
function parseExtension(p: Parser, start: number): NodeId {
  p.advance();
  ifNotExists(p);
  const isQuoted = p.kind() === TokenKind.Quoted || p.kind() === TokenKind.String;
  const { text } = isQuoted ? p.takeName(true) : p.name('extension name expected');
  p.take('WITH');
  while (p.at('SCHEMA') || p.at('VERSION')) {
    p.advance();
    if (p.kind() === TokenKind.String) {
      p.advance();
    } else {
      p.name('name expected');
    }
  }
  p.take('CASCADE');
  const words = ['CREATE', 'EXTENSION', 'IF', 'NOT', 'EXISTS', text];
  return p.add({ kind: 'Session', words }, start, p.lastEnd());
}

/** Parses `[GLOBAL | LOCAL] TEMPORARY`; returns `null` if absent. */
function temporaryWord(p: Parser): OptionValue | null {
  if ((p.at('GLOBAL') || p.at('LOCAL')) && isTemporary(p.value(1))) {
    p.advance();
  }
  return isTemporary(p.value()) ? { name: p.takeName(false), value: null } : null;
}

function isTemporary(word: string): boolean {
  return word === 'TEMP' || word === 'TEMPORARY';
}

/**
 * If the current word is ATOMIC, returns it as a name without consuming it; otherwise returns
 * `null`.
 */
function atomicName(p: Parser): Name | null {
  if (!p.at('ATOMIC')) {
    return null;
  }
  return { text: p.written(), quoted: false, span: { start: p.start(), end: p.end() } };
}

function option(p: Parser, name: string, span: { start: number; end: number }): OptionValue {
  const value = { text: p.text.slice(span.start, span.end), quoted: false, span };
  return { name: { text: name, quoted: false, span }, value };
}

function parseTable(p: Parser, start: number, options: OptionValue[]): NodeId {
  const conditional = ifNotExists(p);
  const name = p.tableName("table name or 'if' expected");
  const table: Mutable<CreateTableNode> = {
    name,
    if_not_exists: conditional,
    columns: [],
    like: null,
    query: null,
    casts: [],
    timestamp: null,
    partition_by: null,
    wal: null,
    dedup_keys: [],
    constraints: [],
    ttl: null,
    policy: null,
    options,
  };
  const names = queriedColumns(p);
  if (p.take('AS')) {
    tableQuery(p, table, names);
  } else {
    tableColumns(p, table);
  }
  dataClause(p, table);
  while (p.at(',') && (p.value(1) === 'INDEX' || p.value(1) === 'CAST')) {
    p.advance();
    if (p.at('CAST')) {
      table.casts.push(columnCast(p));
    } else {
      table.options.push(tableIndex(p));
    }
  }
  tableClauses(p, table);
  dataClause(p, table);
  if (p.at('ON', 'COMMIT')) {
    endOfBlock(p, table);
  }
  const defaults = table.columns.map((column) => column.default);
  return p.add({ kind: 'CreateTable', ...table }, start, p.lastEnd(), table.query, ...defaults);
}

/** Parses `ON COMMIT PRESERVE ROWS`, which is the default, or `ON COMMIT DROP`. */
function endOfBlock(p: Parser, table: Mutable<CreateTableNode>): void {
  const temporary = table.options.find(({ name }) => isTemporary(name.text.toUpperCase()));
  if (temporary === undefined) {
    p.fail("'on commit' is supported only for temporary tables");
  }
  p.advance(2);
  if (p.take('PRESERVE', 'ROWS')) {
    return;
  }
  if (!p.at('DROP')) {
    p.fail("'preserve rows' or 'drop' expected");
  }
  const value = p.takeName(false);
  table.options = table.options.map((option) =>
    option === temporary ? { ...option, value } : option,
  );
}

/**
 * Parses `(a, b)` before AS, which gives names to the query's columns. If the list is absent,
 * returns an empty list and consumes nothing.
 */
function queriedColumns(p: Parser): Name[] {
  const from = p.index;
  if (!p.at('(') || (p.value(2) !== ',' && p.value(2) !== ')')) {
    return [];
  }
  const names = p.parenthesised(() => p.columnName('column name expected'));
  if (!p.at('AS')) {
    p.index = from;
    return [];
  }
  return names;
}

function tableQuery(p: Parser, table: Mutable<CreateTableNode>, names: Name[]): void {
  let query: NodeId;
  if (atQuery(p) || p.at('TABLE')) {
    query = p.grammar.query(p);
  } else {
    if (!p.at('(')) {
      p.fail("'(' expected");
    }
    p.advance();
    query = p.grammar.query(p);
    if (!p.take(')')) {
      p.fail("')' expected");
    }
  }
  table.query = names.length > 0 ? withColumns(p, query, table.name, names) : query;
}

function atData(p: Parser): boolean {
  return p.at('WITH', 'DATA') || (p.at('WITH', 'NO') && p.value(2) === 'DATA');
}

/** Parses `WITH DATA`, or `WITH NO DATA`, which creates the query's columns without its rows. */
function dataClause(p: Parser, table: Mutable<CreateTableNode>): void {
  if (table.query === null || !atData(p)) {
    return;
  }
  p.advance();
  if (p.take('NO')) {
    const query = p.node(table.query);
    if (query.kind !== 'Query') {
      p.fail("'data' expected");
    }
    const { start, end } = p.spanOf(table.query);
    const first = p.add({ kind: 'Integer', text: '0' }, end, end);
    const limit = { first, second: null, offset: null, span: { start: end, end } };
    table.query = p.add({ ...query, limit }, start, end, table.query);
  }
  p.advance();
}

function tableColumns(p: Parser, table: Mutable<CreateTableNode>): void {
  if (!p.take('(')) {
    p.fail("'(' or 'as' expected");
  }
  if (p.take('LIKE')) {
    table.like = p.tableName('table name expected');
    while (p.take('INCLUDING')) {
      p.name("'all' expected");
    }
    if (!p.take(')')) {
      p.fail("')' expected");
    }
    return;
  }
  if (p.at(')')) {
    p.fail("found [tok=')', len=1] missing column definition");
  }
  const constraints = new Constraints();
  do {
    if (p.at('INDEX', '(')) {
      table.options.push(tableIndex(p));
    } else if (!constraints.takeTableConstraint(p)) {
      table.columns.push(parseColumn(p, constraints));
    }
    const written = p.written();
    if (!p.at(',') && !p.at(')')) {
      p.fail(`found [tok='${written}', len=${written.length}] ',' or ')' expected`);
    }
  } while (p.take(','));
  p.advance();
  table.constraints = constraints.all;
  const keys = new Set(constraints.primaryColumns);
  table.columns = table.columns.map((column) =>
    keys.has(column.name.text.toLowerCase()) ? { ...column, not_null: true } : column,
  );
}

/** Parses `CAST(column AS type)` after AS (query). */
function columnCast(p: Parser): [Name, TypeName] {
  p.advance();
  p.expect('(');
  const column = p.columnName('column name expected');
  p.expect('AS');
  const typeName = parseType(p, 'column type expected');
  p.expect(')');
  return [column, typeName];
}

/**
 * Parses `INDEX(column [CAPACITY n | TYPE …])` into an option whose value is the text in
 * parentheses.
 */
function tableIndex(p: Parser): OptionValue {
  const name = p.takeName(false);
  return { name, value: enclosedText(p) };
}

/** Parses `name type …` in CREATE TABLE and ADD COLUMN, and collects the column's constraints. */
export function parseColumn(p: Parser, constraints: Constraints): ColumnDefinition {
  const name =
    p.kind() === TokenKind.String ? p.takeName(true) : p.columnName('column name expected');
  const written = parseType(p, 'column type expected');
  const typeName = isSerial(written) ? { ...written, name: serialType(written) } : written;
  const isSymbol = typeName.name.toUpperCase() === 'SYMBOL';
  if (typeName.name.toUpperCase() === 'GEOHASH' && typeName.arguments.length === 0) {
    p.fail("'(' expected");
  }
  const column: Mutable<ColumnDefinition> = {
    name,
    type_name: typeName,
    symbol_capacity: null,
    symbol_cache: null,
    indexed: false,
    not_null: false,
    default: null,
    options: [],
  };
  if (isSymbol) {
    symbolClauses(p, column);
  }
  if (p.at('PARQUET', '(')) {
    const word = p.takeName(false);
    column.options.push({ name: word, value: parquetSettings(p) });
  }
  if (isSerial(written)) {
    setNumbering(p, column, []);
  }
  columnRules(p, column, constraints);
  return column;
}

/**
 * Sets the column's default to sequence values: from 1, or with a specified start and increment.
 */
function setNumbering(
  p: Parser,
  column: Mutable<ColumnDefinition>,
  numbers: readonly string[],
): void {
  const start = p.lastEnd();
  const span = { start, end: start };
  column.default = nextNumber(p, start, numbers);
  column.not_null = true;
  const value = { text: `next_id(${numbers.join(', ')})`, quoted: false, span };
  column.options.push({ name: { text: 'DEFAULT', quoted: false, span }, value });
}

/**
 * Parses `NOT NULL` and `DEFAULT expression`. The option DEFAULT stores the default's text, which
 * SHOW prints.
 */
function columnRules(p: Parser, column: Mutable<ColumnDefinition>, constraints: Constraints): void {
  for (;;) {
    if (p.take('NOT', 'NULL')) {
      column.not_null = true;
    } else if (p.take('NULL') || constraints.takeColumnConstraint(p, column.name)) {
      // NULL is the default, and a constraint has already been collected.
    } else if (p.take('COLLATE')) {
      column.options.push(collation(p));
    } else if (column.default === null && p.at('GENERATED')) {
      const { options, numbers } = takeIdentity(p);
      column.options.push(...options);
      setNumbering(p, column, numbers);
    } else if (p.at('DEFAULT') && column.default === null) {
      const { span } = p.takeName(false);
      const start = p.start();
      column.default = p.grammar.expression(p);
      const text = { text: p.text.slice(start, p.lastEnd()), quoted: false };
      const value = { ...text, span: { start, end: p.lastEnd() } };
      column.options.push({ name: { text: 'DEFAULT', quoted: false, span }, value });
    } else {
      return;
    }
  }
}

/** Returns the collation name after COLLATE, without its schema. */
function collation(p: Parser): OptionValue {
  const span = { start: p.start(-1), end: p.lastEnd() };
  let value = p.name('collation name expected');
  while (p.take('.')) {
    value = p.name('collation name expected');
  }
  return { name: { text: 'COLLATE', quoted: false, span }, value: { ...value, quoted: true } };
}

function symbolClauses(p: Parser, column: Mutable<ColumnDefinition>): void {
  if (p.take('CAPACITY')) {
    if (p.kind() !== TokenKind.Integer) {
      p.fail('min symbol capacity is 2');
    }
    column.symbol_capacity = p.takeName(false);
  }
  if (p.take('CACHE')) {
    column.symbol_cache = true;
  } else if (p.take('NOCACHE')) {
    column.symbol_cache = false;
  }
  if (!p.take('INDEX')) {
    return;
  }
  column.indexed = true;
  column.options.push(...indexOptions(p));
}

/** Parses the clauses after the columns or the query. */
function tableClauses(p: Parser, table: Mutable<CreateTableNode>): void {
  if (p.at('TIMESTAMP')) {
    p.advance();
    table.timestamp = p.parenthesised(() => p.columnName('column name expected'))[0] ?? null;
  }
  if (p.take('PARTITION')) {
    p.expect('BY');
    table.partition_by = partitionUnit(p);
    if (p.at('TTL')) {
      table.ttl = parseTtl(p);
    } else if (p.at('STORAGE', 'POLICY')) {
      p.advance(2);
      table.policy = policyStages(p);
    }
    if (p.at('FORMAT')) {
      table.options.push({ name: p.takeName(false), value: p.name('format expected') });
    }
    walMode(p, table);
  }
  if (p.at('DEDUP')) {
    dedupKeys(p, table);
  }
  if (p.at('WITH', '(')) {
    p.advance();
    storageParameters(p);
  } else if (!atData(p) && p.take('WITH')) {
    table.options.push(...parameters(p));
  }
  // DEDUP keys are also accepted at the end, because SHOW CREATE TABLE prints them there.
  if (p.at('DEDUP') && table.dedup_keys.length === 0) {
    dedupKeys(p, table);
  }
  if (p.at('IN', 'VOLUME') || p.at(',', 'IN')) {
    p.take(',');
    p.advance();
    const word = p.takeName(false);
    table.options.push({ name: word, value: p.dottedName('volume alias expected') });
  }
  if (p.at('OWNED', 'BY')) {
    const word = p.takeName(false);
    p.advance();
    table.options.push({ name: word, value: p.dottedName('owner expected') });
  }
}

function walMode(p: Parser, table: Mutable<CreateTableNode>): void {
  if (p.take('BYPASS')) {
    p.expect('WAL');
    table.wal = false;
  } else if (p.at('WAL')) {
    if (table.partition_by?.text.toUpperCase() === 'NONE') {
      p.fail('WAL Write Mode can only be used on partitioned tables');
    }
    p.advance();
    table.wal = true;
  }
}

function dedupKeys(p: Parser, table: Mutable<CreateTableNode>): void {
  p.advance();
  if (table.wal === false) {
    p.fail('deduplication is possible only on WAL tables');
  }
  p.expect('UPSERT');
  p.expect('KEYS');
  table.dedup_keys = p.parenthesised(() => p.columnName('column name expected'));
}

/** Parses `(fillfactor = 70)`, PostgreSQL's storage parameters, which have no effect. */
function storageParameters(p: Parser): void {
  p.parenthesised(() => {
    p.name('parameter name expected');
    while (p.take('.')) {
      p.name('parameter name expected');
    }
    if (p.take('=')) {
      p.advance();
    }
  });
}

/** Parses `maxUncommittedRows = 1000, o3MaxLag = 10s`. */
function parameters(p: Parser): OptionValue[] {
  const all: OptionValue[] = [];
  do {
    const name = p.name('parameter name expected');
    p.expect('=');
    if (p.atEnd()) {
      p.fail('parameter value expected');
    }
    all.push({ name, value: p.takeName(p.kind() === TokenKind.String) });
  } while (!p.at(',', 'IN') && p.take(','));
  return all;
}

/**
 * ALTER TABLE. Actions without a node type are only checked for syntax, and their words are passed
 * on.
 */
import type { AlterAction, Name, NodeId, OptionValue, PartitionChange } from '../ast.generated.js';
import { addedConstraint, Constraints } from './constraints.js';
import { parseColumn } from './create.js';
import { TokenKind } from '../lexer/lexer.js';
import { atOperand } from '../parser/lookahead.js';
import type { Parser } from '../parser/parser.js';
import { indexOptions, parquetSettings, parseTtl, policyStages } from './table-clauses.js';
import { parseType } from '../expressions/type-name.js';
import { viewQuery } from './view.js';

const ACTIONS =
  "'add', 'alter', 'attach', 'detach', 'drop', 'convert', 'resume', 'rename', 'set' or 'squash' " +
  'expected';

/** Parses `ALTER …`. */
export function parseAlter(p: Parser): NodeId {
  const start = p.start();
  p.advance();
  if (p.at('VIEW')) {
    return alterView(p, start);
  }
  if (!p.take('TABLE')) {
    p.fail("'table' or 'materialized' or 'live' or 'view' expected");
  }
  const if_exists = p.take('IF', 'EXISTS');
  p.take('ONLY');
  const table = p.tableName('table name expected');
  if (p.take('RENAME', 'TO')) {
    return renamed(p, start, table, if_exists);
  }
  const actions = parseActions(p);
  while (atNextAction(p)) {
    p.countTerm(actions.length, start);
    p.advance();
    actions.push(...parseActions(p));
  }
  const node = { kind: 'AlterTable', table, if_exists, actions } as const;
  return p.add(node, start, p.lastEnd(), ...actions.map(child));
}

function renamed(p: Parser, start: number, table: Name, if_exists: boolean): NodeId {
  const to = p.tableName('table name expected');
  return p.add({ kind: 'Rename', table, to, if_exists }, start, p.lastEnd());
}

/** Returns the expression in an action, if any. */
function child(action: AlterAction): NodeId | null {
  switch (action.action) {
    case 'Partitions':
      return action.filter;
    case 'Default':
      return action.value;
    case 'AddColumn':
      return action.column.default;
    default:
      return null;
  }
}

const ACTIONS_OF_COLUMNS: ReadonlySet<string> = new Set(['ADD', 'ALTER', 'DROP']);
const SUBJECTS: ReadonlySet<string> = new Set(['COLUMN', 'CONSTRAINT', 'PRIMARY', 'UNIQUE']);

/** Returns whether a comma and another action follow, rather than the next name of a list. */
function atNextAction(p: Parser): boolean {
  return p.at(',') && ACTIONS_OF_COLUMNS.has(p.value(1)) && SUBJECTS.has(p.value(2));
}

/** Parses a comma-separated list that ends where the next action begins. */
function listed<T>(p: Parser, member: () => T): T[] {
  const start = p.start();
  const members = [member()];
  while (!atNextAction(p) && p.take(',')) {
    p.countTerm(members.length, start);
    members.push(member());
  }
  return members;
}

/**
 * Parses `ALTER VIEW v AS (query)`, which replaces an existing view; the option ALTER marks this in
 * the tree.
 */
function alterView(p: Parser, start: number): NodeId {
  p.advance();
  const name = p.tableName('view name expected');
  if (p.take('RENAME', 'TO')) {
    return renamed(p, start, name, false);
  }
  p.expect('AS');
  const { query, text } = viewQuery(p);
  const flag = { text: 'ALTER', quoted: false, span: { start, end: start + 5 } };
  const options = [{ name: flag, value: null }];
  const node = { what: 'View', name, query, query_text: text, if_not_exists: false } as const;
  const common = { or_replace: true, options, material: null, live: null } as const;
  const full = { kind: 'CreateView', ...node, ...common } as const;
  return p.add(full, start, p.lastEnd(), query);
}

function parseActions(p: Parser): AlterAction[] {
  const from = p.index;
  const start = p.start();
  const action = p.value();
  p.suggest(['ADD', 'ALTER', 'DROP', 'RENAME', 'SET', 'CONVERT', 'DEDUP', 'ATTACH', 'DETACH']);
  if (p.kind() !== TokenKind.Word) {
    p.fail(ACTIONS);
  }
  p.advance();
  const known = knownActions(p, action);
  if (known !== null) {
    return known;
  }
  const words = wordsSince(p, from);
  return [{ action: 'Other', words, span: { start, end: p.lastEnd() } }];
}

/**
 * Returns the actions; `null` if only the syntax is checked. In that case the action is stored as
 * words.
 */
function knownActions(p: Parser, action: string): AlterAction[] | null {
  switch (action) {
    case 'ADD':
      return addColumns(p);
    case 'ALTER':
      return alterColumn(p);
    case 'RENAME':
      return renameColumn(p);
    case 'DROP':
      return dropColumns(p);
    case 'SET':
      return setAction(p);
    case 'ATTACH':
    case 'DETACH':
      p.expect('PARTITION');
      return [partitions(p, action === 'ATTACH' ? 'Attach' : 'Detach')];
    case 'CONVERT':
      return [convert(p)];
    case 'DEDUP':
      return [{ action: 'Dedup', keys: dedup(p) }];
    case 'SQUASH':
      p.expect('PARTITIONS');
      return [{ action: 'SquashPartitions' }];
    case 'RESUME':
    case 'SUSPEND':
    case 'REBASE':
      return (writeAheadLog(p, action), null);
    case 'OWNER':
      p.expect('TO');
      return (p.name('owner name expected'), null);
    case 'ENABLE':
    case 'DISABLE':
      return [switchedPolicy(p, action === 'ENABLE')];
    default:
      p.index -= 1;
      return p.fail(ACTIONS);
  }
}

function addColumns(p: Parser): AlterAction[] {
  const constraint = addedConstraint(p);
  if (constraint !== null) {
    return constraint;
  }
  p.take('COLUMN');
  const conditional = p.take('IF', 'NOT', 'EXISTS');
  const constraints = new Constraints();
  const actions = listed(p, (): AlterAction => {
    return {
      action: 'AddColumn',
      column: parseColumn(p, constraints),
      if_not_exists: conditional,
    };
  });
  if (p.take('OWNED', 'BY')) {
    p.dottedName('owner expected');
  }
  return [...actions, ...constraints.actions()];
}

/** Parses `RENAME [COLUMN] a TO b, …`. */
function renameColumn(p: Parser): AlterAction[] {
  if (p.value(1) !== 'TO') {
    p.expect('COLUMN', "'column' or 'to' expected");
  }
  return p.list((): AlterAction => {
    const column = p.columnName('column name expected');
    if (!p.take('TO')) {
      p.fail("'to' expected");
    }
    return { action: 'RenameColumn', column, to: p.columnName('column name expected') };
  });
}

function dropColumns(p: Parser): AlterAction[] | null {
  if (p.take('PARTITION')) {
    return [partitions(p, 'Drop')];
  }
  if (p.take('STORAGE', 'POLICY')) {
    return [{ action: 'DropPolicy' }];
  }
  if (p.take('CONSTRAINT')) {
    const if_exists = p.take('IF', 'EXISTS');
    const name = p.name('constraint name expected');
    dependants(p);
    return [{ action: 'DropConstraint', name, if_exists }];
  }
  p.expect('COLUMN', "'column' or 'partition' expected");
  return listed(p, (): AlterAction => {
    const if_exists = p.take('IF', 'EXISTS');
    const column = p.columnName('column name expected');
    dependants(p);
    return { action: 'DropColumn', column, if_exists };
  });
}

/**
 * Skips CASCADE or RESTRICT. Neither has an effect, because no object depends on a column or a
 * constraint.
 */
function dependants(p: Parser): void {
  if (!p.take('CASCADE')) {
    p.take('RESTRICT');
  }
}

function alterColumn(p: Parser): AlterAction[] | null {
  p.expect('COLUMN');
  const column = p.columnName('column name expected');
  if (p.atEnd()) {
    p.fail("'add index' or 'drop index' or 'type' or 'cache' or 'nocache' or 'symbol' expected");
  }
  if (p.take('TYPE') || p.take('SET', 'DATA', 'TYPE')) {
    const type_name = parseType(p, 'column type expected');
    if (p.take('USING')) {
      convertedColumn(p, column);
    }
    return [{ action: 'ChangeType', column, type_name }];
  }
  const rule = columnRule(p, column);
  if (rule !== null) {
    return [rule];
  }
  if (p.at('CACHE') || p.at('NOCACHE')) {
    const cache = p.value() === 'CACHE';
    return (p.advance(), [{ action: 'SymbolCache', column, cache }]);
  }
  if (p.take('DROP', 'INDEX')) {
    return [{ action: 'Index', column, indexed: false, words: [] }];
  }
  if (p.take('ADD')) {
    p.expect('INDEX');
    const from = p.index;
    indexOptions(p);
    return [{ action: 'Index', column, indexed: true, words: wordsSince(p, from) }];
  }
  if (p.take('SYMBOL')) {
    p.expect('CAPACITY');
    if (p.kind() !== TokenKind.Integer) {
      p.fail('min symbol capacity is 2');
    }
    return [{ action: 'SymbolCapacity', column, capacity: p.takeName(false) }];
  }
  if (p.take('SET')) {
    p.expect('PARQUET');
    return (parquetSettings(p), null);
  }
  return p.fail(
    `'add', 'drop', 'set', 'symbol', 'cache' or 'nocache' expected found '${p.written()}'`,
  );
}

/**
 * Parses `SET NOT NULL`, `SET DEFAULT expression`, or DROP of either; returns `null` for anything
 * else.
 */
function columnRule(p: Parser, column: Name): AlterAction | null {
  const isSet = p.at('SET');
  if (p.take('SET', 'NOT', 'NULL') || p.take('DROP', 'NOT', 'NULL')) {
    return { action: 'NotNull', column, not_null: isSet };
  }
  if (p.take('DROP', 'DEFAULT')) {
    return { action: 'Default', column, value: null, text: '' };
  }
  if (!p.take('SET', 'DEFAULT')) {
    return null;
  }
  const start = p.start();
  const value = p.grammar.expression(p);
  return { action: 'Default', column, value, text: p.text.slice(start, p.lastEnd()) };
}

/**
 * Parses USING. Its expression must be the column itself or a cast of it, which is equivalent to
 * the default conversion.
 */
function convertedColumn(p: Parser, column: Name): void {
  const start = p.start();
  const open = p.take('(');
  if (p.columnName('column name expected').text.toLowerCase() !== column.text.toLowerCase()) {
    p.failAt("'using' supports only the column itself or a cast of it", start, p.lastEnd());
  }
  if (p.take('::')) {
    parseType(p, 'type expected');
  }
  if (open) {
    p.expect(')');
  }
}

/** Parses `LIST 'p', …` or `WHERE condition`. */
function partitions(p: Parser, change: PartitionChange): AlterAction & { action: 'Partitions' } {
  if (p.take('LIST')) {
    const names = p.list(() => {
      if (p.kind() !== TokenKind.String) {
        p.fail('partition name expected');
      }
      return p.takeName(true);
    });
    return { action: 'Partitions', change, names, filter: null };
  }
  if (!p.take('WHERE')) {
    p.fail("'list' or 'where' expected");
  }
  if (!atOperand(p)) {
    p.fail('boolean expression expected');
  }
  return { action: 'Partitions', change, names: [], filter: p.grammar.expression(p) };
}

/**
 * Parses a partition conversion. Format options after WITH are hints for QuestDB and are ignored
 * here.
 */
function convert(p: Parser): AlterAction {
  p.expect('PARTITION');
  p.expect('TO');
  const toParquet = p.take('PARQUET');
  if (!toParquet && !p.take('NATIVE')) {
    p.fail("'parquet' or 'native' expected");
  }
  const action = partitions(p, toParquet ? 'ToParquet' : 'ToNative');
  if (p.take('WITH')) {
    p.parenthesised(() => conversionOption(p));
  }
  return action;
}

const CONVERSION_OPTIONS: ReadonlySet<string> = new Set([
  'BLOOM_FILTER_COLUMNS',
  'BLOOM_FILTER_FPP',
]);

/** Parses `bloom_filter_columns = 'a,b'` or `bloom_filter_fpp = 0.01`. */
function conversionOption(p: Parser): void {
  p.suggest(CONVERSION_OPTIONS);
  if (!p.atAnyOf(CONVERSION_OPTIONS)) {
    p.fail(`unrecognised option: ${p.written()}`);
  }
  const wanted = p.at('BLOOM_FILTER_COLUMNS') ? TokenKind.String : TokenKind.Float;
  p.advance();
  p.expect('=');
  if (p.kind() !== wanted) {
    p.fail(wanted === TokenKind.String ? 'quoted list of columns expected' : 'number expected');
  }
  p.advance();
}

/** Parses `RESUME WAL [FROM TRANSACTION n]`, `SUSPEND WAL` or `REBASE WAL`. */
function writeAheadLog(p: Parser, action: string): void {
  p.expect('WAL');
  if (action === 'REBASE' && p.sees('INTO')) {
    p.fail("'rebase wal into' is not supported");
  }
  if (action === 'RESUME' && p.take('FROM')) {
    if (!p.take('TXN')) {
      p.expect('TRANSACTION', "'transaction' or 'txn' expected");
    }
    if (p.kind() !== TokenKind.Integer) {
      p.fail('transaction number expected');
    }
    p.advance();
  }
}

/**
 * Parses `ENABLE UPSERT KEYS (…)` and returns the key columns; returns an empty list for DISABLE.
 */
function dedup(p: Parser): Name[] {
  if (p.take('DISABLE')) {
    return [];
  }
  if (!p.take('ENABLE')) {
    p.fail("'dedup columns' expected");
  }
  p.expect('UPSERT');
  p.expect('KEYS');
  const open = p.start();
  p.expect('(');
  if (p.at(')')) {
    p.fail('deduplicate key list must include dedicated timestamp column');
  }
  const keys = p.list(() => p.columnName('column name expected'));
  p.close(open);
  return keys;
}

function switchedPolicy(p: Parser, enabled: boolean): AlterAction {
  const start = p.start();
  p.expect('STORAGE', "'storage policy' expected");
  p.expect('POLICY');
  return { action: 'SwitchPolicy', enabled, span: { start, end: p.lastEnd() } };
}

const PARAMETERS = new Map([
  ['MAXUNCOMMITTEDROWS', 'maxUncommittedRows'],
  ['O3MAXLAG', 'o3MaxLag'],
]);

function setAction(p: Parser): AlterAction[] | null {
  if (p.at('TTL')) {
    return [{ action: 'SetTtl', ttl: parseTtl(p) }];
  }
  if (p.take('PARAM')) {
    return [{ action: 'SetParameter', parameter: setParameter(p) }];
  }
  if (p.take('TYPE')) {
    const wal = !p.take('BYPASS');
    p.expect('WAL');
    return [{ action: 'SetWal', wal }];
  }
  if (p.take('FORMAT')) {
    if (!p.take('NATIVE')) {
      p.expect('PARQUET', "'native' or 'parquet' expected");
    }
    return null;
  }
  if (p.take('STORAGE', 'POLICY')) {
    return [{ action: 'SetPolicy', policy: policyStages(p) }];
  }
  return p.fail("'param', 'ttl' or 'type' expected");
}

function setParameter(p: Parser): OptionValue {
  if (p.kind() !== TokenKind.Word) {
    p.fail('param name expected');
  }
  const name = PARAMETERS.get(p.value());
  if (name === undefined) {
    p.fail(`unknown parameter '${p.written()}'`);
  }
  const start = p.start();
  const option = p.takeName(false);
  p.expect('=');
  const kind = p.kind();
  const valid = kind === TokenKind.Integer || (name === 'o3MaxLag' && kind === TokenKind.Duration);
  if (!valid) {
    p.failAt(`invalid value [value=${p.written()},parameter=${name}]`, start, p.end());
  }
  return { name: { ...option, text: name }, value: p.takeName(false) };
}

/** Returns the tokens from an index up to the current one, as written. */
function wordsSince(p: Parser, from: number): string[] {
  const words: string[] = [];
  for (let offset = from - p.index; offset < 0; offset += 1) {
    words.push(p.written(offset));
  }
  return words;
}

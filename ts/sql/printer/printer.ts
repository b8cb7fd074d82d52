/** Prints syntax trees. The output parses to the same tree, except for spans. */
import type {
  AlterAction,
  ColumnDefinition,
  Conflict,
  ConstraintNode,
  CreateTableNode,
  DeleteNode,
  InsertNode,
  Name,
  Node,
  NodeId,
  OptionValue,
  PartitionChange,
  PolicyStages,
  ReferenceAction,
  ReferenceNode,
  Tree,
  UpdateNode,
} from '../ast.generated.js';
import { printAccess } from './print-access.js';
import {
  KINDS,
  printBackup,
  printCopy,
  printCreateView,
  printIndexOption,
  printRefreshMode,
  printViewAction,
} from './print-administration.js';
import {
  assertNever,
  expression,
  nodeOf,
  printName,
  printType,
  printValue,
  printWord,
  selectItems,
  type Printer,
} from './print-expression.js';
import { printQuery, printShow, printSource, printValues, printWith } from './print-query.js';

/** Prints a statement. */
export function print(tree: Tree): string {
  return printStatement(printerFor(tree), tree.root);
}

function printerFor(tree: Tree): Printer {
  const printer: Printer = { tree, query: (id) => printQuery(printer, id) };
  return printer;
}

function printStatement(printer: Printer, id: NodeId): string {
  const node = nodeOf(printer.tree, id);
  switch (node.kind) {
    case 'CreateTable':
      return printCreateTable(printer, node);
    case 'Insert':
      return printInsert(printer, node);
    case 'Update':
      return printUpdate(printer, node);
    case 'Delete':
      return printDelete(printer, node);
    case 'CreateView':
      return printCreateView(printer, node);
    case 'AlterTable':
      return printAlter(printer, node);
    case 'Explain': {
      const stage = node.stage === 'Default' ? '' : ` (${node.stage.toUpperCase()})`;
      const analyze = node.analyze ? ' ANALYZE' : '';
      return `EXPLAIN${analyze}${stage} ${printStatement(printer, node.statement)}`;
    }
    case 'Check':
      return node.table === null ? 'CHECK DATABASE' : `CHECK TABLE ${printName(node.table)}`;
    case 'Recover':
      return `RECOVER TABLE ${printName(node.table)}${node.skip ? ' SKIP' : ''}`;
    case 'CancelQuery':
      return `CANCEL QUERY ${expression(printer, node.id)}`;
    default:
      return printSmall(printer, id, node);
  }
}

function printSmall(printer: Printer, id: NodeId, node: Node): string {
  switch (node.kind) {
    case 'Drop':
      return [
        'DROP',
        KINDS[node.what],
        ...(node.if_exists ? ['IF EXISTS'] : []),
        list(node.names),
      ].join(' ');
    case 'DropIndex': {
      const names = list(node.names);
      return `DROP INDEX ${node.if_exists ? 'IF EXISTS ' : ''}${names}`;
    }
    case 'DropAllTables':
      return 'DROP ALL TABLES';
    case 'Truncate':
      return [
        'TRUNCATE TABLE',
        ...(node.if_exists ? ['IF EXISTS'] : []),
        list(node.tables),
        ...(node.keep_symbols ? ['KEEP SYMBOL MAPS'] : []),
        ...(node.restart_identity ? ['RESTART IDENTITY'] : []),
        ...(node.cascade ? ['CASCADE'] : []),
      ].join(' ');
    case 'Rename':
      return node.if_exists
        ? `ALTER TABLE IF EXISTS ${printName(node.table)} RENAME TO ${printName(node.to)}`
        : `RENAME TABLE ${printName(node.table)} TO ${printName(node.to)}`;
    case 'Show':
      return printShow(node.subject);
    case 'AlterView': {
      const action = printViewAction(printer, node.action);
      return `ALTER MATERIALIZED VIEW ${printName(node.view)} ${action}`;
    }
    case 'AlterLiveView': {
      const action = node.suspend ? 'SUSPEND' : 'RESUME';
      return `ALTER LIVE VIEW ${printName(node.view)} ${action} WAL`;
    }
    case 'RefreshView': {
      const mode = printRefreshMode(printer, node.mode);
      return `REFRESH MATERIALIZED VIEW ${printName(node.view)}${mode}`;
    }
    case 'CompileView':
      return `COMPILE VIEW ${printName(node.view)}`;
    case 'Access':
      return printAccess(node.access);
    case 'Copy':
      return printCopy(printer, node.copy);
    case 'Backup':
      return printBackup(node.backup);
    case 'Session':
      return node.words.map(printWord).join(' ');
    case 'Empty':
      return '';
    default:
      return printer.query(id);
  }
}

function list(names: readonly Name[]): string {
  return names.map(printName).join(', ');
}

function printInsert(printer: Printer, node: InsertNode): string {
  const clauses = ['INSERT'];
  if (node.atomic) {
    clauses.push('ATOMIC');
  }
  if (node.batch !== null) {
    clauses.push(`BATCH ${expression(printer, node.batch)}`);
  }
  if (node.o3_max_lag !== null) {
    clauses.push(`o3MaxLag ${printValue(node.o3_max_lag)}`);
  }
  clauses.push(`INTO ${printName(node.table)}`);
  if (node.alias !== null) {
    clauses.push(`AS ${printName(node.alias)}`);
  }
  if (node.columns.length > 0) {
    clauses.push(`(${list(node.columns)})`);
  }
  if (node.values?.widths.length === 1 && node.values.widths[0] === 0) {
    clauses.push('DEFAULT VALUES');
  } else if (node.query === null) {
    const plain = node.plain === null ? [] : [node.plain.text];
    const values = node.values === null ? [] : [printValues(printer, node.values)];
    clauses.push(`VALUES ${[...plain, ...values].join(', ')}`);
  } else {
    clauses.push(printer.query(node.query));
  }
  if (node.conflict !== null) {
    clauses.push(printConflict(printer, node.conflict));
  }
  if (node.returning.length > 0) {
    clauses.push(`RETURNING ${selectItems(printer, node.returning)}`);
  }
  return clauses.join(' ');
}

function printConflict(printer: Printer, { keys, assignments, filter }: Conflict): string {
  const clauses = [keys.length > 0 ? `ON CONFLICT (${list(keys)})` : 'ON CONFLICT'];
  if (assignments.length === 0) {
    clauses.push('DO NOTHING');
  } else {
    clauses.push(`DO UPDATE SET ${printAssignments(printer, assignments)}`);
  }
  if (filter !== null) {
    clauses.push(`WHERE ${expression(printer, filter)}`);
  }
  return clauses.join(' ');
}

function printAssignments(printer: Printer, assignments: UpdateNode['assignments']): string {
  const printed = assignments.map(
    ([column, value]) => `${printName(column)} = ${expression(printer, value)}`,
  );
  return printed.join(', ');
}

function printDelete(printer: Printer, node: DeleteNode): string {
  const clauses = node.with.length > 0 ? [printWith(printer, node.with)] : [];
  clauses.push(`DELETE FROM ${printName(node.table)}`);
  if (node.alias !== null) {
    clauses.push(`AS ${printName(node.alias)}`);
  }
  if (node.using !== null) {
    clauses.push(`USING ${printSource(printer, node.using)}`);
  }
  if (node.filter !== null) {
    clauses.push(`WHERE ${expression(printer, node.filter)}`);
  }
  if (node.returning.length > 0) {
    clauses.push(`RETURNING ${selectItems(printer, node.returning)}`);
  }
  return clauses.join(' ');
}

function printUpdate(printer: Printer, node: UpdateNode): string {
  const clauses: string[] = [];
  if (node.with.length > 0) {
    clauses.push(printWith(printer, node.with));
  }
  clauses.push(`UPDATE ${printName(node.table)}`);
  if (node.alias !== null) {
    clauses.push(`AS ${printName(node.alias)}`);
  }
  clauses.push(`SET ${printAssignments(printer, node.assignments)}`);
  if (node.from !== null) {
    clauses.push(`FROM ${printSource(printer, node.from)}`);
  }
  if (node.filter !== null) {
    clauses.push(`WHERE ${expression(printer, node.filter)}`);
  }
  if (node.returning.length > 0) {
    clauses.push(`RETURNING ${selectItems(printer, node.returning)}`);
  }
  return clauses.join(' ');
}

/** CREATE TABLE options that have their own syntax; all others are printed after WITH. */
const PLACED: ReadonlySet<string> = new Set([
  'TEMP',
  'TEMPORARY',
  'ATOMIC',
  'BATCH',
  'BATCH O3MAXLAG',
  'INDEX',
  'FORMAT',
  'VOLUME',
  'OWNED',
  'UNLOGGED',
]);

function printPolicy({ to_parquet, to_remote, drop_local }: PolicyStages): string {
  const stage = (words: string, age: Name | null): string[] =>
    age === null ? [] : [`${words} ${age.text}`];
  const stages = [
    ...stage('TO PARQUET', to_parquet),
    ...stage('TO REMOTE', to_remote),
    ...stage('DROP LOCAL', drop_local),
  ];
  return `(${stages.join(', ')})`;
}

function printCreateTable(printer: Printer, node: CreateTableNode): string {
  const option = (name: string): OptionValue[] =>
    node.options.filter((option) => option.name.text.toUpperCase() === name);
  const value = (option: OptionValue): string => (option.value === null ? '' : option.value.text);
  const clauses = ['CREATE'];
  const temporary = [...option('TEMP'), ...option('TEMPORARY')];
  if (temporary.length > 0) {
    clauses.push('TEMPORARY');
  }
  if (option('UNLOGGED').length > 0) {
    clauses.push('UNLOGGED');
  }
  if (option('ATOMIC').length > 0) {
    clauses.push('ATOMIC');
  }
  for (const item of option('BATCH')) {
    clauses.push(`BATCH ${value(item)}`);
  }
  for (const item of option('BATCH O3MAXLAG')) {
    if (item.value !== null) {
      clauses.push(`o3MaxLag ${printValue(item.value)}`);
    }
  }
  clauses.push(`TABLE ${node.if_not_exists ? 'IF NOT EXISTS ' : ''}${printName(node.name)}`);
  clauses.push(tableShape(printer, node));
  for (const [column, type] of node.casts) {
    clauses.push(`, CAST(${printName(column)} AS ${printType(type)})`);
  }
  for (const item of option('INDEX')) {
    clauses.push(`, INDEX(${value(item)})`);
  }
  if (node.timestamp !== null) {
    clauses.push(`TIMESTAMP(${printName(node.timestamp)})`);
  }
  if (node.partition_by !== null) {
    clauses.push(`PARTITION BY ${node.partition_by.text}`);
  }
  if (node.ttl !== null) {
    clauses.push(`TTL ${node.ttl.text}`);
  }
  if (node.policy !== null) {
    clauses.push(`STORAGE POLICY ${printPolicy(node.policy)}`);
  }
  for (const item of option('FORMAT')) {
    clauses.push(`FORMAT ${value(item)}`);
  }
  if (node.wal !== null) {
    clauses.push(node.wal ? 'WAL' : 'BYPASS WAL');
  }
  if (node.dedup_keys.length > 0) {
    clauses.push(`DEDUP UPSERT KEYS(${list(node.dedup_keys)})`);
  }
  const remaining = node.options.filter((option) => !PLACED.has(option.name.text.toUpperCase()));
  if (remaining.length > 0) {
    clauses.push(`WITH ${remaining.map(assignment).join(', ')}`);
  }
  for (const item of option('VOLUME')) {
    clauses.push(`${remaining.length > 0 ? ', ' : ''}IN VOLUME ${word(item)}`);
  }
  for (const item of option('OWNED')) {
    clauses.push(`OWNED BY ${word(item)}`);
  }
  if (temporary.some((option) => option.value !== null)) {
    clauses.push('ON COMMIT DROP');
  }
  return clauses.join(' ');
}

function assignment(option: OptionValue): string {
  const value = option.value === null ? '' : ` = ${printValue(option.value)}`;
  return printName(option.name) + value;
}

function word(option: OptionValue): string {
  return option.value === null ? '' : printName(option.value);
}

function tableShape(printer: Printer, node: CreateTableNode): string {
  if (node.query !== null) {
    return `AS (${printer.query(node.query)})`;
  }
  if (node.like !== null) {
    return `(LIKE ${printName(node.like)})`;
  }
  const columns = node.columns.map((column) => printColumn(printer, column));
  return `(${[...columns, ...node.constraints.map(printConstraint)].join(', ')})`;
}

/** Prints a constraint as a table constraint. The condition of a CHECK is not stored. */
function printConstraint(constraint: ConstraintNode): string {
  const { name, columns, references } = constraint;
  const named = name === null ? '' : `CONSTRAINT ${printName(name)} `;
  const keys = `(${list(columns)})`;
  switch (constraint.constraint) {
    case 'PrimaryKey':
      return `${named}PRIMARY KEY ${keys}`;
    case 'Unique':
      return `${named}UNIQUE ${keys}`;
    case 'ForeignKey':
      return `${named}FOREIGN KEY ${keys}${references === null ? '' : printReferences(references)}`;
    case 'Check':
      return `${named}CHECK (true)`;
    case 'Index':
    case 'UniqueIndex':
      return '';
    default:
      return assertNever(constraint.constraint);
  }
}

const REFERENCE_ACTIONS: Readonly<Record<ReferenceAction, string>> = {
  NoAction: 'NO ACTION',
  Restrict: 'RESTRICT',
  Cascade: 'CASCADE',
  SetNull: 'SET NULL',
  SetDefault: 'SET DEFAULT',
};

function printReferences({ table, columns, on_update, on_delete }: ReferenceNode): string {
  const keys = columns.length > 0 ? ` (${list(columns)})` : '';
  const clauseFor = (event: string, action: ReferenceAction): string =>
    action === 'NoAction' ? '' : ` ON ${event} ${REFERENCE_ACTIONS[action]}`;
  const actions = clauseFor('UPDATE', on_update) + clauseFor('DELETE', on_delete);
  return ` REFERENCES ${printName(table)}${keys}${actions}`;
}

/** Prints `CREATE INDEX`, which is a separate statement. */
function printIndex(table: Name, constraint: ConstraintNode): string {
  const { name, columns, if_not_exists } = constraint;
  const clauses = ['CREATE'];
  if (constraint.constraint === 'UniqueIndex') {
    clauses.push('UNIQUE');
  }
  clauses.push('INDEX');
  if (if_not_exists) {
    clauses.push('IF NOT EXISTS');
  }
  if (name !== null) {
    clauses.push(printName(name));
  }
  // Key expressions are not stored, so a constant is printed instead.
  const keys = columns.length > 0 ? list(columns) : '1';
  return [...clauses, `ON ${printName(table)} (${keys})`].join(' ');
}

function printColumn(printer: Printer, column: ColumnDefinition): string {
  const clauses = [printName(column.name), printType(column.type_name)];
  if (column.symbol_capacity !== null) {
    clauses.push(`CAPACITY ${column.symbol_capacity.text}`);
  }
  if (column.symbol_cache !== null) {
    clauses.push(column.symbol_cache ? 'CACHE' : 'NOCACHE');
  }
  if (column.indexed) {
    clauses.push('INDEX');
  }
  const options = column.options.filter(({ name }) => name.text !== 'DEFAULT');
  clauses.push(...options.map(printIndexOption));
  if (column.not_null) {
    clauses.push('NOT NULL');
  }
  // An IDENTITY option already implies the default.
  if (column.default !== null && !options.some(({ name }) => name.text === 'IDENTITY')) {
    clauses.push(`DEFAULT ${expression(printer, column.default)}`);
  }
  return clauses.join(' ');
}

function printAlter(
  printer: Printer,
  { table, if_exists, actions }: Node & { readonly kind: 'AlterTable' },
): string {
  const first = actions[0];
  const named = `${if_exists ? 'IF EXISTS ' : ''}${printName(table)}`;
  if (first?.action === 'Other') {
    return printOther(named, first.words);
  }
  if (first?.action === 'AddConstraint' && first.constraint.constraint.endsWith('Index')) {
    return printIndex(table, first.constraint);
  }
  const clauses = actions.map((action, index) =>
    printAction(printer, action, action.action !== actions[index - 1]?.action),
  );
  return `ALTER TABLE ${named} ${clauses.join(', ')}`;
}

function printOther(table: string, words: readonly string[]): string {
  const head = words[0] ?? '';
  if (head === 'VACUUM' || head === 'REINDEX') {
    return `${head} TABLE ${table} ${words.slice(1).map(printWord).join(' ')}`.trimEnd();
  }
  return `ALTER TABLE ${table} ${words.join(' ')}`;
}

function printAction(printer: Printer, action: AlterAction, first: boolean): string {
  const lead = (words: string): string => (first ? `${words} ` : '');
  switch (action.action) {
    case 'AddColumn': {
      const words = action.if_not_exists ? 'ADD COLUMN IF NOT EXISTS' : 'ADD COLUMN';
      return lead(words) + printColumn(printer, action.column);
    }
    case 'AddConstraint':
      return `ADD ${printConstraint(action.constraint)}`;
    case 'DropConstraint':
      return `DROP CONSTRAINT ${action.if_exists ? 'IF EXISTS ' : ''}${printName(action.name)}`;
    case 'DropColumn':
      return (
        lead('DROP COLUMN') + (action.if_exists ? 'IF EXISTS ' : '') + printName(action.column)
      );
    case 'RenameColumn':
      return `${lead('RENAME COLUMN')}${printName(action.column)} TO ${printName(action.to)}`;
    case 'ChangeType':
      return `ALTER COLUMN ${printName(action.column)} TYPE ${printType(action.type_name)}`;
    case 'NotNull': {
      const verb = action.not_null ? 'SET' : 'DROP';
      return `ALTER COLUMN ${printName(action.column)} ${verb} NOT NULL`;
    }
    case 'Default': {
      const value = action.value === null ? null : expression(printer, action.value);
      const rule = value === null ? 'DROP DEFAULT' : `SET DEFAULT ${value}`;
      return `ALTER COLUMN ${printName(action.column)} ${rule}`;
    }
    default:
      return printSetting(printer, action);
  }
}

function printPartitionChange(change: PartitionChange): string {
  switch (change) {
    case 'ToParquet':
      return 'CONVERT PARTITION TO PARQUET';
    case 'ToNative':
      return 'CONVERT PARTITION TO NATIVE';
    default:
      return `${change.toUpperCase()} PARTITION`;
  }
}

function printSetting(printer: Printer, action: AlterAction): string {
  switch (action.action) {
    case 'SymbolCapacity':
      return `ALTER COLUMN ${printName(action.column)} SYMBOL CAPACITY ${action.capacity.text}`;
    case 'SymbolCache':
      return `ALTER COLUMN ${printName(action.column)} ${action.cache ? 'CACHE' : 'NOCACHE'}`;
    case 'Index': {
      const words = [action.indexed ? 'ADD INDEX' : 'DROP INDEX', ...action.words];
      return `ALTER COLUMN ${printName(action.column)} ${words.join(' ')}`;
    }
    case 'Partitions': {
      const verb = printPartitionChange(action.change);
      return action.filter === null
        ? `${verb} LIST ${action.names.map(printValue).join(', ')}`
        : `${verb} WHERE ${expression(printer, action.filter)}`;
    }
    case 'SquashPartitions':
      return 'SQUASH PARTITIONS';
    case 'SetParameter': {
      const { name, value } = action.parameter;
      return `SET PARAM ${name.text} = ${value?.text ?? ''}`;
    }
    case 'SetTtl':
      return `SET TTL ${action.ttl.text}`;
    case 'SetPolicy':
      return `SET STORAGE POLICY ${printPolicy(action.policy)}`;
    case 'SwitchPolicy':
      return `${action.enabled ? 'ENABLE' : 'DISABLE'} STORAGE POLICY`;
    case 'DropPolicy':
      return 'DROP STORAGE POLICY';
    case 'SetWal':
      return `SET TYPE ${action.wal ? '' : 'BYPASS '}WAL`;
    case 'Dedup':
      return action.keys.length > 0
        ? `DEDUP ENABLE UPSERT KEYS (${list(action.keys)})`
        : 'DEDUP DISABLE';
    case 'Other':
      return action.words.join(' ');
    case 'AddColumn':
    case 'AddConstraint':
    case 'DropConstraint':
    case 'DropColumn':
    case 'RenameColumn':
    case 'ChangeType':
    case 'NotNull':
    case 'Default':
      return printAction(printer, action, true);
    default:
      return assertNever(action);
  }
}

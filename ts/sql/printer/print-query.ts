/** Prints queries. */
import type {
  AsofTolerance,
  Fill,
  JoinKind,
  JoinOn,
  Limit,
  Name,
  Node,
  NodeId,
  PivotNode,
  SampleBy,
  SelectNode,
  ShowSubject,
  ValuesBlock,
} from '../ast.generated.js';
import { KINDS } from './print-administration.js';
import {
  assertNever,
  expression,
  expressionList,
  frameBound,
  nodeOf,
  orderItems,
  printName,
  printWord,
  quoteText,
  renderCall,
  selectItems,
  windowSpec,
  type Printer,
} from './print-expression.js';

/** Prints a Query node. */
export function printQuery(printer: Printer, id: NodeId): string {
  const node = nodeOf(printer.tree, id);
  if (node.kind !== 'Query') {
    return printBody(printer, id);
  }
  const clauses: string[] = [];
  if (node.declarations.length > 0) {
    const list = node.declarations.map((declaration) => {
      const value = nodeOf(printer.tree, declaration.value);
      const text =
        value.kind === 'Query'
          ? `(${printer.query(declaration.value)})`
          : expression(printer, declaration.value);
      return `${declaration.overridable ? 'OVERRIDABLE ' : ''}@${declaration.name.text} := ${text}`;
    });
    clauses.push(`DECLARE ${list.join(', ')}`);
  }
  if (node.with.length > 0) {
    clauses.push(printWith(printer, node.with));
  }
  clauses.push(printBody(printer, node.body));
  if (node.order_by.length > 0) {
    clauses.push(`ORDER BY ${orderItems(printer, node.order_by)}`);
  }
  if (node.limit !== null) {
    clauses.push(printLimit(printer, node.limit));
  }
  return clauses.join(' ');
}

type Ctes = Extract<Node, { kind: 'Query' }>['with'];

export function printWith(printer: Printer, ctes: Ctes): string {
  const list = ctes.map((cte) => {
    const columns = cte.columns.length === 0 ? '' : ` (${names(cte.columns)})`;
    return `${printName(cte.name)}${columns} AS (${printer.query(cte.query)})`;
  });
  const recursive = ctes.some((cte) => cte.recursive) ? 'RECURSIVE ' : '';
  return `WITH ${recursive}${list.join(', ')}`;
}

function names(list: readonly Name[]): string {
  return list.map(printName).join(', ');
}

function printBody(printer: Printer, id: NodeId): string {
  const node = nodeOf(printer.tree, id);
  switch (node.kind) {
    case 'Query':
      return `(${printer.query(id)})`;
    case 'Select':
      return printSelect(printer, node);
    case 'SetOperation': {
      const operator = node.operator.toUpperCase() + (node.all ? ' ALL' : '');
      return `${printBody(printer, node.left)} ${operator} ${printBody(printer, node.right)}`;
    }
    case 'Values':
      return `VALUES ${printValues(printer, node.rows)}`;
    case 'Show':
      return printShow(node.subject);
    default:
      throw new TypeError(`${node.kind} is not a query`);
  }
}

/** Prints the rows of VALUES. */
export function printValues(printer: Printer, block: ValuesBlock): string {
  let cell = 0;
  const rows = block.widths.map((width) => {
    const cells: string[] = [];
    for (let index = 0; index < width; index += 1, cell += 1) {
      const text = block.texts[cell] ?? '';
      const letter = block.kinds[cell];
      if (letter === 'x') {
        cells.push(printCell(printer, Number(text)));
      } else {
        cells.push(letter === 's' ? quoteText(text) : text);
      }
    }
    return `(${cells.join(', ')})`;
  });
  return rows.join(', ');
}

const LITERALS: ReadonlySet<Node['kind']> = new Set([
  'Null',
  'Boolean',
  'Integer',
  'Float',
  'String',
]);

/**
 * Prints a cell that is an expression. A literal is parenthesised, so that it is not parsed as a
 * literal cell.
 */
function printCell(printer: Printer, id: NodeId): string {
  const node = nodeOf(printer.tree, id);
  const inner = node.kind === 'Unary' ? nodeOf(printer.tree, node.operand) : node;
  const text = expression(printer, id);
  return LITERALS.has(inner.kind) ? `(${text})` : text;
}

export function printShow(subject: ShowSubject): string {
  switch (subject.subject) {
    case 'Tables':
      return 'SHOW TABLES';
    case 'Parameters':
      return 'SHOW PARAMETERS';
    case 'Columns':
      return `SHOW COLUMNS FROM ${printName(subject.table)}`;
    case 'Partitions':
      return `SHOW PARTITIONS FROM ${printName(subject.table)}`;
    case 'CreateTable':
      return `SHOW CREATE TABLE ${printName(subject.table)}`;
    case 'CreateView': {
      return `SHOW CREATE ${KINDS[subject.what]} ${printName(subject.view)}`;
    }
    case 'CreateDatabase': {
      const verb = subject.exclude ? ' EXCLUDE' : ' INCLUDE';
      const list = subject.categories.length === 0 ? '' : `${verb} (${names(subject.categories)})`;
      return `SHOW CREATE DATABASE${list}`;
    }
    case 'Access': {
      const words = subject.list.replaceAll(/(?<=[a-z])(?=[A-Z])/g, ' ').toUpperCase();
      return subject.of === null ? `SHOW ${words}` : `SHOW ${words} ${printName(subject.of)}`;
    }
    case 'Setting':
      return `SHOW ${subject.words.map(printWord).join(' ')}`;
    default:
      return assertNever(subject);
  }
}

function printSelect(printer: Printer, select: SelectNode): string {
  const clauses = ['SELECT'];
  if (select.hint !== null) {
    clauses.push(`/*+ ${select.hint} */`);
  }
  if (select.distinct) {
    clauses.push('DISTINCT');
  }
  if (select.distinct_on.length > 0) {
    clauses.push(`ON (${expressionList(printer, select.distinct_on)})`);
  }
  clauses.push(selectItems(printer, select.items));
  if (select.from !== null) {
    clauses.push(`FROM ${printSource(printer, select.from)}`);
  }
  if (select.filter !== null) {
    clauses.push(`WHERE ${expression(printer, select.filter)}`);
  }
  if (select.latest_on !== null) {
    const { timestamp, keys } = select.latest_on;
    const list = expressionList(printer, keys);
    if (timestamp === null) {
      clauses.push(`LATEST BY ${list}`);
    } else {
      clauses.push(`LATEST ON ${expression(printer, timestamp)} PARTITION BY ${list}`);
    }
  }
  if (select.sample_by !== null) {
    clauses.push(printSampleBy(printer, select.sample_by));
  }
  if (select.group_by.length > 0) {
    const words = select.sample_by === null ? 'GROUP BY ' : '';
    clauses.push(words + select.group_by.map((id) => groupMember(printer, id)).join(', '));
  }
  if (select.group_by_all) {
    clauses.push('GROUP BY ALL');
  }
  if (select.having !== null) {
    clauses.push(`HAVING ${expression(printer, select.having)}`);
  }
  if (select.windows.length > 0) {
    const list = select.windows.map(
      (window) => `${printName(window.name)} AS ${windowSpec(printer, window.spec)}`,
    );
    clauses.push(`WINDOW ${list.join(', ')}`);
  }
  if (select.qualify !== null) {
    clauses.push(`QUALIFY ${expression(printer, select.qualify)}`);
  }
  if (select.pivot !== null) {
    clauses.push(printPivot(printer, select.pivot));
  }
  return clauses.join(' ');
}

function groupMember(printer: Printer, id: NodeId): string {
  const node = nodeOf(printer.tree, id);
  if (node.kind !== 'Call' || node.name.text !== 'GROUPING SETS') {
    return expression(printer, id);
  }
  const sets = node.arguments.map((set) => {
    const row = nodeOf(printer.tree, set);
    return `(${expressionList(printer, row.kind === 'Call' ? row.arguments : [set])})`;
  });
  return `GROUPING SETS (${sets.join(', ')})`;
}

function printSampleBy(printer: Printer, sample: SampleBy): string {
  const interval = expression(printer, sample.interval);
  // A number or a string needs parentheses, because it would otherwise be parsed as a time unit.
  const isTerm =
    nodeOf(printer.tree, sample.interval).kind !== 'Duration' && !/^[@$(]/.test(interval);
  const clauses = [`SAMPLE BY ${isTerm ? `(${interval})` : interval}`];
  if (sample.from !== null) {
    clauses.push(`FROM ${expression(printer, sample.from)}`);
  }
  if (sample.to !== null) {
    clauses.push(`TO ${expression(printer, sample.to)}`);
  }
  if (sample.fill.length > 0) {
    clauses.push(`FILL(${sample.fill.map((fill) => printFill(printer, fill)).join(', ')})`);
  }
  if (sample.align?.align === 'FirstObservation') {
    clauses.push('ALIGN TO FIRST OBSERVATION');
  }
  if (sample.align?.align === 'Calendar') {
    clauses.push('ALIGN TO CALENDAR');
    const { time_zone: zone, offset } = sample.align;
    if (zone !== null) {
      clauses.push(`TIME ZONE ${expression(printer, zone)}`);
    }
    if (offset !== null) {
      clauses.push(`WITH OFFSET ${expression(printer, offset)}`);
    }
  }
  return clauses.join(' ');
}

function printFill(printer: Printer, fill: Fill): string {
  if (fill.fill === 'Constant') {
    return expression(printer, fill.value);
  }
  if (fill.fill === 'Prev' && fill.of !== null) {
    return `PREV(${printName(fill.of)})`;
  }
  return fill.fill.toUpperCase();
}

function printPivot(printer: Printer, pivot: PivotNode): string {
  const axes = pivot.axes.map(([column, values]) => {
    const first = values[0];
    const isQuery = first !== undefined && nodeOf(printer.tree, first.expression).kind === 'Query';
    const list = isQuery ? printer.query(first.expression) : selectItems(printer, values);
    return `${expression(printer, column)} IN (${list})`;
  });
  const group =
    pivot.group_by.length === 0 ? '' : ` GROUP BY ${expressionList(printer, pivot.group_by)}`;
  return `PIVOT (${selectItems(printer, pivot.aggregates)} FOR ${axes.join(' ')}${group})`;
}

function printLimit(printer: Printer, limit: Limit): string {
  const clauses: string[] = [];
  if (limit.first !== null || limit.second !== null) {
    const first = limit.first === null ? '' : expression(printer, limit.first);
    const second = limit.second === null ? '' : `, ${expression(printer, limit.second)}`;
    clauses.push(`LIMIT ${first}${second}`);
  }
  if (limit.offset !== null) {
    clauses.push(`OFFSET ${expression(printer, limit.offset)}`);
  }
  return clauses.join(' ');
}

/** Prints a source: Table, TableFunction, Derived or Join. */
export function printSource(printer: Printer, id: NodeId): string {
  const node = nodeOf(printer.tree, id);
  switch (node.kind) {
    case 'Table':
      return printName(node.name) + suffix(node);
    case 'TableFunction': {
      const call = nodeOf(printer.tree, node.call);
      const text = call.kind === 'Call' ? renderCall(printer, call) : '';
      const ordinality = node.ordinality ? ' WITH ORDINALITY' : '';
      const columns = node.columns.length === 0 ? '' : ` (${names(node.columns)})`;
      return text + ordinality + suffix(node) + columns;
    }
    case 'Derived': {
      const lateral = node.lateral ? 'LATERAL ' : '';
      return `${lateral}(${printer.query(node.query)})${suffix(node)}`;
    }
    case 'Join':
      return printJoin(printer, node);
    default:
      throw new TypeError(`${node.kind} is not a source`);
  }
}

function suffix(source: { readonly alias: Name | null; readonly timestamp: Name | null }): string {
  const stamp = source.timestamp === null ? '' : ` TIMESTAMP(${printName(source.timestamp)})`;
  return stamp + (source.alias === null ? '' : ` AS ${printName(source.alias)}`);
}

function printJoin(printer: Printer, node: Extract<Node, { kind: 'Join' }>): string {
  const left = printSource(printer, node.left);
  // The right operand was in parentheses; without them, the joins would be parsed from left to
  // right.
  const isJoined = nodeOf(printer.tree, node.right).kind === 'Join';
  const right = isJoined
    ? `(${printSource(printer, node.right)})`
    : printSource(printer, node.right);
  if (node.join.join === 'Comma') {
    return `${left}, ${right}`;
  }
  const natural = node.on?.on === 'Using' && node.on.columns.length === 0 ? 'NATURAL ' : '';
  return [
    `${left} ${natural}${node.join.join.toUpperCase()} JOIN ${right}`,
    ...printOn(printer, node.on),
    ...printRange(printer, node.join),
    ...printTolerance(printer, node.tolerance),
  ].join(' ');
}

function printOn(printer: Printer, on: JoinOn | null): string[] {
  switch (on?.on) {
    case undefined:
      return [];
    case 'Using':
      return on.columns.length === 0 ? [] : [`USING (${names(on.columns)})`];
    case 'Columns':
      return [`ON (${names(on.columns)})`];
    case 'Expression':
      return [`ON ${expression(printer, on.condition)}`];
  }
}

function printTolerance(printer: Printer, tolerance: AsofTolerance | null): string[] {
  return tolerance === null ? [] : [`TOLERANCE ${expression(printer, tolerance.interval)}`];
}

function printRange(printer: Printer, join: JoinKind): string[] {
  if (join.join === 'Window') {
    const range = `${frameBound(printer, join.low)} AND ${frameBound(printer, join.high)}`;
    const prevailing = join.include_prevailing ? 'INCLUDE' : 'EXCLUDE';
    return [`RANGE BETWEEN ${range} ${prevailing} PREVAILING`];
  }
  if (join.join !== 'Horizon' || join.alias === null) {
    return [];
  }
  const alias = `AS ${printName(join.alias)}`;
  if (join.from === null || join.to === null || join.step === null) {
    return [`LIST (${expressionList(printer, join.list)}) ${alias}`];
  }
  const [from, to, step] = [join.from, join.to, join.step].map((id) => expression(printer, id));
  return [`RANGE FROM ${from ?? ''} TO ${to ?? ''} STEP ${step ?? ''} ${alias}`];
}

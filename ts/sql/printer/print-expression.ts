/**
 * Prints expressions. Parentheses are printed only where the output would otherwise parse
 * differently.
 */
import type {
  BinaryOperator,
  CallNode,
  FrameBound,
  IndexSelector,
  Name,
  Node,
  NodeId,
  OrderItem,
  SelectItem,
  Tree,
  TypeName,
  WindowSpec,
} from '../ast.generated.js';
import { TokenKind, scan } from '../lexer/lexer.js';

/** State needed to print queries inside expressions. */
export interface Printer {
  readonly tree: Tree;
  readonly query: (id: NodeId) => string;
}

const OPERATORS: Readonly<Record<BinaryOperator, readonly [string, number]>> = {
  Multiply: ['*', 4],
  Divide: ['/', 4],
  Modulo: ['%', 4],
  Add: ['+', 5],
  Subtract: ['-', 5],
  ContainedBy: ['<<', 6],
  ContainedByOrEqual: ['<<=', 6],
  Contains: ['>>', 6],
  ContainsOrEqual: ['>>=', 6],
  BitAnd: ['&', 8],
  BitXor: ['^', 9],
  BitOr: ['|', 10],
  Less: ['<', 12],
  LessOrEqual: ['<=', 12],
  Greater: ['>', 12],
  GreaterOrEqual: ['>=', 12],
  Equal: ['=', 13],
  NotEqual: ['!=', 13],
  Matches: ['~', 13],
  NotMatches: ['!~', 13],
  Like: ['LIKE', 13],
  NotLike: ['NOT LIKE', 13],
  ILike: ['ILIKE', 13],
  NotILike: ['NOT ILIKE', 13],
};

const PREFIXES = { Minus: '-', Plus: '+', BitNot: '~', Not: 'NOT ' } as const;

const LEVEL_ANY = 16;
const LEVEL_POSTFIX = 2;
const LEVEL_PREFIX = 3;
const LEVEL_CONCAT = 7;
const LEVEL_RANGE = 11;
const LEVEL_EQUALITY = 13;
const LEVEL_NOT = 14;
const LEVEL_AND = 15;

/** Returns the node with this ID. Throws if the tree is malformed. */
export function nodeOf(tree: Tree, id: NodeId): Node {
  const node = tree.nodes[id];
  if (node === undefined) {
    throw new RangeError(`the tree has no node ${id}`);
  }
  return node;
}

/** Prints a string literal, `'text'`, with quotes doubled. */
export function quoteText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Prints a name in double quotes, with quotes doubled. */
export function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** Prints a name, in double quotes if it was quoted. */
export function printName(name: Name): string {
  return name.quoted ? quoteName(name.text) : name.text;
}

/** Prints a word or value that is stored as a name. A name marked as quoted was a string. */
export function printValue(value: Name): string {
  return value.quoted ? quoteText(value.text) : value.text;
}

/**
 * Prints words that are stored as text: unquoted if they form a single token, otherwise as a
 * string.
 */
export function printWord(word: string): string {
  const tokens = scan(word);
  const single = tokens.kinds.length === 2 && tokens.ends[0] === word.length;
  return single && !REQUOTED.has(tokens.kinds[0] ?? TokenKind.Bad) ? word : quoteText(word);
}

/** Token kinds that would be read differently without quotes. */
const REQUOTED: ReadonlySet<TokenKind> = new Set([
  TokenKind.Bad,
  TokenKind.String,
  TokenKind.Quoted,
]);

export function printType(type: TypeName): string {
  const args = type.arguments.length === 0 ? '' : `(${type.arguments.join(', ')})`;
  const zoned = /^(time(?:stamp)?)( with(?:out)? time zone)$/i.exec(type.name);
  const name = zoned === null ? type.name + args : `${zoned[1] ?? ''}${args}${zoned[2] ?? ''}`;
  return name + '[]'.repeat(type.dimensions);
}

/** Prints an expression that is not an operand. */
export function expression(printer: Printer, id: NodeId): string {
  return operand(printer, id, LEVEL_ANY);
}

export function expressionList(printer: Printer, ids: readonly NodeId[]): string {
  return ids.map((id) => expression(printer, id)).join(', ');
}

/** Prints an operand whose operators bind at least as tightly as `level`. */
function operand(printer: Printer, id: NodeId, level: number): string {
  const [text, own] = render(printer, nodeOf(printer.tree, id));
  return own <= level ? text : `(${text})`;
}

/**
 * Returns the text of a node and the precedence level of its loosest operator, which is 0 if the
 * node never needs parentheses.
 */
function render(printer: Printer, node: Node): readonly [string, number] {
  switch (node.kind) {
    case 'Unary':
    case 'Binary':
    case 'Logical':
    case 'Concat':
    case 'IsNull':
    case 'Between':
    case 'InList':
    case 'InQuery':
    case 'Within':
    case 'Cast':
    case 'Index':
      return renderOperator(printer, node);
    default:
      return [renderOperand(printer, node), 0];
  }
}

function renderOperator(printer: Printer, node: Node): readonly [string, number] {
  const at = (id: NodeId, level: number): string => operand(printer, id, level);
  switch (node.kind) {
    case 'Unary': {
      const level = node.operator === 'Not' ? LEVEL_NOT : LEVEL_PREFIX;
      const inner = at(node.operand, node.operator === 'Not' ? LEVEL_EQUALITY : LEVEL_PREFIX);
      // A space is needed, because two minus signs would start a comment.
      const gap = inner.startsWith('-') && node.operator === 'Minus' ? ' ' : '';
      return [PREFIXES[node.operator] + gap + inner, level];
    }
    case 'Binary': {
      const [text, level] = OPERATORS[node.operator];
      return [`${at(node.left, level)} ${text} ${at(node.right, level - 1)}`, level];
    }
    case 'Logical': {
      const level = node.operator === 'And' ? LEVEL_AND : LEVEL_ANY;
      const word = node.operator === 'And' ? ' AND ' : ' OR ';
      return [node.operands.map((id) => at(id, level - 1)).join(word), level];
    }
    case 'Concat':
      return [node.operands.map((id) => at(id, LEVEL_CONCAT - 1)).join(' || '), LEVEL_CONCAT];
    case 'IsNull':
      return [`${at(node.operand, LEVEL_EQUALITY)} IS ${not(node.negated)}NULL`, LEVEL_EQUALITY];
    case 'Cast':
      if (!node.double_colon) {
        return [renderOperand(printer, node), 0];
      }
      return [`${at(node.operand, LEVEL_POSTFIX)}::${printType(node.type_name)}`, LEVEL_POSTFIX];
    case 'Index': {
      const selectors = node.selectors.map((item) => selector(printer, item)).join(', ');
      return [`${at(node.operand, 1)}[${selectors}]`, 1];
    }
    default:
      return [renderRange(printer, node), LEVEL_RANGE];
  }
}

/** Prints IN, BETWEEN and WITHIN. */
function renderRange(printer: Printer, node: Node): string {
  const at = (id: NodeId): string => operand(printer, id, LEVEL_RANGE - 1);
  switch (node.kind) {
    case 'Between': {
      const left = operand(printer, node.operand, LEVEL_RANGE);
      return `${left} ${not(node.negated)}BETWEEN ${at(node.low)} AND ${at(node.high)}`;
    }
    case 'InList': {
      const left = `${operand(printer, node.operand, LEVEL_RANGE)} ${not(node.negated)}IN `;
      const first = node.items[0];
      if (node.bare && first !== undefined) {
        return left + at(first);
      }
      return `${left}(${expressionList(printer, node.items)})`;
    }
    case 'InQuery': {
      const left = operand(printer, node.operand, LEVEL_RANGE);
      return `${left} ${not(node.negated)}IN (${printer.query(node.query)})`;
    }
    case 'Within': {
      const left = operand(printer, node.operand, LEVEL_RANGE);
      return `${left} WITHIN (${expressionList(printer, node.items)})`;
    }
    default:
      throw new TypeError(`${node.kind} is not an expression`);
  }
}

const not = (negated: boolean): string => (negated ? 'NOT ' : '');

function selector(printer: Printer, item: IndexSelector): string {
  if (item.selector === 'Item') {
    return expression(printer, item.index);
  }
  const high = item.high === null ? '' : expression(printer, item.high);
  return `${expression(printer, item.low)}:${high}`;
}

/** Prints the select list. */
export function selectItems(printer: Printer, items: readonly SelectItem[]): string {
  return items
    .map((item) => {
      const alias = item.alias === null ? '' : ` AS ${printName(item.alias)}`;
      return expression(printer, item.expression) + alias;
    })
    .join(', ');
}

function printStar(printer: Printer, star: Extract<Node, { kind: 'Star' }>): string {
  const all = star.qualifier === null ? '*' : `${printName(star.qualifier)}.*`;
  const { exclude, replace } = star;
  const left = exclude.length === 0 ? '' : ` EXCLUDE (${exclude.map(printName).join(', ')})`;
  const other = replace.length === 0 ? '' : ` REPLACE (${selectItems(printer, replace)})`;
  return all + left + other;
}

function renderOperand(printer: Printer, node: Node): string {
  switch (node.kind) {
    case 'Null':
      return 'NULL';
    case 'Boolean':
      return String(node.value);
    case 'Integer':
    case 'Float':
    case 'Decimal':
    case 'Long256':
    case 'Geohash':
    case 'Duration':
      return node.text;
    case 'String':
      return quoteText(node.value);
    case 'TypedString':
      return `${printType(node.type_name)} ${quoteText(node.value)}`;
    case 'Column':
      return node.path.map(printName).join('.');
    case 'Star':
      return printStar(printer, node);
    case 'Parameter':
      return `$${node.index}`;
    case 'NamedParameter':
      return `:${node.name.text}`;
    case 'Variable':
      return `@${node.name.text}`;
    default:
      return renderConstruct(printer, node);
  }
}

function renderConstruct(printer: Printer, node: Node): string {
  switch (node.kind) {
    case 'Cast':
      return `CAST(${expression(printer, node.operand)} AS ${printType(node.type_name)})`;
    case 'Case': {
      const clauses = ['CASE'];
      if (node.operand !== null) {
        clauses.push(expression(printer, node.operand));
      }
      for (const { when, then } of node.branches) {
        clauses.push(`WHEN ${expression(printer, when)} THEN ${expression(printer, then)}`);
      }
      if (node.otherwise !== null) {
        clauses.push(`ELSE ${expression(printer, node.otherwise)}`);
      }
      return [...clauses, 'END'].join(' ');
    }
    case 'Call':
      return renderCall(printer, node);
    case 'Array':
      return `ARRAY[${expressionList(printer, node.items)}]`;
    case 'Subquery':
      return `(${printer.query(node.query)})`;
    case 'Exists':
      return `EXISTS (${printer.query(node.query)})`;
    default:
      throw new TypeError(`${node.kind} is not an expression`);
  }
}

export function renderCall(printer: Printer, call: CallNode): string {
  const [first] = call.arguments;
  if (first !== undefined && isArrayOfQuery(printer, call)) {
    return `ARRAY${expression(printer, first)}`;
  }
  const clauses: string[] = [];
  for (const id of call.arguments) {
    const argument = nodeOf(printer.tree, id);
    const columns = argument.kind === 'Call' && /^columns$/i.test(argument.name.text);
    if (columns && /^unnest$/i.test(call.name.text)) {
      clauses.push(jsonColumns(printer, argument));
    } else {
      clauses.push((clauses.length > 0 ? ', ' : '') + expression(printer, id));
    }
  }
  const order = call.order_by.length === 0 ? '' : ` ORDER BY ${orderItems(printer, call.order_by)}`;
  const distinct = call.distinct ? 'DISTINCT ' : '';
  let text = `${printName(call.name)}(${distinct}${clauses.join('')}${order})`;
  if (call.filter !== null) {
    text += ` FILTER (WHERE ${expression(printer, call.filter)})`;
  }
  if (call.ignore_nulls) {
    text += ' IGNORE NULLS';
  }
  if (call.over !== null) {
    text += ` OVER ${over(printer, call.over)}`;
  }
  return text;
}

/** Returns whether the call is `ARRAY(SELECT …)`. */
function isArrayOfQuery(printer: Printer, call: CallNode): boolean {
  const kinds = call.arguments.map((id) => nodeOf(printer.tree, id).kind);
  return call.name.text === 'array' && kinds.length === 1 && kinds[0] === 'Subquery';
}

/** Prints ` COLUMNS (name type, …)`, the last argument of UNNEST. */
function jsonColumns(printer: Printer, call: CallNode): string {
  const fields = call.arguments.map((id) => {
    const field = nodeOf(printer.tree, id);
    if (field.kind !== 'Cast') {
      return expression(printer, id);
    }
    return `${expression(printer, field.operand)} ${printType(field.type_name)}`;
  });
  return ` COLUMNS(${fields.join(', ')})`;
}

function over(printer: Printer, spec: WindowSpec): string {
  const empty = spec.partition_by.length === 0 && spec.order_by.length === 0 && spec.frame === null;
  if (spec.name !== null && empty) {
    return printName(spec.name);
  }
  return windowSpec(printer, spec);
}

/** Prints the `( … )` of OVER or of a named window. */
export function windowSpec(printer: Printer, spec: WindowSpec): string {
  const clauses: string[] = [];
  if (spec.name !== null) {
    clauses.push(printName(spec.name));
  }
  if (spec.partition_by.length > 0) {
    clauses.push(`PARTITION BY ${expressionList(printer, spec.partition_by)}`);
  }
  if (spec.order_by.length > 0) {
    clauses.push(`ORDER BY ${orderItems(printer, spec.order_by)}`);
  }
  if (spec.frame?.mode === 'Cumulative') {
    clauses.push('CUMULATIVE');
  } else if (spec.frame !== null) {
    const { mode, start, end } = spec.frame;
    const low = frameBound(printer, start);
    const range = end === null ? low : `BETWEEN ${low} AND ${frameBound(printer, end)}`;
    clauses.push(`${mode.toUpperCase()} ${range}`);
    if (spec.frame.exclude_current_row) {
      clauses.push('EXCLUDE CURRENT ROW');
    }
  }
  if (spec.anchor?.period.by === 'Daily') {
    const { time, zone } = spec.anchor.period;
    clauses.push(`ANCHOR DAILY ${printValue(time)}${zone === null ? '' : ` ${printValue(zone)}`}`);
  } else if (spec.anchor !== null) {
    clauses.push(`ANCHOR EXPRESSION ${expression(printer, spec.anchor.period.value)}`);
  }
  return `(${clauses.join(' ')})`;
}

export function frameBound(printer: Printer, bound: FrameBound): string {
  switch (bound.bound) {
    case 'UnboundedPreceding':
      return 'UNBOUNDED PRECEDING';
    case 'UnboundedFollowing':
      return 'UNBOUNDED FOLLOWING';
    case 'CurrentRow':
      return 'CURRENT ROW';
    case 'Preceding':
    case 'Following': {
      const unit = bound.unit === null ? '' : ` ${bound.unit}`;
      return `${expression(printer, bound.value)}${unit} ${bound.bound.toUpperCase()}`;
    }
    default:
      return assertNever(bound);
  }
}

export function orderItems(printer: Printer, items: readonly OrderItem[]): string {
  return items
    .map((item) => {
      const direction = item.descending ? ' DESC' : '';
      const nulls = item.nulls === null ? '' : ` NULLS ${item.nulls.toUpperCase()}`;
      return expression(printer, item.expression) + direction + nulls;
    })
    .join(', ');
}

/** Makes a switch over a union exhaustive. */
export function assertNever(value: never): never {
  throw new TypeError(`unexpected value ${JSON.stringify(value)}`);
}

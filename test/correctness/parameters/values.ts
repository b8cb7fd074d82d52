/**
 * Which literals in a statement may become parameters, and the forms in which drivers send values:
 * undeclared as text, declared as text, declared in binary.
 */
import type { Node, NodeId, Tree } from '../../../ts/sql/index.js';

/** PostgreSQL type OIDs, and the OIDs of their arrays. */
const TYPES = { bool: 16, int8: 20, int4: 23, text: 25, float8: 701, varchar: 1043 } as const;
const ARRAYS = { int4: 1007, text: 1009, int8: 1016, float8: 1022 } as const;

/** The families of forms in which every statement is sent. */
export const FAMILIES = ['undeclared', 'declared', 'binary'] as const;
type Family = (typeof FAMILIES)[number];

export interface Form {
  readonly name: string;
  readonly family: Family;
  /** Type OID; 0 if undeclared. */
  readonly type: number;
  readonly isBinary: boolean;
  readonly value: Buffer;
}

/** A position in the SQL text and its possible replacements. */
export interface LiteralPosition {
  readonly start: number;
  readonly end: number;
  readonly forms: readonly Form[];
}

/** A list of literals, and the expressions that can replace the list with an array. */
interface ListLiteral extends LiteralPosition {
  readonly alternatives: readonly string[];
}

const NUMBER = /[+-]?[\d_]*\.?[\d_]+(?:e[+-]?\d+)?/iy;
const TEXT = /'(?:[^']|'')*'/y;

/** Returns the literals that are single values, in text order. */
export function literalsOf(tree: Tree, sql: string): LiteralPosition[] {
  const ids = ordinals(tree);
  const found = tree.nodes.flatMap((node, id) => {
    const span = tree.spans[id];
    const written = span === undefined ? '' : sql.slice(span.start, span.end);
    if (node.kind === 'Insert') {
      return cellsOf(node, sql);
    }
    const forms = ids.has(id) ? [] : formsOf(node);
    return span === undefined || written === '' || forms.length === 0 ? [] : [{ ...span, forms }];
  });
  return found.sort((one, other) => one.start - other.start);
}

function formsOf(node: Node): readonly Form[] {
  switch (node.kind) {
    case 'String':
      return textForms(node.value);
    case 'Integer':
      return integerForms(node.text);
    case 'Float':
      return floatForms(node.text);
    default:
      return [];
  }
}

/** Returns the literals in VALUES, which are not separate nodes. */
function cellsOf({ values }: Extract<Node, { kind: 'Insert' }>, sql: string): LiteralPosition[] {
  if (values === null) {
    return [];
  }
  return Array.from(values.kinds).flatMap((kind, at) => {
    const [start = 0, text = ''] = [values.starts[at], values.texts[at]];
    const pattern = kind === 's' ? TEXT : NUMBER;
    const forms =
      kind === 's'
        ? textForms(text)
        : kind === 'i'
          ? integerForms(text)
          : kind === 'd'
            ? floatForms(text)
            : [];
    pattern.lastIndex = start;
    const [written = ''] = pattern.exec(sql) ?? [];
    const isNext = /^\s*[,)]/.test(sql.slice(start + written.length));
    return forms.length > 0 && written !== '' && isNext
      ? [{ start, end: start + written.length, forms }]
      : [];
  });
}

/** Returns the numbers that are positions in the select list: `ORDER BY 1`, `GROUP BY 2`. */
function ordinals(tree: Tree): ReadonlySet<NodeId> {
  const ids = new Set<NodeId>();
  for (const node of tree.nodes) {
    if (node.kind === 'Query') {
      node.order_by.forEach((item) => ids.add(item.expression));
    } else if (node.kind === 'Select') {
      node.group_by.forEach((id) => ids.add(id));
    }
  }
  return ids;
}

/** Returns the IN lists whose items are all literals of the same kind. */
export function listsOf(tree: Tree): ListLiteral[] {
  return tree.nodes.flatMap((node, id) => {
    const span = tree.spans[id];
    if (node.kind !== 'InList' || node.bare || span === undefined) {
      return [];
    }
    const items = node.items.flatMap((item) => tree.nodes[item] ?? []);
    const forms = arrayForms(items);
    const not = node.negated ? 'NOT ' : '';
    const any = node.negated ? '<> ALL($1)' : '= ANY($1)';
    const alternatives = [any, `${not}IN $1`, `${not}IN (SELECT x FROM unnest($1) u(x))`];
    const literal = { start: node.operator_span.start, end: span.end, forms, alternatives };
    return forms.length === 0 ? [] : [literal];
  });
}

function arrayForms(items: readonly Node[]): Form[] {
  const all = items.map((item) => formsOf(item));
  const [first] = items;
  if (first === undefined || all.some((forms) => forms.length === 0)) {
    return [];
  }
  if (items.every(({ kind }) => kind === 'String')) {
    const values = items.map((item) => (item.kind === 'String' ? item.value : ''));
    return arraysOf('text', values, (value) => Buffer.from(value));
  }
  if (items.every(({ kind }) => kind === 'Integer')) {
    const values = items.map((item) => (item.kind === 'Integer' ? item.text : ''));
    const isSmall = values.every((value) => Math.abs(Number(value)) < 0x7fff_ffff);
    return [
      ...arraysOf('int8', values, int8),
      ...(isSmall ? arraysOf('int4', values, int4).slice(1) : []),
    ];
  }
  const values = items.map((item) =>
    item.kind === 'Integer' || item.kind === 'Float' ? item.text : 'NaN',
  );
  return values.includes('NaN') ? [] : arraysOf('float8', values, float8);
}

function arraysOf(
  element: keyof typeof ARRAYS,
  values: readonly string[],
  binary: (value: string) => Buffer,
): Form[] {
  const quoted = values.map((value) => `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`);
  const text = Buffer.from(`{${(element === 'text' ? quoted : values).join(',')}}`);
  const cells = values.map(binary).map((cell) => Buffer.concat([int4(cell.length), cell]));
  // Number of dimensions, null flag, element type, length and lower bound.
  const head = [1, 0, TYPES[element], values.length, 1].map(int4);
  const type = ARRAYS[element];
  const name = `${element}[]`;
  return [
    { name: 'undeclared array', family: 'undeclared', type: 0, isBinary: false, value: text },
    { name, family: 'declared', type, isBinary: false, value: text },
    {
      name: `binary ${name}`,
      family: 'binary',
      type,
      isBinary: true,
      value: Buffer.concat([...head, ...cells]),
    },
  ];
}

function textForms(value: string): Form[] {
  const bytes = Buffer.from(value);
  return [
    form('undeclared text', 'undeclared', 0, bytes),
    form('varchar', 'declared', TYPES.varchar, bytes),
    form('binary text', 'binary', TYPES.text, bytes),
  ];
}

function integerForms(text: string): Form[] {
  const digits = text.replaceAll('_', '');
  if (!/^-?\d+$/.test(digits) || !isLong(BigInt(digits))) {
    return [];
  }
  const bytes = Buffer.from(digits);
  const forms = [
    form('undeclared number', 'undeclared', 0, bytes),
    form('int8', 'declared', TYPES.int8, bytes),
    form('binary int8', 'binary', TYPES.int8, int8(digits)),
  ];
  if (Math.abs(Number(digits)) < 0x7fff_ffff) {
    forms.push(form('binary int4', 'binary', TYPES.int4, int4(digits)));
  }
  return forms;
}

const isLong = (value: bigint): boolean => BigInt.asIntN(64, value) === value;

function floatForms(text: string): Form[] {
  if (!Number.isFinite(Number(text))) {
    return [];
  }
  return [
    form('undeclared number', 'undeclared', 0, Buffer.from(text)),
    form('float8', 'declared', TYPES.float8, Buffer.from(text)),
    form('binary float8', 'binary', TYPES.float8, float8(text)),
  ];
}

function form(name: string, family: Family, type: number, value: Buffer): Form {
  return { name, family, type, isBinary: family === 'binary', value };
}

function int4(value: string | number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(Number(value));
  return bytes;
}

function int8(value: string): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(BigInt(value.replaceAll('_', '')));
  return bytes;
}

function float8(value: string): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(Number(value));
  return bytes;
}

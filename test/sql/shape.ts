/** Syntax trees without positions, for comparing statements with the same meaning. */
import { parse, type NodeId, type Tree } from '../../ts/sql/index.js';

/** Fields that hold a position, or text copied from the source. */
const POSITIONS = /(?:^|_)span$|^starts$|^row_(?:starts|ends)$|^query_text$/;

/** Fields whose numbers are not node ids. */
const NUMBERS = new Set(['rows', 'widths', 'dimensions']);

/** Returns the tree with all children nested. */
export function shape(tree: Tree): unknown {
  return inline(tree, tree.root);
}

function inline(tree: Tree, id: NodeId): unknown {
  const node = tree.nodes[id];
  if (node?.kind === 'Parameter') {
    return node;
  }
  return walk(tree, node, '');
}

function walk(tree: Tree, value: unknown, key: string): unknown {
  if (typeof value === 'number') {
    return NUMBERS.has(key) ? value : inline(tree, value);
  }
  if (Array.isArray(value)) {
    return value.map((member) => walk(tree, member, key));
  }
  if (value === null || typeof value !== 'object') {
    return value;
  }
  const entries = Object.entries(value).filter(([name]) => !POSITIONS.test(name));
  const copy = Object.fromEntries(entries.map(([name, one]) => [name, walk(tree, one, name)]));
  if ('plain' in value && 'values' in value) {
    delete copy['plain'];
    copy['values'] = insertedRows(copy['values'] as Rows | null, value.plain as Plain | null);
  }
  const { kinds, texts } = value as { kinds?: string; texts?: string[] };
  if (typeof kinds === 'string' && Array.isArray(texts)) {
    copy['texts'] = texts.map((text, index) =>
      kinds[index] === 'x' ? inline(tree, Number(text)) : text,
    );
  }
  return copy;
}

interface Rows {
  readonly rows: number;
  readonly widths: readonly number[];
  readonly kinds: string;
  readonly texts: readonly unknown[];
}

interface Plain {
  readonly text: string;
}

/** Returns all rows of an INSERT as one block, because literal rows differ only in spelling. */
function insertedRows(block: Rows | null, plain: Plain | null): Rows | null {
  if (plain === null) {
    return block;
  }
  const query = shape(parse(`VALUES ${plain.text}`)) as { body: { rows: Rows } };
  const first = query.body.rows;
  return {
    widths: [...first.widths, ...(block?.widths ?? [])],
    kinds: first.kinds + (block?.kinds ?? ''),
    texts: [...first.texts, ...(block?.texts ?? [])],
    rows: first.rows + (block?.rows ?? 0),
  };
}

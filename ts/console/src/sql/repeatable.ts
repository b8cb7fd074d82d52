/**
 * Finds the tables and functions that a query uses, and determines whether every run returns the
 * same rows in the same order.
 */
import { parse, type Tree } from '../../../sql/index.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface Reads {
  /** Table names in lower case. */
  readonly tables: readonly string[];
  /** Function names in lower case, except window functions. */
  readonly functions: readonly string[];
  readonly overRows: readonly string[];
}

/** Properties of a function, as reported by the server. */
export interface FunctionFacts {
  readonly name: string;
  readonly type: string;
  /** True if the function may return different results for the same arguments. */
  readonly varies: boolean;
}

/** Functions that return rows which depend only on their arguments. */
const SEQUENCES: ReadonlySet<string> = new Set(['long_sequence', 'generate_series']);

/**
 * Returns the tables and functions that a statement uses. If its rows or their order may differ
 * between runs, returns the reason instead.
 */
export function readsOf(statement: string): Reads | string {
  let tree: Tree;
  try {
    tree = parse(statement);
  } catch {
    return texts.rowOrder.notParsed;
  }
  if (tree.nodes[tree.root]?.kind !== 'Query') {
    return texts.rowOrder.notAQuery;
  }
  const tables = new Set<string>();
  const functions = new Set<string>();
  const overRows = new Set<string>();
  const common = new Set<string>();
  for (const node of tree.nodes) {
    switch (node.kind) {
      case 'Table':
        tables.add(node.name.text.toLowerCase());
        break;
      case 'Call':
        (node.over ? overRows : functions).add(node.name.text.toLowerCase());
        break;
      case 'Query':
        node.with.forEach(({ name }) => common.add(name.text.toLowerCase()));
        break;
      case 'Join':
        return texts.rowOrder.joined;
      case 'SetOperation':
        return texts.rowOrder.severalQueries;
      case 'Show':
        return texts.rowOrder.shown;
      case 'Select': {
        const isGrouped = node.group_by.length > 0 || node.group_by_all || node.sample_by !== null;
        if (isGrouped || node.pivot || node.latest_on) {
          return GROUPED;
        }
        if (node.distinct || node.distinct_on.length > 0) {
          return texts.rowOrder.distinct;
        }
        break;
      }
      default:
    }
  }
  common.forEach((name) => tables.delete(name));
  return { tables: [...tables], functions: [...functions], overRows: [...overRows] };
}

const GROUPED = texts.rowOrder.grouped;

/**
 * Returns why a query with these functions may return different rows in each run, or `undefined` if
 * its rows are always the same.
 */
export function variesBy(
  { functions, overRows }: Reads,
  known: readonly FunctionFacts[],
): string | undefined {
  const facts = (name: string): readonly FunctionFacts[] =>
    known.filter((one) => one.name.toLowerCase() === name);
  for (const name of [...functions, ...overRows]) {
    const found = facts(name);
    if (found.length === 0 || (!SEQUENCES.has(name) && found.some(({ varies }) => varies))) {
      return fill(texts.rowOrder.varies, { name });
    }
  }
  return functions.some((name) => facts(name).every(({ type }) => type === 'GROUP_BY'))
    ? GROUPED
    : undefined;
}

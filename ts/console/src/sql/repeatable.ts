/** What a query reads, and whether its rows are in one order each time it runs. Pure. */
import { parse, type Tree } from '../../../sql/index.js';

interface Reads {
  /** Names of tables, in small letters. */
  readonly tables: readonly string[];
  /** Names of functions, in small letters; those over windows of rows are apart. */
  readonly functions: readonly string[];
  readonly overRows: readonly string[];
}

/** What a function is, as the server tells it. */
export interface FunctionFacts {
  readonly name: string;
  readonly type: string;
  /** Whether it may answer otherwise for the same arguments. */
  readonly varies: boolean;
}

/** Functions in FROM whose rows follow from their arguments. */
const SEQUENCES: ReadonlySet<string> = new Set(['long_sequence', 'generate_series']);

/** What a statement reads; or why its rows are not the same, in the same order, each time. */
export function readsOf(statement: string): Reads | string {
  let tree: Tree;
  try {
    tree = parse(statement);
  } catch {
    return 'The statement cannot be read.';
  }
  if (tree.nodes[tree.root]?.kind !== 'Query') {
    return 'The statement is no query.';
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
        return 'Joined rows are in no certain order.';
      case 'SetOperation':
        return 'Rows of several queries are in no certain order.';
      case 'Show':
        return 'The server tells this for the moment.';
      case 'Select': {
        const isGrouped = node.group_by.length > 0 || node.group_by_all || node.sample_by !== null;
        if (isGrouped || node.pivot || node.latest_on) {
          return GROUPED;
        }
        if (node.distinct || node.distinct_on.length > 0) {
          return 'Distinct rows are in no certain order.';
        }
        break;
      }
      default:
    }
  }
  common.forEach((name) => tables.delete(name));
  return { tables: [...tables], functions: [...functions], overRows: [...overRows] };
}

const GROUPED = 'Grouped rows are in no certain order.';

/** Why rows with these functions are not the same each time, if they are not. */
export function variesBy(
  { functions, overRows }: Reads,
  known: readonly FunctionFacts[],
): string | undefined {
  const facts = (name: string): readonly FunctionFacts[] =>
    known.filter((one) => one.name.toLowerCase() === name);
  for (const name of [...functions, ...overRows]) {
    const found = facts(name);
    if (found.length === 0 || (!SEQUENCES.has(name) && found.some(({ varies }) => varies))) {
      return `${name}() may answer otherwise each time.`;
    }
  }
  return functions.some((name) => facts(name).every(({ type }) => type === 'GROUP_BY'))
    ? GROUPED
    : undefined;
}

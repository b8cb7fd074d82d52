/** Parses statements that create views. */
import { parse, type Tree } from '../../../sql/index.js';

type CreateView = Extract<Tree['nodes'][number], { kind: 'CreateView' }>;

/** Returns the node of a CREATE … VIEW statement; `undefined` for any other statement. */
export function createdView(statement: string): CreateView | undefined {
  try {
    const tree = parse(statement);
    const node = tree.nodes[tree.root];
    return node?.kind === 'CreateView' ? node : undefined;
  } catch {
    return undefined;
  }
}

/** The statement that makes a view, taken apart. Pure. */
import { parse, type Tree } from '../../../sql/index.js';

type CreateView = Extract<Tree['nodes'][number], { kind: 'CreateView' }>;

/** The node of a CREATE … VIEW; nothing where it is no such statement. */
export function createdView(statement: string): CreateView | undefined {
  try {
    const tree = parse(statement);
    const node = tree.nodes[tree.root];
    return node?.kind === 'CreateView' ? node : undefined;
  } catch {
    return undefined;
  }
}

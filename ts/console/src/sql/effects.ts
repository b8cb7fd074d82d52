/** Whether running a statement can change anything. */
import { parse } from '../../../sql/index.js';

const READERS: ReadonlySet<string> = new Set([
  'Empty',
  'Explain',
  'Query',
  'Select',
  'SetOperation',
  'Show',
  'Values',
]);

/** Whether a statement only reads. One that cannot be read itself counts as one that changes. */
export function onlyReads(statement: string): boolean {
  try {
    const tree = parse(statement);
    return READERS.has(tree.nodes[tree.root]?.kind ?? '');
  } catch {
    return false;
  }
}

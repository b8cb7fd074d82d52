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

/** Whether a statement is a query: only what reads rows can be run for its times alone. */
export function isQuery(statement: string): boolean {
  return rootOf(statement) === 'Query';
}

/** Whether a statement only reads. One that cannot be read itself counts as one that changes. */
export function onlyReads(statement: string): boolean {
  return READERS.has(rootOf(statement));
}

/** Empty for what cannot be read. */
function rootOf(statement: string): string {
  try {
    const tree = parse(statement);
    return tree.nodes[tree.root]?.kind ?? '';
  } catch {
    return '';
  }
}

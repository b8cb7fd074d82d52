/** Determines whether a statement can change anything. */
import { parse } from '../../../sql/index.js';

/** Whether a statement is a query: only queries may be run just to measure them. */
export function isQuery(statement: string): boolean {
  return rootOf(statement) === 'Query';
}

/** Whether a statement only reads. A statement that cannot be parsed is treated as a write. */
export function onlyReads(statement: string): boolean {
  switch (rootOf(statement)) {
    case 'Empty':
    case 'Explain':
    case 'Query':
    case 'Select':
    case 'SetOperation':
    case 'Show':
    case 'Values':
      return true;
    default:
      return false;
  }
}

/** Empty for a statement that cannot be parsed. */
function rootOf(statement: string): string {
  try {
    const tree = parse(statement);
    return tree.nodes[tree.root]?.kind ?? '';
  } catch {
    return '';
  }
}

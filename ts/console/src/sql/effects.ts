/** Determines whether a statement can modify the database. */
import { parse } from '../../../sql/index.js';

/** True if a statement is a query. Only queries may be run merely to measure them. */
export function isQuery(statement: string): boolean {
  return rootOf(statement) === 'Query';
}

/** True if a statement only reads. A statement that cannot be parsed is treated as a write. */
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

/** Returns the kind of the root node; empty if the statement cannot be parsed. */
function rootOf(statement: string): string {
  try {
    const tree = parse(statement);
    return tree.nodes[tree.root]?.kind ?? '';
  } catch {
    return '';
  }
}

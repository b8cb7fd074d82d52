/** Accesses to the server itself rather than to tables. */
import type { Access } from '../session/index.js';
import type { Tree } from '../sql/index.js';

/** Functions that return rows about the server; the parentheses are optional. */
const ROWS: ReadonlySet<string> = new Set(['memory_metrics']);
const CALLS: ReadonlySet<string> = new Set([
  'flush_query_cache',
  'hydrate_table_metadata',
  ...ROWS,
]);

const ADMINISTRATION: readonly Access[] = [{ table: '', columns: [], permission: 'SYSTEM ADMIN' }];

/** Returns every access to the server in the statement; calls and tables are matched by name. */
export function serverAccesses(tree: object): readonly Access[] {
  const { nodes = [] } = tree as Partial<Tree>;
  return nodes.some(isMeant) ? ADMINISTRATION : [];
}

function isMeant(node: Tree['nodes'][number]): boolean {
  switch (node.kind) {
    case 'Call':
      return CALLS.has(node.name.text.toLowerCase());
    case 'Table':
      return ROWS.has(node.name.text.toLowerCase());
    case 'Show':
      return node.subject.subject === 'Parameters';
    default:
      return false;
  }
}

/** What a statement does with the server, or learns of it, and not of the tables in it. */
import type { Access } from '../session/index.js';
import type { Tree } from '../sql/index.js';

const CALLS: ReadonlySet<string> = new Set([
  'flush_query_cache',
  'hydrate_table_metadata',
  'memory_metrics',
]);

const ADMINISTRATION: readonly Access[] = [{ table: '', columns: [], permission: 'SYSTEM ADMIN' }];

/** Found by their words, anywhere in the statement. */
export function serverAccesses(tree: object): readonly Access[] {
  const { nodes = [] } = tree as Partial<Tree>;
  const isMeant = nodes.some(
    (node) =>
      (node.kind === 'Call' && CALLS.has(node.name.text.toLowerCase())) ||
      (node.kind === 'Show' && node.subject.subject === 'Parameters'),
  );
  return isMeant ? ADMINISTRATION : [];
}

/** The catalog entries that a principal may see: every table and column on which it has a right. */
import type { Visibility } from '../session/index.js';
import { hasLevel } from './catalogue.js';
import type { Grants } from './model.js';
import type { Rights } from './store.js';
import { hasPermission } from './setting.js';

/** Returns the visibility for rights that do not cover everything. */
export function visibilityOf(rights: Rights): Visibility {
  return {
    tables: tablesOf(rights.sets, (permission) => hasLevel(permission, 'table')),
    reads: tablesOf(rights.sets, (permission) => permission === 'SELECT'),
    files: hasPermission(rights, 'READ FILES'),
    queries: hasPermission(rights, 'SQL ENGINE ADMIN'),
  };
}

/**
 * Returns the tables and columns on which one of these permissions is granted; `null` means all.
 */
function tablesOf(
  sets: readonly Grants[],
  counts: (permission: string) => boolean,
): Visibility['tables'] {
  const tables = new Map<string, Set<string> | null>();
  for (const [permission, known] of sets.flatMap((grants) => [...grants])) {
    if (!counts(permission)) {
      continue;
    }
    if (known.database !== 'no') {
      return null;
    }
    for (const [name, { state, columns }] of known.tables) {
      const visibleColumns = tables.get(name);
      const isEntire = state !== 'no' || visibleColumns === null;
      tables.set(name, isEntire ? null : new Set([...(visibleColumns ?? []), ...columns.keys()]));
    }
  }
  const entries = [...tables].map(([name, columns]) => [
    name,
    columns === null ? null : [...columns],
  ]);
  return Object.fromEntries(entries) as NonNullable<Visibility['tables']>;
}

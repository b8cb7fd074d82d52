/** What of the catalog somebody may see: every table and column they have some right on. */
import type { Sight } from '../session/index.js';
import { hasLevel } from './catalogue.js';
import type { Rights } from './store.js';
import { holds } from './setting.js';

/** Of rights that do not reach everything. */
export function sightOf(rights: Rights): Sight {
  const queries = holds(rights, 'SQL ENGINE ADMIN');
  const files = holds(rights, 'READ FILES');
  const tables = new Map<string, Set<string> | null>();
  for (const grants of rights.sets) {
    for (const [permission, known] of grants) {
      if (known.database !== 'no' && hasLevel(permission, 'table')) {
        return { tables: null, files, queries };
      }
      for (const [name, { whole, columns }] of known.tables) {
        const seen = tables.get(name);
        const isWhole = whole !== 'no' || seen === null;
        tables.set(name, isWhole ? null : new Set([...(seen ?? []), ...columns.keys()]));
      }
    }
  }
  const seen = [...tables].map(([name, columns]) => [name, columns === null ? null : [...columns]]);
  return { tables: Object.fromEntries(seen) as NonNullable<Sight['tables']>, files, queries };
}

/** The names that completion offers: where they come from, and which are in scope at a position. */
import type { Completion } from '@codemirror/autocomplete';
import type { Scope } from '../../../sql/index.js';
import type { ColumnEntry, KnownNames } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { commonTableQuery } from '../sql/common-tables.js';

export interface NameSource {
  readonly names: () => KnownNames;
  /** Resolves once the request for the names has succeeded or failed. */
  readonly requested: Promise<void>;
  /** Loads the columns of a table if they are not loaded yet. */
  readonly open: (table: string) => Promise<void>;
  /** Returns the result columns of a query. */
  readonly describe: (query: string) => Promise<readonly ColumnEntry[]>;
  /** Returns the first values of a symbol column, in alphabetical order. */
  readonly values: (table: string, column: string) => Promise<readonly string[]>;
}

/** A position in a statement, with the names in scope there. */
export interface ScopedPosition {
  readonly text: string;
  readonly offset: number;
  readonly scope: Scope;
}

/** Returns the columns of a table, a subquery or a common table expression. */
export async function columnsOf(
  source: NameSource,
  { scope, text }: ScopedPosition,
  { table, query: subQuery }: Scope['sources'][number],
): Promise<readonly ColumnEntry[]> {
  if (table === null) {
    return subQuery === undefined ? [] : await source.describe(subQuery);
  }
  const common = scope.commonTables.find((name) => name.toLowerCase() === table.toLowerCase());
  if (common !== undefined) {
    const query = commonTableQuery(text, common);
    return query === undefined ? [] : await source.describe(query);
  }
  const { tables } = source.names();
  const known = tables.find(({ name }) => name.toLowerCase() === table.toLowerCase());
  if (known === undefined) {
    return [];
  }
  await source.open(known.name);
  return source.names().columnsOf(known.name);
}

/** Creates the completion of a name. The name is quoted if necessary. */
export function offer(name: string, detail: string, boost: number): Completion {
  return { label: name, apply: quoted(name), detail, boost };
}

/** The names that completion offers: who knows them, and which are in reach of a place. */
import type { Completion } from '@codemirror/autocomplete';
import type { Scope } from '../../../sql/index.js';
import type { ColumnEntry, KnownNames } from '../model/schema.js';
import { quoted } from '../sql/names.js';
import { commonTableQuery } from '../sql/common-tables.js';

export interface NameSource {
  readonly names: () => KnownNames;
  /** Resolves once the names have been asked for, whatever came of it. */
  readonly asked: Promise<void>;
  /** Reads the columns of a table, if they are not known yet. */
  readonly open: (table: string) => Promise<void>;
  /** The columns that a query would have. */
  readonly describe: (query: string) => Promise<readonly ColumnEntry[]>;
  /** The first values of a symbol column, by name. */
  readonly values: (table: string, column: string) => Promise<readonly string[]>;
}

/** A place of a statement, and the names in its reach. */
export interface Place {
  readonly text: string;
  readonly offset: number;
  readonly scope: Scope;
}

/** The columns of a table, a sub-query or a common table. */
export async function columnsOf(
  source: NameSource,
  { scope, text }: Place,
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

/** A name as it is written: in quotes where it needs them. */
export function offer(name: string, detail: string, boost: number): Completion {
  return { label: name, apply: quoted(name), detail, boost };
}

/** What the server's meta queries say about tables and columns, whichever names it gives them. */
import type { Row, Value } from '../api/answer.js';
import { numberOf, reader, textOf, type Answer } from '../api/cells.js';
import { viewReader, type ViewFacts } from '../views/model.js';

export type TableKind = 'table' | 'view' | 'materialized' | 'live';

export interface TableEntry {
  readonly name: string;
  readonly kind: TableKind;
  readonly rows: number | undefined;
  readonly partitionBy: string | undefined;
  readonly timestamp: string | undefined;
  readonly suspended: boolean;
  /** Another text whenever it has other rows, where the server tells. */
  readonly version: string | undefined;
  /** Of a view that follows a base, where the server tells of it. */
  readonly view?: ViewFacts | undefined;
}

export interface ColumnEntry {
  readonly name: string;
  readonly type: string;
  readonly designated: boolean;
}

export interface FunctionEntry {
  readonly name: string;
  /** Whether it belongs in FROM rather than in an expression. */
  readonly isSource: boolean;
  readonly signatures: readonly string[];
  readonly description: string;
}

/** Rows of `tables()`, or of `SHOW TABLES`, which tells names only. */
export function tableEntries(answer: Answer): TableEntry[] {
  const name = reader(answer, 'table_name', 'table', 'name');
  const rows = reader(answer, 'table_row_count', 'row_count', 'rows');
  const partitionBy = reader(answer, 'partitionBy', 'partition_by');
  const timestamp = reader(answer, 'designatedTimestamp', 'designated_timestamp');
  const suspended = reader(answer, 'table_suspended', 'suspended');
  const type = reader(answer, 'table_type');
  const version = versionReader(answer);
  const view = viewReader(answer);
  return answer.rows
    .map((row) => ({
      name: String(name(row)),
      kind: kindOf(type(row)),
      rows: numberOf(rows(row)),
      partitionBy: textOf(partitionBy(row)),
      timestamp: textOf(timestamp(row)),
      suspended: suspended(row) === true,
      version: version(row),
      view: view(row),
    }))
    .sort((left, right) => left.name.localeCompare(right.name));
}

/** Which table it is, for names are given again, and the transaction that it shows. */
export function versionReader(answer: Answer): (row: Row) => string | undefined {
  const [id, transaction] = [reader(answer, 'table_id'), reader(answer, 'table_txn')];
  return (row) =>
    textOf(transaction(row)) === undefined
      ? undefined
      : `${String(id(row))}/${String(transaction(row))}`;
}

/** Rows of `SHOW COLUMNS`. */
export function columnEntries(answer: Answer): ColumnEntry[] {
  const name = reader(answer, 'column', 'column_name', 'name');
  const type = reader(answer, 'type', 'data_type');
  const designated = reader(answer, 'designated');
  return answer.rows.map((row) => ({
    name: String(name(row)),
    type: String(type(row)),
    designated: designated(row) === true,
  }));
}

/** Rows of `functions()`, one per signature. */
export function functionEntries(answer: Answer): FunctionEntry[] {
  const name = reader(answer, 'name');
  const type = reader(answer, 'type');
  const signature = reader(answer, 'signature');
  const description = reader(answer, 'description');
  const entries = new Map<string, FunctionEntry>();
  for (const row of answer.rows) {
    const key = String(name(row));
    entries.set(key, {
      name: key,
      isSource: type(row) === 'CURSOR',
      signatures: [...(entries.get(key)?.signatures ?? []), String(signature(row))],
      description: textOf(description(row)) ?? '',
    });
  }
  return [...entries.values()];
}

/** What it is called, in sentences and, as capitals, in statements. */
export const KIND_WORDS: Readonly<Record<TableKind, string>> = {
  table: 'table',
  view: 'view',
  materialized: 'materialized view',
  live: 'live view',
};

/** The names of their icons. */
export const KIND_ICONS = {
  table: 'table',
  view: 'view',
  materialized: 'layers',
  live: 'pulse',
} as const satisfies Record<TableKind, string>;

const LETTERS: Readonly<Record<string, TableKind>> = { V: 'view', M: 'materialized', L: 'live' };

/** What a letter of `table_type` means. */
export function kindOf(value: Value): TableKind {
  return LETTERS[String(value)] ?? 'table';
}

/** A name as SQL takes it: quoted where it is not a plain word. */
export function quoted(name: string): string {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : identifier(name);
}

/** A name as SQL takes it, whatever it is: a keyword, too. */
export function identifier(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** A text as SQL takes it. */
export function literal(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The known name nearest to a misspelt one, if one is near at all. */
export function nearest(wrong: string, known: Iterable<string>): string | undefined {
  const limit = Math.max(1, Math.floor(wrong.length / 3));
  let best: { name: string; distance: number } | undefined;
  for (const name of known) {
    const distance = editDistance(wrong.toLowerCase(), name.toLowerCase(), limit);
    if (distance <= limit && distance > 0 && distance < (best?.distance ?? Infinity)) {
      best = { name, distance };
    }
  }
  return best?.name;
}

function cost(row: readonly number[], column: number): number {
  return row[column] ?? Infinity;
}

function editDistance(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) > limit) {
    return Infinity;
  }
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  let beforePrevious = previous;
  for (let row = 1; row <= left.length; row++) {
    const current = [row];
    for (let column = 1; column <= right.length; column++) {
      const same = left.charAt(row - 1) === right.charAt(column - 1);
      const replace = cost(previous, column - 1) + (same ? 0 : 1);
      const insert = cost(current, column - 1) + 1;
      const swapped =
        left.charAt(row - 2) === right.charAt(column - 1) &&
        left.charAt(row - 1) === right.charAt(column - 2);
      const swap =
        row > 1 && column > 1 && swapped ? cost(beforePrevious, column - 2) + 1 : Infinity;
      current.push(Math.min(replace, cost(previous, column) + 1, insert, swap));
    }
    [beforePrevious, previous] = [previous, current];
  }
  return cost(previous, right.length);
}

/**
 * Tables with the same meaning in the dialect and in standard SQL. Few distinct values make ties
 * common.
 */
import type { Random } from '../torture/harness.js';

/** Result type of an expression. Arithmetic stays within the range in which doubles are exact. */
export type Kind = 'int' | 'double' | 'text';

/** A selectable term: a column or an expression over columns. */
export interface Term {
  readonly sql: string;
  readonly kind: Kind;
  /**
   * Whether the term may be null. Nulls compare differently in the two dialects. Such terms are
   * therefore only selected or aggregated, and aggregates skip nulls.
   */
  readonly nullable: boolean;
}

export interface Relation {
  /** The FROM clause. */
  readonly sql: string;
  readonly terms: readonly Term[];
  /** Terms that together identify a row, for an ordering without ties. */
  readonly identity: readonly string[];
}

interface ColumnShape {
  readonly name: string;
  readonly kind: Kind;
  readonly nullable: boolean;
  readonly ours: string;
  readonly standard: string;
  readonly value: (random: Random, row: number) => string;
}

/**
 * Strings that are empty or have at least two characters, because a one-character literal is a CHAR
 * in Tidemark.
 */
export const WORDS = ['alpha', 'beta', 'Gamma', 'delta', '', "it''s", 'ab%c', 'zz_top', 'émile'];

const text = (random: Random): string => `'${random.pick(WORDS)}'`;
const quarter = (random: Random): string => (random.between(-40, 40) / 4).toFixed(2);
const orNull = (value: (random: Random) => string) => (random: Random) =>
  random.next() < 0.3 ? 'NULL' : value(random);

const COLUMNS: readonly ColumnShape[] = [
  {
    name: 'id',
    kind: 'int',
    nullable: false,
    ours: 'LONG',
    standard: 'BIGINT',
    value: (_, row) => String(row),
  },
  {
    name: 'i',
    kind: 'int',
    nullable: false,
    ours: 'INT',
    standard: 'INTEGER',
    value: (random) => String(random.between(-9, 9)),
  },
  {
    name: 'g',
    kind: 'int',
    nullable: false,
    ours: 'LONG',
    standard: 'BIGINT',
    value: (random) => String(random.between(0, 3)),
  },
  {
    name: 'd',
    kind: 'double',
    nullable: false,
    ours: 'DOUBLE',
    standard: 'DOUBLE',
    value: quarter,
  },
  { name: 'v', kind: 'text', nullable: false, ours: 'VARCHAR', standard: 'VARCHAR', value: text },
  { name: 's', kind: 'text', nullable: false, ours: 'SYMBOL', standard: 'VARCHAR', value: text },
  {
    name: 'ni',
    kind: 'int',
    nullable: true,
    ours: 'INT',
    standard: 'INTEGER',
    value: orNull((random) => String(random.between(-3, 3))),
  },
  {
    name: 'nd',
    kind: 'double',
    nullable: true,
    ours: 'DOUBLE',
    standard: 'DOUBLE',
    value: orNull(quarter),
  },
  {
    name: 'nv',
    kind: 'text',
    nullable: true,
    ours: 'VARCHAR',
    standard: 'VARCHAR',
    value: orNull(text),
  },
];

interface StandardTable {
  readonly name: string;
  /** Statements that create and fill the table, in each dialect. */
  readonly ours: readonly string[];
  readonly standard: readonly string[];
}

/** Creates a table of up to 40 rows; one table in ten is empty. */
export function standardTable(name: string, random: Random): StandardTable {
  const rows = random.next() < 0.1 ? 0 : random.between(1, 40);
  const lines = Array.from({ length: rows }, (_, row) => {
    const cells = COLUMNS.map(({ value }) => value(random, row));
    return `(${cells.join(', ')})`;
  });
  const fill = lines.length === 0 ? [] : [`INSERT INTO ${name} VALUES ${lines.join(', ')}`];
  const create = (type: (column: ColumnShape) => string): string => {
    const columns = COLUMNS.map((column) => `${column.name} ${type(column)}`);
    return `CREATE TABLE ${name} (${columns.join(', ')})`;
  };
  return {
    name,
    ours: [`DROP TABLE IF EXISTS ${name}`, create(({ ours }) => ours), ...fill],
    standard: [`DROP TABLE IF EXISTS ${name}`, create(({ standard }) => standard), ...fill],
  };
}

/** A table under an alias. */
export function relationOf(table: string, alias: string): Relation {
  return {
    sql: `${table} ${alias}`,
    terms: COLUMNS.map(({ name, kind, nullable }) => ({ sql: `${alias}.${name}`, kind, nullable })),
    identity: [`${alias}.id`],
  };
}

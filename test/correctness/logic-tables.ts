/**
 * Tables and predicates in the dialect, covering every null, tie and layout that the optimizer
 * considers.
 */
import type { Random } from '../torture/harness.js';

interface LogicColumn {
  readonly name: string;
  readonly type: string;
  /** Returns a literal of the column's type. */
  readonly literal: (random: Random) => string;
  /** Whether the type has `<` and similar operators. */
  readonly ordered: boolean;
  readonly number?: boolean;
  readonly text?: boolean;
}

const WORDS = ['alpha', 'beta', 'gamma', '', 'Al', 'zz'];
const word = (random: Random): string => `'${random.pick(WORDS)}'`;
const small = (random: Random): string => String(random.between(-4, 4));
const timestamp = (random: Random): string => {
  const hour = String(random.between(0, 23)).padStart(2, '0');
  return `'2024-01-0${random.between(1, 4)}T${hour}:${random.pick(['00', '30'])}:00.000000Z'`;
};
const uuid = (random: Random): string =>
  `'0000000${random.between(0, 3)}-0000-4000-8000-000000000000'`;

const COLUMNS: readonly LogicColumn[] = [
  { name: 'ts', type: 'TIMESTAMP', literal: timestamp, ordered: true },
  { name: 'l', type: 'LONG', literal: small, ordered: true, number: true },
  { name: 'i', type: 'INT', literal: small, ordered: true, number: true },
  { name: 'h', type: 'SHORT', literal: small, ordered: true, number: true },
  {
    name: 'd',
    type: 'DOUBLE',
    literal: (random) => `${small(random)}.5`,
    ordered: true,
    number: true,
  },
  {
    name: 'f',
    type: 'FLOAT',
    literal: (random) => `${small(random)}.25`,
    ordered: true,
    number: true,
  },
  { name: 's', type: 'SYMBOL', literal: word, ordered: true, text: true },
  { name: 'x', type: 'SYMBOL INDEX', literal: word, ordered: true, text: true },
  { name: 'v', type: 'VARCHAR', literal: word, ordered: true, text: true },
  { name: 'w', type: 'STRING', literal: word, ordered: true, text: true },
  {
    name: 'b',
    type: 'BOOLEAN',
    literal: (random) => random.pick(['true', 'false']),
    ordered: false,
  },
  { name: 'a', type: 'TIMESTAMP', literal: timestamp, ordered: true },
  { name: 'u', type: 'UUID', literal: uuid, ordered: false },
];

/** Returns statements that create a table of 0 to 60 rows in several commits, some out of order. */
export function logicTable(name: string, random: Random): readonly string[] {
  const columns = COLUMNS.map(({ name: column, type }) => `${column} ${type}`).join(', ');
  const layout = random.pick([
    '',
    ' TIMESTAMP(ts)',
    ' TIMESTAMP(ts) PARTITION BY DAY',
    ' TIMESTAMP(ts) PARTITION BY HOUR',
  ]);
  const commits = random.between(0, 3);
  const inserts = Array.from({ length: commits }, () => {
    const rows = Array.from({ length: random.between(1, 20) }, () => row(random));
    return `INSERT INTO ${name} VALUES ${rows.join(', ')}`;
  });
  return [`DROP TABLE IF EXISTS ${name}`, `CREATE TABLE ${name} (${columns})${layout}`, ...inserts];
}

function row(random: Random): string {
  const cells = COLUMNS.map(({ name, literal }) =>
    name !== 'ts' && random.next() < 0.25 ? 'null' : literal(random),
  );
  return `(${cells.join(', ')})`;
}

/** Random predicates over the columns of one or two relations. */
export class Predicates {
  readonly #random: Random;
  readonly #prefixes: readonly string[];

  constructor(random: Random, prefixes: readonly string[]) {
    this.#random = random;
    this.#prefixes = prefixes;
  }

  next(depth = 3): string {
    if (depth > 0 && this.#random.next() < 0.5) {
      const inner = (): string => this.next(depth - 1);
      return this.#random.pick([
        () => `(${inner()} AND ${inner()})`,
        () => `(${inner()} OR ${inner()})`,
        () => `NOT (${inner()})`,
      ])();
    }
    return this.#simple();
  }

  #pick(...texts: readonly string[]): string {
    return this.#random.pick(texts);
  }

  #prefixed(column: LogicColumn): string {
    return this.#random.pick(this.#prefixes) + column.name;
  }

  #columnOf(fits: (column: LogicColumn) => boolean): LogicColumn {
    return this.#random.pick(COLUMNS.filter(fits));
  }

  #simple(): string {
    const random = this.#random;
    const any = this.#columnOf(() => true);
    const ordered = this.#columnOf((column) => column.ordered);
    const [a, o] = [this.#prefixed(any), this.#prefixed(ordered)];
    const value = (column: LogicColumn): string => column.literal(random);
    return random.pick([
      () => `${a} ${random.pick(['=', '!=', '<>'])} ${value(any)}`,
      () => `${o} ${random.pick(['<', '<=', '>', '>='])} ${value(ordered)}`,
      () => `${value(ordered)} ${random.pick(['<', '>='])} ${o}`,
      () => `${a} IS ${random.pick(['NULL', 'NOT NULL'])}`,
      () =>
        `${o} ${random.pick(['BETWEEN', 'NOT BETWEEN'])} ${value(ordered)} AND ${value(ordered)}`,
      () => this.#inList(),
      () => this.#sameType(),
      () => this.#arithmetic(),
      () => this.#matching(),
      () =>
        `${this.#prefixes[0] ?? ''}ts IN ` +
        `'2024-01-0${random.between(1, 4)}${this.#pick('', 'T12', ';6h')}'`,
      () => `CASE WHEN ${this.next(0)} THEN ${this.next(0)} ELSE ${this.next(0)} END`,
      () => this.#prefixes.map((prefix) => `${prefix}b`)[0] ?? 'true',
    ])();
  }

  #inList(): string {
    const column = this.#columnOf(({ name }) => !['b', 'ts', 'a', 'u'].includes(name));
    const values = Array.from({ length: this.#random.between(1, 4) }, () =>
      column.literal(this.#random),
    );
    const list = this.#random.next() < 0.2 ? [...values, 'null'] : values;
    return `${this.#prefixed(column)} ${this.#pick('IN', 'NOT IN')} (${list.join(', ')})`;
  }

  /** Returns two columns whose types belong to one family. */
  #sameType(): string {
    const family = this.#random.pick<'number' | 'text'>(['number', 'text']);
    const [a, b] = [0, 1].map(() =>
      this.#prefixed(this.#columnOf((column) => column[family] === true)),
    );
    return `${a ?? ''} ${this.#pick('=', '!=', '<', '>', '<=', '>=')} ${b ?? ''}`;
  }

  #arithmetic(): string {
    const number = (): string => this.#prefixed(this.#columnOf((column) => column.number === true));
    const operator = this.#pick('+', '-', '*', '/', '%');
    const value = this.#random.between(-4, 8);
    return `${number()} ${operator} ${number()} ${this.#pick('=', '<', '>', '!=')} ${value}`;
  }

  #matching(): string {
    const column = this.#prefixed(this.#columnOf(({ text }) => text === true));
    return this.#random.pick([
      () =>
        `${column} ${this.#pick('LIKE', 'ILIKE', 'NOT LIKE')} ` +
        `'${this.#pick('%a%', 'a%', 'al_ha', '%', '_%')}'`,
      () => `${column} ${this.#pick('~', '!~')} '${this.#pick('^a', 'a$', '[ab]', 'z+')}'`,
      () => `length(${column}) > ${this.#random.between(-1, 4)}`,
      () => `coalesce(${column}, 'none') = '${this.#pick('none', 'alpha')}'`,
    ])();
  }
}

/**
 * Evaluates expressions in the dialect row by row in the simplest way. Nulls are values, logic has
 * two values, and NOT inverts the comparison instead of negating its result.
 */
import type { Random } from '../torture/harness.js';

export type Value = number | string | null;
export type Row = Readonly<Record<string, Value>>;

/** A value expression. */
export interface Scalar {
  readonly sql: string;
  readonly of: (row: Row) => Value;
}

/** A condition and its opposite. For a null, both may be false. */
interface Condition {
  readonly sql: string;
  readonly holds: (row: Row) => boolean;
  readonly opposite: (row: Row) => boolean;
}

export const NUMBERS = ['a', 'b', 'c', 'e'];

const COMPARE: Readonly<Record<string, (a: Value, b: Value) => boolean>> = {
  '=': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '<': (a, b) => a !== null && b !== null && a < b,
  '>': (a, b) => a !== null && b !== null && a > b,
  '<=': (a, b) => (a === null || b === null ? a === b : a <= b),
  '>=': (a, b) => (a === null || b === null ? a === b : a >= b),
};
const OPPOSITE: Readonly<Record<string, string>> = {
  '=': '!=',
  '!=': '=',
  '<': '>=',
  '>': '<=',
  '<=': '>',
  '>=': '<',
};

const ARITHMETIC: Readonly<Record<string, (a: number, b: number) => Value>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => (b === 0 ? null : Math.trunc(a / b)),
  '%': (a, b) => (b === 0 ? null : a % b),
};

/** Normalizes an integer's negative zero. */
const withoutNegativeZero = (value: Value): Value =>
  typeof value === 'number' ? value + 0 : value;

export class RowModel {
  readonly #random: Random;

  constructor(random: Random) {
    this.#random = random;
  }

  scalar(depth = 3): Scalar {
    if (depth === 0 || this.#random.next() < 0.3) {
      return this.#leaf();
    }
    const inner = (): Scalar => this.scalar(depth - 1);
    return this.#random.pick([
      () => this.#arithmetic(inner(), inner()),
      () => this.#arithmetic(inner(), inner()),
      () => this.#searchedCase(inner(), inner(), depth),
      () => this.#simpleCase(inner(), inner()),
      () => this.#function(inner(), inner()),
    ])();
  }

  #leaf(): Scalar {
    if (this.#random.next() < 0.75) {
      const name = this.#random.pick(NUMBERS);
      return { sql: name, of: (row) => row[name] ?? null };
    }
    const value = this.#random.between(0, 9);
    return { sql: String(value), of: () => value };
  }

  #arithmetic(a: Scalar, b: Scalar): Scalar {
    const operator = this.#random.pick(Object.keys(ARITHMETIC));
    const apply = ARITHMETIC[operator] ?? (() => null);
    return {
      sql: `(${a.sql} ${operator} ${b.sql})`,
      of: (row) => {
        const [x, y] = [a.of(row), b.of(row)];
        return typeof x === 'number' && typeof y === 'number'
          ? withoutNegativeZero(apply(x, y))
          : null;
      },
    };
  }

  #searchedCase(yes: Scalar, no: Scalar, depth: number): Scalar {
    const when = this.condition(depth - 1);
    const withElse = this.#random.next() < 0.8;
    return {
      sql: `CASE WHEN ${when.sql} THEN ${yes.sql}${withElse ? ` ELSE ${no.sql}` : ''} END`,
      of: (row) => (when.holds(row) ? yes.of(row) : withElse ? no.of(row) : null),
    };
  }

  #simpleCase(yes: Scalar, no: Scalar): Scalar {
    const subject = this.#random.pick(NUMBERS);
    const value = this.#random.between(-3, 3);
    return {
      sql: `CASE ${subject} WHEN ${value} THEN ${yes.sql} ELSE ${no.sql} END`,
      of: (row) => (row[subject] === value ? yes.of(row) : no.of(row)),
    };
  }

  #function(a: Scalar, b: Scalar): Scalar {
    return this.#random.pick<() => Scalar>([
      () => ({
        sql: `abs(${a.sql})`,
        of: (row) => {
          const x = a.of(row);
          return typeof x === 'number' ? Math.abs(x) : null;
        },
      }),
      () => ({ sql: `coalesce(${a.sql}, ${b.sql})`, of: (row) => a.of(row) ?? b.of(row) }),
      () => ({
        sql: `nullif(${a.sql}, ${b.sql})`,
        of: (row) => (a.of(row) === b.of(row) ? null : a.of(row)),
      }),
    ])();
  }

  condition(depth = 2): Condition {
    if (depth > 0 && this.#random.next() < 0.5) {
      const inner = (): Condition => this.condition(depth - 1);
      return this.#random.pick([
        () => both(inner(), inner()),
        () => either(inner(), inner()),
        () => not(inner()),
      ])();
    }
    return this.#random.pick([
      () => this.#comparison(),
      () => this.#comparison(),
      () => this.#between(),
      () => this.#inList(),
      () => this.#isNull(),
    ])();
  }

  #comparison(): Condition {
    const [a, b] = [this.scalar(1), this.scalar(1)];
    const operator = this.#random.pick(Object.keys(COMPARE));
    const test =
      (by: string) =>
      (row: Row): boolean =>
        COMPARE[by]?.(a.of(row), b.of(row)) ?? false;
    return {
      sql: `${a.sql} ${operator} ${b.sql}`,
      holds: test(operator),
      opposite: test(OPPOSITE[operator] ?? ''),
    };
  }

  /** BETWEEN sorts its bounds, and is false if one of them is null. */
  #between(): Condition {
    const name = this.#random.pick(NUMBERS);
    const [low, high] = [this.#random.between(-5, 5), this.#random.between(-5, 5)];
    const inside = (row: Row): boolean => {
      const x = row[name];
      return typeof x === 'number' && x >= Math.min(low, high) && x <= Math.max(low, high);
    };
    return complementary(`${name} BETWEEN ${low} AND ${high}`, inside);
  }

  #inList(): Condition {
    const name = this.#random.pick(NUMBERS);
    const values: Value[] = Array.from({ length: this.#random.between(1, 4) }, () =>
      this.#random.between(-5, 5),
    );
    if (this.#random.next() < 0.2) {
      values.push(null);
    }
    const list = values.map((value) => value ?? 'null').join(', ');
    return complementary(`${name} IN (${list})`, (row) => values.includes(row[name] ?? null));
  }

  #isNull(): Condition {
    const a = this.scalar(1);
    return complementary(`${a.sql} IS NULL`, (row) => a.of(row) === null);
  }
}

function complementary(sql: string, holds: (row: Row) => boolean): Condition {
  return { sql, holds, opposite: (row) => !holds(row) };
}

function both(a: Condition, b: Condition): Condition {
  return {
    sql: `(${a.sql} AND ${b.sql})`,
    holds: (row) => a.holds(row) && b.holds(row),
    opposite: (row) => a.opposite(row) || b.opposite(row),
  };
}

function either(a: Condition, b: Condition): Condition {
  return {
    sql: `(${a.sql} OR ${b.sql})`,
    holds: (row) => a.holds(row) || b.holds(row),
    opposite: (row) => a.opposite(row) && b.opposite(row),
  };
}

function not(a: Condition): Condition {
  return { sql: `NOT (${a.sql})`, holds: a.opposite, opposite: a.holds };
}

/**
 * Sorts and filters the loaded rows. The rows themselves are not moved: the result is a list of row
 * indexes. Rows that are not loaded are ignored.
 */
import type { Column, Row, Value } from '../api/answer.js';
import { copyText } from './format.js';
import { familyOf, isNumeric, type Family } from './types.js';

export interface Sort {
  /** Index of the column in the result. */
  readonly column: number;
  readonly descending: boolean;
}

/**
 * Indexes of the rows to show, in display order. `undefined` stands for all rows in their original
 * order.
 */
export type RowOrder = Uint32Array | undefined;

export function orderOf(
  columns: readonly Column[],
  rows: readonly Row[],
  sort: Sort | undefined,
  filter: string,
): RowOrder {
  const matches = filter.trim() === '' ? undefined : rowTest(columns, filter);
  if (!sort && !matches) {
    return undefined;
  }
  const order = matches ? matching(rows, matches) : Uint32Array.from(rows.keys());
  return sort ? order.sort(rowComparer(columns, rows, sort)) : order;
}

function matching(rows: readonly Row[], matches: (row: Row) => boolean): Uint32Array {
  const found: number[] = [];
  rows.forEach((row, index) => {
    if (matches(row)) {
      found.push(index);
    }
  });
  return Uint32Array.from(found);
}

const COMPARISON = /^\s*(.+?)\s*(!=|>=|<=|[:=<>])\s*(.*?)\s*$/s;

/**
 * Returns a function that tests whether a row matches a filter. `price > 100` and `symbol: btc`
 * test one column. Any other text is searched for in all columns.
 */
export function rowTest(columns: readonly Column[], filter: string): (row: Row) => boolean {
  const [, name = '', sign = '', operand = ''] = COMPARISON.exec(filter) ?? [];
  const index = columns.findIndex((column) => column.name.toLowerCase() === name.toLowerCase());
  const compared = columns[index];
  if (compared) {
    const test = valueTest(compared, sign, operand);
    return (row) => test(row[index] ?? null);
  }
  const needle = filter.trim().toLowerCase();
  const tests = columns.map((column) => contains(familyOf(column.type), needle));
  return (row) => tests.some((test, column) => test(row[column] ?? null));
}

type ValueTest = (value: Value) => boolean;

function valueTest(column: Column, sign: string, operand: string): ValueTest {
  const family = familyOf(column.type);
  if (sign === ':') {
    return contains(family, operand.toLowerCase());
  }
  if (operand.toLowerCase() === 'null') {
    return (value) => (value === null) === (sign !== '!=');
  }
  const bare = isNumeric(column.type) ? operand.replaceAll(',', '') : operand;
  const known = family === 'time' ? bare.replace(' ', 'T') : bare;
  // Compare times only to the precision of the filter, so that `= 2026-11-21` matches the whole
  // day.
  const cut = family === 'time' ? known.length : undefined;
  return (value) => {
    if (value === null) {
      return false;
    }
    const shown = copyText(value).slice(0, cut);
    const difference = isNumeric(column.type)
      ? compareNumbers(shown, known)
      : compareTexts(shown, known);
    return SIGNS[sign]?.(difference) ?? false;
  };
}

const SIGNS: Readonly<Record<string, (difference: number) => boolean>> = {
  '=': (difference) => difference === 0,
  '!=': (difference) => difference !== 0,
  '<': (difference) => difference < 0,
  '<=': (difference) => difference <= 0,
  '>': (difference) => difference > 0,
  '>=': (difference) => difference >= 0,
};

/**
 * Searches for text as the grid displays it. Times contain a space, and numbers match with or
 * without thousands separators.
 */
function contains(family: Family, needle: string): ValueTest {
  const isNumber = family === 'integer' || family === 'decimal';
  const search = isNumber ? needle.replace(/(\d),(?=\d)/g, '$1') : needle;
  return (value) => {
    const text = value === null ? 'null' : copyText(value).toLowerCase();
    return (family === 'time' ? text.replace('t', ' ') : text).includes(search);
  };
}

/**
 * Returns a function that compares rows. Nulls sort last in both directions, and equal values keep
 * their original order.
 */
function rowComparer(
  columns: readonly Column[],
  rows: readonly Row[],
  { column, descending }: Sort,
): (left: number, right: number) => number {
  const direction = descending ? -1 : 1;
  const compare = isNumeric(columns[column]?.type ?? '') ? compareNumbers : compareTexts;
  const texts = rows.map((row) => {
    const value = row[column] ?? null;
    return value === null ? null : copyText(value);
  });
  return (left, right) => {
    const [one, other] = [texts[left] ?? null, texts[right] ?? null];
    if (one === null || other === null) {
      return Number(one === null) - Number(other === null) || left - right;
    }
    return direction * compare(one, other) || left - right;
  };
}

function compareTexts(left: string, right: string): number {
  return left < right ? -1 : Number(left > right);
}

/**
 * Compares two numbers by value. Numbers that are equal as doubles are compared digit by digit. NaN
 * sorts last.
 */
export function compareNumbers(left: string, right: string): number {
  const [one, other] = [Number(left), Number(right)];
  if (Number.isNaN(one) || Number.isNaN(other)) {
    return Number(Number.isNaN(one)) - Number(Number.isNaN(other));
  }
  if (one !== other || left === right) {
    return one < other ? -1 : Number(one > other);
  }
  return (one < 0 ? -1 : 1) * compareDigits(left, right);
}

const PLAIN = /^[+-]?0*(\d*)(?:\.(\d*?)0*)?$/;

/** Compares the absolute values of two decimal numbers without exponents. */
function compareDigits(left: string, right: string): number {
  const [one, other] = [PLAIN.exec(left), PLAIN.exec(right)];
  if (!one || !other) {
    return 0;
  }
  const [whole = '', otherWhole = ''] = [one[1], other[1]];
  return (
    whole.length - otherWhole.length ||
    compareTexts(whole, otherWhole) ||
    compareTexts(one[2] ?? '', other[2] ?? '')
  );
}

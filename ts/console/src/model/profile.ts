/**
 * Computes the profile of a column over the loaded rows: counts, range, frequent values,
 * distribution.
 */
import type { Column, Row, Value } from '../api/answer.js';
import { copyText } from './format.js';
import { compareNumbers } from './order.js';
import { familyOf, isNumeric } from './types.js';

interface Frequent {
  readonly text: string;
  readonly count: number;
}

export interface Bin {
  readonly from: number;
  readonly to: number;
  readonly count: number;
  /** Label of the bin. Defaults to the ends of its range. */
  readonly name?: string;
}

export interface Profile {
  readonly rows: number;
  readonly nulls: number;
  /** Number of empty strings. */
  readonly empty: number;
  /** Number of distinct values, or `undefined` if they were not counted. */
  readonly distinct: number | undefined;
  /** Minimum value, formatted as for a copy. Set only for columns with an order. */
  readonly min: string | undefined;
  readonly max: string | undefined;
  readonly mean: number | undefined;
  /** Number of characters in the longest string. */
  readonly maxLength: number | undefined;
  /** The most frequent values. Empty if no value occurs more than once. */
  readonly frequent: readonly Frequent[];
  /** Histogram with bins of equal width. Empty unless the column is numeric. */
  readonly bins: readonly Bin[];
}

const MAX_FREQUENT = 5;
const BINS = 24;

export function profileOf(column: Column, index: number, rows: readonly Row[]): Profile {
  const counts = countsOf(rows, index);
  const nulls = counts.get(null) ?? 0;
  counts.delete(null);
  const texts = [...counts.keys()].filter((text) => text !== null);
  const isNumber = isNumeric(column.type);
  const ends = isNumber || familyOf(column.type) === 'time' ? endsOf(texts, isNumber) : undefined;
  const numbers = isNumber ? finiteOf(counts) : [];
  return {
    rows: rows.length,
    nulls,
    empty: counts.get('') ?? 0,
    distinct: texts.length,
    min: ends?.min,
    max: ends?.max,
    mean: meanOf(numbers),
    maxLength: isText(column)
      ? texts.reduce((max, text) => Math.max(max, text.length), 0)
      : undefined,
    frequent: frequentOf(counts),
    bins: binsOf(numbers),
  };
}

function isText(column: Column): boolean {
  return ['text', 'symbol'].includes(familyOf(column.type));
}

function countsOf(rows: readonly Row[], index: number): Map<string | null, number> {
  const counts = new Map<string | null, number>();
  for (const row of rows) {
    const value: Value = row[index] ?? null;
    const text = value === null ? null : copyText(value);
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return counts;
}

function endsOf(
  texts: readonly string[],
  isNumber: boolean,
): { min: string; max: string } | undefined {
  const [first] = texts;
  if (first === undefined) {
    return undefined;
  }
  const before = (left: string, right: string): boolean =>
    isNumber ? compareNumbers(left, right) < 0 : left < right;
  return {
    min: texts.reduce((min, text) => (before(text, min) ? text : min), first),
    max: texts.reduce((max, text) => (before(max, text) ? text : max), first),
  };
}

interface Weighted {
  readonly value: number;
  readonly count: number;
}

function finiteOf(counts: ReadonlyMap<string | null, number>): Weighted[] {
  return [...counts]
    .map(([text, count]) => ({ value: Number(text), count }))
    .filter(({ value }) => Number.isFinite(value));
}

function meanOf(numbers: readonly Weighted[]): number | undefined {
  const total = numbers.reduce((sum, { count }) => sum + count, 0);
  if (total === 0) {
    return undefined;
  }
  return numbers.reduce((sum, { value, count }) => sum + (value * count) / total, 0);
}

function frequentOf(counts: ReadonlyMap<string | null, number>): Frequent[] {
  const sorted = [...counts]
    .map(([text, count]) => ({ text: text ?? '', count }))
    .sort((left, right) => right.count - left.count);
  return (sorted[0]?.count ?? 0) > 1 ? sorted.slice(0, MAX_FREQUENT) : [];
}

function binsOf(numbers: readonly Weighted[]): Bin[] {
  let [min, max] = [Infinity, -Infinity];
  for (const { value } of numbers) {
    min = Math.min(min, value);
    max = Math.max(max, value);
  }
  // Halve both ends first, because the range of all doubles is wider than the largest double.
  const width = (max / 2 - min / 2) / (BINS / 2);
  if (!(width > 0)) {
    return [];
  }
  const counts = Array<number>(BINS).fill(0);
  for (const { value, count } of numbers) {
    const bin = Math.min(BINS - 1, Math.floor((value / 2 - min / 2) / (width / 2)));
    counts[bin] = (counts[bin] ?? 0) + count;
  }
  return counts.map((count, bin) => ({
    from: min + bin * width,
    to: min + (bin + 1) * width,
    count,
  }));
}

/**
 * Compares a result with the expected result by value: 1 equals 1.0, t equals true, {1,2} equals
 * [1, 2], and a date equals its midnight. No other difference is tolerated.
 */
import { createHash } from 'node:crypto';

import type { SortMode } from './records.js';

/** A cell of the wire protocol: text or null. */
export type WireCell = string | null;

/** Relative tolerance, because floats are printed with different numbers of digits. */
const RELATIVE = 1e-6;

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const TIME = /^(\d{4,}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(?::(\d\d))?(?:\.(\d+))?)?(?:Z|\+00(?::?00)?)?$/;
const HASHED = /^(\d+) values hashing to ([0-9a-f]{32})$/;
const TRUTH: ReadonlyMap<string, string> = new Map([
  ['t', '1'],
  ['true', '1'],
  ['f', '0'],
  ['false', '0'],
]);

/** Formats a value as in sqllogictest files. */
function text(cell: WireCell): string {
  return cell === null ? 'NULL' : cell === '' ? '(empty)' : cell;
}

/** Returns the canonical form of values that have several representations. */
function canonical(value: string): string {
  const trimmed = value.trim();
  const truth = TRUTH.get(trimmed.toLowerCase());
  if (truth !== undefined) {
    return truth;
  }
  const time = TIME.exec(trimmed);
  if (time !== null) {
    const [, day = '', minutes = '00:00', seconds = '00', fraction = ''] = time;
    return `${day}T${minutes}:${seconds}.${fraction.padEnd(9, '0').slice(0, 9)}`;
  }
  if (/^[[{].*[\]}]$/s.test(trimmed)) {
    const items = trimmed.slice(1, -1).split(',');
    const bare = items.map((item) => item.replace(/^[\s[{]*"?|"?[\]}\s]*$/g, ''));
    return `[${bare.map(canonical).join(',')}]`;
  }
  return NUMBER.test(trimmed) && !/^[+-]?\d{1,15}$/.test(trimmed)
    ? String(Number(Number(trimmed).toPrecision(9)))
    : trimmed;
}

/** Returns half a unit of the last printed digit. */
function roundingOf(number: string): number {
  const digits = /^[+-]?\d*\.(\d+)$/.exec(number)?.[1]?.length;
  return digits === undefined ? 0 : 0.5000001 * 10 ** -digits;
}

function sameValue(ours: string, expected: string): boolean {
  if (ours === expected) {
    return true;
  }
  const pattern = /^<(!?)REGEX>:(.*)$/s.exec(expected);
  if (pattern !== null) {
    return new RegExp(pattern[2] ?? '', 's').test(ours) === (pattern[1] === '');
  }
  const [left, right] = [canonical(ours), canonical(expected)];
  if (left === right) {
    return true;
  }
  if (!NUMBER.test(left) || !NUMBER.test(right) || (isWhole(left) && isWhole(right))) {
    return false;
  }
  const [a, b] = [Number(ours), Number(expected)];
  const tolerance = Math.max(roundingOf(expected), RELATIVE * Math.max(Math.abs(a), Math.abs(b)));
  return Math.abs(a - b) <= tolerance;
}

function isWhole(number: string): boolean {
  return /^[+-]?\d+$/.test(number);
}

/**
 * Formats a value as SQLite's test program prints a column of this type. Result hashes depend on
 * this format.
 */
function printed(cell: WireCell, type: string): string {
  const value = text(cell);
  if (cell !== null && type === 'I') {
    const number = Number(TRUTH.get(value) ?? value);
    return Number.isFinite(number) ? (isWhole(value) ? value : String(Math.trunc(number))) : '0';
  }
  if (cell !== null && type === 'R' && NUMBER.test(value)) {
    return Number(value).toFixed(3);
  }
  return value;
}

function inOrder(rows: readonly (readonly string[])[], sort: SortMode): readonly string[][] {
  if (sort === 'valuesort') {
    return rows
      .flat()
      .map((value) => [value])
      .toSorted(byText);
  }
  const copy = rows.map((row) => [...row]);
  return sort === 'rowsort' ? copy.toSorted(byText) : copy;
}

function byText(a: readonly string[], b: readonly string[]): number {
  const [left, right] = [a, b].map((row) => row.map(canonical).join('\u0000'));
  return (left ?? '') < (right ?? '') ? -1 : left === right ? 0 : 1;
}

/** Layout of expected rows in a suite: one value or one row per line. */
export type Layout = 'values' | 'rows' | 'either';

interface Expectation {
  readonly types: string;
  readonly sort: SortMode;
  readonly lines: readonly string[];
  readonly layout: Layout;
}

/** Returns `undefined` if the result is as expected, otherwise the difference. */
export function mismatch(
  answer: readonly (readonly WireCell[])[],
  width: number,
  expectation: Expectation,
): string | undefined {
  const { types, sort, lines } = expectation;
  const [first = ''] = lines;
  const hashed = lines.length === 1 ? HASHED.exec(first) : null;
  if (hashed !== null) {
    const rows = answer.map((row) => row.map((cell, index) => printed(cell, types[index] ?? 'T')));
    return hashMismatch(rows, sort, Number(hashed[1]), hashed[2] ?? '');
  }
  const ours = answer.map((row) => row.map(text));
  const expected = expectedRows(expectation, width);
  if (expected === undefined) {
    return `${String(width)} columns, expected ${String(lines.length)} values`;
  }
  return differentRows(inOrder(ours, sort), inOrder(expected, sort));
}

function hashMismatch(
  rows: readonly (readonly string[])[],
  sort: SortMode,
  count: number,
  digest: string,
): string | undefined {
  const plain = (a: string, b: string): number => (a < b ? -1 : a === b ? 0 : 1);
  const sorted =
    sort === 'rowsort' ? rows.toSorted((a, b) => plain(a.join('\u0000'), b.join('\u0000'))) : rows;
  const values = sort === 'valuesort' ? rows.flat().toSorted(plain) : sorted.flat();
  if (values.length !== count) {
    return `${String(values.length)} values, expected ${String(count)}`;
  }
  const hash = createHash('md5');
  for (const value of values) {
    hash.update(`${value}\n`);
  }
  return hash.digest('hex') === digest ? undefined : 'different hash of the same number of values';
}

function expectedRows(
  { lines, layout }: Expectation,
  width: number,
): readonly (readonly string[])[] | undefined {
  if (layout === 'rows') {
    return lines.map((line) => splitRow(line, width));
  }
  const byTab = lines.map((line) => line.trimEnd().split(/\t+/));
  if (layout === 'either' && width > 1 && byTab.every((row) => row.length === width)) {
    return byTab;
  }
  if (width === 0 || lines.length % width !== 0) {
    return undefined;
  }
  return Array.from({ length: lines.length / width }, (_, row) =>
    lines.slice(row * width, (row + 1) * width),
  );
}

/**
 * Splits a line into values at spaces outside brackets. If the number of values does not match, the
 * whole line is one value.
 */
function splitRow(line: string, width: number): readonly string[] {
  const values: string[] = [];
  let depth = 0;
  for (const word of line.trim().split(/\s+/)) {
    if (depth > 0) {
      values.push(`${values.pop() ?? ''} ${word}`);
    } else {
      values.push(word);
    }
    depth += (word.match(/[[{]/g)?.length ?? 0) - (word.match(/[\]}]/g)?.length ?? 0);
  }
  return width > 1 && values.length === width ? values : [line.trim()];
}

/** Returns the first difference between two lists of rows. */
function differentRows(
  ours: readonly (readonly string[])[],
  expected: readonly (readonly string[])[],
): string | undefined {
  if (ours.length !== expected.length) {
    return `${String(ours.length)} rows, expected ${String(expected.length)}`;
  }
  const wrong = ours.findIndex((row, index) => !sameRow(row, expected[index] ?? []));
  return wrong < 0
    ? undefined
    : `row ${String(wrong + 1)}: ${(ours[wrong] ?? []).join(' | ')}, ` +
        `expected ${(expected[wrong] ?? []).join(' | ')}`;
}

function sameRow(ours: readonly string[], expected: readonly string[]): boolean {
  if (ours.length !== expected.length) {
    const blanks = (row: readonly string[]): string =>
      row.map(canonical).join(' ').replace(/\s+/g, ' ');
    return expected.length === 1 && blanks(ours) === blanks(expected);
  }
  return ours.every((value, index) => sameValue(value, expected[index] ?? ''));
}

/** Returns the difference between two databases' results, compared in order or as multisets. */
export function answersDiffer(
  ours: readonly (readonly WireCell[])[],
  theirs: readonly (readonly WireCell[])[],
  ordered: boolean,
): string | undefined {
  const rows = [ours, theirs].map((answer) =>
    inOrder(
      answer.map((row) => row.map(text)),
      ordered ? 'nosort' : 'rowsort',
    ),
  );
  return differentRows(rows[0] ?? [], rows[1] ?? []);
}

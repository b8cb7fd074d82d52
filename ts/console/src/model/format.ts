/**
 * Converts values from the server to text for a cell or a copy. A copy contains the exact value,
 * without thousands separators, and is never truncated.
 */
import type { Column, Value } from '../api/answer.js';
import { familyOf } from './types.js';
import { texts } from '../texts.js';

export type Zone = 'utc' | 'local';

type CellKind = 'plain' | 'number' | 'time' | 'null' | 'special' | 'boolean' | 'array' | 'waiting';

export interface CellText {
  readonly kind: CellKind;
  readonly text: string;
  /**
   * Text to show in a fainter colour after the main text: digits beyond milliseconds, or a mark
   * that the value is truncated.
   */
  readonly faint?: string;
  /**
   * Number of characters by which this number's fraction is shorter than the longest fraction in
   * its column.
   */
  readonly short?: number;
}

const NULL: CellText = { kind: 'null', text: 'null' };
const ARRAY_SHOWN = 5;
const TEXT_SHOWN = 400;

/**
 * Converts a value to cell text. For times, `digits` is the number of fractional digits that the
 * column needs (0, 3, 6 or 9). For numbers, it is the number of characters from the decimal point
 * to the end.
 */
export function cellText(value: Value, column: Column, zone: Zone, digits: number): CellText {
  if (value === null) {
    return NULL;
  }
  switch (familyOf(column.type)) {
    case 'time':
      return timeCell(String(value), zone, digits);
    case 'integer':
    case 'decimal':
      return numberCell(value, digits);
    case 'boolean':
      return { kind: 'boolean', text: value === true ? 'true' : 'false' };
    case 'array':
      return Array.isArray(value) ? arrayCell(value) : plainCell(String(value));
    case 'binary':
      return { kind: 'special', text: texts.grid.binary };
    case 'symbol':
    case 'text':
    case 'other':
      return plainCell(String(value));
  }
}

function plainCell(text: string): CellText {
  if (text === '') {
    return { kind: 'special', text: texts.grid.empty };
  }
  const line = text.replace(/[\r\n\t]+/g, ' ');
  if (line.length <= TEXT_SHOWN) {
    return { kind: 'plain', text: line };
  }
  return { kind: 'plain', text: line.slice(0, TEXT_SHOWN), faint: ' …' };
}

function numberCell(value: Value, digits: number): CellText {
  if (Object.is(value, -0)) {
    return { kind: 'special', text: '-0.0' };
  }
  const text = String(value);
  if (/^[+-]?(?:NaN|Infinity)$/.test(text)) {
    return { kind: 'special', text };
  }
  const short = Math.max(0, digits - charsFromPoint(text));
  return { kind: 'number', text: grouped(text), ...(short === 0 ? {} : { short }) };
}

/**
 * Returns the number of characters from a number's decimal point to its end. Returns the maximum if
 * the number has an exponent.
 */
export function charsFromPoint(number: string): number {
  const match = /^[+-]?\d+(\.\d+)?(e.*)?$/i.exec(number);
  return match === null || match[2] !== undefined ? MAX_FROM_POINT : (match[1]?.length ?? 0);
}

/**
 * Numbers with at least this many characters after and including the decimal point are not aligned.
 */
export const MAX_FROM_POINT = 13;

/**
 * Adds thousands separators: `-1234567.5` becomes `-1,234,567.5`. The fraction and the exponent
 * stay unchanged.
 */
export function grouped(number: string): string {
  return number.replace(/^([+-]?)(\d+)/, (_match, sign: string, whole: string) => {
    return sign + whole.replace(/\B(?=(\d{3})+$)/g, ',');
  });
}

function arrayCell(values: readonly Value[]): CellText {
  const text = values.slice(0, ARRAY_SHOWN).map(nestedText).join(', ');
  const more = values.length - ARRAY_SHOWN;
  return more > 0 ? { kind: 'array', text, faint: `… +${more}` } : { kind: 'array', text };
}

function nestedText(value: Value): string {
  if (Array.isArray(value)) {
    return `[${value.map(nestedText).join(', ')}]`;
  }
  return value === null ? 'null' : String(value);
}

const ISO = /^(-?\d{4,6})-(\d\d)-(\d\d)T(\d\d:\d\d:\d\d)(?:\.(\d+))?Z$/;

function timeCell(iso: string, zone: Zone, digits: number): CellText {
  const match = ISO.exec(iso);
  if (!match) {
    return plainCell(iso);
  }
  const fraction = (match[5] ?? '').padEnd(9, '0');
  const fields = zone === 'utc' ? match.slice(1, 5) : localFields(iso);
  const [year, month, day, time] = fields;
  const base = `${year}-${month}-${day} ${time}`;
  const offset = zone === 'local' ? offsetOfTwice(new Date(iso)) : '';
  const text = digits === 0 ? base : `${base}.${fraction.slice(0, 3)}`;
  const faint = fraction.slice(3, digits) + offset;
  return faint === '' ? { kind: 'time', text } : { kind: 'time', text, faint };
}

const AROUND_MS = 6 * 3_600_000;
const MINUTE_MS = 60_000;

/**
 * Returns the UTC offset of a local time that occurs twice because clocks are set back. For any
 * other time, returns the empty string.
 */
function offsetOfTwice(date: Date): string {
  const time = date.getTime();
  const offset = date.getTimezoneOffset();
  const isTwice = [time - AROUND_MS, time + AROUND_MS].some((near) => {
    const other = new Date(near).getTimezoneOffset();
    const twin = new Date(time + (other - offset) * MINUTE_MS);
    return other !== offset && twin.getTimezoneOffset() === other;
  });
  if (!isTwice) {
    return '';
  }
  const two = (part: number): string => String(part).padStart(2, '0');
  const minutes = Math.abs(offset);
  return ` ${offset > 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

function localFields(iso: string): string[] {
  const date = new Date(iso);
  const two = (part: number): string => String(part).padStart(2, '0');
  return [
    String(date.getFullYear()).padStart(4, '0'),
    two(date.getMonth() + 1),
    two(date.getDate()),
    [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(':'),
  ];
}

/** Returns the number of fractional digits of a time, rounded up to 0, 3, 6 or 9. */
export function fractionDigits(iso: Value): number {
  if (typeof iso !== 'string') {
    return 0;
  }
  const used = (ISO.exec(iso)?.[5] ?? '').replace(/0+$/, '').length;
  return Math.ceil(used / 3) * 3;
}

/** Converts a value to a string for the clipboard. */
export function copyText(value: Value): string {
  if (value === null) {
    return '';
  }
  if (Array.isArray(value)) {
    return JSON.stringify(value);
  }
  return Object.is(value, -0) ? '-0.0' : String(value);
}

/** Formats rows as tab-separated values with a header line, as spreadsheets expect. */
export function copyRows(columns: readonly Column[], rows: readonly (readonly Value[])[]): string {
  return [columns.map((column) => oneCell(column.name)).join('\t'), copyCells(rows)].join('\n');
}

/** Formats rows as tab-separated values without a header line. */
export function copyCells(rows: readonly (readonly Value[])[]): string {
  return rows.map((row) => row.map((value) => oneCell(copyText(value))).join('\t')).join('\n');
}

/** Replaces tabs and line breaks, so that a string stays in one cell. */
function oneCell(text: string): string {
  return text.replace(/[\t\r\n]+/g, ' ');
}

/** Formats a count when only its magnitude matters: 48213004 becomes `48.2 M`. */
export function approximate(count: number): string {
  if (count < 10_000) {
    return grouped(String(count));
  }
  const [unit, size]: [string, number] =
    count < 1e6 ? ['k', 1e3] : count < 1e9 ? ['M', 1e6] : ['G', 1e9];
  const scaled = count / size;
  return `${scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)} ${unit}`;
}

/** Formats a duration: 0.4 becomes `0.4 ms`, 1532 becomes `1.53 s`. */
export function duration(ms: number): string {
  if (ms < 10) {
    return `${Number(ms.toFixed(1))} ms`;
  }
  if (ms < 1000) {
    return `${Math.round(ms)} ms`;
  }
  if (ms < 60_000) {
    return `${Number((ms / 1000).toFixed(2))} s`;
  }
  return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/**
 * Replaces invisible characters, and characters that change the text direction, by their code
 * points.
 */
export function withHiddenShown(text: string): string {
  return text.replaceAll(
    /[\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
    (hidden) => `[U+${hidden.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}]`,
  );
}

/** Formats a number of bytes: 1536 becomes `1.5 KiB`. */
export function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const scaled = bytes / 1024 ** step;
  const decimals = step === 0 || scaled >= 100 ? 0 : 1;
  return `${scaled.toFixed(decimals)} ${units[step] ?? ''}`;
}

/** Formats a timestamp to the second, in ISO format without the letters `T` and `Z`. */
export function timestampText(iso: string | undefined): string {
  return iso === undefined ? '–' : iso.slice(0, 19).replace('T', ' ');
}

/** Formats a count with its noun in the singular or plural: `1,204 rows`. */
export function countText(count: number, forms: Readonly<Record<'one' | 'other', string>>): string {
  return (count === 1 ? forms.one : forms.other).replace('{count}', grouped(String(count)));
}

export function rowsText(count: number): string {
  return countText(count, texts.counts.rows);
}

/** Guesses the type of a column without a declared type, and reports how certain the guess is. */
import {
  ambiguousPatterns,
  areIsoTimestamps,
  type ColumnType,
  detectColumnType,
  isExact,
  isNumberType,
} from './column-types.js';
import { datePattern, epochForm, type TimestampFormat } from './date-forms.js';
import { type DecimalMark, isCode, numberForm } from './number-forms.js';

/** Hints for all columns of the input. */
interface GuessHints {
  /** Decimal mark in numbers; `null` to detect it. */
  readonly decimal: DecimalMark | null;
  /** Whether the word `null` means null in number and time columns. */
  readonly nullWord: boolean;
  /** Whether the input format itself marks the values as strings. */
  readonly isText: boolean;
}

interface Guess extends ColumnType {
  /** How the values become timestamps; `null` if they are not timestamps. */
  readonly timestampFormat: TimestampFormat | null;
  /** All matching patterns, if several match all dates. */
  readonly ambiguous: readonly string[];
  /** Notes for the sender. */
  readonly notes: readonly string[];
}

const isNullWord = (text: string): boolean => text.toLowerCase() === 'null';

export function guessColumn(cells: readonly string[], hints: GuessHints): Guess {
  const texts = cells.filter((cell) => cell !== '');
  const values = hints.nullWord ? texts.filter((text) => !isNullWord(text)) : texts;
  const type = typeOf(values, hints);
  const hasNullWords = values.length < texts.length && ['VARCHAR', 'CHAR'].includes(type.type);
  const found = hasNullWords ? { ...detectColumnType(texts), notes: [] } : type;
  return { ...found, ...detectTimestampFormat(values) };
}

interface Noted extends ColumnType {
  readonly notes: readonly string[];
}

function typeOf(texts: readonly string[], { decimal, isText }: GuessHints): Noted {
  const found = detectColumnType(texts);
  const isNumber = isNumberType(found.type);
  if (isText && (isNumber || found.type === 'BOOLEAN' || found.type === 'CHAR')) {
    return { type: 'VARCHAR', notes: [] };
  }
  const code = isNumber ? texts.find(isCode) : undefined;
  if (code !== undefined) {
    return { type: 'VARCHAR', notes: [`kept as text, because of '${code}'`] };
  }
  const inexact = texts.find((text) => !isExact(text));
  if (inexact !== undefined && found.type.startsWith('DECIMAL')) {
    return { ...found, notes: [`${found.type} keeps all digits of '${inexact}'`] };
  }
  if (found.type === 'VARCHAR' || (isNumber && decimal === ',')) {
    return writtenType(texts, found, decimal);
  }
  const patterns = ambiguousPatterns(texts);
  const [chosen = '', other = ''] = patterns;
  const note = `read as ${chosen}, but could also be ${other}: specify the pattern in the schema`;
  return { ...found, notes: patterns.length > 1 ? [note] : [] };
}

/** Returns the type of strings that are not plain values: arrays, or numbers in a local format. */
function writtenType(
  texts: readonly string[],
  found: ColumnType,
  decimal: DecimalMark | null,
): Noted {
  const dimensions = arrayDimensions(texts);
  if (dimensions > 0) {
    return { type: `DOUBLE${'[]'.repeat(dimensions)}`, notes: [] };
  }
  const form = texts.length === 0 ? null : numberForm(texts, decimal);
  if (form === null) {
    return { ...found, notes: [] };
  }
  if (form === 'ambiguous') {
    const [first = ''] = texts;
    const note = `kept as text: '${first}' can be read as two numbers; add decimal=, or decimal=.`;
    return { ...found, notes: [note] };
  }
  const notes = decimal === null ? [`read as numbers with '${form.pattern}' as decimal mark`] : [];
  return { ...form, notes };
}

const MAX_DIMENSIONS = 32;

/**
 * Returns the number of dimensions of arrays in this database's format; 0 if the strings are not
 * arrays.
 */
function arrayDimensions(texts: readonly string[]): number {
  const depth = /^\[+/.exec(texts[0] ?? '')?.[0].length ?? 0;
  const open = '['.repeat(depth);
  const isArray = (text: string): boolean =>
    text.startsWith(open) &&
    text[depth] !== '[' &&
    text.endsWith(']'.repeat(depth)) &&
    /^(?:[[\], \d.eE+-]|null)*$/.test(text);
  return depth <= MAX_DIMENSIONS && texts.every(isArray) ? depth : 0;
}

function detectTimestampFormat(
  texts: readonly string[],
): Pick<Guess, 'timestampFormat' | 'ambiguous'> {
  if (texts.length === 0) {
    return { timestampFormat: null, ambiguous: [] };
  }
  if (areIsoTimestamps(texts)) {
    return { timestampFormat: { type: 'TIMESTAMP' }, ambiguous: [] };
  }
  const found = epochForm(texts) ?? datePattern(texts);
  return found !== null && 'patterns' in found
    ? { timestampFormat: null, ambiguous: found.patterns }
    : { timestampFormat: found, ambiguous: [] };
}

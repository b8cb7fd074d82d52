/** What a column that its sender says nothing about is: its type, and how sure that is. */
import {
  ambiguousPatterns,
  areIsoInstants,
  type ColumnType,
  detectColumnType,
  isExact,
  isNumberType,
} from './column-types.js';
import { datePattern, epochForm, type InstantForm } from './date-forms.js';
import { type DecimalMark, isCode, numberForm } from './number-forms.js';

/** What is known of all columns of a text. */
interface GuessHints {
  /** The decimal mark of numbers; `null` finds it out. */
  readonly decimal: DecimalMark | null;
  /** The word `null` is null where numbers and times are. */
  readonly nullWord: boolean;
  /** The text says itself which values are texts. */
  readonly isText: boolean;
}

interface Guess extends ColumnType {
  /** How its texts are read as timestamps; `null` when they are none. */
  readonly instant: InstantForm | null;
  /** Its dates fit each of these. */
  readonly ambiguous: readonly string[];
  /** What its sender should know. */
  readonly notes: readonly string[];
}

const isNullWord = (text: string): boolean => text.toLowerCase() === 'null';

export function guessColumn(cells: readonly string[], hints: GuessHints): Guess {
  const texts = cells.filter((cell) => cell !== '');
  const values = hints.nullWord ? texts.filter((text) => !isNullWord(text)) : texts;
  const type = typeOf(values, hints);
  const keepsWord = values.length < texts.length && ['VARCHAR', 'CHAR'].includes(type.type);
  const found = keepsWord ? { ...detectColumnType(texts), notes: [] } : type;
  return { ...found, ...instantOf(values) };
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
  const note = `read as ${chosen}, and could be ${other}: name the pattern in the schema`;
  return { ...found, notes: patterns.length > 1 ? [note] : [] };
}

/** Texts that are no plain value may be arrays, or numbers of another country. */
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
    const note = `kept as text: '${first}' is a number in two ways, add decimal=, or decimal=.`;
    return { ...found, notes: [note] };
  }
  const notes = decimal === null ? [`read as numbers with '${form.pattern}' as decimal mark`] : [];
  return { ...form, notes };
}

const MAX_DIMENSIONS = 32;

/** Brackets around numbers, as this database writes arrays; 0 when it is none. */
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

function instantOf(texts: readonly string[]): Pick<Guess, 'instant' | 'ambiguous'> {
  if (texts.length === 0) {
    return { instant: null, ambiguous: [] };
  }
  if (areIsoInstants(texts)) {
    return { instant: { type: 'TIMESTAMP' }, ambiguous: [] };
  }
  const found = epochForm(texts) ?? datePattern(texts);
  return found !== null && 'patterns' in found
    ? { instant: null, ambiguous: found.patterns }
    : { instant: found, ambiguous: [] };
}

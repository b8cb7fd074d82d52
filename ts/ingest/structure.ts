/** Detects the structure of an input from its first lines: delimiter, header, columns and types. */
import { type ColumnType, detectColumnType, fitsType } from './column-types.js';
import { DELIMITER_CANDIDATES, splitFields, splitLines } from './csv-lines.js';
import type { TimestampFormat } from './date-forms.js';
import { detectDelimiter } from './delimiter.js';
import { guessColumn } from './guess.js';
import { areNames } from './header-guess.js';
import { ImportError } from './import-error.js';
import { columnNames } from './names.js';
import type { DecimalMark } from './number-forms.js';
import type { ImportSchema } from './schema-part.js';

export interface TextColumn extends ColumnType {
  readonly name: string;
  /** Whether the sender declared the type. */
  readonly isDeclared: boolean;
  /** The format for converting the values to timestamps; `null` if they are not timestamps. */
  readonly timestampFormat: TimestampFormat | null;
  /** The patterns, if several match all dates. */
  readonly ambiguous: readonly string[];
  /** Notes on the guess for the sender. */
  readonly notes: readonly string[];
}

export interface TextStructure {
  readonly delimiter: string;
  readonly header: boolean;
  readonly columns: readonly TextColumn[];
}

export interface StructureHints {
  /** The input's name in messages: `table=t`, `file=f.csv`. */
  readonly source: string;
  readonly delimiter: string | null;
  /** Whether the first line is a header; `null` to detect it. */
  readonly header: boolean | null;
  readonly schema: ImportSchema;
  /** Maximum number of lines to analyse. */
  readonly linesMax: number;
  /** Decimal mark in numbers; `null` to detect it. */
  readonly decimal?: DecimalMark | null;
  /** Whether the word `null` means null in number and time columns. */
  readonly nullWord?: boolean;
  /** For each column, whether the input format itself marks the values as strings. */
  readonly texts?: readonly boolean[];
}

/** Minimum number of complete lines for treating single characters above digits as a header. */
const MIN_LINES_OF_CHARS = 3;

const NOTHING_GUESSED = { timestampFormat: null, ambiguous: [], notes: [] };

/** Detects the structure of an input. With `isComplete`, the sample is the complete input. */
export function analyseText(
  sample: string,
  isComplete: boolean,
  hints: StructureHints,
): TextStructure {
  const { lines, terminated } = sampleLines(sample, isComplete, hints);
  const delimiter = hints.delimiter ?? detectDelimiter(lines, hints.linesMax);
  const rows = lines.map((line) => splitFields(line, delimiter));
  const first = rows[0] ?? [];
  const header = hints.header ?? isHeader(rows, terminated);
  const data = header ? rows.slice(1) : rows;
  const names = header ? columnNames(first) : first.map((_, index) => `f${index}`);
  const columns = names.map((name, index): TextColumn => {
    const declared =
      hints.schema.get(name.toLowerCase()) ??
      (header ? hints.schema.get((first[index] ?? '').toLowerCase()) : undefined);
    if (declared !== undefined) {
      return { name, ...declared, isDeclared: true, ...NOTHING_GUESSED };
    }
    // If there are no data rows, the header's own cells are analysed.
    const cells = (data.length > 0 ? data : rows).map((row) => row[index] ?? '');
    const { decimal = null, nullWord = false, texts = [] } = hints;
    const guess = guessColumn(cells, { decimal, nullWord, isText: texts[index] ?? false });
    return { name, ...guess, isDeclared: false };
  });
  return { delimiter, header, columns };
}

interface AnalysedLines {
  readonly lines: readonly string[];
  /** Number of lines that have a line end. */
  readonly terminated: number;
}

/**
 * Returns the lines to analyse. At the end of a complete input, the last line may lack a line end.
 */
function sampleLines(sample: string, isComplete: boolean, hints: StructureHints): AnalysedLines {
  const text = sample.startsWith('\ufeff') ? sample.slice(1) : sample;
  const delimiters = hints.delimiter === null ? DELIMITER_CANDIDATES : [hints.delimiter];
  const { terminated, remainder, isRemainderLine } = splitLines(text, delimiters, hints.linesMax);
  const minLines = hints.delimiter === null ? 2 : 1;
  const lines = isComplete && isRemainderLine ? [...terminated, remainder] : terminated;
  if (lines.length >= minLines) {
    return { lines, terminated: terminated.length };
  }
  const isUnclear = remainder.length > LONG_LINE || (remainder !== '' && !isRemainderLine);
  const why = isUnclear ? explainUnterminated(terminated, remainder, delimiters) : '';
  throw new ImportError(
    hints.delimiter === null
      ? `not enough lines [${hints.source}]${why}`
      : `cannot determine text structure [${hints.source}]${why}`,
  );
}

/** Maximum length of an unfinished last line; a longer one is considered an error. */
const LONG_LINE = 64 * 1024;

/** Explains why a remainder has no line end: it has an unclosed quote, or it is too long. */
function explainUnterminated(
  terminated: readonly string[],
  remainder: string,
  delimiters: readonly string[],
): string {
  const [first = ''] = remainder.split(/[\r\n]/, 1);
  const isQuoted =
    first.startsWith('"') || delimiters.some((delimiter) => first.includes(`${delimiter}"`));
  const line = terminated.length + 1;
  return isQuoted
    ? `: a quote that opens in line ${line} is not closed`
    : `: line ${line} does not end within ${remainder.length} characters`;
}

/**
 * Returns whether the first line is a header, which it is if it does not match the types of the
 * lines below. Its first or last cell may be empty, for an unnamed index or for a delimiter after
 * the last column.
 *
 * A single data row is weak evidence, so every header cell must then be a string. Single characters
 * above single digits may be CHAR columns; only further complete lines can exclude that.
 */
function isHeader(rows: readonly (readonly string[])[], terminated: number): boolean {
  const [first = [], ...data] = rows;
  const empty = first.flatMap((cell, index) => (cell === '' ? [index] : []));
  const [only] = empty;
  if (empty.length > 1 || (only !== undefined && only !== 0 && only !== first.length - 1)) {
    return false;
  }
  if (data.length === 0 || (data.length === 1 && first.some((cell) => isValue([cell])))) {
    return false;
  }
  const columns = first.map((_, index) => data.map((row) => row[index] ?? ''));
  const hasNames = areNames(first.filter((cell) => cell !== ''));
  const mayBeChars = terminated < MIN_LINES_OF_CHARS && first.every((cell) => cell.length <= 1);
  return first.some((cell, index) => {
    const cells = columns[index] ?? [];
    const isChar = mayBeChars && detectColumnType([cell, ...cells]).type === 'CHAR';
    const differs = !fitsType(cell, detectColumnType(cells));
    const isAbove = hasNames && isValue(cells) && !isValue([cell, ...cells]);
    return (differs || isAbove) && !isChar;
  });
}

/** Returns whether the cells match a type other than text. */
function isValue(cells: readonly string[]): boolean {
  const guess = guessColumn(cells, { decimal: null, nullWord: true, isText: false });
  const { type, timestampFormat, ambiguous } = guess;
  return (
    (type !== 'VARCHAR' && type !== 'CHAR') || timestampFormat !== null || ambiguous.length > 0
  );
}

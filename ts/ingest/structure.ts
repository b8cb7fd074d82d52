/** The structure of a text, from its first lines: delimiter, header, columns and their types. */
import {
  type ColumnType,
  ambiguousPatterns,
  areIsoInstants,
  detectColumnType,
  fitsType,
} from './column-types.js';
import { DELIMITER_CANDIDATES, splitFields, splitLines } from './csv-lines.js';
import { detectDelimiter } from './delimiter.js';
import { ImportError } from './import-error.js';
import { columnNames } from './names.js';
import type { ImportSchema } from './schema-part.js';

export interface TextColumn extends ColumnType {
  readonly name: string;
  /** The sender set the type. */
  readonly isDeclared: boolean;
  /** Detected as another type, its texts could be read as ISO timestamps. */
  readonly couldBeTimestamp: boolean;
  /** Its dates fit each of these. */
  readonly ambiguous: readonly string[];
}

export interface TextStructure {
  readonly delimiter: string;
  readonly header: boolean;
  readonly columns: readonly TextColumn[];
}

interface StructureHints {
  readonly table: string;
  readonly delimiter: string | null;
  /** Whether the first line is a header; `null` looks at it. */
  readonly header: boolean | null;
  readonly schema: ImportSchema;
  /** Lines that are looked at. */
  readonly linesMax: number;
}

/** A header is distinguished from data by its types, and needs this many lines to compare. */
const MIN_LINES_FOR_HEADER = 3;

/** Finds the structure of a text. `isWhole`: the sample is all of it. */
export function analyseText(
  sample: string,
  isWhole: boolean,
  hints: StructureHints,
): TextStructure {
  const lines = sampleLines(sample, isWhole, hints);
  const delimiter = hints.delimiter ?? detectDelimiter(lines, hints.linesMax);
  const rows = lines.map((line) => splitFields(line, delimiter));
  const first = rows[0] ?? [];
  const header = hints.header ?? isHeader(rows);
  const data = header ? rows.slice(1) : rows;
  const names = header ? columnNames(first) : first.map((_, index) => `f${index}`);
  const columns = names.map((name, index): TextColumn => {
    const declared =
      hints.schema.get(name.toLowerCase()) ??
      (header ? hints.schema.get((first[index] ?? '').toLowerCase()) : undefined);
    if (declared !== undefined) {
      return { name, ...declared, isDeclared: true, couldBeTimestamp: false, ambiguous: [] };
    }
    // With nothing below it, the header itself is all there is to look at.
    const cells = (data.length > 0 ? data : rows).map((row) => row[index] ?? '');
    const couldBeTimestamp = areIsoInstants(cells);
    const ambiguous = ambiguousPatterns(cells);
    const found = detectColumnType(cells);
    return { name, ...found, isDeclared: false, couldBeTimestamp, ambiguous };
  });
  return { delimiter, header, columns };
}

/**
 * The lines to look at. The last line counts only with its line end, unless there are too few
 * lines without it.
 */
function sampleLines(sample: string, isWhole: boolean, hints: StructureHints): readonly string[] {
  const text = sample.startsWith('\ufeff') ? sample.slice(1) : sample;
  const delimiters = hints.delimiter === null ? DELIMITER_CANDIDATES : [hints.delimiter];
  const { terminated, rest } = splitLines(text, delimiters, hints.linesMax);
  const needed = hints.delimiter === null ? 2 : 1;
  if (terminated.length >= needed) {
    return terminated;
  }
  const isOpenQuote = splitsOpen(rest);
  const lines = isWhole && rest !== '' && !isOpenQuote ? [...terminated, rest] : terminated;
  if (lines.length >= needed) {
    return lines;
  }
  throw new ImportError(
    hints.delimiter === null
      ? `not enough lines [table=${hints.table}]`
      : `cannot determine text structure [table=${hints.table}]`,
  );
}

/** Whether a rest without line end is one because a quote in it was never closed. */
function splitsOpen(rest: string): boolean {
  return /[\r\n]/.test(rest);
}

/** The first line is a header when it has no empty cell and does not fit the types below it. */
function isHeader(rows: readonly (readonly string[])[]): boolean {
  const [first, ...data] = rows;
  if (first === undefined || rows.length < MIN_LINES_FOR_HEADER) {
    return false;
  }
  if (first.some((cell) => cell === '')) {
    return false;
  }
  return first.some((cell, index) => {
    const type = detectColumnType(data.map((row) => row[index] ?? ''));
    return !fitsType(cell, type);
  });
}

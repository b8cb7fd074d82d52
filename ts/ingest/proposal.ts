/**
 * What an import would make of a text, derived from its beginning: nothing is written. People look
 * at it, change it, and send the import with what they chose.
 */
import { type NearType, nearType } from './column-types.js';
import { splitFields, splitLines } from './csv-lines.js';
import { areNames, namesColumns } from './header-guess.js';
import { ANALYSED_LINES } from './limits.js';
import { cleanTableName } from './names.js';
import { analyseText, type TextColumn, type TextStructure } from './structure.js';

/** What the sender knows already. */
interface ProposalHints {
  /** Name of the table, or of the file. */
  readonly name: string;
  /** `null` detects it. */
  readonly delimiter: string | null;
  /** Whether the first line is a header; `null` looks at it. */
  readonly header: boolean | null;
  /** The bytes are the whole text. */
  readonly isWhole: boolean;
}

interface ProposedColumn {
  readonly name: string;
  readonly type: string;
  /** How the texts of a time type are written; absent: ISO. */
  readonly pattern?: string;
  /** A text column whose values could be read as ISO timestamps. */
  readonly couldBeTimestamp: boolean;
  /** The first values. */
  readonly values: readonly string[];
  /** A type that all but a few values of a text column have. */
  readonly near?: NearType;
}

interface ImportProposal {
  readonly table: string;
  readonly delimiter: string;
  readonly header: boolean;
  /** Whether that is a guess, because the types do not tell. */
  readonly headerIsGuess?: true;
  /** Bytes before the first row: mark of the encoding and header line. */
  readonly headerBytes: number;
  /** Rows that were looked at. */
  readonly rows: number;
  readonly columns: readonly ProposedColumn[];
}

const SHOWN_VALUES = 3;

/** Throws `ImportError` when the text has no recognisable structure. */
export function proposeImport(bytes: Buffer, hints: ProposalHints): ImportProposal {
  const table = cleanTableName(hints.name.replace(/\.[^.]*$/, ''));
  const text = bytes.toString('utf8');
  const analyse = (header: boolean | null): TextStructure =>
    analyseText(text, hints.isWhole, {
      table,
      delimiter: hints.delimiter,
      header,
      schema: new Map(),
      linesMax: ANALYSED_LINES,
    });
  const found = analyse(hints.header);
  const lines = dataRows(text, found.delimiter, false, hints.isWhole);
  const isCertain = hints.header !== null || found.header || !areNames(lines[0] ?? []);
  const isGuessed = !isCertain && namesColumns(lines);
  const { delimiter, header, columns } = isGuessed ? analyse(true) : found;
  const rows = dataRows(text, delimiter, header, hints.isWhole);
  return {
    table,
    delimiter,
    header,
    ...(isCertain ? {} : { headerIsGuess: true }),
    headerBytes: bytesBeforeRows(bytes, delimiter, header),
    rows: rows.length,
    columns: columns.map((column, index) =>
      proposeColumn(
        column,
        rows.map((row) => row[index] ?? ''),
      ),
    ),
  };
}

function proposeColumn(column: TextColumn, cells: readonly string[]): ProposedColumn {
  const { name, type, pattern, couldBeTimestamp } = column;
  const near = type === 'VARCHAR' && !couldBeTimestamp ? nearType(cells) : null;
  return {
    name,
    type,
    ...(pattern === undefined ? {} : { pattern }),
    couldBeTimestamp,
    values: cells.filter((cell) => cell !== '').slice(0, SHOWN_VALUES),
    ...(near === null ? {} : { near }),
  };
}

function dataRows(text: string, delimiter: string, header: boolean, isWhole: boolean): string[][] {
  const plain = text.startsWith('\ufeff') ? text.slice(1) : text;
  const { terminated, rest } = splitLines(plain, [delimiter], ANALYSED_LINES);
  const isLastLine = isWhole && rest !== '' && !/[\r\n]/.test(rest);
  const lines = isLastLine ? [...terminated, rest] : terminated;
  return lines.slice(header ? 1 : 0).map((line) => splitFields(line, delimiter));
}

/** Counted in bytes: one character is one byte here, whatever the text's encoding. */
function bytesBeforeRows(bytes: Buffer, delimiter: string, header: boolean): number {
  const text = bytes.toString('latin1');
  const mark = text.startsWith('\u00ef\u00bb\u00bf') ? 3 : 0;
  if (!header) {
    return mark;
  }
  return text.length - splitLines(text.slice(mark), [delimiter], 1).rest.length;
}

/**
 * What an import would make of a text, derived from its beginning: nothing is written. People look
 * at it, change it, and send the import with what they chose.
 */
import { type NearType, nearType } from './column-types.js';
import { splitFields, splitLines } from './csv-lines.js';
import { withoutComments } from './comments.js';
import { areNames, namesColumns } from './header-guess.js';
import type { JsonText } from './bytes/json-text.js';
import { ANALYSED_LINES, MAX_SAMPLE_BYTES } from './limits.js';
import { cleanTableName } from './names.js';
import { prepare } from './bytes/prepare.js';
import type { TextColumn } from './structure.js';

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
  /** The header's cell where it is no name: `wind speed` of `windSpeed`. */
  readonly header?: string;
  readonly type: string;
  /** How the texts of a time type are written; absent: ISO. */
  readonly pattern?: string;
  /** Its values could be read as timestamps. */
  readonly couldBeTimestamp: boolean;
  /** The first values. */
  readonly values: readonly string[];
  /** A type that all but a few values of a text column have. */
  readonly near?: NearType;
  /** What was guessed, and could be otherwise. */
  readonly notes?: readonly string[];
}

interface ImportProposal {
  readonly table: string;
  readonly delimiter: string;
  readonly header: boolean;
  /** Whether that is a guess, because the types do not tell. */
  readonly headerIsGuess?: true;
  /** Bytes before the first row: mark of the encoding and header line. */
  readonly headerBytes: number;
  /** The file goes as it is, names included: it is no plain text. */
  readonly asIs?: true;
  /** Rows that were looked at. */
  readonly rows: number;
  readonly warnings?: readonly string[];
  readonly columns: readonly ProposedColumn[];
}

const SHOWN_VALUES = 3;
/** Characters of a header's cell that are shown. */
const MAX_LABEL = 200;

/** Rejects with an `ImportError` when the text has no recognisable structure. */
export async function proposeImport(bytes: Buffer, hints: ProposalHints): Promise<ImportProposal> {
  const table = cleanTableName(hints.name.replace(GZIP_ENDING, '').replace(/\.[^.]*$/, ''));
  const begun = await readBeginning(bytes, hints);
  const { json, isWhole } = begun;
  const { delimiter: givenDelimiter, header: givenHeader } =
    json === null ? hints : { delimiter: ',', header: json.header };
  const analyse = (header: boolean | null): ReturnType<typeof withoutComments> =>
    withoutComments(
      { text: begun.text, isWhole, chunks: nothing() },
      {
        source: `table=${table}`,
        delimiter: givenDelimiter,
        header,
        schema: new Map(),
        linesMax: ANALYSED_LINES,
        ...(json === null ? {} : { texts: json.texts }),
      },
    );
  const found = analyse(givenHeader);
  const { text } = found;
  const lines = dataRows(text, found.structure.delimiter, false, isWhole);
  const isCertain = givenHeader !== null || found.structure.header || !areNames(lines[0] ?? []);
  const isGuessed = !isCertain && namesColumns(lines);
  const { delimiter, header, columns } = (isGuessed ? analyse(true) : found).structure;
  const rows = dataRows(text, delimiter, header, isWhole);
  const [labels = []] = header ? dataRows(text, delimiter, false, isWhole) : [];
  const isPlain = begun.isPlain && text === begun.text;
  const warnings = [...found.notes, ...(json?.notes() ?? [])];
  return {
    table,
    delimiter,
    header,
    ...(isCertain ? {} : { headerIsGuess: true }),
    headerBytes: isPlain ? bytesBeforeRows(bytes, delimiter, header) : 0,
    ...(isPlain ? {} : { asIs: true }),
    rows: rows.length,
    ...(warnings.length === 0 ? {} : { warnings }),
    columns: columns.map((column, index) =>
      proposeColumn(
        column,
        labels[index] ?? '',
        rows.map((row) => row[index] ?? ''),
      ),
    ),
  };
}

const GZIP_ENDING = /\.gz$/i;

interface Beginning {
  readonly text: string;
  readonly json: JsonText | null;
  /** The text is all of it. */
  readonly isWhole: boolean;
  /** The bytes are the text's. */
  readonly isPlain: boolean;
}

/** The text that the bytes are, or as much of it as is looked at. */
async function readBeginning(bytes: Buffer, hints: ProposalHints): Promise<Beginning> {
  const { delimiter, isWhole } = hints;
  const { content, json } = await prepare(only(bytes), {
    encoding: null,
    json: delimiter === null,
    linesMax: ANALYSED_LINES,
    isWhole,
  });
  const pieces: Buffer[] = [];
  let length = 0;
  let isCut = false;
  for await (const piece of content) {
    isCut = length + piece.length > MAX_SAMPLE_BYTES;
    if (isCut) {
      break;
    }
    pieces.push(piece);
    length += piece.length;
  }
  const all = Buffer.concat(pieces);
  const isPlain = all.equals(bytes);
  return { text: all.toString('utf8'), json, isWhole: isWhole && !isCut, isPlain };
}

async function* only(bytes: Buffer): AsyncGenerator<Buffer> {
  yield await Promise.resolve(bytes);
}

async function* nothing(): AsyncGenerator<Buffer> {
  // Nothing is read again.
}

function proposeColumn(
  column: TextColumn,
  label: string,
  cells: readonly string[],
): ProposedColumn {
  const { name, type, pattern, instant, notes } = column;
  const couldBeTimestamp = instant !== null;
  const isPlain = type === 'VARCHAR' && !couldBeTimestamp && notes.length === 0;
  const near = isPlain ? nearType(cells) : null;
  return {
    name,
    ...(label === '' || label === name ? {} : { header: label.slice(0, MAX_LABEL) }),
    type,
    ...(pattern === undefined ? {} : { pattern }),
    couldBeTimestamp,
    values: cells.filter((cell) => cell !== '').slice(0, SHOWN_VALUES),
    ...(near === null ? {} : { near }),
    ...(notes.length === 0 ? {} : { notes }),
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
  const { rest } = splitLines(text.slice(mark), [delimiter], 1);
  const isBetween = rest.startsWith('\n') && text.at(-rest.length - 1) === '\r';
  return text.length - rest.length + Number(isBetween);
}

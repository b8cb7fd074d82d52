/**
 * Proposes an import based on the start of an input, without writing anything. The user reviews and
 * edits the proposal, which then determines the import request.
 */
import { isNumberType, type ColumnType } from './column-types.js';
import { splitFields, splitLines } from './csv-lines.js';
import { withoutComments } from './comments.js';
import { timestampFormats } from './date-forms.js';
import { areNames, namesColumns } from './header-guess.js';
import type { ImportDatabase } from './import.js';
import { ImportError } from './import-error.js';
import type { JsonText } from './bytes/json-text.js';
import { ANALYSED_LINES, MAX_SAMPLE_BYTES } from './limits.js';
import { cleanTableName } from './names.js';
import { type CandidateType, candidateType } from './candidate-type.js';
import { prepare } from './bytes/prepare.js';
import { parseSchemaPart } from './schema-part.js';
import type { TextColumn } from './structure.js';
import { type SampleRows, type Trial, type TrialResult, tryForms } from './trial.js';

/** Settings that the sender knows. */
interface ProposalHints {
  /** Name of the table or file. */
  readonly name: string;
  /** Input delimiter; `null` to detect it. */
  readonly delimiter: string | null;
  /** Whether the first line is a header; `null` to detect it. */
  readonly header: boolean | null;
  /** Whether the bytes are the whole input rather than only its start. */
  readonly isComplete: boolean;
}

interface ProposedColumn {
  readonly name: string;
  /** The original header cell, if it is not a valid column name: `wind speed` for `windSpeed`. */
  readonly header?: string;
  readonly type: string;
  /** Pattern for parsing a time type; absent for ISO. */
  readonly pattern?: string;
  /** Set if the import does not detect this type itself, so the schema must declare it. */
  readonly isSet?: true;
  /** Result of a trial with this type; absent if the import can read all values. */
  readonly trial?: TrialResult;
  /** Time formats that the import can use, each with the number of values it can read. */
  readonly forms?: readonly TriedForm[];
  /** Whether the values may be timestamps, so that TIMESTAMP can be offered. */
  readonly couldBeTimestamp: boolean;
  /** The column's first few values. */
  readonly values: readonly string[];
  /** A type that matches a text column with few exceptions. */
  readonly near?: CandidateType;
  /** Notes on guesses that may be wrong. */
  readonly notes?: readonly string[];
}

type TriedForm = ColumnType & TrialResult;

interface ImportProposal {
  readonly table: string;
  readonly delimiter: string;
  readonly header: boolean;
  /** Set if `header` is a guess because the types are inconclusive. */
  readonly headerIsGuess?: true;
  /** Bytes before the first row: the byte order mark and the header line. */
  readonly headerBytes: number;
  /**
   * Set if the file must be sent unchanged, including its column names, because it is not plain
   * text.
   */
  readonly asIs?: true;
  /** Number of rows analysed. */
  readonly rows: number;
  readonly warnings?: readonly string[];
  readonly columns: readonly ProposedColumn[];
}

const SHOWN_VALUES = 3;
/** Maximum number of characters to show from a header cell. */
const MAX_LABEL = 200;

/** Proposes an import. Rejects with an `ImportError` if no structure can be detected. */
export async function proposeImport(
  database: ImportDatabase,
  bytes: Buffer,
  hints: ProposalHints,
): Promise<ImportProposal> {
  const table = cleanTableName(hints.name.replace(GZIP_ENDING, '').replace(/\.[^.]*$/, ''));
  const begun = await readBeginning(bytes, hints);
  const { json, isComplete } = begun;
  const { delimiter: givenDelimiter, header: givenHeader } =
    json === null ? hints : { delimiter: ',', header: json.header };
  const analyse = (header: boolean | null): ReturnType<typeof withoutComments> =>
    withoutComments(
      { text: begun.text, isComplete, chunks: nothing() },
      {
        source: `table=${table}`,
        delimiter: givenDelimiter,
        header,
        schema: new Map(),
        linesMax: ANALYSED_LINES,
        ...(json === null ? {} : { texts: json.texts }),
      },
    );
  const analysed = analyse(givenHeader);
  const { text } = analysed;
  const { cells } = dataRows(text, analysed.structure.delimiter, false, isComplete);
  const isCertain = givenHeader !== null || analysed.structure.header || !areNames(cells[0] ?? []);
  const isGuessed = !isCertain && namesColumns(cells);
  const { delimiter, header, columns } = (isGuessed ? analyse(true) : analysed).structure;
  const rows = dataRows(text, delimiter, header, isComplete);
  const [labels = []] = header ? dataRows(text, delimiter, false, isComplete).cells : [];
  const isPlain = begun.isPlain && text === begun.text;
  const warnings = [...analysed.notes, ...(json?.notes() ?? [])];
  return {
    table,
    delimiter,
    header,
    ...(isCertain ? {} : { headerIsGuess: true }),
    headerBytes: isPlain ? bytesBeforeRows(bytes, delimiter, header) : 0,
    ...(isPlain ? {} : { asIs: true }),
    rows: rows.cells.length,
    ...(warnings.length === 0 ? {} : { warnings }),
    columns: await proposeColumns(database, columns, labels, rows),
  };
}

/** The user's settings for one column. */
interface TrialRequest {
  /** Column index in the input. */
  readonly index: number;
  /** The type, as a JSON entry of the schema part. */
  readonly entry: string;
}

/**
 * Counts how many values in a column the import can read in a given format. Rejects with the same
 * errors as `proposeImport`.
 */
export async function tryColumn(
  database: ImportDatabase,
  bytes: Buffer,
  hints: ProposalHints,
  { index, entry }: TrialRequest,
): Promise<TrialResult> {
  const { text, isComplete, json } = await readBeginning(bytes, hints);
  const [type] = parseSchemaPart(`[${entry}]`).values();
  if (type === undefined) {
    throw new ImportError('missing column name or type');
  }
  const delimiter = json === null ? (hints.delimiter ?? ',') : ',';
  const rows = dataRows(text, delimiter, json?.header ?? hints.header ?? false, isComplete);
  const [result] = await tryForms(database, rows, [{ ...type, index }]);
  return result ?? { read: 0, of: 0 };
}

const GZIP_ENDING = /\.gz$/i;

interface Beginning {
  readonly text: string;
  readonly json: JsonText | null;
  /** Whether the text contains the complete input. */
  readonly isComplete: boolean;
  /** Whether the bytes are plain text that needs no conversion. */
  readonly isPlain: boolean;
}

/** Decodes the bytes into text, up to the sampled length. */
async function readBeginning(bytes: Buffer, hints: ProposalHints): Promise<Beginning> {
  const { delimiter, isComplete } = hints;
  const { content, json } = await prepare(only(bytes), {
    encoding: null,
    json: delimiter === null,
    linesMax: ANALYSED_LINES,
    isComplete,
  });
  const chunks: Buffer[] = [];
  let length = 0;
  let isCut = false;
  for await (const chunk of content) {
    isCut = length + chunk.length > MAX_SAMPLE_BYTES;
    if (isCut) {
      break;
    }
    chunks.push(chunk);
    length += chunk.length;
  }
  const all = Buffer.concat(chunks);
  const isPlain = all.equals(bytes);
  return { text: all.toString('utf8'), json, isComplete: isComplete && !isCut, isPlain };
}

async function* only(bytes: Buffer): AsyncGenerator<Buffer> {
  yield await Promise.resolve(bytes);
}

async function* nothing(): AsyncGenerator<Buffer> {
  // Empty, because the sample needs no second pass.
}

/** A detected column, with the formats to try. */
interface Draft {
  readonly column: TextColumn;
  readonly cells: readonly string[];
  readonly candidate: CandidateType | null;
  readonly forms: readonly ColumnType[];
}

async function proposeColumns(
  database: ImportDatabase,
  columns: readonly TextColumn[],
  labels: readonly string[],
  rows: SampleRows,
): Promise<ProposedColumn[]> {
  const drafts = columns.map((column, index) =>
    draftOf(
      column,
      rows.cells.map((row) => row[index] ?? ''),
    ),
  );
  const trials = drafts.flatMap(({ forms }, index) =>
    forms.map((form): Trial => ({ ...form, index })),
  );
  const results = await tryForms(database, rows, trials);
  const tried = trials.map((trial, at) => ({ trial, result: results[at] }));
  const firstTime = columns.findIndex(
    ({ type, timestampFormat }) => type.startsWith('TIMESTAMP') || timestampFormat !== null,
  );
  return drafts.map((draft, index) => {
    const forms = tried.flatMap(({ trial: { index: of, ...form }, result }): TriedForm[] =>
      of === index && result !== undefined ? [{ ...form, ...result }] : [],
    );
    return proposeColumn(draft, labels[index] ?? '', forms, index === firstTime);
  });
}

const TEXT_OR_NUMBER: ReadonlySet<string> = new Set(['VARCHAR', 'INT', 'LONG', 'DOUBLE']);

function draftOf(column: TextColumn, cells: readonly string[]): Draft {
  const { type, pattern, timestampFormat, notes } = column;
  const values = cells.filter((cell) => cell !== '');
  const own = pattern === undefined ? { type } : { type, pattern };
  const isTime = type === 'DATE' || type.startsWith('TIMESTAMP');
  const isTried = isTime || (isNumberType(type) && pattern !== undefined);
  const times =
    TEXT_OR_NUMBER.has(type) || column.ambiguous.length > 0 ? timestampFormats(values) : [];
  const isPlain = type === 'VARCHAR' && timestampFormat === null && notes.length === 0;
  const candidate = isPlain && times.length === 0 ? candidateType(cells) : null;
  return {
    column,
    cells,
    candidate,
    forms: [...(isTried ? [own] : []), ...times, ...(candidate ? [candidate] : [])],
  };
}

const TIME_NAME =
  /(?:^|_)(?:ts|t|time|timestamp|date|datetime|at|when|epoch|created|updated)$|Time$|At$/;

/** Returns the time format to propose, if exactly one format can read all values. */
function formToBegin(
  { type, timestampFormat, name }: TextColumn,
  forms: readonly TriedForm[],
  isFirstTime: boolean,
): TriedForm | undefined {
  const complete = forms.filter(({ read, of }) => read === of && of > 0);
  const isNumber = isNumberType(type);
  const isMeant = isNumber
    ? isFirstTime || TIME_NAME.test(name)
    : timestampFormat?.pattern !== undefined;
  return isMeant && complete.length === 1 && timestampFormat !== null ? complete[0] : undefined;
}

function proposeColumn(
  { column, cells, candidate }: Draft,
  label: string,
  tried: readonly TriedForm[],
  isFirstTime: boolean,
): ProposedColumn {
  const { name, type, pattern, timestampFormat, notes } = column;
  const isSame = (form: ColumnType): boolean => form.type === type && form.pattern === pattern;
  const isCandidateType = (form: ColumnType): boolean =>
    candidate !== null && form.type === candidate.type;
  const own = tried.find(isSame);
  const forms = tried.filter((form) => !isSame(form) && !isCandidateType(form) && form.read > 0);
  const begun = own === undefined ? formToBegin(column, forms, isFirstTime) : undefined;
  const { type: shown, pattern: written, read, of } = begun ?? own ?? { type, pattern };
  return {
    name,
    ...(label === '' || label === name ? {} : { header: label.slice(0, MAX_LABEL) }),
    type: shown,
    ...(written === undefined ? {} : { pattern: written }),
    ...(begun === undefined ? {} : { isSet: true }),
    ...(read === undefined || of === undefined ? {} : { trial: { read, of } }),
    ...(forms.length === 0 ? {} : { forms }),
    couldBeTimestamp: timestampFormat !== null,
    values: cells.filter((cell) => cell !== '').slice(0, SHOWN_VALUES),
    ...(candidate === null ? {} : { near: candidate }),
    ...(notes.length === 0 || begun !== undefined ? {} : { notes }),
  };
}

function dataRows(
  text: string,
  delimiter: string,
  header: boolean,
  isComplete: boolean,
): SampleRows {
  const plain = text.startsWith('\ufeff') ? text.slice(1) : text;
  const { terminated, remainder, isRemainderLine } = splitLines(plain, [delimiter], ANALYSED_LINES);
  const all = isComplete && isRemainderLine ? [...terminated, remainder] : terminated;
  const lines = all.slice(header ? 1 : 0);
  return { delimiter, lines, cells: lines.map((line) => splitFields(line, delimiter)) };
}

/**
 * Returns the bytes before the first row. The text is read as latin1, in which each character is
 * one byte, regardless of its actual encoding.
 */
function bytesBeforeRows(bytes: Buffer, delimiter: string, header: boolean): number {
  const text = bytes.toString('latin1');
  const mark = text.startsWith('\u00ef\u00bb\u00bf') ? 3 : 0;
  if (!header) {
    return mark;
  }
  const { remainder } = splitLines(text.slice(mark), [delimiter], 1);
  const isBetween = remainder.startsWith('\n') && text.at(-remainder.length - 1) === '\r';
  return text.length - remainder.length + Number(isBetween);
}

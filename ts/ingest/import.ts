/** The import pipeline, from a request's parts to the response. */
import type {
  Appender,
  AppenderSpec,
  CsvColumnSpec,
  CsvTextSpec,
  TableMetadata,
  TextReport,
  WidenedColumn,
} from '../engine/types.js';
import { isNumberType } from './column-types.js';
import { type ImportReport, renderJson, renderTabular } from './answers.js';
import { withoutComments } from './comments.js';
import { ImportError } from './import-error.js';
import { ANALYSED_LINES, MAX_SCHEMA_BYTES } from './limits.js';
import { cleanTableName } from './names.js';
import { type CheckedParameters, type ImportParameters, checkParameters } from './parameters.js';
import { prepare } from './bytes/prepare.js';
import { readSample } from './sample.js';
import { type ImportSchema, parseSchemaPart } from './schema-part.js';
import { Spool } from './bytes/spool.js';
import type { TextStructure } from './structure.js';
import { about, mapToExisting, mapToNew, type TargetColumns } from './target.js';

/** The database API that an import uses. */
export interface ImportDatabase {
  openAppender(spec: AppenderSpec): Promise<Appender>;
  tableMetadata(name: string): Promise<TableMetadata | null>;
}

/** One part of a multipart request. Parts arrive in the order of the request. */
export interface ImportPart {
  readonly name: string;
  readonly filename: string | null;
  /** The part's content; iterating throws if the client disconnects. */
  readonly content: AsyncIterable<Buffer>;
  /**
   * Reads the bytes again. Absent if the source cannot repeat them, in which case they are
   * buffered.
   */
  readonly reread?: () => AsyncIterable<Buffer>;
}

/** An import's effect, for the permission check. */
interface ImportAccess {
  readonly table: string;
  readonly creates: boolean;
  readonly overwrites: boolean;
}

/** Throws if access is denied. */
type Authorise = (access: ImportAccess) => Promise<void> | void;

/** Options that the caller adds to a request. */
export interface ImportOptions {
  /** Called before anything is written; by default, all access is granted. */
  readonly authorise?: Authorise;
  /** Runs the commit; commits and other catalog changes run one at a time. */
  readonly commit?: <T>(access: ImportAccess, run: () => Promise<T>) => Promise<T>;
  /** Lines used to detect the structure and types; 1000 by default. */
  readonly analysedLines?: number;
  /** Called with each input's structure before its rows are read. */
  readonly analysed?: (structure: TextStructure) => Promise<void> | void;
  /** Directory for buffering input that is read twice; `null` to buffer only in memory. */
  readonly spoolDirectory?: string | null;
}

/** The complete response. */
export interface ImportAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/**
 * Codes of database errors that the sender can fix; their message becomes the response's status.
 */
const ANSWERED_CODES: ReadonlySet<unknown> = new Set([
  'InvalidValue',
  'NullValue',
  'InvalidName',
  'TypeMismatch',
  'TableNotFound',
  'TableExists',
  'ColumnNotFound',
  'DuplicateColumn',
  'NotSupported',
  'ResourceLimit',
]);

/**
 * Imports the `data` parts. Errors in the input or the parameters become responses. If the request
 * fails (an iterable throws) or the database fails, the error is thrown and nothing is written.
 *
 * With `name`, all data parts are loaded in one commit after the request has ended successfully,
 * and the response describes the first part. Without `name`, only the first part is loaded.
 */
export async function importCsv(
  database: ImportDatabase,
  parameters: ImportParameters,
  inputs: AsyncIterable<ImportPart>,
  options: ImportOptions = {},
): Promise<ImportAnswer> {
  try {
    const request = requestOf(database, parameters, options);
    const report = await importParts(request, inputs);
    const { format, badLines } = parameters;
    const text = format === 'json' ? renderJson(report, badLines) : renderTabular(report);
    return answer(parameters, text);
  } catch (error) {
    const status = statusOf(error);
    if (status === null) {
      throw error;
    }
    const isJson = parameters.format === 'json';
    return answer(parameters, isJson ? JSON.stringify({ status }) : status);
  }
}

/** One input that is imported into the table `parameters.name`. */
interface TextImport {
  readonly parameters: ImportParameters;
  /** Types that the sender declared. */
  readonly schema: ImportSchema;
  /**
   * The input. An error that it throws stops the import. A function reads the input from the start
   * each time it is called.
   */
  readonly content: AsyncIterable<Buffer> | (() => AsyncIterable<Buffer>);
}

/**
 * Imports one input in one commit. Rejects with an `ImportError` if the input or the parameters are
 * invalid, and with the database's error if the database fails. In both cases nothing is written.
 */
export async function importText(
  database: ImportDatabase,
  { parameters, schema, content }: TextImport,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const run = new ImportRun(requestOf(database, parameters, options));
  return await run.committed(async () => {
    const input = { name: 'data', filename: null };
    const bytes =
      typeof content === 'function' ? { content: content(), reread: content } : { content };
    await run.add({ ...input, ...bytes }, schema);
  });
}

function answer(parameters: ImportParameters, body: string): ImportAnswer {
  const contentType = parameters.format === 'json' ? 'application/json' : 'text/plain';
  return { status: 200, contentType: `${contentType}; charset=utf-8`, body };
}

function statusOf(error: unknown): string | null {
  if (error instanceof ImportError) {
    return error.message;
  }
  if (!(error instanceof Error) || !('code' in error)) {
    return null;
  }
  return ANSWERED_CODES.has(error.code) ? error.message : null;
}

/** State that all parts of a request share. */
interface ImportRequest {
  readonly database: ImportDatabase;
  readonly parameters: ImportParameters;
  readonly authorise: Authorise;
  readonly commit: NonNullable<ImportOptions['commit']>;
  readonly linesMax: number;
  readonly analysed: NonNullable<ImportOptions['analysed']>;
  readonly spoolDirectory: string | null;
}

function requestOf(
  database: ImportDatabase,
  parameters: ImportParameters,
  options: ImportOptions,
): ImportRequest {
  const { authorise = () => undefined, analysed = () => undefined } = options;
  const { analysedLines: linesMax = ANALYSED_LINES, spoolDirectory = null } = options;
  const commit = options.commit ?? ((_access, run) => run());
  return { database, parameters, authorise, commit, linesMax, analysed, spoolDirectory };
}

async function importParts(
  request: ImportRequest,
  inputs: AsyncIterable<ImportPart>,
): Promise<ImportReport> {
  const run = new ImportRun(request);
  return await run.committed(async () => {
    let schema: ImportSchema = parseSchemaPart(request.parameters.schema ?? '');
    let isFirst = true;
    for await (const input of inputs) {
      if (input.name === 'schema') {
        const text = await readText(input.content);
        schema = isFirst ? parseSchemaPart(text) : schema;
      } else if (input.name !== 'data') {
        throw new ImportError("invalid value in 'Content-Disposition' multipart header");
      } else if (isFirst || request.parameters.name !== null) {
        await run.add(input, schema);
        isFirst = false;
      } else {
        await drain(input.content);
      }
    }
  });
}

/** Result of reading an input; available before the commit. */
interface ReadText {
  readonly header: boolean;
  readonly warnings: readonly string[];
  readonly columns: readonly CsvColumnSpec[];
  /** Notes on the whole input; complete once the input has been read. */
  readonly notes: () => readonly string[];
}

/** An input whose structure is known. */
interface OpenedText {
  readonly structure: TextStructure;
  readonly chunks: AsyncIterable<Buffer>;
  readonly notes: () => readonly string[];
}

/** Maximum number of values with invalid encoding that are listed. */
const SHOWN_BAD_TEXTS = 3;

/** Imports all inputs of one request into one table, in one commit. */
class ImportRun {
  readonly #request: ImportRequest;
  #appender: Appender | null = null;
  #access: ImportAccess | null = null;
  /** The target table; known once the first input has been read. */
  #table: TableMetadata | null = null;
  #first: ReadText | null = null;
  #spec: AppenderSpec | null = null;
  /** The report on the first input; available once the next input has begun. */
  #firstReport: TextReport | null = null;

  constructor(request: ImportRequest) {
    this.#request = request;
  }

  /** Commits the rows that `work` adds; if anything fails, nothing is written. */
  async committed(work: () => Promise<void>): Promise<ImportReport> {
    try {
      await work();
      return await this.#finish();
    } catch (error) {
      // If the abort also fails, only the original error is reported.
      await this.#appender?.abort().catch(() => undefined);
      throw error;
    }
  }

  async add(input: ImportPart, schema: ImportSchema): Promise<void> {
    const { parameters, analysed } = this.#request;
    const checked = checkParameters(parameters);
    const opened = this.#table;
    const destination = opened === null ? await this.#destination(input) : null;
    const table = opened?.name ?? destination?.table ?? '';
    const text = await this.#open(input.content, table, schema);
    await analysed(text.structure);
    const existing = opened ?? destination?.existing ?? null;
    const target =
      existing === null
        ? mapToNew(text.structure, checked)
        : mapToExisting(text.structure, existing, checked);
    const csv = textSpec(parameters, text.structure, target);
    if (destination === null) {
      this.#firstReport = await this.#next(csv);
      await this.#write(text.chunks);
      return;
    }
    this.#access = destination;
    this.#table = destination.existing ?? tableOf(table, target.columns, checked);
    const { warnings, columns } = target;
    const { notes, structure } = text;
    this.#first = { header: structure.header, warnings, columns, notes };
    const spec = appenderSpec(checked, destination, csv);
    await this.#begin(spec);
    if (csv.columns.some(({ guessed }) => guessed === true)) {
      const reopen = async (): Promise<AsyncIterable<Buffer>> => {
        const { reread } = input;
        const reopened = reread === undefined ? null : await this.#open(reread(), table, schema);
        return reopened?.chunks ?? spool.chunks();
      };
      const spool = new Spool(this.#request.spoolDirectory);
      try {
        await this.#write(text.chunks, input.reread === undefined ? spool : null);
        await this.#settle(spec, reopen);
      } finally {
        await spool.close();
      }
    } else {
      await this.#write(text.chunks);
    }
  }

  /** Decodes an input and detects its structure. */
  async #open(
    content: AsyncIterable<Buffer>,
    table: string,
    schema: ImportSchema,
  ): Promise<OpenedText> {
    const { parameters, linesMax } = this.#request;
    const { encoding, json: mayBeJson, decimal, widens } = parameters;
    const prepared = await prepare(content, { encoding, json: mayBeJson, linesMax });
    const { json } = prepared;
    const sample = await readSample(prepared.content, linesMax);
    const { delimiter, header } = json === null ? parameters : { delimiter: ',', ...json };
    const source = `table=${table}`;
    const hints = { source, delimiter, header, schema, linesMax, decimal, nullWord: widens };
    const texts = json === null ? {} : { texts: json.texts };
    const found = withoutComments(sample, { ...hints, ...texts });
    const notes = (): readonly string[] => [...found.notes, ...(json?.notes() ?? [])];
    return { structure: found.structure, chunks: found.chunks, notes };
  }

  async #write(chunks: AsyncIterable<Buffer>, spool: Spool | null = null): Promise<void> {
    for await (const chunk of chunks) {
      await Promise.all([this.#appender?.write(chunk), spool?.add(chunk)]);
    }
  }

  /**
   * If some values do not match the types detected at the start of the first input, reads the input
   * again with wider types, until all values match. Two passes may not suffice, because a wider
   * type may reject a format that the narrower type accepts (`5L`).
   */
  async #settle(first: AppenderSpec, reopen: () => Promise<AsyncIterable<Buffer>>): Promise<void> {
    for (let spec = first; ;) {
      const report = await this.#appender?.nextText(spec.csv);
      if (report === undefined || report.widened.every((widened) => widened === null)) {
        this.#firstReport = report ?? null;
        return;
      }
      await this.#appender?.abort();
      spec = this.#widen(spec, report);
      await this.#begin(spec);
      await this.#write(await reopen());
    }
  }

  /** Returns the columns with the wider types that the input needs, and adds a warning for each. */
  #widen(spec: AppenderSpec, { widened }: TextReport): AppenderSpec {
    const columns = spec.csv.columns.map((column, at) => widerColumn(column, widened[at]));
    const warnings = spec.csv.columns.flatMap(({ name, type }, at) => {
      const wider = widened[at] ?? null;
      if (wider === null) {
        return [];
      }
      const { type: found, line, text } = wider;
      return [about(name, `${found} instead of ${type}, because of '${text}' in line ${line}`)];
    });
    if (this.#first !== null) {
      this.#first = { ...this.#first, columns, warnings: [...this.#first.warnings, ...warnings] };
    }
    if (this.#table !== null) {
      const types = new Map(columns.map(({ name, type }) => [name, type]));
      const described = this.#table.columns.map((column) => ({
        ...column,
        type: types.get(column.name) ?? column.type,
      }));
      this.#table = { ...this.#table, columns: described };
    }
    return { ...spec, csv: { ...spec.csv, columns } };
  }

  /**
   * Begins exactly the import that was authorised, even if the table has changed in the meantime.
   */
  async #begin(spec: AppenderSpec): Promise<void> {
    const { database } = this.#request;
    const appender = await database.openAppender(spec);
    this.#appender = appender;
    this.#spec = spec;
    if (spec.create && (await database.tableMetadata(spec.table)) !== null) {
      throw new ImportError(`table was created concurrently [table=${spec.table}]; try again`);
    }
  }

  /** Starts the next input. Returns the report on the first input. */
  async #next(csv: CsvTextSpec): Promise<TextReport | null> {
    const report = await this.#appender?.nextText(csv);
    return this.#firstReport ?? report ?? null;
  }

  /** Finds the first input's table, and checks permission to write to it. */
  async #destination(input: ImportPart): Promise<Destination> {
    const { database, parameters, authorise } = this.#request;
    const givenName = parameters.name ?? input.filename;
    if (givenName === null || (parameters.name === null && givenName === '')) {
      throw new ImportError('no file name given');
    }
    const table = cleanTableName(givenName);
    const found = await database.tableMetadata(table);
    const overwrites = parameters.overwrite && found !== null;
    const name = found?.name ?? table;
    // The permission is checked first, because some users must not find out whether a table exists.
    const creates = found === null && parameters.create;
    await authorise({ table: name, creates, overwrites });
    if (found === null && !parameters.create) {
      throw new ImportError(
        `table does not exist [table=${table}] and create param was set to false.`,
      );
    }
    return { table: name, creates, overwrites, existing: overwrites ? null : found };
  }

  /** Refuses to create a table from an input without readable rows. */
  async #requireRows(): Promise<void> {
    const access = this.#access;
    const isNew = access !== null && (access.creates || access.overwrites);
    if (!isNew || !this.#request.parameters.requireRows || this.#spec === null) {
      return;
    }
    const report = await this.#next(this.#spec.csv);
    this.#firstReport = report;
    if (report !== null && report.rowsImported === 0 && report.rowsRejected > 0) {
      const [line = ''] = report.badLines;
      const rows = report.rowsRejected;
      throw new ImportError(
        `nothing was imported: ${rows} of ${rows} rows could not be read, ${line}`,
      );
    }
  }

  async #finish(): Promise<ImportReport> {
    const appender = this.#appender;
    if (appender === null || this.#access === null || this.#first === null) {
      throw new ImportError('no data part given');
    }
    await this.#requireRows();
    const report = await this.#request.commit(this.#access, () => appender.finish());
    const { header, columns, notes } = this.#first;
    const first = this.#firstReport ?? report;
    const { rowsImported, rowsRejected, badLines } = first;
    const errors = errorsByColumn(columns, first);
    const counts = { rowsImported, rowsRejected, errors, badLines };
    const damaged = badLines.filter((line) => line.includes('not UTF-8')).slice(0, SHOWN_BAD_TEXTS);
    const warnings = [...notes(), ...this.#first.warnings, ...damaged];
    return { table: report.table, header, warnings, ...counts };
  }
}

/** The first input's target. */
interface Destination extends ImportAccess {
  /** The existing table; `null` if it will be created or replaced. */
  readonly existing: TableMetadata | null;
}

/** Returns the column with the wider type that its values require. */
function widerColumn(
  column: CsvColumnSpec,
  wider: WidenedColumn | null | undefined,
): CsvColumnSpec {
  if (wider === null || wider === undefined) {
    return column;
  }
  const { pattern, ...plain } = column;
  const keepsDecimalMark = pattern !== undefined && isNumberType(wider.type);
  return { ...plain, type: wider.type, ...(keepsDecimalMark ? { pattern } : {}) };
}

/** Returns the definition of the table that the first input creates. */
function tableOf(
  name: string,
  columns: readonly CsvColumnSpec[],
  { timestamp, partitionBy }: CheckedParameters,
): TableMetadata {
  const described = columns.map((column) => ({
    name: column.name,
    type: column.type,
    designated: column.name === timestamp,
  }));
  return { name, columns: described, partitionBy, timestamp };
}

function textSpec(
  { atomicity, skipExtraValues }: ImportParameters,
  { delimiter, header }: TextStructure,
  { columns, ignoresTrailing }: TargetColumns,
): CsvTextSpec {
  const skips = skipExtraValues || ignoresTrailing;
  return { delimiter, header, columns, atomicity, skipExtraValues: skips };
}

function appenderSpec(
  checked: CheckedParameters,
  destination: Destination,
  csv: CsvTextSpec,
): AppenderSpec {
  const { timestamp, maxUncommittedRows, o3MaxLagMicros, partitionBy } = checked;
  return {
    kind: 'csv',
    table: destination.table,
    create: destination.creates,
    overwrite: destination.overwrites,
    partitionBy,
    ...(timestamp === null ? {} : { timestamp }),
    ...(maxUncommittedRows === null ? {} : { maxUncommittedRows }),
    ...(o3MaxLagMicros === null ? {} : { o3MaxLagMicros }),
    csv,
  };
}

function errorsByColumn(
  columns: readonly CsvColumnSpec[],
  report: TextReport,
): ReadonlyMap<string, number> {
  const entries = columns.map(
    ({ name }, index) => [name.toLowerCase(), report.columnErrors[index] ?? 0] as const,
  );
  return new Map(entries);
}

async function readText(content: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of content) {
    bytes += chunk.length;
    if (bytes > MAX_SCHEMA_BYTES) {
      throw new ImportError(`schema is too long, limit is ${MAX_SCHEMA_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

async function drain(content: AsyncIterable<Buffer>): Promise<void> {
  const iterator = content[Symbol.asyncIterator]();
  let next = await iterator.next();
  while (next.done !== true) {
    next = await iterator.next();
  }
}

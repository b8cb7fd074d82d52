/** The path of an import: parts of a request in, one answer out. */
import type {
  Appender,
  AppenderSpec,
  AppendReport,
  CsvColumnSpec,
  TableMetadata,
} from '../engine/types.js';
import { type ImportReport, renderJson, renderTabular } from './answers.js';
import { ImportError } from './import-error.js';
import { ANALYSED_LINES, MAX_SCHEMA_BYTES } from './limits.js';
import { cleanTableName } from './names.js';
import { type CheckedParameters, type ImportParameters, checkParameters } from './parameters.js';
import { readSample } from './sample.js';
import { type ImportSchema, parseSchemaPart } from './schema-part.js';
import { type TextStructure, analyseText } from './structure.js';
import { mapToExisting, mapToNew } from './target.js';

/** What an import needs of the database. */
export interface ImportDatabase {
  openAppender(spec: AppenderSpec): Promise<Appender>;
  tableMetadata(name: string): Promise<TableMetadata | null>;
}

/** One part of a multipart request, in the order of the request. */
export interface ImportPart {
  readonly name: string;
  readonly filename: string | null;
  /** Ends early by throwing, when the client goes away. */
  readonly content: AsyncIterable<Buffer>;
}

/** What an import is about to do, for the permission check. */
export interface ImportAccess {
  readonly table: string;
  readonly creates: boolean;
  readonly overwrites: boolean;
}

/** Throws when the access is not granted. */
export type Authorise = (access: ImportAccess) => Promise<void> | void;

/** What the caller adds to a request. */
export interface ImportOptions {
  /** Runs before anything is written; by default everything is granted. */
  readonly authorise?: Authorise;
  /** Lines from which structure and types are detected; 1000 by default. */
  readonly analysedLines?: number;
  /** Told the structure of each text, before its rows are read. */
  readonly analysed?: (structure: TextStructure) => Promise<void> | void;
}

/** The whole answer. */
export interface ImportAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** Codes of database errors that tell the sender what to change; their message is the status. */
const ANSWERED_CODES: ReadonlySet<unknown> = new Set([
  'InvalidValue',
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
 * Imports the `data` parts. Errors of the text and of the parameters become answers; a broken
 * request (the iterables throw) or a failing database is thrown, with nothing left behind.
 *
 * Every data part is one commit of its own. With `name`, all of them are loaded and the answer
 * describes the first; without, only the first is loaded.
 */
export async function importCsv(
  database: ImportDatabase,
  parameters: ImportParameters,
  parts: AsyncIterable<ImportPart>,
  options: ImportOptions = {},
): Promise<ImportAnswer> {
  try {
    const request = requestOf(database, parameters, options);
    const report = await importParts(request, parts);
    const isJson = parameters.format === 'json';
    return answer(parameters, isJson ? renderJson(report) : renderTabular(report));
  } catch (error) {
    const status = statusOf(error);
    if (status === null) {
      throw error;
    }
    const isJson = parameters.format === 'json';
    return answer(parameters, isJson ? JSON.stringify({ status }) : status);
  }
}

/** One text on its way into the table of `parameters.name`. */
export interface TextImport {
  readonly parameters: ImportParameters;
  /** Types the sender sets. */
  readonly schema: ImportSchema;
  /** Ends early by throwing, when the import is to stop. */
  readonly content: AsyncIterable<Buffer>;
}

/**
 * Imports one text in one commit. Rejects with an `ImportError` when the text or the parameters
 * cannot be used, with the database's error when it fails; nothing is left behind then.
 */
export async function importText(
  database: ImportDatabase,
  { parameters, schema, content }: TextImport,
  options: ImportOptions = {},
): Promise<ImportReport> {
  const request = requestOf(database, parameters, options);
  return await importPart(request, { name: 'data', filename: null, content }, schema, true);
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

/** What all parts of a request share. */
interface ImportRequest {
  readonly database: ImportDatabase;
  readonly parameters: ImportParameters;
  readonly authorise: Authorise;
  readonly linesMax: number;
  readonly analysed: NonNullable<ImportOptions['analysed']>;
}

function requestOf(
  database: ImportDatabase,
  parameters: ImportParameters,
  options: ImportOptions,
): ImportRequest {
  const { authorise = () => undefined, analysed = () => undefined } = options;
  const { analysedLines: linesMax = ANALYSED_LINES } = options;
  return { database, parameters, authorise, linesMax, analysed };
}

async function importParts(
  request: ImportRequest,
  parts: AsyncIterable<ImportPart>,
): Promise<ImportReport> {
  let schema: ImportSchema = new Map();
  let report: ImportReport | null = null;
  for await (const part of parts) {
    if (part.name === 'schema') {
      const text = await readText(part.content);
      if (report === null) {
        schema = parseSchemaPart(text);
      }
    } else if (part.name !== 'data') {
      throw new ImportError("invalid value in 'Content-Disposition' multipart header");
    } else if (report === null || request.parameters.name !== null) {
      const isFirst = report === null;
      const ofPart = await importPart(request, part, schema, isFirst);
      report ??= ofPart;
    } else {
      await drain(part.content);
    }
  }
  if (report === null) {
    throw new ImportError('no data part given');
  }
  return report;
}

async function importPart(
  request: ImportRequest,
  part: ImportPart,
  schema: ImportSchema,
  isFirst: boolean,
): Promise<ImportReport> {
  const { database, parameters, authorise, linesMax } = request;
  const givenName = parameters.name ?? part.filename;
  if (givenName === null || (parameters.name === null && givenName === '')) {
    throw new ImportError('no file name given');
  }
  const checked = checkParameters(parameters);
  const table = cleanTableName(givenName);
  const existing = await database.tableMetadata(table);
  // A second part adds to what the first has just replaced.
  const overwrite = parameters.overwrite && isFirst;
  // First: whether a table is there is not for everybody to know.
  await authorise({
    table: existing?.name ?? table,
    creates: existing === null && parameters.create,
    overwrites: overwrite && existing !== null,
  });
  if (existing === null && !parameters.create) {
    throw new ImportError(
      `table does not exist [table=${table}] and create param was set to false.`,
    );
  }
  const sample = await readSample(part.content, linesMax);
  const hints = {
    table,
    delimiter: parameters.delimiter,
    header: parameters.header,
    schema,
    linesMax,
  };
  const structure = analyseText(sample.text, sample.isWhole, hints);
  await request.analysed(structure);
  const target =
    existing === null || overwrite
      ? mapToNew(structure, checked)
      : mapToExisting(structure, existing, checked);
  const spec = appenderSpec(parameters, checked, structure, {
    table: existing?.name ?? table,
    overwrite: overwrite && existing !== null,
    ...target,
  });
  const appended = await append(database, spec, sample.chunks);
  return {
    table: appended.table,
    rowsImported: appended.rowsImported,
    rowsRejected: appended.rowsRejected,
    header: structure.header,
    warnings: target.warnings,
    errors: errorsByColumn(target.columns, appended),
  };
}

interface Target {
  readonly table: string;
  readonly overwrite: boolean;
  readonly columns: readonly CsvColumnSpec[];
  /** Fields of the text that reach no column may follow the last one that does. */
  readonly ignoresTrailing: boolean;
}

function appenderSpec(
  parameters: ImportParameters,
  checked: CheckedParameters,
  structure: TextStructure,
  target: Target,
): AppenderSpec {
  const { timestamp, maxUncommittedRows, o3MaxLagMicros } = checked;
  return {
    kind: 'csv',
    table: target.table,
    create: parameters.create,
    overwrite: target.overwrite,
    partitionBy: checked.partitionBy,
    ...(timestamp === null ? {} : { timestamp }),
    ...(maxUncommittedRows === null ? {} : { maxUncommittedRows }),
    ...(o3MaxLagMicros === null ? {} : { o3MaxLagMicros }),
    csv: {
      delimiter: structure.delimiter,
      header: structure.header,
      columns: target.columns,
      atomicity: parameters.atomicity,
      skipExtraValues: parameters.skipExtraValues || target.ignoresTrailing,
    },
  };
}

function errorsByColumn(
  columns: readonly CsvColumnSpec[],
  report: AppendReport,
): ReadonlyMap<string, number> {
  const entries = columns.map(
    ({ name }, index) => [name.toLowerCase(), report.columnErrors[index] ?? 0] as const,
  );
  return new Map(entries);
}

/** Streams the text into a new appender; whatever fails on the way leaves no trace. */
async function append(
  database: ImportDatabase,
  spec: AppenderSpec,
  chunks: AsyncIterable<Buffer>,
): Promise<AppendReport> {
  const appender = await database.openAppender(spec);
  try {
    for await (const chunk of chunks) {
      await appender.write(chunk);
    }
    return await appender.finish();
  } catch (error) {
    // The first error is the one to tell; an appender that failed may refuse to abort.
    await appender.abort().catch(() => undefined);
    throw error;
  }
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

/** GET and POST /exp: returns the rows of one query as a CSV or Parquet file. */
import { KEYS } from '../../config/index.js';
import type { Logger } from '../../observability/index.js';
import {
  asDatabaseError,
  DatabaseError,
  type ExecuteReply,
  type RowOptions,
  parquetOptions,
  type PreparedStatement,
  type RowFormat,
  type Session,
  withoutSecrets,
} from '../../session/index.js';
import { BodyWriter, ClientDisconnected } from '../response/body-writer.js';
import { setBody, streamedCoding } from '../response/compression.js';
import { contentDisposition } from '../response/content-disposition.js';
import { FormulaGuard } from '../response/formula-guard.js';
import type { Parameters } from '../request/parameters.js';
import type { HttpPaths } from '../paths.js';
import {
  type HttpContext,
  type HttpServices,
  keepAliveHeader,
  promiseKeepAlive,
  type Route,
} from '../route.js';
import { expRange } from '../request/row-range.js';
import {
  BAD_UTF8,
  noteStatement,
  openSession,
  prepareWhileConnected,
  principalOf,
  refuse,
  refusePlaceholders,
  STATEMENT_FORM,
  statementBounds,
  whileConnected,
} from '../response/statement-answer.js';

/** The file format for a value of `fmt`. */
interface FileFormat {
  readonly rows: RowFormat;
  readonly type: string;
  readonly extension: string;
}

export function expRoute(services: HttpServices, paths: HttpPaths): Route {
  const { config } = services;
  const logger = services.logger.child('http');
  const keepAlive = keepAliveHeader(config);
  const readOnly = services.config.get(KEYS.httpReadOnly);
  return {
    path: paths.export,
    methods: ['GET', 'POST'],
    access: 'data',
    errors: 'json',
    body: STATEMENT_FORM,
    about: 'exports the rows of one query as CSV or Parquet',
    handle: async (context) => {
      const { parameters } = context.state;
      const text = noteStatement(context);
      const format = readFormat(parameters);
      const refusal = refusalOf(parameters, text, format);
      if (refusal !== null || typeof format === 'string') {
        refuse(context, refusal ?? '');
        return;
      }
      if (readOnly && format.rows.format === 'parquet') {
        const message = 'fmt=parquet is not supported on read-only servers; use fmt=csv';
        throw new DatabaseError({ code: 'ReadOnly', message });
      }
      promiseKeepAlive(context, keepAlive);
      const statement = await prepareQuery(context, openSession(context, services, true), text);
      if (statement === null) {
        refuse(context, '/exp endpoint only accepts SELECT');
        return;
      }
      await whileConnected(context, statement, async (follow) => {
        if (refusePlaceholders(context, statement)) {
          return;
        }
        setHead(context, format, parameters.get('filename') ?? '');
        if (context.method === 'HEAD') {
          context.status = 200;
          return;
        }
        const options = rowOptions(context, format);
        const reply = await statement.execute([], () => options, statementBounds(context));
        const { guard } = services.sessions;
        guard?.ran(principalOf(context, readOnly), withoutSecrets(text), { command: 'EXPORT' });
        follow(reply.stream);
        await send(
          context,
          reply,
          { ...format, guard: formulaGuard(parameters, statement, format) },
          logger,
        );
      });
    },
  };
}

/**
 * Prepares the statement; returns `null` if the statement is not a query. The engine reports the
 * error for a statement that writes.
 */
async function prepareQuery(
  context: HttpContext,
  session: Session,
  text: string,
): Promise<PreparedStatement | null> {
  try {
    const statement = await prepareWhileConnected(context, session, text);
    if (statement.description.kind === 'select') {
      return statement;
    }
    statement.close();
    return null;
  } catch (error) {
    if (asDatabaseError(error).code === 'ReadOnly') {
      return null;
    }
    throw error;
  }
}

function refusalOf(
  parameters: Parameters,
  text: string,
  format: FileFormat | string,
): string | null {
  if (text === '') {
    return 'No query text';
  }
  if (parameters.isInvalid('query')) {
    return BAD_UTF8;
  }
  return typeof format === 'string' ? format : parameters.wrongSwitch(['nm', 'formula_guard']);
}

/** Returns the format, or an error message for the parameters. */
function readFormat(parameters: Parameters): FileFormat | string {
  const name = parameters.get('fmt') ?? '';
  switch (name.toLowerCase()) {
    case '':
    case 'csv':
      return csvFormat(parameters);
    case 'parquet':
      return parquetFormat(parameters);
    default:
      return `unrecognised format [format=${name}]`;
  }
}

function csvFormat(parameters: Parameters): FileFormat | string {
  const requested = parameters.get('delimiter') ?? '';
  const delimiter = requested === '' ? ',' : requested;
  if (!/^[\u0001-\u007f]$/.test(delimiter) || /["\r\n]/.test(delimiter)) {
    const expected = 'one ASCII character other than quotes and line ends';
    return `invalid delimiter '${requested}': expected ${expected}`;
  }
  const header = !parameters.isTrue('nm');
  return {
    rows: { format: 'csv', delimiter, header },
    type: 'text/csv; charset=utf-8',
    extension: 'csv',
  };
}

function parquetFormat(parameters: Parameters): FileFormat | string {
  const options = parquetOptions((name) => parameters.get(name) ?? '');
  if (typeof options === 'string') {
    return options;
  }
  const requested = parameters.get('partition_by') ?? '';
  const partitionBy = requested === '' ? 'NONE' : requested.toUpperCase();
  if (!PARTITIONS.includes(partitionBy)) {
    return `invalid partition_by: ${requested}, expected one of: ${PARTITIONS.join(', ')}`;
  }
  const rows = { format: 'parquet', options: { ...options, partitionBy } } as const;
  return partitionBy === 'NONE'
    ? { rows, type: 'application/vnd.apache.parquet', extension: 'parquet' }
    : { rows, type: 'application/zip', extension: 'zip' };
}

const PARTITIONS = ['NONE', 'HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR'];

function rowOptions({ state }: HttpContext, format: FileFormat): RowOptions {
  return { rows: format.rows, ...expRange(state.parameters.get('limit')) };
}

function setHead(context: HttpContext, format: FileFormat, requested: string): void {
  const name = requested === '' ? `questdb-query-${Date.now()}` : requested;
  context.set('Content-Type', format.type);
  context.set('Content-Disposition', contentDisposition(`${name}.${format.extension}`));
}

const TEXTS: ReadonlySet<string> = new Set(['STRING', 'VARCHAR', 'SYMBOL', 'CHAR']);

/** Returns `null` if the file must contain the stored values unchanged. */
function formulaGuard(
  parameters: Parameters,
  { description }: PreparedStatement,
  { rows }: FileFormat,
): FormulaGuard | null {
  if (rows.format !== 'csv' || !parameters.isTrue('formula_guard')) {
    return null;
  }
  const isText = description.columns.map(({ type }) => TEXTS.has(type));
  return new FormulaGuard(isText, rows.delimiter ?? ',', rows.header !== false);
}

/** Parquet is already compressed. */
function isCompressible(format: FileFormat): boolean {
  return format.extension === 'csv';
}

async function send(
  context: HttpContext,
  reply: ExecuteReply,
  format: FileFormat & { readonly guard: FormulaGuard | null },
  logger: Logger,
): Promise<void> {
  const shaped = (bytes: Buffer): Buffer => format.guard?.guard(bytes) ?? bytes;
  const first = shaped(reply.chunk?.bytes ?? Buffer.alloc(0));
  const { stream } = reply;
  if (stream === null) {
    context.status = 200;
    if (isCompressible(format)) {
      await setBody(context, first);
    } else {
      context.body = first;
    }
    return;
  }
  context.respond = false;
  context.res.statusCode = 200;
  const coding = isCompressible(format) ? streamedCoding(context.req) : null;
  const writer = new BodyWriter(context.res, coding, context.state.timeouts.sendMs);
  try {
    await writer.write(first);
    let chunk = await stream.next();
    while (chunk !== null) {
      await writer.write(shaped(chunk.bytes));
      chunk = await stream.next();
    }
    writer.end('');
  } catch (error) {
    stream.cancel();
    if (!(error instanceof ClientDisconnected)) {
      logger.debug('answer_failed', { error });
      // The response is cut off, because a truncated file must not look complete.
      await writer.cut('');
    }
  }
}

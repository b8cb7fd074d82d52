/**
 * A database that holds tables in memory and reads CSV the slow, plain way: enough to see what an
 * import asks of the real one and what it makes of its reports.
 */
import type {
  Appender,
  AppenderSpec,
  AppendReport,
  CsvColumnSpec,
  TableMetadata,
} from '../../ts/engine/types.js';
import { splitFields, splitLines } from '../../ts/ingest/csv-lines.js';
import type { ImportDatabase } from '../../ts/ingest/index.js';

export interface FakeTable {
  metadata: TableMetadata;
  rows: string[][];
}

class FakeError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const ISO = /^\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/;

function fits(text: string, { type, pattern }: CsvColumnSpec): boolean {
  switch (type) {
    case 'BYTE':
    case 'SHORT':
    case 'INT':
    case 'LONG':
      return /^[+-]?\d+L?$/.test(text);
    case 'UUID':
      return text.length === 36;
    case 'DATE':
    case 'TIMESTAMP':
    case 'TIMESTAMP_NS':
      if (pattern === undefined) {
        return ISO.test(text);
      }
      return text.length === pattern.length && !/\p{L}/u.test(text);
    default:
      return true;
  }
}

export class FakeDatabase implements ImportDatabase {
  readonly tables = new Map<string, FakeTable>();
  /** Specs of all appenders, in order. */
  readonly specs: AppenderSpec[] = [];
  aborted = 0;

  tableMetadata(name: string): Promise<TableMetadata | null> {
    return Promise.resolve(this.tables.get(name.toLowerCase())?.metadata ?? null);
  }

  openAppender(spec: AppenderSpec): Promise<Appender> {
    this.specs.push(spec);
    const chunks: Buffer[] = [];
    return Promise.resolve({
      write: (chunk: Buffer) => {
        chunks.push(chunk);
        return Promise.resolve({ bytes: chunk.length, rows: 0 });
      },
      finish: async () => {
        const text = await Promise.resolve(Buffer.concat(chunks).toString('utf8'));
        return this.finish(spec, text);
      },
      abort: () => {
        this.aborted += 1;
        return Promise.resolve();
      },
    });
  }

  private finish(spec: AppenderSpec, text: string): AppendReport {
    const { csv } = spec;
    if (csv === undefined) {
      throw new FakeError('NotSupported', 'no csv');
    }
    const body = text.startsWith('\ufeff') ? text.slice(1) : text;
    const { terminated, rest } = splitLines(body, [csv.delimiter], Number.POSITIVE_INFINITY);
    const lines = rest === '' ? [...terminated] : [...terminated, rest];
    if (csv.header) {
      lines.shift();
    }
    const existing = spec.overwrite ? undefined : this.tables.get(spec.table.toLowerCase());
    const table = existing ?? created(spec, csv.columns);
    const columnErrors = csv.columns.map(() => 0);
    const rows: string[][] = [];
    for (const line of lines) {
      const row = readRow(splitFields(line, csv.delimiter), csv, table, columnErrors);
      if (row !== null) {
        rows.push(row);
      }
    }
    table.rows.push(...rows);
    this.tables.set(spec.table.toLowerCase(), table);
    return {
      rowsImported: rows.length,
      rowsRejected: lines.length - rows.length,
      columnErrors,
      table: table.metadata,
    };
  }
}

function created(spec: AppenderSpec, columns: readonly CsvColumnSpec[]): FakeTable {
  const timestamp = spec.timestamp ?? null;
  return {
    metadata: {
      name: spec.table,
      columns: columns.map(({ name, type }) => ({ name, type, designated: name === timestamp })),
      partitionBy: spec.partitionBy ?? 'NONE',
      timestamp,
    },
    rows: [],
  };
}

function readRow(
  fields: readonly string[],
  csv: NonNullable<AppenderSpec['csv']>,
  table: FakeTable,
  errors: number[],
): string[] | null {
  const row = table.metadata.columns.map(() => '');
  for (const [position, column] of csv.columns.entries()) {
    const text = fields[column.index] ?? '';
    const isDesignated = column.name === table.metadata.timestamp;
    const isFine = text === '' ? !isDesignated : fits(text, column);
    if (!isFine) {
      errors[position] = (errors[position] ?? 0) + 1;
    }
    if (!isFine && (isDesignated || csv.atomicity === 'skipRow')) {
      return null;
    }
    if (!isFine && csv.atomicity === 'abort') {
      throw new FakeError('InvalidValue', `bad syntax [line=0, col=${column.index}]`);
    }
    const target = table.metadata.columns.findIndex(({ name }) => name === column.name);
    if (isFine) {
      row[target] = text;
    }
  }
  return row;
}

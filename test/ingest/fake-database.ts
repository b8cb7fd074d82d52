/**
 * A database with in-memory tables and a slow, simple CSV reader. That is enough to check which
 * calls an import makes and how it handles their results.
 */
import type {
  Appender,
  AppenderSpec,
  CsvColumnSpec,
  CsvTextSpec,
  TableMetadata,
  TextReport,
} from '../../ts/engine/types.js';
import { splitFields, splitLines } from '../../ts/ingest/csv-lines.js';
import type { ImportDatabase } from '../../ts/ingest/import.js';

interface FakeTable {
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
  /** Specifications of all appenders, in order. */
  readonly specs: AppenderSpec[] = [];
  aborted = 0;

  tableMetadata(name: string): Promise<TableMetadata | null> {
    return Promise.resolve(this.tables.get(name.toLowerCase())?.metadata ?? null);
  }

  openAppender(spec: AppenderSpec): Promise<Appender> {
    this.specs.push(spec);
    const chunks: Buffer[] = [];
    const taken = (): string => Buffer.concat(chunks.splice(0)).toString('utf8');
    const texts: (readonly [CsvTextSpec, string])[] = [];
    let { csv } = spec;
    return Promise.resolve({
      write: (chunk: Buffer) => {
        chunks.push(chunk);
        return Promise.resolve({ bytes: chunk.length, rows: 0 });
      },
      nextText: (next: CsvTextSpec) => {
        const table = this.target(spec);
        const text = [csv, taken()] as const;
        texts.push(text);
        csv = next;
        return Promise.resolve(read(...text, { ...table, rows: [] }));
      },
      finish: () => {
        const table = this.target(spec);
        const reports = [...texts, [csv, taken()] as const].map((text) => read(...text, table));
        this.tables.set(spec.table.toLowerCase(), table);
        const last = reports.at(-1) ?? missing();
        return Promise.resolve({ ...last, table: table.metadata });
      },
      abort: () => {
        this.aborted += 1;
        return Promise.resolve();
      },
    });
  }

  private target(spec: AppenderSpec): FakeTable {
    const existing = spec.overwrite ? undefined : this.tables.get(spec.table.toLowerCase());
    return existing ?? created(spec, spec.csv.columns);
  }
}

function missing(): never {
  throw new FakeError('NotSupported', 'no csv');
}

function read(csv: CsvTextSpec, text: string, table: FakeTable): TextReport {
  const body = text.startsWith('\ufeff') ? text.slice(1) : text;
  const { terminated, remainder } = splitLines(body, [csv.delimiter], Number.POSITIVE_INFINITY);
  const lines = remainder === '' ? [...terminated] : [...terminated, remainder];
  if (csv.header) {
    lines.shift();
  }
  const columnErrors = csv.columns.map(() => 0);
  const rows = lines.flatMap((line) => {
    const row = readRow(splitFields(line, csv.delimiter), csv, table, columnErrors);
    return row === null ? [] : [row];
  });
  table.rows.push(...rows);
  const rowsRejected = lines.length - rows.length;
  const widened = csv.columns.map(() => null);
  return { rowsImported: rows.length, rowsRejected, columnErrors, badLines: [], widened };
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
  csv: CsvTextSpec,
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

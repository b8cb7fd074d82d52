/** Maps input columns to the columns of a new or existing table. */
import type { CsvColumnSpec, TableMetadata } from '../engine/types.js';
import { isNumberType, missingAdapter } from './column-types.js';
import type { TimestampFormat } from './date-forms.js';
import { ImportError } from './import-error.js';
import type { CheckedParameters } from './parameters.js';
import type { TextColumn, TextStructure } from './structure.js';

export interface TargetColumns {
  readonly columns: readonly CsvColumnSpec[];
  readonly ignoresTrailing: boolean;
  readonly warnings: readonly string[];
}

/** An input column that is mapped to a table column. */
interface Aim {
  readonly spec: CsvColumnSpec;
  readonly warnings: readonly string[];
}

/** Returns the columns of a new table, which are derived from the input. */
export function mapToNew(structure: TextStructure, checked: CheckedParameters): TargetColumns {
  const { timestamp, widens } = checked;
  if (timestamp !== null && !structure.columns.some(({ name }) => name === timestamp)) {
    throw new ImportError(`invalid timestamp column '${timestamp}'`);
  }
  const aims = structure.columns.map((column, index): Aim => {
    const { name, type } = column;
    if (name === timestamp) {
      return aimAtTimestamp(column, index, designatedForm(column));
    }
    const spec = columnSpec(column, index, { name, type }, checked);
    const isGuess = widens && !column.isDeclared && type !== 'VARCHAR';
    return {
      spec: isGuess ? { ...spec, guessed: true } : spec,
      warnings: column.notes.map((note) => about(name, note)),
    };
  });
  return { ...collected(aims), ignoresTrailing: false };
}

function collected(aims: readonly Aim[]): Pick<TargetColumns, 'columns' | 'warnings'> {
  return {
    columns: aims.map(({ spec }) => spec),
    warnings: aims.flatMap(({ warnings }) => warnings),
  };
}

/** Returns a warning about a column. */
export function about(column: string, note: string): string {
  return `column '${column}': ${note}`;
}

/**
 * Returns the format for parsing the designated timestamp. It may also be a date or a number since
 * 1970.
 */
function designatedForm(column: TextColumn): TimestampFormat {
  const { type, pattern, isDeclared, timestampFormat } = column;
  if (type === 'TIMESTAMP' || type === 'TIMESTAMP_NS') {
    return pattern === undefined ? { type } : { type, pattern };
  }
  if (column.ambiguous.length > 0) {
    throw new ImportError(ambiguity(column));
  }
  if (!isDeclared && timestampFormat !== null) {
    return timestampFormat;
  }
  throw new ImportError(`not a timestamp '${column.name}'`);
}

const EPOCHS: Readonly<Record<string, string>> = {
  epoch_s: 'seconds',
  epoch_ms: 'milliseconds',
  epoch_us: 'microseconds',
  epoch_ns: 'nanoseconds',
};

function aimAtTimestamp(
  column: TextColumn,
  index: number,
  { type, pattern }: TimestampFormat,
): Aim {
  const { name, isDeclared } = column;
  if (pattern === undefined) {
    return { spec: { index, name, type }, warnings: [] };
  }
  const unit = EPOCHS[pattern];
  const note =
    unit === undefined ? `read with the pattern ${pattern}` : `read as ${unit} since 1970`;
  const isKnown = isDeclared || pattern === column.pattern;
  return { spec: { index, name, type, pattern }, warnings: isKnown ? [] : [about(name, note)] };
}

/**
 * Returns the error message for ambiguous dates. Rows with the wrong month would not be noticed, so
 * the sender must specify the pattern.
 */
function ambiguity({ name, ambiguous }: TextColumn): string {
  const patterns = ambiguous.map((pattern) => `"${pattern}"`).join(' or ');
  const schema = `[{"name":"${name}","type":"TIMESTAMP","pattern":${patterns}}]`;
  return `ambiguous dates in timestamp column '${name}'; set the pattern: schema=${schema}`;
}

/** Maps columns by header name, in any order; without a header, by position. */
export function mapToExisting(
  structure: TextStructure,
  table: TableMetadata,
  checked: CheckedParameters,
): TargetColumns {
  checkTimestamp(table, checked);
  if (structure.columns.length > table.columns.length) {
    throw new ImportError(
      `column count mismatch [textColumnCount=${structure.columns.length}, ` +
        `tableColumnCount=${table.columns.length}, table=${table.name}]`,
    );
  }
  const aims = structure.columns.flatMap((column, index): readonly Aim[] => {
    const target = structure.header
      ? table.columns.find(({ name }) => name.toLowerCase() === column.name.toLowerCase())
      : table.columns[index];
    return target === undefined ? [] : [aimAtColumn(column, index, target, table, checked)];
  });
  const { columns, warnings } = collected(aims);
  if (columns.length === 0) {
    throw new ImportError(`no column of the text exists in the table [table=${table.name}]`);
  }
  const ignoresTrailing = (columns.at(-1)?.index ?? 0) + 1 < structure.columns.length;
  const keepsPartitioning =
    checked.givenPartitionBy === null || checked.givenPartitionBy === table.partitionBy;
  const partitions = keepsPartitioning ? [] : ['Existing table PartitionBy is used'];
  return { columns, ignoresTrailing, warnings: [...partitions, ...warnings] };
}

function aimAtColumn(
  column: TextColumn,
  index: number,
  target: { readonly name: string; readonly type: string },
  table: TableMetadata,
  checked: CheckedParameters,
): Aim {
  const { name, type } = target;
  const missing = missingAdapter(type);
  if (missing !== null) {
    throw new ImportError(`column '${name}': ${missing}`);
  }
  if (column.ambiguous.length > 0 && name === table.timestamp) {
    throw new ImportError(ambiguity(column));
  }
  const { timestampFormat } = column;
  if (
    !column.isDeclared &&
    timestampFormat?.pattern !== undefined &&
    type.startsWith('TIMESTAMP')
  ) {
    const aim = aimAtTimestamp({ ...column, name }, index, {
      ...timestampFormat,
      type: type as TimestampType,
    });
    // No warning is needed for numbers in microseconds, because all clients send them to columns of
    // this type.
    return timestampFormat.pattern === 'epoch_us' ? { ...aim, warnings: [] } : aim;
  }
  return { spec: columnSpec(column, index, { name, type }, checked), warnings: [] };
}

type TimestampType = TimestampFormat['type'];

function checkTimestamp(table: TableMetadata, { timestamp }: CheckedParameters): void {
  if (timestamp === null || timestamp === table.timestamp) {
    return;
  }
  if (!table.columns.some(({ name }) => name === timestamp)) {
    throw new ImportError(`invalid timestamp column '${timestamp}'`);
  }
  throw new ImportError(`not a timestamp '${timestamp}'`);
}

const TIME_TYPES: ReadonlySet<string> = new Set(['DATE', 'TIMESTAMP', 'TIMESTAMP_NS']);

function columnSpec(
  column: TextColumn,
  index: number,
  { name, type }: { readonly name: string; readonly type: string },
  { decimal }: CheckedParameters,
): CsvColumnSpec {
  const pattern = patternFor(column, type, decimal);
  const { nullTexts } = column;
  return {
    index,
    name,
    type,
    ...(pattern === undefined ? {} : { pattern }),
    ...(nullTexts === undefined ? {} : { nullTexts: [...nullTexts] }),
  };
}

/** Returns the pattern of the values if the target column's type supports patterns. */
function patternFor(
  { pattern }: TextColumn,
  type: string,
  decimal: CheckedParameters['decimal'],
): string | undefined {
  if (isNumberType(type)) {
    return pattern === ',' || pattern === '.' ? pattern : (decimal ?? undefined);
  }
  return TIME_TYPES.has(type) && pattern !== ',' && pattern !== '.' ? pattern : undefined;
}

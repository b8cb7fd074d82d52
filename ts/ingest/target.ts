/** Where the columns of a text go: into a table made for them, or into one that is there. */
import type { CsvColumnSpec, TableMetadata } from '../engine/types.js';
import { missingAdapter } from './column-types.js';
import { ImportError } from './import-error.js';
import type { CheckedParameters } from './parameters.js';
import type { TextColumn, TextStructure } from './structure.js';

export interface TargetColumns {
  readonly columns: readonly CsvColumnSpec[];
  readonly ignoresTrailing: boolean;
  readonly warnings: readonly string[];
}

/** Columns of a table to be created: those of the text. */
export function mapToNew(structure: TextStructure, checked: CheckedParameters): TargetColumns {
  const { timestamp } = checked;
  if (timestamp !== null && !structure.columns.some(({ name }) => name === timestamp)) {
    throw new ImportError(`invalid timestamp column '${timestamp}'`);
  }
  const columns = structure.columns.map((column, index) => {
    const type = column.name === timestamp ? designatedType(column) : column.type;
    return columnSpec(index, column.name, type, column.pattern);
  });
  return { columns, ignoresTrailing: false, warnings: [] };
}

/** A DATE or a text that reads as ISO becomes TIMESTAMP when it is designated. */
function designatedType(column: TextColumn): string {
  const { type } = column;
  if (type === 'TIMESTAMP' || type === 'TIMESTAMP_NS') {
    return type;
  }
  const converts = type === 'DATE' || column.couldBeTimestamp;
  if (column.ambiguous.length > 0) {
    throw new ImportError(ambiguity(column));
  }
  if (!column.isDeclared && converts) {
    return 'TIMESTAMP';
  }
  throw new ImportError(`not a timestamp '${column.name}'`);
}

/** Rows in the wrong month would be no error: the sender has to say which it is. */
function ambiguity({ name, ambiguous }: TextColumn): string {
  const patterns = ambiguous.map((pattern) => `"${pattern}"`).join(' or ');
  const schema = `[{"name":"${name}","type":"TIMESTAMP","pattern":${patterns}}]`;
  return `ambiguous dates in timestamp column '${name}', set the pattern: schema=${schema}`;
}

/** By header name in any order, without a header by position. */
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
  const columns = structure.columns.flatMap((column, index) => {
    const target = structure.header
      ? table.columns.find(({ name }) => name.toLowerCase() === column.name.toLowerCase())
      : table.columns[index];
    if (target === undefined) {
      return [];
    }
    const missing = missingAdapter(target.type);
    if (missing !== null) {
      throw new ImportError(`column '${target.name}': ${missing}`);
    }
    if (column.ambiguous.length > 0 && target.name === table.timestamp) {
      throw new ImportError(ambiguity(column));
    }
    return [columnSpec(index, target.name, target.type, column.pattern)];
  });
  if (columns.length === 0) {
    throw new ImportError(`no column of the text is in the table [table=${table.name}]`);
  }
  const ignoresTrailing = (columns.at(-1)?.index ?? 0) + 1 < structure.columns.length;
  const keepsPartitioning =
    checked.givenPartitionBy === null || checked.givenPartitionBy === table.partitionBy;
  const warnings = keepsPartitioning ? [] : ['Existing table PartitionBy is used'];
  return { columns, ignoresTrailing, warnings };
}

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
  index: number,
  name: string,
  type: string,
  pattern: string | undefined,
): CsvColumnSpec {
  const takesPattern = pattern !== undefined && TIME_TYPES.has(type);
  return takesPattern ? { index, name, type, pattern } : { index, name, type };
}

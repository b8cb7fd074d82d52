/**
 * Trial imports: the import's own reader tries column formats on a sample, without writing
 * anything. An import therefore accepts every format that was proposed.
 */
import { randomBytes } from 'node:crypto';

import type { CsvColumnSpec } from '../engine/types.js';
import type { ColumnType } from './column-types.js';
import type { ImportDatabase } from './import.js';

/** A sample's unparsed rows, without the header. */
export interface SampleRows {
  readonly delimiter: string;
  readonly lines: readonly string[];
  readonly cells: readonly (readonly string[])[];
}

/** A column format: its type and pattern. */
export interface Trial extends ColumnType {
  /** Index of the column's field in each line. */
  readonly index: number;
}

/** The result of a trial. */
export interface TrialResult {
  /** Number of values that could be read, and total number of values. */
  readonly read: number;
  readonly of: number;
}

/**
 * Maximum number of formats to try. The trial table has one column per format, and its number of
 * columns is limited.
 */
const MAX_TRIALS = 4000;
const NAME_BYTES = 16;

/** Tries each format, and returns the results in the same order. */
export async function tryForms(
  database: ImportDatabase,
  { delimiter, lines, cells }: SampleRows,
  trials: readonly Trial[],
): Promise<TrialResult[]> {
  const tried = trials.slice(0, MAX_TRIALS);
  if (tried.length === 0) {
    return [];
  }
  const columns = tried.map(({ index, type, pattern, nullTexts }, at): CsvColumnSpec => ({
    index,
    name: `c${at}`,
    type,
    ...(pattern === undefined ? {} : { pattern }),
    ...(nullTexts === undefined ? {} : { nullTexts: [...nullTexts] }),
  }));
  const csv = {
    delimiter,
    header: false,
    columns,
    atomicity: 'skipCol',
    skipExtraValues: true,
  } as const;
  const table = `trial_${randomBytes(NAME_BYTES).toString('hex')}`;
  const appender = await database.openAppender({
    kind: 'csv',
    table,
    create: true,
    overwrite: false,
    partitionBy: 'NONE',
    csv,
  });
  try {
    await appender.write(Buffer.from(`${lines.join('\n')}\n`));
    const { columnErrors } = await appender.nextText(csv);
    return tried.map(({ index, nullTexts = [] }, at) => {
      const isValue = (row: readonly string[]): boolean =>
        (row[index] ?? '') !== '' && !nullTexts.includes(row[index] ?? '');
      const of = cells.filter(isValue).length;
      return { read: of - (columnErrors[at] ?? 0), of };
    });
  } finally {
    await appender.abort();
  }
}

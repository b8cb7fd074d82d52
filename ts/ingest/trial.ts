/**
 * Trial imports: forms of columns are tried on a sample by the reader that imports, and nothing
 * is written. An offered form is one that the import reads.
 */
import { randomBytes } from 'node:crypto';

import type { CsvColumnSpec } from '../engine/types.js';
import type { ColumnType } from './column-types.js';
import type { ImportDatabase } from './import.js';

/** Rows of a sample as they are written, without the header. */
export interface SampleRows {
  readonly delimiter: string;
  readonly lines: readonly string[];
  readonly cells: readonly (readonly string[])[];
}

/** A form of a column: its type, and how its texts are written. */
export interface Trial extends ColumnType {
  /** Index of the field in each line. */
  readonly index: number;
}

/** What a trial read. */
export interface TrialResult {
  /** Values that were read, and values that there are. */
  readonly read: number;
  readonly of: number;
}

/** More columns than a table may have are not tried. */
const MAX_TRIALS = 4000;
const NAME_BYTES = 16;

/** What of each trial's column is read, in the order of the trials. */
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

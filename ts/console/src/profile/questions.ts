/**
 * Builds the queries for a column profile and parses their results. Names are quoted; the only
 * values inserted into statements are numbers formatted in this module.
 */
import { numberOf, recordsOf, textOf, type Answer, type RowRecord } from '../api/cells.js';
import { grouped } from '../model/format.js';
import type { Bin, Profile } from '../model/profile.js';
import { familyOf, isNumeric } from '../model/types.js';
import { identifier } from '../sql/names.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** The rows that a profile covers. */
export interface Rows {
  /** Source of all rows: the SQL text after FROM. */
  readonly from: string;
  /** Source of a sample of the rows, used if reading all rows takes too long. */
  readonly sample: string;
  /** Describes the sample to the user. */
  readonly sampleName: string;
}

export interface ProfiledColumn {
  readonly name: string;
  readonly type: string;
}

const SAMPLE_ROWS = 1_000_000;
const BINS = 24;
const MAX_FREQUENT = 5;
/** Maximum length of a displayed string; longer strings are truncated. */
const MAX_TEXT_LENGTH = 120;

export function rowsOfTable(name: string): Rows {
  const sample = `(SELECT * FROM ${identifier(name)} LIMIT -${SAMPLE_ROWS})`;
  return {
    from: identifier(name),
    sample,
    sampleName: fill(texts.profile.lastRows, { count: grouped(String(SAMPLE_ROWS)) }),
  };
}

export function rowsOfQuery(statement: string): Rows {
  const text = statement.replace(/[;\s]+$/, '');
  return {
    from: `(${text}\n)`,
    sample: `(SELECT * FROM (${text}\n) LIMIT ${SAMPLE_ROWS})`,
    sampleName: fill(texts.profile.firstRows, { count: grouped(String(SAMPLE_ROWS)) }),
  };
}

/** The first figures of a column profile, and the numeric range of the column's values. */
export interface Facts {
  readonly profile: Profile;
  readonly low: number | undefined;
  readonly high: number | undefined;
}

/**
 * Returns a query for a single row: the row count, the count of non-null values, and their range
 * and mean.
 */
export function factsQuery({ name, type }: ProfiledColumn, from: string): string {
  const column = identifier(name);
  const family = familyOf(type);
  const values = ['count() AS rows'];
  if (family !== 'boolean') {
    values.push(`count(${column}) AS filled`);
  }
  if (isNumeric(type) || family === 'time') {
    values.push(`min(${column}) AS least`, `max(${column}) AS greatest`);
    const [min, max] = [`min(${column})`, `max(${column})`].map((end) => asNumber(end, type));
    values.push(`${min} AS low`, `${max} AS high`);
  }
  if (isNumeric(type)) {
    values.push(`avg(${column}) AS mean`);
  }
  if (family === 'text' || family === 'symbol') {
    values.push(`max(length(${column})) AS longest`);
  }
  return `SELECT ${values.join(', ')} FROM ${from}`;
}

const NOTHING: RowRecord = () => null;

export function factsOf(answer: Answer): Facts {
  const [cell = NOTHING] = recordsOf(answer);
  const rows = numberOf(cell('rows')) ?? 0;
  return {
    profile: {
      rows,
      nulls: rows - (numberOf(cell('filled')) ?? rows),
      empty: 0,
      distinct: undefined,
      min: textOf(cell('least')),
      max: textOf(cell('greatest')),
      mean: numberOf(cell('mean')),
      maxLength: numberOf(cell('longest')),
      frequent: [],
      bins: [],
    },
    low: numberOf(cell('low')),
    high: numberOf(cell('high')),
  };
}

/**
 * Returns a query for the number of distinct values, or `undefined` for arrays, binary values and
 * booleans.
 */
export function distinctQuery({ name, type }: ProfiledColumn, from: string): string | undefined {
  return ['array', 'binary', 'boolean'].includes(familyOf(type))
    ? undefined
    : `SELECT count_distinct(${identifier(name)}) AS n FROM ${from}`;
}

/**
 * Returns a query for the histogram of a numeric or time column, or for the most frequent values of
 * any other column.
 */
export function shapeQuery(column: ProfiledColumn, facts: Facts, from: string): string | undefined {
  const { name, type } = column;
  const value = identifier(name);
  const family = familyOf(type);
  if (family === 'array' || family === 'binary') {
    return undefined;
  }
  if (!isNumeric(type) && family !== 'time') {
    const text = `left(${value}::VARCHAR, ${MAX_TEXT_LENGTH})`;
    return (
      `SELECT ${text} AS value, count() AS n FROM ${from} WHERE ${value} IS NOT NULL ` +
      `GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT ${MAX_FREQUENT}`
    );
  }
  const { low, high } = facts;
  if (low === undefined || high === undefined || !(high - low > 0 && high - low < Infinity)) {
    return undefined;
  }
  const bucket = `width_bucket(${asNumber(value, type)}, ${low}, ${high}, ${BINS})`;
  const known = `FROM ${from} WHERE ${value} IS NOT NULL`;
  return `SELECT ${bucket} AS part, count() AS n ${known} GROUP BY 1`;
}

/** Adds the result of `shapeQuery` to the profile. */
export function shaped({ profile, low, high }: Facts, type: string, answer: Answer): Profile {
  if (low !== undefined && high !== undefined) {
    const bins = recordsOf(answer).map(
      (cell) => [Number(cell('part')), Number(cell('n'))] as const,
    );
    return { ...profile, bins: binsOf(bins, type, low, high) };
  }
  const frequent = recordsOf(answer).map((cell) => ({
    text: String(cell('value')),
    count: Number(cell('n')),
  }));
  // If all values are distinct, no value is frequent.
  return { ...profile, frequent: (frequent[0]?.count ?? 0) > 1 ? frequent : [] };
}

function binsOf(
  bins: readonly (readonly [number, number])[],
  type: string,
  low: number,
  high: number,
): Bin[] {
  const width = (high - low) / BINS;
  const counts = Array<number>(BINS).fill(0);
  for (const [bin, count] of bins) {
    // width_bucket puts the largest value into an extra bucket at the end. Rounding may put the
    // smallest value before the first bucket.
    const at = Math.min(BINS, Math.max(1, bin)) - 1;
    counts[at] = (counts[at] ?? 0) + count;
  }
  return counts.map((count, at) => {
    const [from, to] = [low + at * width, low + (at + 1) * width];
    const perMs = UNITS_PER_MS[type];
    return perMs === undefined
      ? { from, to, count }
      : {
          from,
          to,
          count,
          name: fill(texts.common.fromTo, {
            from: timestampText(from / perMs),
            to: timestampText(to / perMs),
          }),
        };
  });
}

const UNITS_PER_MS: Readonly<Record<string, number>> = {
  DATE: 1,
  TIMESTAMP: 1000,
  TIMESTAMP_NS: 1_000_000,
};

function timestampText(ms: number): string {
  const at = new Date(ms);
  return Number.isNaN(at.getTime()) ? String(ms) : at.toISOString().slice(0, 19).replace('T', ' ');
}

function asNumber(expression: string, type: string): string {
  return familyOf(type) === 'time' ? `${expression}::LONG::DOUBLE` : `${expression}::DOUBLE`;
}

/**
 * Queries for the profile of a column, and the parsers of their results. Names are quoted; the only
 * values inserted into a statement are numbers formatted here.
 */
import { numberOf, recordsOf, textOf, type Answer, type RowRecord } from '../api/cells.js';
import { grouped } from '../model/format.js';
import type { Bin, Profile } from '../model/profile.js';
import { familyOf, isNumeric } from '../model/types.js';
import { identifier } from '../sql/names.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** The rows to profile. */
export interface Rows {
  /** SQL text after FROM. */
  readonly from: string;
  /** SQL text after FROM that selects only some rows; used if reading all rows takes too long. */
  readonly sample: string;
  /** Description of these rows. */
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

/** Profile of a column so far, and the range over which its distribution can be counted. */
export interface Facts {
  readonly profile: Profile;
  readonly low: number | undefined;
  readonly high: number | undefined;
}

/**
 * Query that returns one row: the number of rows, the number of values that are not null, and their
 * range and mean.
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
 * Query for the number of distinct values, which is not counted for arrays, binary values and
 * booleans.
 */
export function distinctQuery({ name, type }: ProfiledColumn, from: string): string | undefined {
  return ['array', 'binary', 'boolean'].includes(familyOf(type))
    ? undefined
    : `SELECT count_distinct(${identifier(name)}) AS n FROM ${from}`;
}

/**
 * Query for the counts in equal divisions of the range, or for the counts of the most frequent
 * values.
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
  // If all values are distinct, none is frequent.
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
    // The largest value falls into an extra bucket at the end, and rounding may put the smallest
    // before the first bucket.
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

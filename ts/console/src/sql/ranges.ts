/**
 * Restricts a query to a part of its time range. A fixed SAMPLE BY interval is replaced with a
 * finer one, so that zooming in shows more detail.
 */
import { scan, TokenKind, type Tokens } from '../../../sql/lexer/lexer.js';
import { quoted } from './names.js';

interface TimeRange {
  /** Name of the result's time column. */
  readonly column: string;
  /** Start of the range in milliseconds since 1970 UTC. */
  readonly from: number;
  readonly to: number;
}

/**
 * Returns the statements to try, in order. The last statement makes fewer assumptions about the
 * original query.
 */
export function rangeQueries(statement: string, range: TimeRange, points: number): string[] {
  const condition = conditionOf(range);
  const whole = `SELECT * FROM (${statement}\n) WHERE ${condition}`;
  const finer = finerQuery(statement, condition, (range.to - range.from) / points);
  return finer === undefined ? [whole] : [finer, whole];
}

function conditionOf({ column, from, to }: TimeRange): string {
  const text = (at: number): string => `'${new Date(at).toISOString()}'`;
  const name = quoted(column);
  return `${name} >= ${text(Math.floor(from))} AND ${name} <= ${text(Math.ceil(to))}`;
}

/** Aggregate for a column's values within a time step. `ends` computes both minimum and maximum. */
export type Sampling = 'first' | 'max' | 'min' | 'last' | 'sum' | 'ends';

interface Sample {
  /** Name of the result's time column. */
  readonly time: string;
  /** Name of the column that splits the rows into series. */
  readonly key: string | undefined;
  readonly columns: readonly { readonly name: string; readonly by: Sampling }[];
  /** Sampling interval in milliseconds. */
  readonly step: number;
}

/**
 * Returns a query that samples a statement's result in time steps, so that the whole result fits in
 * a chart. The query returns the time, the key if any, and one column per value column. With
 * `ends`, it returns two columns per value column: the minimum and the maximum.
 */
export function sampledQuery(
  statement: string,
  sample: Sample,
  range?: Omit<TimeRange, 'column'>,
): string {
  const { time, key, columns, step } = sample;
  const values = columns.flatMap(({ name, by }, index) =>
    by === 'ends'
      ? [`min(${quoted(name)}) l${index}`, `max(${quoted(name)}) h${index}`]
      : [`${by}(${quoted(name)}) v${index}`],
  );
  const picked = [quoted(time), ...(key === undefined ? [] : [quoted(key)]), ...values].join(', ');
  const where = range ? ` WHERE ${conditionOf({ column: time, ...range })}` : '';
  const whole = Math.max(1, Math.ceil(step));
  return `SELECT ${picked} FROM (${statement}\n)${where} SAMPLE BY ${whole}T`;
}

/** Returns a query for the first and last timestamps in a statement's result. */
export function extentQuery(statement: string, time: string): string {
  return `SELECT min(${quoted(time)}), max(${quoted(time)}) FROM (${statement}\n)`;
}

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const UNITS: Readonly<Record<string, number>> = {
  T: 1,
  s: SECOND,
  m: MINUTE,
  h: HOUR,
  d: DAY,
  w: 7 * DAY,
};
const STEPS: readonly (readonly [string, number])[] = [
  ['1s', SECOND],
  ['5s', 5 * SECOND],
  ['15s', 15 * SECOND],
  ['1m', MINUTE],
  ['5m', 5 * MINUTE],
  ['15m', 15 * MINUTE],
  ['1h', HOUR],
  ['4h', 4 * HOUR],
  ['1d', DAY],
];

/**
 * Inserts a finer SAMPLE BY interval and the condition into the statement. Returns `undefined` if
 * the statement has no suitable SAMPLE BY.
 */
function finerQuery(statement: string, condition: string, minStep: number): string | undefined {
  const tokens = scan(statement);
  const positions = clausePositionsOf(tokens);
  const { sample, where } = positions;
  if (sample === undefined || positions.isCompound) {
    return undefined;
  }
  const written = statement.slice(tokens.starts[sample + 2], tokens.ends[sample + 2]);
  const [, count = '', unit = ''] = /^(\d+)(\w)$/.exec(written) ?? [];
  const now = Number(count) * (UNITS[unit] ?? NaN);
  const step = STEPS.find(([, size]) => size >= minStep);
  if (step === undefined || !(step[1] < now)) {
    return undefined;
  }
  const [start, end] = [tokens.starts[sample] ?? 0, tokens.ends[sample + 2] ?? 0];
  const conditionEnd = tokens.ends[where ?? -1];
  const head =
    conditionEnd === undefined
      ? `${statement.slice(0, start)}\nWHERE ${condition} `
      : `${statement.slice(0, conditionEnd)} (${statement.slice(conditionEnd, start)}\n)` +
        ` AND ${condition} `;
  return `${head}SAMPLE BY ${step[0]}${statement.slice(end)}`;
}

interface ClausePositions {
  sample?: number;
  where?: number;
  isCompound: boolean;
}

/** Finds the token indexes of SAMPLE BY and WHERE in the outermost query. */
function clausePositionsOf({ kinds, values }: Tokens): ClausePositions {
  const positions: ClausePositions = { isCompound: false };
  let depth = 0;
  kinds.forEach((kind, index) => {
    const value = values[index] ?? '';
    if (kind === TokenKind.Mark) {
      depth += Number(value === '(') - Number(value === ')');
    } else if (kind === TokenKind.Word && depth === 0) {
      positions.isCompound ||= ['UNION', 'EXCEPT', 'INTERSECT', 'LATEST'].includes(value);
      if (value === 'WHERE') {
        positions.where = index;
      } else if (value === 'SAMPLE' && values[index + 1] === 'BY') {
        positions.sample = index;
      }
    }
  });
  return positions;
}

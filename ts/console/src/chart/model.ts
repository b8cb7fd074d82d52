/**
 * Decides how a result can be charted: its time column, its series, and their points. This module
 * has no side effects. `plot.ts` does the drawing.
 */
import type { Column, Row, Value } from '../api/answer.js';
import { copyText } from '../model/format.js';
import { familyOf, isNumeric } from '../model/types.js';
import { candleColumns, type CandleColumns } from './candle-columns.js';
import { depthColumns, type DepthColumns } from './depth-columns.js';
import { numberOf } from './numbers.js';
import { texts } from '../texts.js';

/** Number of series with their own colour. Further series are hidden by default. */
export const SHOWN_SERIES = 8;
/** Maximum number of keys for which a chart with one series per key is readable. */
const MAX_KEYS = 64;
const MAX_NAMES = 40;
/** Number of prices in a candle: open, high, low and close. */
const CANDLE_PRICES = 4;

/** Kind of the x axis: time, numbers, names, or no axis. */
export type AxisKind = 'time' | 'number' | 'names' | 'none';

export interface ChartPlan {
  readonly axis: AxisKind;
  /** Index of the column on the x axis. */
  readonly x: number;
  /** Index of the column whose values split the rows into series. */
  readonly key: number | undefined;
  /** Indexes of the numeric columns: fractional columns first, then integer columns. */
  readonly values: readonly number[];
  /** Number of columns in `values` that are drawn by default. */
  readonly drawn: number;
  /** Candle columns, if they were found by their names. */
  readonly candles: CandleColumns | undefined;
  /** True if there are enough numeric columns to draw candles. */
  readonly mayBeCandles: boolean;
  readonly depth: DepthColumns | undefined;
  /** True if the result has a single row. */
  readonly isSingle?: boolean;
}

export interface Series {
  readonly label: string;
  readonly points: readonly Point[];
}

/**
 * A value, or `null` for a gap. `undefined` means that only other series have a row at this x
 * value.
 */
export type Point = number | null | undefined;

export interface ChartData {
  /** Ascending x values: milliseconds since 1970 UTC, numbers, or indexes of names from 0. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** Names on the x axis, if it shows names. */
  readonly names?: readonly string[];
  /** Number of rows omitted for lack of space. */
  readonly left?: number;
  /** Width of each range of values. Set only for a histogram. */
  readonly width?: number;
}

type ChartChoice =
  | { readonly plan: ChartPlan; readonly why?: undefined }
  | { readonly plan?: undefined; readonly why: string };

/**
 * Returns the chart to draw from a result, or a sentence that explains why nothing can be drawn.
 */
export function chooseChart(
  columns: readonly Column[],
  timestamp: number,
  rows: readonly Row[],
): ChartChoice {
  if (rows.length === 0) {
    return { why: texts.chart.noRows };
  }
  const time = timestamp >= 0 ? timestamp : columns.findIndex(isTime);
  const numbers = indexesWhere(columns, ({ type }) => isNumeric(type));
  const depth = depthColumns(columns, rows, numbers);
  if (time < 0) {
    return timelessChart(columns, rows, depth);
  }
  // Integer columns beside fractional columns are mostly counts and identifiers, and have a
  // different scale.
  const measured = indexesWhere(columns, ({ type }) => familyOf(type) === 'decimal');
  const counted = indexesWhere(columns, ({ type }) => familyOf(type) === 'integer');
  const values = [...measured, ...counted];
  if (values.length === 0 && !depth) {
    return { why: texts.chart.noNumbersBesideTime };
  }
  const key = keyColumn(columns, time, rows);
  const drawn = Math.min(SHOWN_SERIES, measured.length || counted.length);
  const candles = candleColumns(columns, values);
  const mayBeCandles = values.length >= CANDLE_PRICES;
  return { plan: { axis: 'time', x: time, key, values, drawn, candles, mayBeCandles, depth } };
}

/**
 * Plans a chart for a result without a time column. Names and numbers become bars, two numeric
 * columns a scatter plot, and one numeric column a histogram.
 */
function timelessChart(
  columns: readonly Column[],
  rows: readonly Row[],
  depth: DepthColumns | undefined,
): ChartChoice {
  const numbers = indexesWhere(columns, ({ type }) => isNumeric(type));
  const name = columns.findIndex(({ type }) => ['symbol', 'text'].includes(familyOf(type)));
  const [first, ...others] = numbers;
  const rest = { key: undefined, candles: undefined, mayBeCandles: false, depth };
  if (first === undefined) {
    return depth
      ? { plan: { axis: 'none', x: 0, values: [], drawn: 0, ...rest } }
      : { why: texts.chart.noNumbers };
  }
  if (name >= 0) {
    return { plan: { axis: 'names', x: name, values: numbers, drawn: 1, ...rest } };
  }
  const isSingle = rows.length === 1;
  if (others.length === 0 || isSingle) {
    const drawn = isSingle ? Math.min(SHOWN_SERIES, numbers.length) : 1;
    return { plan: { axis: 'none', x: first, values: numbers, drawn, isSingle, ...rest } };
  }
  const drawn = Math.min(SHOWN_SERIES, others.length);
  return { plan: { axis: 'number', x: first, values: others, drawn, ...rest } };
}

function isTime(column: Column): boolean {
  return familyOf(column.type) === 'time';
}

function indexesWhere(columns: readonly Column[], test: (column: Column) => boolean): number[] {
  return columns.flatMap((column, index) => (test(column) ? [index] : []));
}

/**
 * Returns the column that splits the rows into series: the first symbol or string column, if it has
 * several values or a time repeats.
 */
function keyColumn(
  columns: readonly Column[],
  time: number,
  rows: readonly Row[],
): number | undefined {
  const key = columns.findIndex(({ type }) => ['symbol', 'text'].includes(familyOf(type)));
  if (key < 0) {
    return undefined;
  }
  const times = new Set<Value>();
  const keys = new Set<Value>();
  let repeated = false;
  for (const row of rows) {
    keys.add(row[key] ?? null);
    if (keys.size > MAX_KEYS) {
      return undefined;
    }
    const at = row[time] ?? null;
    repeated ||= times.has(at);
    times.add(at);
  }
  return keys.size > 1 || repeated ? key : undefined;
}

/** Returns the distinct values of the key column, in order of first appearance. */
export function keysOf(rows: readonly Row[], key: number): string[] {
  return [...new Set(rows.map((row) => nameOf(row[key] ?? null)))];
}

export function rowsOfKey(rows: readonly Row[], key: number, name: string): Row[] {
  return rows.filter((row) => nameOf(row[key] ?? null) === name);
}

/** Returns true if a series is drawn. A hidden series has a label but no points. */
type IsShown = (label: string, index: number) => boolean;

/**
 * Builds the series of the chosen columns. Points are sorted by x value, whatever the order of the
 * rows.
 */
export function chartData(
  columns: readonly Column[],
  rows: readonly Row[],
  plan: Pick<ChartPlan, 'axis' | 'x' | 'key'>,
  values: readonly number[],
  isShown: IsShown = () => true,
): ChartData {
  if (plan.axis === 'names') {
    return namedSeries(columns, rows, plan.x, values);
  }
  if (plan.axis === 'none') {
    return plainSeries(
      columns,
      rows.map((row, at) => ({ at, row })),
      values,
      isShown,
    );
  }
  const timed: { at: number; row: Row }[] = [];
  const xOf = plan.axis === 'time' ? milliseconds : numberOf;
  for (const row of rows) {
    const at = xOf(row[plan.x] ?? null) ?? undefined;
    if (at !== undefined) {
      timed.push({ at, row });
    }
  }
  timed.sort((left, right) => left.at - right.at);
  return plan.key === undefined
    ? plainSeries(columns, timed, values, isShown)
    : keyedSeries(columns, timed, values, plan.key, isShown);
}

/**
 * Builds series with names on the x axis. The largest values come first, limited to `MAX_NAMES`
 * names.
 */
function namedSeries(
  columns: readonly Column[],
  rows: readonly Row[],
  x: number,
  values: readonly number[],
): ChartData {
  const size = (row: Row): number => numberOf(row[values[0] ?? -1] ?? null) ?? -Infinity;
  const sorted = [...rows].sort((left, right) => size(right) - size(left) || 0);
  const shown = sorted.slice(0, MAX_NAMES);
  return {
    times: shown.map((_row, index) => index),
    names: shown.map((row) => nameOf(row[x] ?? null)),
    left: sorted.length - shown.length,
    series: values.map((value) => ({
      label: columns[value]?.name ?? '',
      points: shown.map((row) => numberOf(row[value] ?? null)),
    })),
  };
}

/**
 * Finds the row at an x value: the first row with that name, or the row nearest to that time or
 * number.
 */
export function rowNear(
  rows: readonly Row[],
  { axis, x }: Pick<ChartPlan, 'axis' | 'x'>,
  target: number,
  names: readonly string[] = [],
): number | undefined {
  if (axis === 'names') {
    const found = rows.findIndex((row) => nameOf(row[x] ?? null) === names[target]);
    return found < 0 ? undefined : found;
  }
  const xOf = axis === 'time' ? milliseconds : numberOf;
  let best: number | undefined;
  let smallest = Infinity;
  rows.forEach((row, index) => {
    const at = xOf(row[x] ?? null);
    const distance = typeof at === 'number' ? Math.abs(at - target) : Infinity;
    if (distance < smallest) {
      [best, smallest] = [index, distance];
    }
  });
  return best;
}

function nameOf(value: Value): string {
  return value === null ? 'null' : copyText(value);
}

function plainSeries(
  columns: readonly Column[],
  timed: readonly { at: number; row: Row }[],
  values: readonly number[],
  isShown: IsShown,
): ChartData {
  return {
    times: timed.map(({ at }) => at),
    series: values.map((value, index) => {
      const label = columns[value]?.name ?? '';
      const drawn = isShown(label, index) ? timed : [];
      return { label, points: drawn.map(({ row }) => numberOf(row[value] ?? null)) };
    }),
  };
}

function keyedSeries(
  columns: readonly Column[],
  timed: readonly { at: number; row: Row }[],
  values: readonly number[],
  key: number,
  isShown: IsShown,
): ChartData {
  const times: number[] = [];
  const series = new Map<string, { label: string; points: Point[]; isDrawn: boolean }>();
  for (const { at, row } of timed) {
    if (times.at(-1) !== at) {
      times.push(at);
    }
    const name = row[key] === null ? 'null' : String(row[key]);
    for (const value of values) {
      const label = values.length === 1 ? name : `${name} ${columns[value]?.name ?? ''}`;
      let found = series.get(label);
      if (!found) {
        const isDrawn = isShown(label, series.size);
        series.set(label, (found = { label, points: [], isDrawn }));
      }
      if (!found.isDrawn) {
        continue;
      }
      // If several rows have the same time and key, the last of these rows wins.
      found.points[times.length - 1] = numberOf(row[value] ?? null);
    }
  }
  for (const { points, isDrawn } of series.values()) {
    points.length = isDrawn ? times.length : 0;
    for (let index = 0; index < points.length; index++) {
      points[index] ??= gapAt(points, index);
    }
  }
  return { times, series: [...series.values()].map(({ label, points }) => ({ label, points })) };
}

/** Fills a missing point. A stored null is a gap, but a missing row is not. */
function gapAt(points: readonly Point[], index: number): null | undefined {
  return index in points && points[index] === null ? null : undefined;
}

const ISO_TIME = /^(.*T\d\d:\d\d:\d\d)(?:\.(\d+))?Z$/;

/** Converts a timestamp to milliseconds since 1970. Microseconds become a fraction. */
export function milliseconds(value: Value): number | undefined {
  if (typeof value !== 'string') {
    return undefined;
  }
  const match = ISO_TIME.exec(value);
  if (!match) {
    return undefined;
  }
  const whole = Date.parse(`${match[1]}Z`);
  if (Number.isNaN(whole)) {
    return undefined;
  }
  return whole + Number(`0.${match[2] ?? '0'}`) * 1000;
}

interface Spoken {
  readonly low: number;
  readonly high: number;
  readonly last: number;
}

/** Returns the lowest, highest and last value of a series, or `undefined` if it has no values. */
export function spoken(points: Series['points']): Spoken | undefined {
  let found: { low: number; high: number; last: number } | undefined;
  for (const point of points) {
    if (typeof point !== 'number') {
      continue;
    }
    found ??= { low: point, high: point, last: point };
    found.low = Math.min(found.low, point);
    found.high = Math.max(found.high, point);
    found.last = point;
  }
  return found;
}

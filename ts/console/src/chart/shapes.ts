/**
 * Computes drawn values that differ from the rows: stacks, histograms, order book depth, heat map
 * cells. This module has no side effects.
 */
import type { Row, Value } from '../api/answer.js';
import { spacing } from './candles.js';
import type { DepthColumns } from './depth-columns.js';
import type { ChartData, Point, Series } from './model.js';
import { numberOf } from './numbers.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Stacks each visible series on the previous one. A gap affects only its own series. */
export function stacked(data: ChartData, shown: readonly boolean[]): ChartData {
  const sums = data.times.map(() => 0);
  const known: (number | undefined)[] = [];
  const series = data.series.map(({ label, points }, index): Series => {
    if (!shown[index]) {
      return { label, points: [] };
    }
    const tops = points.map((point, at): Point => {
      // If only other series have a row at this x value, the last value still applies.
      const value = point === undefined ? known[index] : (point ?? undefined);
      known[index] = value;
      if (value === undefined) {
        return point === null ? null : undefined;
      }
      return (sums[at] = (sums[at] ?? 0) + value);
    });
    return { label, points: tops };
  });
  return { ...data, series };
}

const MIN_BINS = 5;
const MAX_BINS = 60;

/** Counts the values in ranges of equal width. The width is a round number. */
export function histogram(values: readonly number[], label: string): ChartData {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    [low, high] = [Math.min(low, value), Math.max(high, value)];
  }
  if (values.length === 0) {
    return { times: [], series: [{ label, points: [] }] };
  }
  const bins = Math.max(MIN_BINS, Math.min(MAX_BINS, Math.ceil(2 * Math.cbrt(values.length))));
  const width = roundWidth((high - low) / bins) || Math.abs(low) * 0.1 || 1;
  const first = Math.floor(low / width);
  const counts = new Array<number>(Math.max(1, Math.floor(high / width) - first + 1)).fill(0);
  for (const value of values) {
    const bin = Math.min(counts.length - 1, Math.max(0, Math.floor(value / width) - first));
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  const times = counts.map((_count, bin) => (first + bin + 0.5) * width);
  return {
    times,
    width,
    series: [{ label: fill(texts.chart.countOf, { label }), points: counts }],
  };
}

/**
 * Returns the smallest round width (1, 2 or 5 times a power of ten) that is at least `minWidth`.
 */
function roundWidth(minWidth: number): number {
  if (!(minWidth > 0) || !Number.isFinite(minWidth)) {
    return 0;
  }
  const power = 10 ** Math.floor(Math.log10(minWidth));
  return ([1, 2, 5].find((digit) => digit * power >= minWidth) ?? 10) * power;
}

/** Returns the numbers of a column, in row order. */
export function numbersOf(rows: readonly Row[], column: number): number[] {
  return rows.flatMap((row) => numberOf(row[column] ?? null) ?? []);
}

interface Level {
  readonly price: number;
  readonly amount: number;
}

/**
 * Sums the amounts by price. Bids are summed from the highest price down, asks from the lowest
 * price up.
 */
export function depthData(rows: readonly Row[], depth: DepthColumns): ChartData {
  const { bids, asks } = depth.kind === 'arrays' ? ofArrays(rows, depth) : ofRows(rows, depth);
  const down = summed(bids.toSorted((left, right) => right.price - left.price));
  const up = summed(asks.toSorted((left, right) => left.price - right.price));
  const times = [...new Set([...down.keys(), ...up.keys()])].sort((left, right) => left - right);
  return {
    times,
    series: [
      { label: texts.chart.bids, points: times.map((price) => down.get(price)) },
      { label: texts.chart.asks, points: times.map((price) => up.get(price)) },
    ],
  };
}

function summed(levels: readonly Level[]): Map<number, number> {
  const found = new Map<number, number>();
  let sum = 0;
  for (const { price, amount } of levels) {
    sum += amount;
    found.set(price, sum);
  }
  return found;
}

/**
 * Reads an order book from arrays of prices and amounts. Only the last row with an order book is
 * used.
 */
function ofArrays(
  rows: readonly Row[],
  { bids, asks }: DepthColumns & { kind: 'arrays' },
): { bids: Level[]; asks: Level[] } {
  const last = rows.findLast((row) => Array.isArray(row[bids]) && Array.isArray(row[asks]));
  return { bids: levelsOf(last?.[bids] ?? null), asks: levelsOf(last?.[asks] ?? null) };
}

function levelsOf(value: Value): Level[] {
  const [prices, amounts] = Array.isArray(value) ? (value as readonly Value[]) : [];
  if (!Array.isArray(prices) || !Array.isArray(amounts)) {
    return [];
  }
  return (prices as readonly Value[]).flatMap((price, at) =>
    levelOf(price, (amounts as readonly Value[])[at] ?? null),
  );
}

function levelOf(price: Value, amount: Value): Level[] {
  const [at, size] = [numberOf(price), numberOf(amount)];
  return at === null || size === null || size < 0 ? [] : [{ price: at, amount: size }];
}

function ofRows(
  rows: readonly Row[],
  { side, price, amount }: DepthColumns & { kind: 'rows' },
): { bids: Level[]; asks: Level[] } {
  const bids: Level[] = [];
  const asks: Level[] = [];
  for (const row of rows) {
    const list = /^b/i.test(String(row[side])) ? bids : asks;
    list.push(...levelOf(row[price] ?? null, row[amount] ?? null));
  }
  return { bids, asks };
}

export interface HeatCells {
  /** The x values at which the columns of cells begin. All columns have the same width. */
  readonly starts: readonly number[];
  readonly width: number;
  /** Mean value of each cell, indexed by series and then by column. */
  readonly means: readonly (readonly (number | undefined)[])[];
  readonly low: number;
  readonly high: number;
}

/**
 * Divides the data into at most `maxColumns` columns of cells. Each cell has the mean of its
 * values.
 */
export function heatCells(data: ChartData, maxColumns: number): HeatCells {
  const { times, series } = data;
  const [first, last] = [times[0] ?? 0, times.at(-1) ?? 0];
  const step = spacing(times);
  const columns = Math.max(
    1,
    Math.min(Math.floor(maxColumns), Math.round((last - first) / step) + 1),
  );
  const span = Math.ceil(((last - first) / step + 1) / columns) * step;
  const starts: number[] = [];
  const columnOf = times.map((time) => {
    const start = first + Math.floor((time - first) / span) * span;
    if (starts.at(-1) !== start) {
      starts.push(start);
    }
    return starts.length - 1;
  });
  let [low, high] = [Infinity, -Infinity];
  const means = series.map(({ points }) => {
    const sums = new Array<number>(starts.length).fill(0);
    const counts = new Array<number>(starts.length).fill(0);
    points.forEach((point, at) => {
      const column = columnOf[at] ?? 0;
      if (typeof point === 'number') {
        sums[column] = (sums[column] ?? 0) + point;
        counts[column] = (counts[column] ?? 0) + 1;
      }
    });
    return sums.map((sum, column) => {
      const count = counts[column] ?? 0;
      if (count === 0) {
        return undefined;
      }
      [low, high] = [Math.min(low, sum / count), Math.max(high, sum / count)];
      return sum / count;
    });
  });
  return { starts, width: span, means, low, high };
}

/** Replaces values that a logarithmic scale cannot show by gaps. */
export function aboveZero(data: ChartData): ChartData {
  const series = data.series.map(({ label, points }) => ({
    label,
    points: points.map((point) => (typeof point === 'number' && point <= 0 ? null : point)),
  }));
  return { ...data, series };
}

/**
 * Decimation: selects a subset of the points that draws the same picture. The visible range is
 * divided into as many intervals as the eye can distinguish. In each interval, every series keeps
 * its first, lowest, highest and last point, and its gaps.
 */
import { spoken, type ChartData, type Point } from './model.js';

export interface Range {
  readonly from: number;
  readonly to: number;
}

/**
 * Number of intervals in the visible range. A wide screen has room for 3,840 intervals of half a
 * pixel, but the difference would be invisible.
 */
export const BUCKETS = 1200;

/**
 * Decimates the points in a range. Keeps the nearest points outside the range, so that lines
 * continue to the edges.
 */
export function decimated(data: ChartData, range: Range | undefined, buckets = BUCKETS): ChartData {
  const { times } = data;
  const first = range ? Math.max(0, firstAtLeast(times, range.from) - 1) : 0;
  const end = range ? Math.min(times.length, firstAtLeast(times, range.to) + 2) : times.length;
  if (end - first <= buckets * 4) {
    return first === 0 && end === times.length ? data : picked(data, indexes(first, end));
  }
  const selected = new Uint8Array(times.length);
  const [low, high] = [times[first] ?? 0, times[end - 1] ?? 0];
  const width = (high - low) / buckets || 1;
  for (const { points } of data.series) {
    if (points.length === 0) {
      continue;
    }
    selectPoints(points, {
      first,
      end,
      selected,
      bucketOf: (at) => Math.floor(((times[at] ?? 0) - low) / width),
    });
  }
  return picked(
    data,
    indexes(first, end).filter((index) => selected[index] === 1),
  );
}

interface Decimation {
  readonly first: number;
  readonly end: number;
  readonly selected: Uint8Array;
  readonly bucketOf: (index: number) => number;
}

function selectPoints(
  points: readonly Point[],
  { first, end, selected, bucketOf }: Decimation,
): void {
  let now = -1;
  let [low, high, last] = [-1, -1, -1];
  const finish = (): void => {
    for (const index of [low, high, last]) {
      if (index >= 0) {
        selected[index] = 1;
      }
    }
    [low, high, last] = [-1, -1, -1];
  };
  for (let index = first; index < end; index += 1) {
    const point = points[index];
    if (bucketOf(index) !== now) {
      finish();
      now = bucketOf(index);
    }
    if (point === null) {
      // One gap is enough to break the line, so consecutive gaps are dropped.
      selected[index] = Number(points[index - 1] !== null || selected[index] === 1);
    } else if (point !== undefined) {
      if (last < 0) {
        selected[index] = 1;
        [low, high] = [index, index];
      } else {
        low = point < (points[low] ?? point) ? index : low;
        high = point > (points[high] ?? point) ? index : high;
      }
      last = index;
    }
  }
  finish();
}

function picked(data: ChartData, positions: readonly number[]): ChartData {
  return {
    ...data,
    times: positions.map((position) => data.times[position] ?? 0),
    series: data.series.map(({ label, points }) => ({
      label,
      points: points.length === 0 ? points : positions.map((position) => points[position]),
    })),
  };
}

function indexes(first: number, end: number): number[] {
  return Array.from({ length: Math.max(0, end - first) }, (_, offset) => first + offset);
}

function firstAtLeast(times: readonly number[], time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times[middle] ?? 0) < time) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/** If one series is this many times larger than another, the two need separate axes. */
const FAR_APART = 20;

/**
 * Decides which series use the second axis. Series are split where the ratio between neighbouring
 * sizes is largest, so that the series on one axis have similar sizes. The first series is always
 * on the left axis.
 */
export function onSecondAxis(data: ChartData, shown: readonly boolean[]): boolean[] {
  const sizes = data.series.map(({ points }, index) => (shown[index] ? sizeOf(points) : 0));
  const sorted = sizes.filter((size) => size > 0).sort((left, right) => left - right);
  let [cut, widest] = [0, FAR_APART];
  for (const [index, size] of sorted.entries()) {
    const below = sorted[index - 1];
    if (below !== undefined && size / below > widest) {
      [cut, widest] = [size, size / below];
    }
  }
  const first = sizes.find((size) => size > 0) ?? 0;
  return sizes.map((size) => cut > 0 && size > 0 && size >= cut !== first >= cut);
}

/**
 * If the range of the axis exceeds the largest movement of a series by this factor, all series look
 * flat.
 */
const FLAT_SPAN = 5;

/**
 * True if lines on a shared axis look flat, because their magnitudes differ or because they are far
 * apart and move little.
 */
export function isFlat(
  data: ChartData,
  shown: readonly boolean[],
  second: readonly boolean[],
): boolean {
  return [true, false].some((axis) => {
    const sharing = data.series.flatMap(({ points }, index) =>
      shown[index] && (second[index] ?? false) === axis ? [points] : [],
    );
    const known = sharing.map(sizeOf).filter((size) => size > 0);
    return Math.max(...known) > Math.min(...known) * FAR_APART || areFlat(sharing);
  });
}

/** True if every series moves little compared with the range that all series span. */
function areFlat(series: readonly (readonly Point[])[]): boolean {
  const ends = series.flatMap((points) => spoken(points) ?? []);
  const low = Math.min(...ends.map((one) => one.low));
  const high = Math.max(...ends.map((one) => one.high));
  const widest = Math.max(...ends.map((one) => one.high - one.low));
  return widest > 0 && high - low > widest * FLAT_SPAN;
}

/** Converts each point to its change from the first point of its series, in percent. */
export function asChange(data: ChartData): ChartData {
  const series = data.series.map(({ label, points }) => {
    const first = points.find((point) => typeof point === 'number' && point !== 0) ?? undefined;
    const change = (point: Point): Point =>
      typeof point === 'number' && first !== undefined ? (point / first - 1) * 100 : point;
    return { label, points: points.map(change) };
  });
  return { ...data, series };
}

function sizeOf(points: readonly Point[]): number {
  let size = 0;
  for (const point of points) {
    size = Math.max(size, Math.abs(point ?? 0));
  }
  return size;
}

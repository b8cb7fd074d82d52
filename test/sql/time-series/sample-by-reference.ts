/** SAMPLE BY and LATEST ON, evaluated row by row. Local time comes from the platform's calendar. */
import type { Cell, Row } from './random-table.js';
import { SECOND } from './random-table.js';

const DAY = 86_400 * SECOND;

export type Unit = 's' | 'm' | 'h' | 'd' | 'w' | 'M' | 'y';

export interface Grid {
  readonly count: number;
  readonly unit: Unit;
  /** IANA name; null for UTC. */
  readonly zone: string | null;
  /** WITH OFFSET, in microseconds. */
  readonly offset: number;
  /** Local time at which buckets start: FROM, or the first row of FIRST OBSERVATION. */
  readonly origin: number | null;
}

const formats = new Map<string, Intl.DateTimeFormat>();
const offsets = new Map<string, number>();

/** Returns local time minus UTC at a timestamp. */
export function zoneOffset(zone: string, ts: number): number {
  // Clock changes happen only at multiples of a quarter hour.
  const quarter = Math.floor(ts / (900 * SECOND));
  const name = `${zone}@${quarter}`;
  const known = offsets.get(name);
  if (known !== undefined) {
    return known;
  }
  const format =
    formats.get(zone) ??
    new Intl.DateTimeFormat('en-US', {
      timeZone: zone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
  formats.set(zone, format);
  const date = new Date(quarter * 900_000);
  const part = (type: string): number =>
    Number(format.formatToParts(date).find((one) => one.type === type)?.value);
  const local = Date.UTC(
    part('year'),
    part('month') - 1,
    part('day'),
    part('hour'),
    part('minute'),
    part('second'),
  );
  const offset = (local - date.getTime()) * 1_000;
  offsets.set(name, offset);
  return offset;
}

/**
 * Converts a local time to UTC. An ambiguous time becomes the earlier of its two UTC times; a
 * skipped time becomes the end of the gap.
 */
export function toUniversal(zone: string | null, local: number): number {
  if (zone === null) {
    return local;
  }
  const candidates = [-DAY, DAY]
    .map((shift) => local - zoneOffset(zone, local + shift))
    .filter((ts) => ts + zoneOffset(zone, ts) === local);
  if (candidates.length > 0) {
    return Math.min(...candidates);
  }
  // Clock changes happen only at multiples of a quarter hour.
  const quarter = 900 * SECOND;
  let ts = Math.floor((local - zoneOffset(zone, local + DAY)) / quarter) * quarter;
  while (ts + zoneOffset(zone, ts) < local) {
    ts += quarter;
  }
  return ts;
}

const FIXED = { s: SECOND, m: 60 * SECOND, h: 3_600 * SECOND, d: DAY, w: 7 * DAY };
const MONDAY = -3 * DAY;

/** Returns the start of the bucket that contains a local time, in local time. */
function floorLocal(local: number, { count, unit, origin }: Grid): number {
  if (unit === 'M' || unit === 'y') {
    const date = new Date(Math.floor(local / 1_000));
    const months = date.getUTCFullYear() * 12 + date.getUTCMonth() - 1_970 * 12;
    const step = unit === 'M' ? count : 12 * count;
    const floor = Math.floor(months / step) * step;
    return Date.UTC(1_970 + Math.floor(floor / 12), ((floor % 12) + 12) % 12) * 1_000;
  }
  const step = count * FIXED[unit];
  const start = origin ?? (unit === 'w' ? MONDAY : 0);
  return start + Math.floor((local - start) / step) * step;
}

/** Returns the timestamp of the bucket that contains a timestamp. */
export function bucketOf(ts: number, grid: Grid): number {
  const { zone, offset } = grid;
  const local = ts + (zone === null ? 0 : zoneOffset(zone, ts));
  return toUniversal(zone, floorLocal(local - offset, grid) + offset);
}

/** Returns all buckets in a range, found by probing every `step`. */
export function bucketsBetween(from: number, to: number, step: number, grid: Grid): number[] {
  const found = new Set<number>();
  for (let ts = from; ts <= to; ts += step) {
    found.add(bucketOf(ts, grid));
  }
  found.add(bucketOf(to, grid));
  return [...found].sort((one, other) => one - other);
}

export type Fill = 'none' | 'null' | 'prev' | 'linear' | number;

interface Sampled {
  readonly bucket: number;
  readonly key: string | null;
  readonly rows: readonly Row[];
}

/** Returns rows by bucket and key. */
export function sample(rows: readonly Row[], grid: Grid, keyed: boolean): Sampled[] {
  const groups = new Map<string, { bucket: number; key: string | null; rows: Row[] }>();
  for (const row of rows) {
    const [bucket, key] = [bucketOf(row.ts, grid), keyed ? row.k : null];
    const name = `${bucket}/${key}`;
    const group = groups.get(name) ?? { bucket, key, rows: [] };
    group.rows.push(row);
    groups.set(name, group);
  }
  return [...groups.values()];
}

/** Returns a value for each bucket of one key, with gaps filled. */
export function fill(
  labels: readonly number[],
  values: ReadonlyMap<number, Cell>,
  how: Fill,
): Cell[] {
  const known = (index: number): number | null => {
    const value = values.get(labels[index] ?? Number.NaN);
    return typeof value === 'number' ? value : null;
  };
  const between = (index: number): Cell => {
    let [left, right] = [index, index];
    while (left >= 0 && known(left) === null) {
      left -= 1;
    }
    while (right < labels.length && known(right) === null) {
      right += 1;
    }
    const [low, high] = [known(left), known(right)];
    if (low === null || high === null) {
      return null;
    }
    const [from, to, at] = [labels[left] ?? 0, labels[right] ?? 0, labels[index] ?? 0];
    return low + ((high - low) * (at - from)) / (to - from);
  };
  let previous: Cell = null;
  return labels.map((label, index) => {
    const own = values.get(label);
    if (own !== undefined) {
      previous = own;
      // LINEAR treats null as a missing value.
      return how === 'linear' && own === null ? between(index) : own;
    }
    if (how === 'prev') {
      return previous;
    }
    return how === 'linear' ? between(index) : typeof how === 'number' ? how : null;
  });
}

/** Returns the last row of each key, in time order. */
export function latest(rows: readonly Row[], key: (row: Row) => string): Row[] {
  return rows.filter(
    (row, index) => !rows.slice(index + 1).some((later) => key(later) === key(row)),
  );
}

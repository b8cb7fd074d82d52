/**
 * Parses time expressions: `now`, `now-1h`, `today`, `2026-01-01`, `2026-01-01 10:30`. This module
 * has no side effects.
 */
import { texts } from '../texts.js';

const UNITS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};
const RELATIVE = /^(now|today)\s*(?:([+-])\s*(\d{1,6})\s*([smhdwMy]))?$/;
const ABSOLUTE = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?))?\s*(?:Z|UTC)?$/;
const DAY = 86_400_000;

/** Returns milliseconds since 1970 UTC, or `undefined` if the text is not a time. */
export function timeOf(text: string, now: number): number | undefined {
  const written = text.trim();
  const [, base, sign, count, unit = ''] = RELATIVE.exec(written) ?? [];
  if (base !== undefined) {
    const start = base === 'now' ? now : Math.floor(now / DAY) * DAY;
    return count === undefined ? start : shifted(start, Number(`${sign}${count}`), unit);
  }
  const [, day, time = '00:00'] = ABSOLUTE.exec(written) ?? [];
  if (day === undefined) {
    return undefined;
  }
  const at = Date.parse(`${day}T${seconds(time)}Z`);
  // `Date.parse` reads the 31st of a 30-day month as the 1st of the next month.
  const isReal = !Number.isNaN(at) && new Date(at).toISOString().startsWith(day);
  return isReal ? at : undefined;
}

/** Converts a time expression to the server's format. An absolute time keeps all its digits. */
export function serverTime(text: string, now: number): string | undefined {
  const at = timeOf(text, now);
  if (at === undefined) {
    return undefined;
  }
  const [, day, time = '00:00'] = ABSOLUTE.exec(text.trim()) ?? [];
  return day === undefined ? new Date(at).toISOString() : `${day}T${seconds(time)}Z`;
}

function seconds(time: string): string {
  return time.length === 5 ? `${time}:00` : time;
}

function shifted(start: number, count: number, unit: string): number {
  const size = UNITS[unit];
  if (size !== undefined) {
    return start + count * size;
  }
  const date = new Date(start);
  const day = date.getUTCDate();
  date.setUTCDate(1);
  date.setUTCMonth(date.getUTCMonth() + (unit === 'y' ? 12 * count : count));
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate();
  date.setUTCDate(Math.min(day, last));
  return date.getTime();
}

/** Predefined time ranges, from short to long. */
export const USUAL_RANGES: readonly (readonly [string, string, string])[] = [
  [texts.common.last5Minutes, 'now-5m', 'now'],
  [texts.common.lastHour, 'now-1h', 'now'],
  [texts.common.last6Hours, 'now-6h', 'now'],
  [texts.common.last24Hours, 'now-24h', 'now'],
  [texts.common.last7Days, 'now-7d', 'now'],
  [texts.ranges.today, 'today', 'now'],
];

/** Partitions as files: their time ranges and file names. */
import { DatabaseError } from '../session/index.js';

const PARTITION_UNITS = ['HOUR', 'DAY', 'WEEK', 'MONTH', 'YEAR'] as const;
export type PartitionUnit = (typeof PARTITION_UNITS)[number];

/** Unit names for `timestamp_floor`. */
export const FLOOR_UNITS: Readonly<Record<PartitionUnit, string>> = {
  HOUR: 'h',
  DAY: 'd',
  WEEK: 'w',
  MONTH: 'M',
  YEAR: 'y',
};

export interface Partition {
  /** The file name without its extension: `2026-01-31`. */
  readonly name: string;
  /** Start times of this partition and of the next one. */
  readonly from: string;
  readonly to: string;
}

export function isPartitionUnit(text: string): text is PartitionUnit {
  return (PARTITION_UNITS as readonly string[]).includes(text);
}

/** Returns the partition that starts at `start`, an ISO timestamp of any precision. */
export function partitionAt(unit: PartitionUnit, start: string): Partition {
  const from = new Date(`${start.slice(0, 'yyyy-MM-ddTHH:mm:ss'.length)}Z`);
  if (Number.isNaN(from.getTime())) {
    const message = `a partition cannot begin at '${start}': expected a year from 0 to 9999`;
    throw new DatabaseError({ code: 'InvalidValue', message });
  }
  const to = following(unit, from);
  return { name: nameOf(unit, from), from: from.toISOString(), to: to.toISOString() };
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function following(unit: PartitionUnit, from: Date): Date {
  const next = new Date(from);
  switch (unit) {
    case 'HOUR':
      return new Date(from.getTime() + HOUR_MS);
    case 'DAY':
      return new Date(from.getTime() + DAY_MS);
    case 'WEEK':
      return new Date(from.getTime() + 7 * DAY_MS);
    case 'MONTH':
      next.setUTCMonth(from.getUTCMonth() + 1);
      return next;
    case 'YEAR':
      next.setUTCFullYear(from.getUTCFullYear() + 1);
      return next;
  }
}

function nameOf(unit: PartitionUnit, from: Date): string {
  const iso = from.toISOString();
  switch (unit) {
    case 'HOUR':
      return iso.slice(0, 'yyyy-MM-ddTHH'.length);
    case 'DAY':
      return iso.slice(0, 'yyyy-MM-dd'.length);
    case 'WEEK':
      return weekName(from);
    case 'MONTH':
      return iso.slice(0, 'yyyy-MM'.length);
    case 'YEAR':
      return iso.slice(0, 'yyyy'.length);
  }
}

/** Returns the name of a week. As in ISO 8601, a week belongs to the year of its Thursday. */
function weekName(monday: Date): string {
  const thursday = new Date(monday.getTime() + 3 * DAY_MS);
  const first = new Date(thursday);
  first.setUTCMonth(0, 1);
  const week = Math.floor((thursday.getTime() - first.getTime()) / (7 * DAY_MS)) + 1;
  return `${thursday.toISOString().slice(0, 'yyyy'.length)}-W${String(week).padStart(2, '0')}`;
}

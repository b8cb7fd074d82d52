/**
 * Display options of a chart: unit, decimals, axis scale and limits, thresholds, annotations. Each
 * option is stored as the user typed it. Invalid input is rejected. This module has no side
 * effects.
 */
import { duration, grouped, bytesText } from '../model/format.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export const OPTION_NAMES = [
  'unit',
  'decimals',
  'scale',
  'least',
  'most',
  'thresholds',
  'annotations',
] as const;
type OptionName = (typeof OPTION_NAMES)[number];

export type ChartOptions = Readonly<Partial<Record<OptionName, string>>>;

/** Units that determine how a value is formatted. Any other unit is appended to the value. */
export const UNITS: readonly (readonly [value: string, name: string])[] = [
  ['short', texts.chartOptions.short],
  ['bytes', texts.chartOptions.bytes],
  ['%', texts.chartOptions.percent],
  ['ms', texts.chartOptions.milliseconds],
  ['s', texts.chartOptions.seconds],
];

const LEVELS = ['ok', 'warn', 'error'] as const;
type Level = (typeof LEVELS)[number];

/** A threshold. Values greater than or equal to `at` have the level. */
export interface Threshold {
  readonly at: number;
  readonly level: Level;
}

const MAX_UNIT_LENGTH = 16;
const MAX_QUERY_LENGTH = 16 * 1024;
const MAX_THRESHOLDS = 8;
const MAX_DECIMALS = 9;

/** Returns an error message if the options are invalid. */
export function optionTrouble(options: ChartOptions): string | undefined {
  const { unit = '', decimals, scale, least, most, annotations = '' } = options;
  if (unit.length > MAX_UNIT_LENGTH) {
    return fill(texts.chartOptions.unitTooLong, { max: MAX_UNIT_LENGTH });
  }
  if (decimals !== undefined && !/^[0-9]$/.test(decimals)) {
    return fill(texts.chartOptions.invalidDecimals, { max: MAX_DECIMALS });
  }
  if (scale !== undefined && scale !== 'log') {
    return texts.chartOptions.invalidScale;
  }
  const [low, high] = [numberOf(least), numberOf(most)];
  if (Number.isNaN(low) || Number.isNaN(high)) {
    return texts.chartOptions.invalidLimits;
  }
  if (low !== undefined && high !== undefined && low >= high) {
    return texts.chartOptions.swappedLimits;
  }
  if (annotations.length > MAX_QUERY_LENGTH) {
    return fill(texts.chartOptions.queryTooLong, { max: MAX_QUERY_LENGTH });
  }
  const thresholds = thresholdsOf(options);
  return typeof thresholds === 'string' ? thresholds : undefined;
}

function numberOf(text: string | undefined): number | undefined {
  if (text === undefined) {
    return undefined;
  }
  const number = text.trim() === '' ? NaN : Number(text);
  return Number.isFinite(number) ? number : NaN;
}

/**
 * Parses thresholds such as `80 warn, 95 error`, and sorts them in ascending order. Returns an
 * error message if they are invalid.
 */
function thresholdsOf({ thresholds = '' }: ChartOptions): readonly Threshold[] | string {
  const parts = thresholds.split(',').filter((part) => part.trim() !== '');
  if (parts.length > MAX_THRESHOLDS) {
    return fill(texts.chartOptions.tooManyThresholds, { max: MAX_THRESHOLDS });
  }
  const found: Threshold[] = [];
  for (const part of parts) {
    const [, number = '', word = 'warn'] = /^\s*(\S+?)(?:\s+(\w+))?\s*$/.exec(part) ?? [];
    const at = numberOf(number) ?? NaN;
    const level = LEVELS.find((one) => one === word);
    if (Number.isNaN(at) || level === undefined) {
      return fill(texts.chartOptions.invalidThreshold, { text: part.trim() });
    }
    found.push({ at, level });
  }
  return found.sort((left, right) => left.at - right.at);
}

/** Parsed display options, as the drawing code needs them. */
export interface DrawOptions {
  readonly unit: string;
  readonly decimals: number | undefined;
  readonly isLog: boolean;
  readonly min: number | undefined;
  readonly max: number | undefined;
  readonly thresholds: readonly Threshold[];
}

export function drawOptionsOf(options: ChartOptions): DrawOptions {
  const usable = optionTrouble(options) === undefined ? options : {};
  const thresholds = thresholdsOf(usable);
  return {
    unit: usable.unit ?? '',
    decimals: usable.decimals === undefined ? undefined : Number(usable.decimals),
    isLog: usable.scale === 'log',
    min: numberOf(usable.least),
    max: numberOf(usable.most),
    thresholds: typeof thresholds === 'string' ? [] : thresholds,
  };
}

/** Removes options that are empty or have their default value. */
export function withoutEmpty(draft: Readonly<Record<string, string>>): ChartOptions {
  const known = OPTION_NAMES.flatMap((name) => {
    const text = (draft[name] ?? '').trim();
    return text === '' || text === 'linear' ? [] : [[name, text] as const];
  });
  return Object.fromEntries(known);
}

/** Returns the level of a value, or `undefined` if it is below all thresholds. */
export function levelOf(value: number, thresholds: readonly Threshold[]): Level | undefined {
  return thresholds.findLast(({ at }) => value >= at)?.level;
}

type Format = Pick<DrawOptions, 'unit' | 'decimals'>;

/**
 * Formats a value with its unit. If neither unit nor decimals determine the notation, `plain`
 * formats the number.
 */
export function valueText(
  value: number,
  { unit, decimals }: Format,
  plain: (value: number) => string,
): string {
  switch (unit) {
    case 'short':
      return shortText(value, decimals);
    case 'bytes':
      return value < 0 ? `-${bytesText(-value)}` : bytesText(value);
    case 'ms':
      return value < 0 ? `-${duration(-value)}` : duration(value);
    case 's':
      return value < 0 ? `-${duration(-value * 1000)}` : duration(value * 1000);
    default: {
      const text = decimals === undefined ? plain(value) : grouped(value.toFixed(decimals));
      return unit === '' ? text : unit === '%' ? `${text}%` : `${text} ${unit}`;
    }
  }
}

const SHORT: readonly (readonly [number, string])[] = [
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
];

function shortText(value: number, decimals = 1): string {
  const [size, letter] = SHORT.find(([minimum]) => Math.abs(value) >= minimum) ?? [1, ''];
  const text = String(Number((value / size).toFixed(decimals)));
  return letter === '' ? text : `${text} ${letter}`;
}

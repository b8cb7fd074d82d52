/** Configures the plot axes: their labels, and the space that the labels need. */
import type uPlot from 'uplot';
import { grouped } from '../../model/format.js';
import { lastPrice, priceText } from '../candles.js';
import { valueText } from '../options.js';
import type { Role } from './pen.js';
import type { PlotOptions } from './plot-options.js';
import { DAY, HOUR, LOCAL, MINUTE, MONTH, SECOND, timeTicks, UTC, YEAR } from '../time-ticks.js';

/**
 * The right side of a plot. uPlot defines its sides in a const enum, which cannot be used with
 * `isolatedModules`.
 */
// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- see above
const RIGHT: Pick<uPlot.Axis, 'side'> = { side: 1 };

// Each entry contains a step, a label, and second lines that appear when the year, month, day, hour
// or minute changes.
const DATE_LINE = '\n{D} {MMM} {YYYY}';
const DAY_LINE = '\n{D} {MMM}';
const TIME_LABELS = [
  [YEAR, '{YYYY}', null, null, null, null, null, null, 1],
  [MONTH, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [DAY, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [HOUR, '{HH}:{mm}', DATE_LINE, null, DAY_LINE, null, null, null, 1],
  [MINUTE, '{HH}:{mm}', DATE_LINE, null, DAY_LINE, null, null, null, 1],
  [SECOND, '{HH}:{mm}:{ss}', DATE_LINE, null, DAY_LINE, null, null, null, 1],
  [
    1,
    '{ss}.{fff}',
    `${DATE_LINE} {HH}:{mm}`,
    null,
    `${DAY_LINE} {HH}:{mm}`,
    null,
    '\n{HH}:{mm}',
    null,
    1,
  ],
] as unknown as uPlot.Axis.Values;

export function axesOf(options: PlotOptions, role: Role): uPlot.Axis[] {
  const { kind, data, second, drawOptions } = options;
  const candles = kind === 'candles';
  const tag = candles ? lastPrice(data.series[3]?.points ?? []) : undefined;
  const minLength = tag === undefined ? 3 : valueText(tag, drawOptions, priceText).length + 2;
  const values = (_self: uPlot, splits: (number | null)[]): string[] =>
    splits.map((value) => (value === null ? '' : valueText(value, drawOptions, axisNumber)));
  const size = (_self: uPlot, texts: string[] | null): number =>
    22 + 6.6 * Math.max(minLength, ...(texts ?? []).map((text) => text.length));
  const font = `11px ${role('font-ui')}`;
  const shared = { stroke: role('text-faint'), font, ticks: { show: false } };
  const grid = { stroke: role('line-soft'), width: 1 };
  return [
    { ...shared, space: 70, size: 38, gap: 6, grid, ...acrossOf(options) },
    {
      ...shared,
      // Price labels are on the right, next to the newest price.
      ...(candles ? RIGHT : {}),
      gap: 6,
      // Despite its type definitions, uPlot passes no labels before its first layout pass.
      size,
      values,
      grid,
      ...(kind === 'heatmap' ? heatRows(options) : {}),
      ...(kind === 'histogram' ? { values: (_self, splits) => splits.map(axisNumber) } : {}),
    },
    ...(second.includes(true) ? [{ ...shared, ...RIGHT, ...SECOND_AXIS, size, values }] : []),
  ];
}

const SECOND_AXIS: uPlot.Axis = { scale: 'second', gap: 6, grid: { show: false } };

/** Labels as many rows of a heat map as fit. */
function heatRows({ data }: PlotOptions): uPlot.Axis {
  return {
    space: 16,
    grid: { show: false },
    splits: (self) => {
      const { length } = data.series;
      const every = Math.max(1, Math.ceil((length * 16) / Math.max(16, self.bbox.height)));
      return data.series.flatMap((_series, at) => (at % every === 0 ? [length - at - 0.5] : []));
    },
    values: (_self, splits) =>
      splits.map((at) => shortName(data.series[data.series.length - at - 0.5]?.label ?? '')),
  };
}

const NAME_SHOWN = 12;

/** Configures the x axis and its labels. */
function acrossOf({ axis, kind, data, zone, drawOptions }: PlotOptions): uPlot.Axis {
  switch (axis) {
    case 'time':
      return {
        values: TIME_LABELS,
        splits: (_self, _axis, min, max, step) =>
          timeTicks(min, max, step, zone === 'utc' ? UTC : LOCAL),
      };
    case 'number':
      return {
        values: (_self, splits) =>
          splits.map((value) =>
            kind === 'histogram' ? valueText(value, drawOptions, axisNumber) : axisNumber(value),
          ),
      };
    case 'names':
      return {
        space: 56,
        incrs: [1, 2, 5, 10, 20],
        grid: { show: false },
        values: (_self, splits) => splits.map((at) => shortName(data.names?.[at] ?? '')),
      };
  }
}

function shortName(name: string): string {
  return name.length > NAME_SHOWN ? `${name.slice(0, NAME_SHOWN - 1)}…` : name;
}

/**
 * Formats a number for an axis. Large and tiny numbers are shortened, others are written in full.
 */
export function axisNumber(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e12) {
    return value.toExponential(2);
  }
  if (size >= 1e9) {
    return `${Number((value / 1e9).toFixed(3))} G`;
  }
  if (size >= 1e7) {
    return `${Number((value / 1e6).toFixed(3))} M`;
  }
  if (size !== 0 && size < 1e-4) {
    return value.toExponential(1);
  }
  return grouped(String(Number(value.toPrecision(10))));
}

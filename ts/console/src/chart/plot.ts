/**
 * Draws chart data with uPlot: axes, candles, labels at the lines' ends. Colours are read from the
 * design tokens when the plot is made; it is made anew when the theme or the data changes.
 */
import uPlot from 'uplot';
import { grouped, type Zone } from '../model/format.js';
import { drawCandles, lastPrice, priceText, spacing } from './candles.js';
import type { Range } from './decimate.js';
import type { AxisKind, ChartData } from './model.js';
import type { Role } from './candles.js';
import {
  DAY,
  HOUR,
  LOCAL,
  MINUTE,
  MONTH,
  SECOND,
  timeTicks,
  UTC,
  UtcDate,
  YEAR,
} from './time-ticks.js';

export type ChartKind = 'line' | 'area' | 'step' | 'bars' | 'scatter' | 'candles';

interface PlotOptions {
  readonly kind: ChartKind;
  readonly data: ChartData;
  /** Whether each series is drawn. */
  readonly shown: readonly boolean[];
  /** Place of each series in the fixed order of colours. */
  readonly colours: readonly number[];
  readonly zone: Zone;
  readonly axis: AxisKind;
  /** The part in view; all of it when there is none. */
  readonly range: Range | undefined;
  /** Whether each series goes by the second axis. */
  readonly second: readonly boolean[];
  readonly onCursor: (index: number | undefined) => void;
  readonly onZoom: (range: Range) => void;
  /** By a share of the width. */
  readonly onPan: (share: number) => void;
  readonly onReset: () => void;
}

export interface Plot {
  resize(): void;
  /** Moves the crosshair by points, for the keyboard. */
  moveCursor(steps: number): void;
  /** The point under the crosshair. */
  cursorIndex(): number | undefined;
  destroy(): void;
}

const COLOURS = 8;
const DASHES: readonly number[][] = [[], [7, 3], [], [4, 3], [], [7, 3], [], [10, 3, 2, 3]];
const LABEL_ROOM = 110;
/** Half of a tick's label. */
const FIRST_TICK = 32;
const LABEL_HEIGHT = 14;
const LABELLED_SERIES = 8;
const VOLUME_SERIES = 4;
/** A press that moves less, in pixels, chooses nothing. */
const LEAST_DRAG = 4;

export function drawPlot(host: HTMLElement, options: PlotOptions): Plot {
  const style = getComputedStyle(document.documentElement);
  const role: Role = (name) => style.getPropertyValue(`--${name}`).trim();
  const candles = options.kind === 'candles';
  const plot = new uPlot(
    {
      ...sizeOf(host),
      ms: 1,
      tzDate: (at) => (options.zone === 'utc' ? new UtcDate(at) : new Date(at)),
      legend: { show: false },
      // Where no axis is at the left, the first tick needs room there.
      padding: [
        10,
        candles || options.second.includes(true) ? 0 : endRoom(options),
        0,
        candles ? FIRST_TICK : 0,
      ],
      cursor: {
        drag: { x: true, y: false, setScale: false },
        points: { size: 7 },
        focus: { prox: -1 },
        bind: {
          mousedown: (self, _target, begin) => (event) =>
            event.shiftKey ? pan(self, event, options) : (begin(event), null),
          dblclick: () => () => (options.onReset(), null),
        },
      },
      scales: scalesOf(options),
      axes: axesOf(options, role),
      series: [{}, ...seriesOf(options, role)],
      hooks: {
        setCursor: [(self) => options.onCursor(self.cursor.idx ?? undefined)],
        setSelect: [(self) => zoomTo(self, options)],
        draw: [(self) => (candles ? drawCandles(self, role) : drawLabels(self, options, role))],
      },
    },
    [options.data.times, ...options.data.series.map(({ points }) => points)] as uPlot.AlignedData,
    host,
  );
  return {
    resize: () => plot.setSize(sizeOf(host)),
    moveCursor: (steps) => moveCursor(plot, steps),
    cursorIndex: () => plot.cursor.idx ?? undefined,
    destroy: () => plot.destroy(),
  };
}

/** The dragged part of the axis becomes the range in view. */
function zoomTo(self: uPlot, { onZoom }: PlotOptions): void {
  const { left, width } = self.select;
  if (width < LEAST_DRAG) {
    return;
  }
  const range = { from: self.posToVal(left, 'x'), to: self.posToVal(left + width, 'x') };
  self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  onZoom(range);
}

/** With Shift a drag moves the range instead of choosing one. */
function pan(self: uPlot, start: MouseEvent, { onPan }: PlotOptions): null {
  const end = (event: MouseEvent): void => {
    const width = self.over.clientWidth || 1;
    onPan((start.clientX - event.clientX) / width);
  };
  document.addEventListener('mouseup', end, { once: true });
  return null;
}

/** Room beside the first and last point, where they would be cut by the frame. */
function sideOf({ kind, axis, data }: PlotOptions): number {
  if (axis === 'names') {
    return 0.6;
  }
  const [first, last] = [data.times[0] ?? 0, data.times.at(-1) ?? 0];
  if (first === last) {
    return axis === 'time' ? 1000 : Math.abs(first) * 0.1 || 1;
  }
  if (kind === 'candles' || kind === 'bars') {
    return spacing(data.times) * 0.7;
  }
  return kind === 'scatter' ? (last - first) * 0.02 : 0;
}

/** Candles stand clear of the frame, and of the volume below them. */
function scalesOf(options: PlotOptions): uPlot.Scales {
  const { kind, data, range, axis } = options;
  const side = sideOf(options);
  const across: uPlot.Scale = {
    time: axis === 'time',
    range: (_self, min, max) => (range ? [range.from, range.to] : [min - side, max + side]),
  };
  if (kind !== 'candles') {
    const down = kind === 'bars' ? { range: fromZero } : {};
    return { x: across, y: down, second: down };
  }
  const hasVolume = data.series.length > VOLUME_SERIES;
  return {
    x: across,
    y: {
      range: (_self, min, max) => {
        const room = (max - min || Math.abs(max) || 1) * 0.05;
        return [min - room * (hasVolume ? 6 : 1), max + room];
      },
    },
    volume: { range: (_self, _min, max) => [0, max * 6] },
  };
}

/** Lengths of bars are compared: they begin at zero. */
function fromZero(_self: uPlot, min: number | null, max: number | null): uPlot.Range.MinMax {
  const [low, high] = [Math.min(0, min ?? 0), Math.max(0, max ?? 0)];
  const room = (high - low || 1) * 0.06;
  return [low < 0 ? low - room : 0, high > 0 ? high + room : 0];
}

function sizeOf(host: HTMLElement): { width: number; height: number } {
  return { width: Math.max(120, host.clientWidth), height: Math.max(80, host.clientHeight) };
}

function endRoom({ data, shown }: PlotOptions): number {
  const visible = data.series.filter((_series, index) => shown[index]);
  if (visible.length === 0 || visible.length > LABELLED_SERIES) {
    return 16;
  }
  const longest = Math.max(...visible.map(({ label }) => label.length));
  return Math.min(LABEL_ROOM, 18 + longest * 7);
}

/** The library names sides in a const enum, which one file at a time cannot see. */
// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- see above
const RIGHT: Pick<uPlot.Axis, 'side'> = { side: 1 };

// Step, its label, and the second line when year, month, day, hour or minute rolls over.
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

function axesOf(options: PlotOptions, role: Role): uPlot.Axis[] {
  const { kind, data, second } = options;
  const candles = kind === 'candles';
  const tag = candles ? lastPrice(data.series[3]?.points ?? []) : undefined;
  const least = tag === undefined ? 3 : priceText(tag).length + 2;
  const font = `11px ${role('font-ui')}`;
  const shared = { stroke: role('text-faint'), font, ticks: { show: false } };
  const grid = { stroke: role('line-soft'), width: 1 };
  return [
    { ...shared, space: 70, size: 38, gap: 6, grid, ...acrossOf(options) },
    {
      ...shared,
      // Prices are read at the right, where the newest one is.
      ...(candles ? RIGHT : {}),
      gap: 6,
      // Before the first pass there are no labels, whatever the types say.
      size: (_self, values: string[] | null) =>
        22 + 6.6 * Math.max(least, ...(values ?? []).map((text) => text.length)),
      values: (_self, splits) => splits.map(axisNumber),
      grid,
    },
    ...(second.includes(true) ? [{ ...shared, ...SECOND_AXIS, ...RIGHT }] : []),
  ];
}

const SECOND_AXIS: uPlot.Axis = {
  scale: 'second',
  gap: 6,
  size: (_self, values: string[] | null) =>
    22 + 6.6 * Math.max(3, ...(values ?? []).map((text) => text.length)),
  values: (_self, splits) => splits.map(axisNumber),
  grid: { show: false },
};

const NAME_SHOWN = 12;

/** What is written along the bottom. */
function acrossOf({ axis, data, zone }: PlotOptions): uPlot.Axis {
  switch (axis) {
    case 'time':
      return {
        values: TIME_LABELS,
        splits: (_self, _axis, min, max, step) =>
          timeTicks(min, max, step, zone === 'utc' ? UTC : LOCAL),
      };
    case 'number':
      return { values: (_self, splits) => splits.map(axisNumber) };
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

/** Large and tiny numbers short, the others in full. */
function axisNumber(value: number): string {
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

function seriesOf(options: PlotOptions, role: Role): uPlot.Series[] {
  return options.data.series.map(({ label }, index) => {
    if (options.kind === 'candles') {
      return candleSeries(label, index, role);
    }
    const place = options.colours[index] ?? index;
    const colour = place < COLOURS ? role(`chart-${place + 1}`) : role('line-control');
    return {
      label,
      show: options.shown[index] ?? false,
      scale: options.second[index] ? 'second' : 'y',
      stroke: colour,
      width: options.kind === 'bars' ? 0 : 1.8,
      dash: DASHES[place % COLOURS] ?? [],
      ...pathsOf(options.kind, colour),
    };
  });
}

function pathsOf(kind: ChartKind, colour: string): Partial<uPlot.Series> {
  switch (kind) {
    case 'line':
      return {};
    case 'area':
      return { fill: `color-mix(in srgb, ${colour} 12%, transparent)` };
    case 'step':
      return withPaths(uPlot.paths.stepped?.({ align: 1 }));
    case 'bars':
      return { ...withPaths(uPlot.paths.bars?.({ size: [0.7, 60] })), fill: colour };
    case 'scatter':
      return { paths: () => null, points: { show: true, size: 6, fill: colour, width: 0 } };
    case 'candles':
      return {};
  }
}

/** A way of drawing that the library may have been built without. */
function withPaths(paths: uPlot.Series.PathBuilder | undefined): Partial<uPlot.Series> {
  return paths ? { paths } : {};
}

/** The first four series only stretch the scale: candles are drawn from all of them at once. */
function candleSeries(label: string, index: number, role: Role): uPlot.Series {
  if (index === VOLUME_SERIES) {
    const fill = role('line-control');
    const paths = withPaths(uPlot.paths.bars?.({ size: [0.6, 24] }));
    return { label, scale: 'volume', fill, width: 0, ...paths, points: { show: false } };
  }
  return { label, paths: () => null, points: { show: false } };
}

/** Names each line at its end. Where two would collide, both stay with the chips below. */
function drawLabels(self: uPlot, options: PlotOptions, role: Role): void {
  const visible = options.data.series.flatMap((series, index) =>
    options.shown[index] ? [{ series, index }] : [],
  );
  const isCloud = options.kind === 'scatter' || options.axis === 'names';
  if (visible.length > LABELLED_SERIES || isCloud || options.second.includes(true)) {
    return;
  }
  const { ctx, bbox } = self;
  const scale = devicePixelRatio;
  const places = visible.flatMap(({ series, index }) => {
    const at = lastShown(self, series.points);
    const [time, point] = [self.data[0][at], series.points[at]];
    if (time === undefined || typeof point !== 'number') {
      return [];
    }
    const [x, y] = [self.valToPos(time, 'x', true), self.valToPos(point, 'y', true)];
    return [{ index, label: series.label, x, y }];
  });
  ctx.save();
  ctx.font = `${12 * scale}px ${role('font-ui')}`;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.fillStyle = role('text');
  for (const place of places) {
    const alone = places.every(
      (other) => other === place || Math.abs(other.y - place.y) >= LABEL_HEIGHT * scale,
    );
    const inside = place.y >= bbox.top && place.y <= bbox.top + bbox.height;
    if (!alone || !inside) {
      continue;
    }
    const text = place.label.length > 14 ? `${place.label.slice(0, 13)}…` : place.label;
    ctx.fillText(text, place.x + 6 * scale, place.y);
  }
  ctx.restore();
}

function lastShown(self: uPlot, points: ChartData['series'][number]['points']): number {
  const max = self.scales['x']?.max ?? Infinity;
  for (let index = points.length - 1; index >= 0; index--) {
    if (typeof points[index] === 'number' && (self.data[0][index] ?? Infinity) <= max) {
      return index;
    }
  }
  return -1;
}

function moveCursor(plot: uPlot, steps: number): void {
  const times = plot.data[0];
  const now = plot.cursor.idx ?? (steps > 0 ? -1 : times.length);
  const index = Math.max(0, Math.min(times.length - 1, now + steps));
  const time = times[index];
  if (time === undefined) {
    return;
  }
  plot.setCursor({ left: plot.valToPos(time, 'x'), top: plot.over.clientHeight / 2 });
}

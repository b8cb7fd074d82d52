/**
 * Draws chart data with uPlot: axes, candles, labels at the lines' ends. Colours are read from the
 * design tokens when the plot is made; it is made anew when the theme or the data changes.
 */
import uPlot from 'uplot';
import type { Zone } from '../model/format.js';
import { grouped } from '../model/format.js';
import type { ChartData } from './model.js';

export type ChartKind = 'line' | 'area' | 'step' | 'bars' | 'candles';

export interface PlotOptions {
  readonly kind: ChartKind;
  readonly data: ChartData;
  /** Whether each series is drawn. */
  readonly shown: readonly boolean[];
  /** Place of each series in the fixed order of colours. */
  readonly colours: readonly number[];
  readonly zone: Zone;
  readonly onCursor: (index: number | undefined) => void;
}

export interface Plot {
  resize(): void;
  /** Moves the crosshair by points, for the keyboard. */
  moveCursor(steps: number): void;
  resetZoom(): void;
  destroy(): void;
}

const COLOURS = 8;
const DASHES: readonly number[][] = [[], [7, 3], [], [4, 3], [], [7, 3], [], [10, 3, 2, 3]];
const LABEL_ROOM = 110;
const LABEL_HEIGHT = 14;
const LABELLED_SERIES = 8;

type Role = (name: string) => string;

export function drawPlot(host: HTMLElement, options: PlotOptions): Plot {
  const style = getComputedStyle(document.documentElement);
  const role: Role = (name) => style.getPropertyValue(`--${name}`).trim();
  const candles = options.kind === 'candles';
  const plot = new uPlot(
    {
      ...sizeOf(host),
      ms: 1,
      tzDate: (at) => (options.zone === 'utc' ? uPlot.tzDate(new Date(at), 'UTC') : new Date(at)),
      legend: { show: false },
      padding: [10, candles ? 0 : endRoom(options), 0, 0],
      cursor: {
        drag: { x: true, y: false },
        points: { size: 7 },
        focus: { prox: -1 },
      },
      scales: scalesOf(options),
      axes: axesOf(options, role),
      series: [{}, ...seriesOf(options, role)],
      hooks: {
        setCursor: [(self) => options.onCursor(self.cursor.idx ?? undefined)],
        draw: [(self) => (candles ? drawCandles(self, role) : drawLabels(self, options, role))],
      },
    },
    [options.data.times, ...options.data.series.map(({ points }) => points)] as uPlot.AlignedData,
    host,
  );
  return {
    resize: () => plot.setSize(sizeOf(host)),
    moveCursor: (steps) => moveCursor(plot, steps),
    resetZoom: () => plot.setData(plot.data, true),
    destroy: () => plot.destroy(),
  };
}

/** Candles stand clear of the frame, and of the volume below them. */
function scalesOf({ kind, data }: PlotOptions): uPlot.Scales {
  if (kind !== 'candles') {
    return { x: { time: true } };
  }
  const side = spacing(data.times) * 0.7;
  const hasVolume = data.series.length > VOLUME_SERIES;
  return {
    x: { time: true, range: (_self, min, max) => [min - side, max + side] },
    y: {
      range: (_self, min, max) => {
        const room = (max - min || Math.abs(max) || 1) * 0.05;
        return [min - room * (hasVolume ? 6 : 1), max + room];
      },
    },
    volume: { range: (_self, _min, max) => [0, max * 6] },
  };
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

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// Step, its label, and the second line when year, month, day, hour or minute rolls over.
const DATE_LINE = '\n{D} {MMM} {YYYY}';
const DAY_LINE = '\n{D} {MMM}';
const TIME_LABELS = [
  [365 * DAY, '{YYYY}', null, null, null, null, null, null, 1],
  [28 * DAY, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
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

function axesOf({ kind, data }: PlotOptions, role: Role): uPlot.Axis[] {
  const candles = kind === 'candles';
  const tag = candles ? lastPrice(data.series[3]?.points ?? []) : undefined;
  const least = tag === undefined ? 3 : grouped(String(tag)).length + 1;
  const font = `11px ${role('font-ui')}`;
  const shared = { stroke: role('text-faint'), font, ticks: { show: false } };
  const grid = { stroke: role('line-soft'), width: 1 };
  return [
    { ...shared, space: 70, size: 38, gap: 6, values: TIME_LABELS, grid },
    {
      ...shared,
      side: candles ? 1 : 3,
      gap: 6,
      size: (_self, values) =>
        22 + 6.6 * Math.max(least, ...(values ?? []).map((text) => text.length)),
      values: (_self, splits) => splits.map(axisNumber),
      grid,
    },
  ];
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
      return { paths: uPlot.paths.stepped!({ align: 1 }) };
    case 'bars':
      return { paths: uPlot.paths.bars!({ size: [0.7, 60] }), fill: colour };
    case 'candles':
      return {};
  }
}

const VOLUME_SERIES = 4;

/** The first four series only stretch the scale: candles are drawn from all of them at once. */
function candleSeries(label: string, index: number, role: Role): uPlot.Series {
  if (index === VOLUME_SERIES) {
    const fill = role('line-control');
    const paths = uPlot.paths.bars!({ size: [0.6, 24] });
    return { label, scale: 'volume', fill, width: 0, paths, points: { show: false } };
  }
  return { label, paths: () => null, points: { show: false } };
}

/** Rising ones hollow, falling ones filled: the shape tells the direction, the colour repeats it. */
function drawCandles(self: uPlot, role: Role): void {
  const [times, open, high, low, close] = self.data as [number[], ...(number | null)[][]];
  if (!open || !high || !low || !close || times.length === 0) {
    return;
  }
  const { ctx, bbox } = self;
  const scale = devicePixelRatio;
  const { min = 0, max = 0 } = self.scales['x'] ?? {};
  const step = bbox.width / Math.max(1, ((max ?? 0) - (min ?? 0)) / spacing(times));
  const body = Math.max(1, Math.min(14 * scale, Math.round(step * 0.62)));
  const [surface, up, down] = [role('bg-surface'), role('chart-3'), role('chart-6')];
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineWidth = 1.3 * scale;
  times.forEach((time, index) => {
    const values = [open[index], high[index], low[index], close[index]];
    if (values.some((value) => typeof value !== 'number')) {
      return;
    }
    const [first, top, bottom, last] = values.map((value) => self.valToPos(value!, 'y', true));
    const x = Math.round(self.valToPos(time, 'x', true));
    const rising = close[index]! >= open[index]!;
    ctx.strokeStyle = rising ? up : down;
    ctx.fillStyle = rising ? surface : ctx.strokeStyle;
    ctx.beginPath();
    ctx.moveTo(x, top!);
    ctx.lineTo(x, bottom!);
    ctx.stroke();
    const height = Math.max(scale, Math.abs(last! - first!));
    ctx.beginPath();
    ctx.rect(x - body / 2, Math.min(first!, last!), body, height);
    ctx.fill();
    ctx.stroke();
  });
  ctx.restore();
  drawLastPrice(self, close, role);
}

function spacing(times: readonly number[]): number {
  let least = Infinity;
  for (let index = 1; index < times.length; index++) {
    const gap = times[index]! - times[index - 1]!;
    if (gap > 0 && gap < least) {
      least = gap;
    }
  }
  return Number.isFinite(least) ? least : 1;
}

function lastPrice(close: readonly (number | null | undefined)[]): number | undefined {
  return close.findLast((value) => typeof value === 'number') ?? undefined;
}

function drawLastPrice(self: uPlot, close: readonly (number | null)[], role: Role): void {
  const last = lastPrice(close);
  if (last === undefined) {
    return;
  }
  const { ctx, bbox } = self;
  const scale = devicePixelRatio;
  const y = self.valToPos(last, 'y', true);
  if (y < bbox.top || y > bbox.top + bbox.height) {
    return;
  }
  const text = grouped(String(last));
  ctx.save();
  ctx.strokeStyle = role('accent');
  ctx.setLineDash([2 * scale, 3 * scale]);
  ctx.lineWidth = scale;
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.font = `600 ${11 * scale}px ${role('font-ui')}`;
  const left = bbox.left + bbox.width + 2 * scale;
  ctx.fillStyle = role('accent');
  ctx.beginPath();
  const width = ctx.measureText(text).width + 10 * scale;
  ctx.roundRect(left, y - 9 * scale, width, 18 * scale, 3 * scale);
  ctx.fill();
  ctx.fillStyle = role('on-accent');
  ctx.textAlign = 'left';
  ctx.textBaseline = 'middle';
  ctx.fillText(text, left + 5 * scale, y + scale / 2);
  ctx.restore();
}

/** Names each line at its end. Where two would collide, both stay with the chips below. */
function drawLabels(self: uPlot, options: PlotOptions, role: Role): void {
  const visible = options.data.series.flatMap((series, index) =>
    options.shown[index] ? [{ series, index }] : [],
  );
  if (visible.length > LABELLED_SERIES) {
    return;
  }
  const { ctx, bbox } = self;
  const scale = devicePixelRatio;
  const places = visible.flatMap(({ series, index }) => {
    const at = lastShown(self, series.points);
    if (at < 0) {
      return [];
    }
    const x = self.valToPos(self.data[0][at]!, 'x', true);
    return [{ index, label: series.label, x, y: self.valToPos(series.points[at]!, 'y', true) }];
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
    if (typeof points[index] === 'number' && self.data[0][index]! <= max) {
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

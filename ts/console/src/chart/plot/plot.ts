/**
 * Draws chart data with uPlot: axes, candles, labels at the ends of lines. The plot reads its
 * colours from the design tokens when it is created. A change of the theme or the data recreates
 * the plot.
 */
import uPlot from 'uplot';
import { axesOf, axisNumber } from './axes.js';
import { drawCandles, priceText, spacing } from '../candles.js';
import { drawAnnotations, drawHeat, drawStrokes, drawThresholds, type Stroke } from './draw.js';
import { colourNumber, type ChartKind } from '../kinds.js';
import type { Point } from '../model.js';
import { valueText } from '../options.js';
import { paintAxes } from './paint-axes.js';
import type { PlotOptions } from './plot-options.js';
import type { Frame, Pen, Role } from './pen.js';
import { heatCells } from '../shapes.js';
import { UtcDate } from '../time-ticks.js';

export interface Plot {
  resize(): void;
  /** Moves the crosshair by a number of points. Used by the keyboard shortcuts. */
  moveCursor(steps: number): void;
  /** Returns the index of the point under the crosshair. */
  cursorIndex(): number | undefined;
  /** Draws the plot with another pen, in device pixels. */
  paint(pen: Pen): void;
  /** Returns the size in CSS pixels. */
  size(): { readonly width: number; readonly height: number };
  destroy(): void;
}

const COLOURS = 8;
const DASHES: readonly number[][] = [[], [7, 3], [], [4, 3], [], [7, 3], [], [10, 3, 2, 3]];
const LABEL_MARGIN = 110;
/** Half the width of a tick label, in pixels. */
const FIRST_TICK = 32;
const LABEL_HEIGHT = 14;
const LABELLED_SERIES = 8;
const VOLUME_SERIES = 4;
/** Minimum width of a heat map cell, in pixels. */
const MIN_CELL = 6;
/** Minimum length of a drag that selects a range, in pixels. */
const MIN_DRAG = 4;

export function drawPlot(host: HTMLElement, options: PlotOptions): Plot {
  const style = getComputedStyle(document.documentElement);
  const role: Role = (name) => style.getPropertyValue(`--${name}`).trim();
  const candles = options.kind === 'candles';
  const hasRightAxis = candles || options.second.includes(true);
  const draw = (self: uPlot, pen: Pen): void => drawAll(frameOf(self, pen), options, role);
  const plot = new uPlot(
    {
      ...sizeOf(host),
      ms: 1,
      tzDate: (at) => (options.zone === 'utc' ? new UtcDate(at) : new Date(at)),
      legend: { show: false },
      // If there is no axis on the left, leave space there for the first tick label.
      padding: [10, hasRightAxis ? 0 : endMargin(options), 0, candles ? FIRST_TICK : 0],
      cursor: {
        drag: { x: true, y: false, setScale: false },
        points: { size: 7, show: options.kind !== 'heatmap' },
        focus: { prox: -1 },
        ...(options.syncKey === undefined ? {} : { sync: syncedBy(options.syncKey) }),
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
        draw: [(self) => draw(self, self.ctx)],
      },
    },
    [options.data.times, ...options.data.series.map(({ points }) => points)] as uPlot.AlignedData,
    host,
  );
  return {
    resize: () => plot.setSize(sizeOf(host)),
    moveCursor: (steps) => moveCursor(plot, steps),
    cursorIndex: () => plot.cursor.idx ?? undefined,
    paint: (pen) => {
      paintAxes(plot, frameOf(plot, pen), role);
      draw(plot, pen);
    },
    size: () => ({ width: plot.width, height: plot.height }),
    destroy: () => plot.destroy(),
  };
}

/**
 * Synchronizes only the crosshair between plots. Otherwise, a drag would select its range in every
 * plot.
 */
function syncedBy(key: string): uPlot.Cursor.Sync {
  const isMove = (type: string): boolean => type === 'mousemove' || type === 'mouseleave';
  return { key, setSeries: false, filters: { pub: isMove, sub: isMove } };
}

function frameOf(self: uPlot, pen: Pen): Frame {
  return {
    pen,
    box: self.bbox,
    scale: devicePixelRatio,
    x: (value) => self.valToPos(value, 'x', true),
    y: (value, scale) => self.valToPos(value, scale, true),
    from: self.scales['x']?.min ?? 0,
    to: self.scales['x']?.max ?? 0,
  };
}

/** Draws the content of the plot: series, thresholds, annotations and labels. */
function drawAll(frame: Frame, options: PlotOptions, role: Role): void {
  const { kind, data, drawOptions, annotations, axis } = options;
  const text = (value: number): string => valueText(value, drawOptions, axisNumber);
  frame.pen.save();
  if (kind === 'candles') {
    drawCandles(frame, data, role, (price) => valueText(price, drawOptions, priceText));
  } else if (kind === 'heatmap') {
    drawHeat(frame, heatCells(data, frame.box.width / (MIN_CELL * frame.scale)), role);
  } else {
    const strokes = strokesOf(options, role);
    // In a stacked chart, draw lower series over higher ones.
    drawStrokes(frame, kind, data, kind === 'stacked' ? strokes.toReversed() : strokes);
  }
  if (kind !== 'heatmap' && kind !== 'histogram') {
    drawThresholds(frame, drawOptions, text, role);
  }
  if (axis === 'time') {
    drawAnnotations(frame, annotations, role);
  }
  if (kind !== 'candles' && kind !== 'heatmap') {
    drawLabels(frame, options, role);
  }
  frame.pen.restore();
}

function strokesOf({ kind, data, shown, colours, second }: PlotOptions, role: Role): Stroke[] {
  let below: Stroke['base'];
  return data.series.flatMap(({ points }, index): readonly Stroke[] => {
    if (!shown[index]) {
      return [];
    }
    const colour = colours[index] ?? index;
    const stroke: Stroke = {
      points,
      ...(kind === 'stacked' && below ? { base: below } : {}),
      colour: colourOf(kind, colour, role),
      dash: ['stacked', 'depth'].includes(kind) ? [] : (DASHES[colour % COLOURS] ?? []),
      scale: second[index] ? 'second' : 'y',
    };
    below = points;
    return [stroke];
  });
}

function colourOf(kind: ChartKind, series: number, role: Role): string {
  const colour = colourNumber(kind, series);
  return role(colour === 0 ? 'line-control' : `chart-${colour}`);
}

/** Makes the range that the user dragged the visible range. */
function zoomTo(self: uPlot, { onZoom }: PlotOptions): void {
  const { left, width } = self.select;
  if (width < MIN_DRAG) {
    return;
  }
  const range = { from: self.posToVal(left, 'x'), to: self.posToVal(left + width, 'x') };
  self.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  onZoom(range);
}

/** Moves the visible range. A drag with Shift does this instead of selecting a new range. */
function pan(self: uPlot, start: MouseEvent, { onPan }: PlotOptions): null {
  const end = (event: MouseEvent): void => {
    const width = self.over.clientWidth || 1;
    onPan((start.clientX - event.clientX) / width);
  };
  document.addEventListener('mouseup', end, { once: true });
  return null;
}

/** Returns the margin that keeps the frame from cutting off the first and last point. */
function sideOf({ kind, axis, data }: PlotOptions): number {
  if (axis === 'names') {
    return 0.6;
  }
  const [first, last] = [data.times[0] ?? 0, data.times.at(-1) ?? 0];
  if (first === last) {
    return axis === 'time' ? 1000 : Math.abs(first) * 0.1 || 1;
  }
  if (kind === 'histogram') {
    return (data.width ?? 1) * 0.6;
  }
  if (kind === 'candles' || kind === 'bars' || kind === 'heatmap') {
    return spacing(data.times) * 0.7;
  }
  return kind === 'scatter' ? (last - first) * 0.02 : 0;
}

/**
 * Configures the scales. Leaves space between the candles and the frame, and between the candles
 * and the volume bars below them.
 */
function scalesOf(options: PlotOptions): uPlot.Scales {
  const { kind, data, range, axis } = options;
  const side = sideOf(options);
  const across: uPlot.Scale = {
    time: axis === 'time',
    range: (_self, min, max) => (range ? [range.from, range.to] : [min - side, max + side]),
  };
  if (kind === 'heatmap') {
    return { x: across, y: { range: [0, Math.max(1, data.series.length)] } };
  }
  const down = downOf(options);
  return {
    x: across,
    y: down,
    second: down,
    volume: { range: (_self, _min, max) => [0, max * 6] },
  };
}

/**
 * A logarithmic scale. uPlot defines its scale types in a const enum, which cannot be used with
 * `isolatedModules`.
 */
// eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- see above
const LOGARITHMIC: Pick<uPlot.Scale, 'distr' | 'log'> = { distr: 3, log: 10 };

/** Configures the y axis. Its range has the limits that the user chose, or else fits the values. */
function downOf({ kind, data, drawOptions }: PlotOptions): uPlot.Scale {
  const { isLog, min, max } = drawOptions;
  const hasVolume = kind === 'candles' && data.series.length > VOLUME_SERIES;
  const range = (low: number | null, high: number | null): uPlot.Range.MinMax => {
    if (isLog) {
      return uPlot.rangeLog(low ?? 1, high ?? 10, 10, false);
    }
    if (FROM_ZERO.has(kind)) {
      return fromZero(low, high);
    }
    if (kind !== 'candles') {
      return uPlot.rangeNum(low ?? 0, high ?? 1, 0.1, true);
    }
    const [bottom, top] = [low ?? 0, high ?? 1];
    const margin = (top - bottom || Math.abs(top) || 1) * 0.05;
    return [bottom - margin * (hasVolume ? 6 : 1), top + margin];
  };
  return {
    ...(isLog ? LOGARITHMIC : {}),
    range: (_self, low, high) => {
      const [bottom, top] = range(low, high);
      const from = isLog && (min ?? 0) <= 0 ? bottom : (min ?? bottom);
      const to = max ?? top;
      return (to ?? 0) > (from ?? 0) ? [from, to] : [bottom, top];
    },
  };
}

/** Chart kinds that compare sizes, so that the y axis must include zero. */
const FROM_ZERO: ReadonlySet<ChartKind> = new Set(['bars', 'stacked', 'histogram', 'depth']);

function fromZero(min: number | null, max: number | null): uPlot.Range.MinMax {
  const [low, high] = [Math.min(0, min ?? 0), Math.max(0, max ?? 0)];
  const margin = (high - low || 1) * 0.06;
  return [low < 0 ? low - margin : 0, high > 0 ? high + margin : 0];
}

function sizeOf(host: HTMLElement): { width: number; height: number } {
  return { width: Math.max(120, host.clientWidth), height: Math.max(80, host.clientHeight) };
}

function endMargin({ kind, data, shown }: PlotOptions): number {
  if (kind === 'heatmap' || kind === 'histogram') {
    return 16;
  }
  const visible = data.series.filter((_series, index) => shown[index]);
  if (visible.length === 0 || visible.length > LABELLED_SERIES) {
    return 16;
  }
  const longest = Math.max(...visible.map(({ label }) => label.length));
  return Math.min(LABEL_MARGIN, 18 + longest * 7);
}

/**
 * Configures the series. uPlot manages only their values and crosshair points, and this module
 * draws them.
 */
function seriesOf({ kind, data, shown, colours, second }: PlotOptions, role: Role): uPlot.Series[] {
  return data.series.map(({ label }, index) => {
    const own = { label, paths: () => null, points: { show: false } };
    if (kind === 'candles') {
      return { ...own, scale: index === VOLUME_SERIES ? 'volume' : 'y' };
    }
    const stroke = colourOf(kind, colours[index] ?? index, role);
    const scale = second[index] ? 'second' : 'y';
    return { ...own, show: shown[index] ?? false, scale, stroke, auto: kind !== 'heatmap' };
  });
}

/**
 * Labels each line at its end. Labels that would overlap are omitted, because the chips below the
 * chart also name the series.
 */
function drawLabels(frame: Frame, options: PlotOptions, role: Role): void {
  const { kind, data, shown, second, axis } = options;
  const visible = data.series.flatMap((series, index) => (shown[index] ? [{ series, index }] : []));
  const isCloud = ['scatter', 'histogram', 'depth'].includes(kind) || axis === 'names';
  if (visible.length > LABELLED_SERIES || isCloud || second.includes(true)) {
    return;
  }
  const { pen, box, scale } = frame;
  const labels = visible.flatMap(({ series, index }) => {
    const at = lastShown(data.times, series.points, frame.to);
    const [time, point] = [data.times[at], series.points[at]];
    if (time === undefined || typeof point !== 'number') {
      return [];
    }
    return [{ index, label: series.label, x: frame.x(time), y: frame.y(point, 'y') }];
  });
  pen.font = `${12 * scale}px ${role('font-ui')}`;
  pen.textAlign = 'left';
  pen.textBaseline = 'middle';
  pen.fillStyle = role('text');
  for (const label of labels) {
    const alone = labels.every(
      (other) => other === label || Math.abs(other.y - label.y) >= LABEL_HEIGHT * scale,
    );
    const inside = label.y >= box.top && label.y <= box.top + box.height;
    if (!alone || !inside) {
      continue;
    }
    const text = label.label.length > 14 ? `${label.label.slice(0, 13)}…` : label.label;
    pen.fillText(text, label.x + 6 * scale, label.y);
  }
}

function lastShown(times: readonly number[], points: readonly Point[], to: number): number {
  return points.findLastIndex(
    (point, index) => typeof point === 'number' && (times[index] ?? Infinity) <= to,
  );
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

/** Draws the series of each chart kind, on the screen and in exported files. */
import type { ChartKind } from '../kinds.js';
import type { ChartData, Point } from '../model.js';
import type { DrawOptions, Threshold } from '../options.js';
import { clipped, type Frame, type Role } from './pen.js';
import { spacing } from '../candles.js';
import type { HeatCells } from '../shapes.js';
import { texts } from '../../texts.js';

/** A series and its drawing style. */
export interface Stroke {
  readonly points: readonly Point[];
  /** Upper edge of the series below. Set only in a stacked chart. */
  readonly base?: readonly Point[];
  readonly colour: string;
  readonly dash: readonly number[];
  readonly scale: string;
}

const LINE = 1.8;
const FILL = 0.12;
const STACK_FILL = 0.55;
const DOT = 3;
/** Minimum distance between points, in pixels, at which a line gets dots. */
const DOTS_APART = 24;
const BAR_FRACTION = 0.7;
const MAX_BAR_WIDTH = 60;

export function drawStrokes(
  frame: Frame,
  kind: ChartKind,
  { times, width }: ChartData,
  strokes: readonly Stroke[],
): void {
  clipped(frame, () => {
    strokes.forEach((stroke, index) => {
      const { pen, scale } = frame;
      pen.strokeStyle = stroke.colour;
      pen.fillStyle = stroke.colour;
      pen.lineWidth = LINE * scale;
      pen.setLineDash(stroke.dash.map((length) => length * scale));
      switch (kind) {
        case 'bars':
        case 'histogram':
          drawBars(frame, times, stroke, { width, index, of: strokes.length });
          break;
        case 'scatter':
          drawDots(frame, times, stroke, () => true);
          break;
        case 'area':
          fillBelow(frame, times, stroke, FILL);
          drawLine(frame, times, stroke);
          break;
        case 'stacked':
          fillBelow(frame, times, stroke, STACK_FILL);
          drawLine(frame, times, stroke);
          break;
        case 'step':
          drawSteps(frame, times, stroke, 'after');
          break;
        case 'depth':
          drawSteps(frame, times, stroke, index === 0 ? 'before' : 'after', FILL);
          break;
        default:
          drawLine(frame, times, stroke);
      }
      pen.setLineDash([]);
    });
  });
}

/** Splits a series into runs of points without gaps, in frame coordinates. */
function runsOf({ x, y }: Frame, times: readonly number[], { points, scale, base }: Stroke) {
  const runs: { x: number; y: number; base: number | undefined }[][] = [];
  let run: (typeof runs)[number] = [];
  points.forEach((point, at) => {
    const time = times[at];
    if (point === null && run.length > 0) {
      run = [];
    }
    if (typeof point !== 'number' || time === undefined) {
      return;
    }
    if (run.length === 0) {
      runs.push(run);
    }
    const below = base?.[at];
    const foot = typeof below === 'number' ? y(below, scale) : undefined;
    run.push({ x: x(time), y: y(point, scale), base: foot });
  });
  return runs;
}

function drawLine(frame: Frame, times: readonly number[], stroke: Stroke): void {
  const { pen, box, scale } = frame;
  const runs = runsOf(frame, times, stroke);
  for (const run of runs) {
    pen.beginPath();
    run.forEach((position, at) =>
      at === 0 ? pen.moveTo(position.x, position.y) : pen.lineTo(position.x, position.y),
    );
    pen.stroke();
  }
  const inView = times.filter((time) => time >= frame.from && time <= frame.to).length;
  const areFew = inView < box.width / (DOTS_APART * scale);
  pen.setLineDash([]);
  for (const run of runs) {
    // A line through a single point would be invisible.
    if (areFew || run.length === 1) {
      run.forEach((position) => dot(frame, position.x, position.y));
    }
  }
}

function dot({ pen, scale }: Frame, x: number, y: number): void {
  pen.beginPath();
  pen.arc(x, y, DOT * scale, 0, Math.PI * 2);
  pen.fill();
}

function drawDots(
  frame: Frame,
  times: readonly number[],
  { points, scale }: Stroke,
  isDrawn: (at: number) => boolean,
): void {
  points.forEach((point, at) => {
    const time = times[at];
    if (typeof point === 'number' && time !== undefined && isDrawn(at)) {
      dot(frame, frame.x(time), frame.y(point, scale));
    }
  });
}

/** Returns the y coordinate of zero, clamped to the frame. */
function floorOf({ y, box }: Frame, scale: string): number {
  const zero = y(0, scale);
  const bottom = box.top + box.height;
  return Number.isFinite(zero) ? Math.max(box.top, Math.min(bottom, zero)) : bottom;
}

function fillBelow(frame: Frame, times: readonly number[], stroke: Stroke, alpha: number): void {
  const { pen } = frame;
  const floor = floorOf(frame, stroke.scale);
  pen.globalAlpha = alpha;
  for (const run of runsOf(frame, times, stroke)) {
    pen.beginPath();
    run.forEach((position, at) =>
      at === 0 ? pen.moveTo(position.x, position.y) : pen.lineTo(position.x, position.y),
    );
    for (const position of run.toReversed()) {
      pen.lineTo(position.x, position.base ?? floor);
    }
    pen.closePath();
    pen.fill();
  }
  pen.globalAlpha = 1;
}

/**
 * Draws steps. Each value extends forward to the next point (`after`), or back to the previous
 * point (`before`).
 */
function drawSteps(
  frame: Frame,
  times: readonly number[],
  stroke: Stroke,
  direction: 'after' | 'before',
  alpha = 0,
): void {
  const { pen } = frame;
  for (const run of runsOf(frame, times, stroke)) {
    const corners = run.flatMap((position, at) => {
      const before = run[at - 1];
      const corner =
        direction === 'after' ? { x: position.x, y: before?.y } : { x: before?.x, y: position.y };
      return before
        ? [{ x: corner.x ?? position.x, y: corner.y ?? position.y }, position]
        : [position];
    });
    pen.beginPath();
    corners.forEach(({ x, y }, at) => (at === 0 ? pen.moveTo(x, y) : pen.lineTo(x, y)));
    pen.stroke();
    const [first, last] = [corners[0], corners.at(-1)];
    if (alpha > 0 && first && last) {
      const floor = floorOf(frame, stroke.scale);
      pen.lineTo(last.x, floor);
      pen.lineTo(first.x, floor);
      pen.closePath();
      pen.globalAlpha = alpha;
      pen.fill();
      pen.globalAlpha = 1;
    } else if (run.length === 1 && first) {
      dot(frame, first.x, first.y);
    }
  }
}

interface BarSlot {
  /** Width of a bar's range of values. Set only for a histogram. */
  readonly width: number | undefined;
  readonly index: number;
  readonly of: number;
}

/** Draws the bars of one series. Bars of several series are drawn side by side. */
function drawBars(
  frame: Frame,
  times: readonly number[],
  { points, scale }: Stroke,
  { width, index, of }: BarSlot,
): void {
  const { pen } = frame;
  const floor = floorOf(frame, scale);
  const slotWidth = Math.abs(frame.x(width ?? spacing(times)) - frame.x(0));
  const maxWidth = width === undefined ? MAX_BAR_WIDTH * frame.scale : Infinity;
  const all = Math.max(
    1,
    Math.min(maxWidth, slotWidth * (width === undefined ? BAR_FRACTION : 0.96)),
  );
  const each = Math.max(1, all / of);
  points.forEach((point, at) => {
    const time = times[at];
    if (typeof point !== 'number' || time === undefined) {
      return;
    }
    const top = frame.y(point, scale);
    const left = frame.x(time) - all / 2 + index * each;
    pen.fillRect(left, Math.min(top, floor), each, Math.max(1, Math.abs(floor - top)));
  });
}

const HEAT_COLOURS = 7;

/** Returns the number of the colour that represents a value, from 1 to 7. */
export function heatColour(value: number, { low, high }: Pick<HeatCells, 'low' | 'high'>): number {
  const fraction = high > low ? (value - low) / (high - low) : 1;
  return Math.max(1, Math.min(HEAT_COLOURS, Math.floor(fraction * HEAT_COLOURS) + 1));
}

/**
 * Draws the cells of a heat map, with the first series at the top. Cells without a value stay
 * empty.
 */
export function drawHeat(frame: Frame, cells: HeatCells, role: Role): void {
  const colours = Array.from({ length: HEAT_COLOURS }, (_, at) => role(`seq-${at + 1}`));
  const { pen } = frame;
  clipped(frame, () => {
    cells.means.forEach((row, rowIndex) => {
      const y = cells.means.length - rowIndex;
      const [top, bottom] = [frame.y(y, 'y'), frame.y(y - 1, 'y')];
      row.forEach((mean, column) => {
        const start = cells.starts[column];
        if (mean === undefined || start === undefined) {
          return;
        }
        const left = Math.floor(frame.x(start));
        const right = Math.max(left + 1, Math.floor(frame.x(start + cells.width)));
        pen.fillStyle = colours[heatColour(mean, cells) - 1] ?? '';
        // Leave a thin line of background between rows.
        pen.fillRect(
          left,
          Math.floor(top),
          right - left,
          Math.max(1, Math.floor(bottom - top) - 1),
        );
      });
    });
  });
}

/** Draws a line at each threshold, with its value at the right end. */
export function drawThresholds(
  frame: Frame,
  { thresholds }: Pick<DrawOptions, 'thresholds'>,
  text: (value: number) => string,
  role: Role,
): void {
  const { pen, box, scale } = frame;
  for (const threshold of thresholds) {
    const y = frame.y(threshold.at, 'y');
    if (!(y >= box.top && y <= box.top + box.height)) {
      continue;
    }
    pen.save();
    pen.strokeStyle = role(threshold.level);
    pen.lineWidth = 1.5 * scale;
    pen.setLineDash([6 * scale, 4 * scale]);
    line(frame, box.left, y, box.left + box.width, y);
    pen.setLineDash([]);
    pen.font = `${11 * scale}px ${role('font-ui')}`;
    pen.fillStyle = role(threshold.level);
    pen.textAlign = 'right';
    pen.textBaseline = 'bottom';
    pen.fillText(thresholdText(threshold, text), box.left + box.width - 4 * scale, y - 2 * scale);
    pen.restore();
  }
}

const LEVEL_LABELS = {
  ok: texts.chart.levelOk,
  warn: texts.chart.levelWarn,
  error: texts.chart.levelError,
} as const;

function thresholdText({ at, level }: Threshold, text: (value: number) => string): string {
  return `${LEVEL_LABELS[level]} ${text(at)}`;
}

function line({ pen }: Frame, fromX: number, fromY: number, toX: number, toY: number): void {
  pen.beginPath();
  pen.moveTo(fromX, fromY);
  pen.lineTo(toX, toY);
  pen.stroke();
}

/** An event at a point in time or during a time range. */
export interface Annotation {
  readonly at: number;
  readonly to?: number;
  readonly text: string;
}

const MAX_LABEL_LENGTH = 24;

/** Draws each annotation as a dotted line with its label at the top. A time range is tinted. */
export function drawAnnotations(
  frame: Frame,
  annotations: readonly Annotation[],
  role: Role,
): void {
  const { pen, box, scale } = frame;
  // Labels use two rows. A label that would overlap another one is omitted.
  const ends = [-Infinity, -Infinity];
  clipped(frame, () => {
    pen.font = `${11 * scale}px ${role('font-ui')}`;
    pen.textAlign = 'left';
    pen.textBaseline = 'top';
    for (const { at, to, text } of annotations) {
      const x = Math.round(frame.x(at)) + 0.5;
      if (to !== undefined) {
        pen.globalAlpha = 0.14;
        pen.fillStyle = role('accent');
        pen.fillRect(x, box.top, Math.max(1, frame.x(to) - x), box.height);
        pen.globalAlpha = 1;
      }
      pen.strokeStyle = role('accent');
      pen.lineWidth = scale;
      pen.setLineDash([3 * scale, 3 * scale]);
      line(frame, x, box.top, x, box.top + box.height);
      pen.setLineDash([]);
      const label =
        text.length > MAX_LABEL_LENGTH ? `${text.slice(0, MAX_LABEL_LENGTH - 1)}…` : text;
      const row = ends.findIndex((end) => end < x);
      if (label !== '' && row >= 0 && x >= box.left && x <= box.left + box.width) {
        const width = pen.measureText(label).width;
        pen.fillStyle = role('bg-surface');
        pen.fillRect(x + 2 * scale, box.top + row * 15 * scale, width + 4 * scale, 14 * scale);
        pen.fillStyle = role('text');
        pen.fillText(label, x + 4 * scale, box.top + (row * 15 + 1) * scale);
        ends[row] = x + width + 12 * scale;
      }
    }
  });
}

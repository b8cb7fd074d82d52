/** Draws figures: the last value of each series, as a number with a sparkline or as a gauge. */
import type { ChartData, Point } from '../model.js';
import { levelOf, type DrawOptions } from '../options.js';
import type { Box, Pen, Role } from './pen.js';
import { texts } from '../../texts.js';

interface Figure {
  readonly label: string;
  readonly last: number | undefined;
  /** The previous value, from which the change is computed. */
  readonly before: number | undefined;
  readonly points: readonly Point[];
}

const MAX_FIGURES = 12;

/** Returns a figure for each visible series, up to `MAX_FIGURES`. */
export function figuresOf(data: ChartData, shown: readonly boolean[]): Figure[] {
  return data.series
    .filter((_series, index) => shown[index])
    .slice(0, MAX_FIGURES)
    .map(({ label, points }) => {
      const known = points.filter((point) => typeof point === 'number');
      return { label, last: known.at(-1), before: known.at(-2), points };
    });
}

interface FigurePaint {
  readonly pen: Pen;
  readonly width: number;
  readonly height: number;
  /** Device pixels per CSS pixel. */
  readonly scale: number;
  readonly figures: readonly Figure[];
  readonly isGauge: boolean;
  readonly drawOptions: DrawOptions;
  readonly role: Role;
  readonly text: (value: number) => string;
}

const GAP = 12;

/** Draws the figures, in as many columns as make each figure largest. */
export function drawFigures(paint: FigurePaint): void {
  const { figures, width, height, scale } = paint;
  let columns = 1;
  let best = 0;
  for (let count = 1; count <= figures.length; count += 1) {
    const rows = Math.ceil(figures.length / count);
    // A figure is about twice as wide as it is high.
    const size = Math.min(width / count / 2, height / rows);
    [columns, best] = size > best ? [count, size] : [columns, best];
  }
  const rows = Math.ceil(figures.length / columns);
  figures.forEach((figure, index) => {
    const box = {
      left: (width / columns) * (index % columns) + GAP * scale,
      top: (height / rows) * Math.floor(index / columns) + GAP * scale,
      width: width / columns - 2 * GAP * scale,
      height: height / rows - 2 * GAP * scale,
    };
    (paint.isGauge ? drawGauge : drawNumber)(paint, figure, box);
  });
}

/** Returns the colour of a value's level. The level is also shown as a word. */
function colourOf({ drawOptions, role }: FigurePaint, value: number | undefined): string {
  const level = value === undefined ? undefined : levelOf(value, drawOptions.thresholds);
  return role(level ?? 'text');
}

const LEVEL_NAMES = {
  ok: texts.chart.levelOk,
  warn: texts.chart.levelWarn,
  error: texts.chart.levelError,
} as const;

function levelText({ drawOptions }: FigurePaint, value: number | undefined): string {
  const level = value === undefined ? undefined : levelOf(value, drawOptions.thresholds);
  return level === undefined ? '' : ` · ${LEVEL_NAMES[level]}`;
}

const MAX_FONT = 72;
const MIN_FONT = 11;

/** Sets the largest font size at which a text fits in a box. Returns this size. */
function fitted(
  { pen, scale, role }: FigurePaint,
  text: string,
  available: { readonly width: number; readonly height: number },
): number {
  let size = Math.min(MAX_FONT * scale, available.height);
  pen.font = `600 ${size}px ${role('font-ui')}`;
  const { width } = pen.measureText(text);
  if (width > available.width) {
    size *= available.width / width;
  }
  size = Math.max(Math.min(MIN_FONT * scale, available.height), Math.floor(size));
  pen.font = `600 ${size}px ${role('font-ui')}`;
  return size;
}

function drawLabel(paint: FigurePaint, text: string, x: number, y: number, width: number): void {
  const { pen, scale, role } = paint;
  pen.font = `${12 * scale}px ${role('font-ui')}`;
  pen.fillStyle = role('text-muted');
  pen.textAlign = 'center';
  pen.textBaseline = 'top';
  let shown = text;
  while (shown.length > 2 && pen.measureText(shown).width > width) {
    shown = `${shown.slice(0, -2)}…`;
  }
  pen.fillText(shown, x, y);
}

const LABEL = 18;
const COURSE_FRACTION = 0.28;
/** Minimum height of a figure with a sparkline. */
const MIN_COURSE = 90;

function drawNumber(paint: FigurePaint, figure: Figure, box: Box): void {
  const { pen, scale, text, role } = paint;
  const middle = box.left + box.width / 2;
  const hasCourse = box.height > MIN_COURSE * scale && figure.points.length > 1;
  const course = hasCourse ? box.height * COURSE_FRACTION : 0;
  const available = { width: box.width, height: (box.height - course - LABEL * scale) * 0.8 };
  const value = figure.last === undefined ? '–' : text(figure.last);
  const size = fitted(paint, value, available);
  const top = box.top + Math.max(0, (box.height - course - LABEL * scale - size) / 2);
  pen.fillStyle = colourOf(paint, figure.last);
  pen.textAlign = 'center';
  pen.textBaseline = 'top';
  pen.fillText(value, middle, top);
  const label = `${figure.label}${changeText(paint, figure)}${levelText(paint, figure.last)}`;
  drawLabel(paint, label, middle, top + size + 2 * scale, box.width);
  if (hasCourse) {
    const below = { ...box, top: box.top + box.height - course, height: course };
    drawCourse(pen, figure.points, below, { colour: role('chart-1'), scale });
  }
}

/** Formats the direction and amount of the change from the previous value. */
function changeText({ text }: FigurePaint, { last, before }: Figure): string {
  if (last === undefined || before === undefined) {
    return '';
  }
  const change = last - before;
  const sign = change > 0 ? '▲ +' : change < 0 ? '▼ −' : '= ';
  return ` · ${sign}${text(Math.abs(change))}`;
}

function drawCourse(
  pen: Pen,
  points: readonly Point[],
  box: Box,
  { colour, scale }: { readonly colour: string; readonly scale: number },
): void {
  const known = points.filter((point) => typeof point === 'number');
  const [low, high] = known.reduce(
    ([min, max], point) => [Math.min(min, point), Math.max(max, point)],
    [Infinity, -Infinity],
  );
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5 * scale;
  pen.beginPath();
  let isBegun = false;
  points.forEach((point, at) => {
    if (typeof point === 'number') {
      const x = box.left + (box.width * at) / Math.max(1, points.length - 1);
      const fraction = high > low ? (point - low) / (high - low) : 0.5;
      const y = box.top + box.height * (1 - fraction);
      if (isBegun) {
        pen.lineTo(x, y);
      } else {
        pen.moveTo(x, y);
      }
    }
    isBegun = typeof point === 'number' || (isBegun && point === undefined);
  });
  pen.stroke();
}

/**
 * Returns the ends of a gauge: the limits that the user chose, or else round numbers around all
 * values.
 */
export function endsOf(
  { last, points }: Pick<Figure, 'last' | 'points'>,
  { min, max, thresholds, unit }: DrawOptions,
): { readonly low: number; readonly high: number } {
  let [smallest, largest] = [0, Math.max(last ?? 0, ...thresholds.map(({ at }) => at))];
  for (const point of points) {
    if (typeof point === 'number') {
      [smallest, largest] = [Math.min(smallest, point), Math.max(largest, point)];
    }
  }
  const usual = unit === '%' && largest <= 100 ? 100 : roundUp(largest);
  const low = min ?? (smallest < 0 ? -roundUp(-smallest) : 0);
  const high = max ?? usual;
  return high > low ? { low, high } : { low, high: low + 1 };
}

function roundUp(value: number): number {
  if (!(value > 0)) {
    return 1;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  return ([1, 2, 2.5, 5].find((digit) => digit * power >= value) ?? 10) * power;
}

/** Angles at which the arc of a gauge begins and ends. */
const FIRST_ANGLE = Math.PI * 0.8;
const LAST_ANGLE = Math.PI * 2.2;

function drawGauge(paint: FigurePaint, figure: Figure, box: Box): void {
  const { pen, scale, drawOptions, role, text } = paint;
  const { low, high } = endsOf(figure, drawOptions);
  const radius = Math.max(
    10,
    Math.min(box.width / 2, (box.height - LABEL * scale) / 1.75) - 8 * scale,
  );
  const [x, y] = [box.left + box.width / 2, box.top + radius + 8 * scale];
  const width = Math.max(4 * scale, radius * 0.2);
  const angle = (value: number): number =>
    FIRST_ANGLE +
    Math.max(0, Math.min(1, (value - low) / (high - low))) * (LAST_ANGLE - FIRST_ANGLE);
  const arc = (from: number, to: number, at: number, thickness: number, colour: string): void => {
    pen.beginPath();
    pen.arc(x, y, at, from, to);
    pen.lineWidth = thickness;
    pen.strokeStyle = colour;
    pen.stroke();
  };
  arc(FIRST_ANGLE, LAST_ANGLE, radius - width / 2, width, role('line'));
  drawOptions.thresholds.forEach(({ at, level }, index) => {
    const end = drawOptions.thresholds[index + 1]?.at ?? high;
    if (angle(end) > angle(at)) {
      arc(angle(at), angle(end), radius + 3 * scale, 4 * scale, role(level));
    }
  });
  if (figure.last !== undefined && angle(figure.last) > FIRST_ANGLE) {
    const level = levelOf(figure.last, drawOptions.thresholds);
    arc(FIRST_ANGLE, angle(figure.last), radius - width / 2, width, role(level ?? 'accent'));
  }
  const value = figure.last === undefined ? '–' : text(figure.last);
  const size = fitted(paint, value, { width: (radius - width) * 1.35, height: radius * 0.5 });
  pen.fillStyle = role('text');
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  pen.fillText(value, x, y);
  pen.font = `${11 * scale}px ${role('font-ui')}`;
  pen.fillStyle = role('text-muted');
  pen.textBaseline = 'top';
  const foot = y + radius * Math.sin(FIRST_ANGLE) + 6 * scale;
  pen.fillText(text(low), x + radius * Math.cos(FIRST_ANGLE), foot);
  pen.fillText(text(high), x + radius * Math.cos(LAST_ANGLE), foot);
  const label = `${figure.label}${levelText(paint, figure.last)}`;
  drawLabel(paint, label, x, Math.max(foot, y + size) + 2 * scale, box.width - radius);
}

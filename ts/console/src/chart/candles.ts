/** Draws candles and the last price. The first four series must be open, high, low and close. */
import { grouped } from '../model/format.js';
import type { Range } from './decimate.js';
import type { ChartData, Point } from './model.js';
import { clipped, type Frame, type Role } from './plot/pen.js';

type Points = ArrayLike<number | null | undefined>;

const MAX_BODY_WIDTH = 14;
const BODY_FRACTION = 0.62;
const VOLUME_FRACTION = 0.6;
const MAX_VOLUME_WIDTH = 24;

/**
 * Draws rising candles hollow and falling candles filled, so that the shape alone shows the
 * direction.
 */
export function drawCandles(
  frame: Frame,
  { times, series }: ChartData,
  role: Role,
  text: (price: number) => string,
): void {
  const [open, high, low, close, volume] = series.map(({ points }) => points);
  if (!open || !high || !low || !close || times.length === 0) {
    return;
  }
  const { pen, box } = frame;
  const body = bodyWidth(frame, times, BODY_FRACTION, MAX_BODY_WIDTH);
  const [surface, up, down] = [role('bg-surface'), role('chart-3'), role('chart-6')];
  const y = (value: number): number => frame.y(value, 'y');
  clipped(frame, () => {
    pen.fillStyle = role('line-control');
    const bar = bodyWidth(frame, times, VOLUME_FRACTION, MAX_VOLUME_WIDTH);
    volume?.forEach((amount, index) => {
      if (typeof amount === 'number') {
        const top = frame.y(amount, 'volume');
        const left = frame.x(times[index] ?? 0) - bar / 2;
        pen.fillRect(left, top, bar, box.top + box.height - top);
      }
    });
    pen.lineWidth = 1.3 * frame.scale;
    times.forEach((time, index) => {
      const [first, top, bottom, last] = [open, high, low, close].map((points) => points[index]);
      if (first == null || top == null || bottom == null || last == null) {
        return;
      }
      const x = Math.round(frame.x(time));
      pen.strokeStyle = last >= first ? up : down;
      pen.fillStyle = last >= first ? surface : down;
      pen.beginPath();
      pen.moveTo(x, y(top));
      pen.lineTo(x, y(bottom));
      pen.stroke();
      const height = Math.max(frame.scale, Math.abs(y(last) - y(first)));
      pen.beginPath();
      pen.rect(x - body / 2, Math.min(y(first), y(last)), body, height);
      pen.fill();
      pen.stroke();
    });
  });
  drawLastPrice(frame, close, role, text);
}

function bodyWidth(
  { from, to, box, scale }: Frame,
  times: ArrayLike<number>,
  fraction: number,
  widest: number,
): number {
  const candles = (to - from) / spacing(times);
  const candleWidth = (box.width / Math.max(1, candles)) * fraction;
  return Math.max(1, Math.min(widest * scale, Math.round(candleWidth)));
}

/** Returns the smallest difference between consecutive times. */
export function spacing(times: ArrayLike<number>): number {
  let smallest = Infinity;
  let before: number | undefined;
  for (const time of Array.from(times)) {
    if (before !== undefined && time > before) {
      smallest = Math.min(smallest, time - before);
    }
    before = time;
  }
  return Number.isFinite(smallest) ? smallest : 1;
}

/** Width of a candle in pixels, if the console chooses the time step. */
export const CHOSEN_CANDLE_PX = 5;
/** Minimum width of a candle in pixels, including its gap. Narrower candles are merged. */
export const MIN_CANDLE_PX = 2;

/**
 * Merges neighbouring candles so that at most `maxCandles` candles are in the visible range. Each
 * merged candle covers a whole number of steps, aligned to 1970. It keeps the first open and the
 * last close. `span` is the number of steps per candle.
 */
export function mergedCandles(
  { times, series }: ChartData,
  maxCandles: number,
  range?: Range,
): { readonly data: ChartData; readonly span: number } {
  const step = spacing(times);
  const { from, to } = range ?? { from: times[0] ?? 0, to: times.at(-1) ?? 0 };
  const span = Math.max(1, Math.ceil(((to - from) / step + 1) / Math.max(1, maxCandles)));
  if (span === 1) {
    return { data: { times, series }, span };
  }
  const merged: number[] = [];
  const points = series.map((): Point[] => []);
  times.forEach((time, index) => {
    const start = Math.floor(time / (step * span)) * step * span;
    if (merged.at(-1) !== start) {
      merged.push(start);
    }
    const at = merged.length - 1;
    series.forEach((one, column) => {
      const list = points[column] ?? [];
      list[at] = joined(column, list[at], one.points[index]);
    });
  });
  const named = series.map(({ label }, index) => ({ label, points: points[index] ?? [] }));
  return { data: { times: merged, series: named }, span };
}

/**
 * Merges two consecutive values of one candle column. The index is 0 to 3 for open, high, low and
 * close. Values of further columns are added.
 */
function joined(index: number, before: Point, next: Point): Point {
  if (typeof next !== 'number') {
    return before ?? next;
  }
  if (typeof before !== 'number') {
    return next;
  }
  switch (index) {
    case 0:
      return before;
    case 1:
      return Math.max(before, next);
    case 2:
      return Math.min(before, next);
    case 3:
      return next;
    default:
      return before + next;
  }
}

export function lastPrice(close: Points): number | undefined {
  for (let index = close.length - 1; index >= 0; index -= 1) {
    const value = close[index];
    if (typeof value === 'number') {
      return value;
    }
  }
  return undefined;
}

/** Maximum number of digits in a price label. */
const PRICE_DIGITS = 8;

export function priceText(price: number): string {
  return grouped(String(Number(price.toPrecision(PRICE_DIGITS))));
}

/** Draws the last price as a dotted line with a label on the axis. */
function drawLastPrice(
  frame: Frame,
  close: Points,
  role: Role,
  priceText: (price: number) => string,
): void {
  const last = lastPrice(close);
  if (last === undefined) {
    return;
  }
  const { pen, box, scale } = frame;
  const y = frame.y(last, 'y');
  if (y < box.top || y > box.top + box.height) {
    return;
  }
  const text = priceText(last);
  const left = box.left + box.width + 2 * scale;
  pen.save();
  pen.strokeStyle = role('accent');
  pen.setLineDash([2 * scale, 3 * scale]);
  pen.lineWidth = scale;
  pen.beginPath();
  pen.moveTo(box.left, y);
  pen.lineTo(box.left + box.width, y);
  pen.stroke();
  pen.setLineDash([]);
  pen.font = `600 ${11 * scale}px ${role('font-ui')}`;
  pen.fillStyle = role('accent');
  const width = pen.measureText(text).width + 10 * scale;
  pen.fillRect(left, y - 9 * scale, width, 18 * scale);
  pen.fillStyle = role('on-accent');
  pen.textAlign = 'left';
  pen.textBaseline = 'middle';
  pen.fillText(text, left + 5 * scale, y + scale / 2);
  pen.restore();
}

/** Candles and the last price, drawn over a plot whose first four series are open to close. */
import type uPlot from 'uplot';
import { grouped } from '../model/format.js';
import type { ChartData, Point } from './model.js';

/** The value of a design token in the theme in force. */
export type Role = (name: string) => string;

type Points = ArrayLike<number | null | undefined>;

const WIDEST_BODY = 14;
const BODY_SHARE = 0.62;

/** Rising ones hollow, falling ones filled: the shape tells the direction, colour repeats it. */
export function drawCandles(self: uPlot, role: Role): void {
  const [times, open, high, low, close] = self.data;
  if (!open || !high || !low || !close || times.length === 0) {
    return;
  }
  const { ctx, bbox } = self;
  const body = bodyWidth(self, times);
  const [surface, up, down] = [role('bg-surface'), role('chart-3'), role('chart-6')];
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.lineWidth = 1.3 * devicePixelRatio;
  times.forEach((time, index) => {
    const [first, top, bottom, last] = [open, high, low, close].map((points) => points[index]);
    if (first == null || top == null || bottom == null || last == null) {
      return;
    }
    const y = (value: number): number => self.valToPos(value, 'y', true);
    const x = Math.round(self.valToPos(time, 'x', true));
    ctx.strokeStyle = last >= first ? up : down;
    ctx.fillStyle = last >= first ? surface : down;
    ctx.beginPath();
    ctx.moveTo(x, y(top));
    ctx.lineTo(x, y(bottom));
    ctx.stroke();
    const height = Math.max(devicePixelRatio, Math.abs(y(last) - y(first)));
    ctx.beginPath();
    ctx.rect(x - body / 2, Math.min(y(first), y(last)), body, height);
    ctx.fill();
    ctx.stroke();
  });
  ctx.restore();
  drawLastPrice(self, close, role);
}

function bodyWidth(self: uPlot, times: ArrayLike<number>): number {
  const { min, max } = self.scales['x'] ?? {};
  const candles = ((max ?? 0) - (min ?? 0)) / spacing(times);
  const room = (self.bbox.width / Math.max(1, candles)) * BODY_SHARE;
  return Math.max(1, Math.min(WIDEST_BODY * devicePixelRatio, Math.round(room)));
}

/** The least distance between two times. */
export function spacing(times: ArrayLike<number>): number {
  let least = Infinity;
  let before: number | undefined;
  for (const time of Array.from(times)) {
    if (before !== undefined && time > before) {
      least = Math.min(least, time - before);
    }
    before = time;
  }
  return Number.isFinite(least) ? least : 1;
}

/** The least room of a candle that can be distinguished from its neighbours, in pixels. */
export const CANDLE_ROOM = 5;

/**
 * At most so many candles: neighbours become one, from the first open to the last close, over a
 * whole number of steps counted from 1970. `span` is how many steps became one.
 */
export function mergedCandles(
  { times, series }: ChartData,
  most: number,
): { readonly data: ChartData; readonly span: number } {
  const step = spacing(times);
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const span = Math.max(1, Math.ceil(((last - first) / step + 1) / Math.max(1, most)));
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
    series.forEach((part, place) => {
      const list = points[place] ?? [];
      list[at] = joined(place, list[at], part.points[index]);
    });
  });
  const named = series.map(({ label }, place) => ({ label, points: points[place] ?? [] }));
  return { data: { times: merged, series: named }, span };
}

/** Two parts of candles as one: open, high, low, close, and then what is summed. */
function joined(place: number, before: Point, next: Point): Point {
  if (typeof next !== 'number') {
    return before ?? next;
  }
  if (typeof before !== 'number') {
    return next;
  }
  switch (place) {
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

/** Digits of a price that are worth their room; the readout and the grid have more. */
const PRICE_DIGITS = 8;

export function priceText(price: number): string {
  return grouped(String(Number(price.toPrecision(PRICE_DIGITS))));
}

/** The last price as a dotted line and a tag on the axis. */
function drawLastPrice(self: uPlot, close: Points, role: Role): void {
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
  const text = priceText(last);
  const left = bbox.left + bbox.width + 2 * scale;
  ctx.save();
  ctx.strokeStyle = role('accent');
  ctx.setLineDash([2 * scale, 3 * scale]);
  ctx.lineWidth = scale;
  ctx.beginPath();
  ctx.moveTo(bbox.left, y);
  ctx.lineTo(bbox.left + bbox.width, y);
  ctx.stroke();
  ctx.font = `600 ${11 * scale}px ${role('font-ui')}`;
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

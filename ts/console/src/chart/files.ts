/** Saves a chart as an image, or its points as CSV. */
import { copyText } from '../model/format.js';
import { rowsAs } from '../model/copies.js';
import { saveBlob, saveFile } from '../ui/files.js';
import type { Row } from '../api/answer.js';
import type { ChartData } from './model.js';
import type { Pen, Role } from './plot/pen.js';
import { SvgPen } from './plot/svg.js';
import { texts } from '../texts.js';

/** A drawing that can be painted with any pen. */
export interface Picture {
  paint(pen: Pen): void;
  /** Returns the size in CSS pixels. */
  size(): { readonly width: number; readonly height: number };
}

export const PICTURE_FORMATS = ['png', 'svg', 'csv'] as const;
export type PictureFormat = (typeof PICTURE_FORMATS)[number];

interface Legend {
  readonly label: string;
  readonly colour: string;
}

interface ChartFile {
  readonly name: string;
  readonly title: string;
  readonly picture: Picture | undefined;
  readonly legend: readonly Legend[];
  readonly data: ChartData;
  readonly axis: 'time' | 'number' | 'names';
  readonly shown: readonly boolean[];
}

export async function saveChart(format: PictureFormat, chart: ChartFile): Promise<void> {
  const { name, picture } = chart;
  if (format === 'csv') {
    saveFile(`${name}.csv`, 'text/csv;charset=utf-8', pointsAsCsv(chart));
    return;
  }
  if (!picture) {
    throw new Error(texts.chart.noImage);
  }
  const scale = devicePixelRatio;
  const { width, height } = picture.size();
  const style = getComputedStyle(document.documentElement);
  const role: Role = (token) => style.getPropertyValue(`--${token}`).trim();
  const whole = { width: width * scale, height: (height + legendHeight(chart)) * scale };
  const paint = (pen: Pen): void => {
    pen.fillStyle = role('bg-surface');
    pen.fillRect(0, 0, whole.width, whole.height);
    picture.paint(pen);
    paintLegend(pen, chart.legend, { ...whole, top: height * scale, scale, role });
  };
  if (format === 'svg') {
    const pen = new SvgPen();
    paint(pen);
    const text = pen.text(width, whole.height / scale, scale, chart.title);
    saveFile(`${name}.svg`, 'image/svg+xml', text);
    return;
  }
  const canvas = document.createElement('canvas');
  canvas.width = Math.round(whole.width);
  canvas.height = Math.round(whole.height);
  const context = canvas.getContext('2d');
  if (context) {
    paint(context);
  }
  const blob = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/png'));
  if (!blob) {
    throw new Error(texts.chart.imageTooLarge);
  }
  saveBlob(`${name}.png`, blob);
}

const LEGEND_LINE = 20;
const LEGEND_LINES = 2;

function legendHeight({ legend }: ChartFile): number {
  return legend.length === 0 ? 8 : LEGEND_LINE * LEGEND_LINES;
}

interface LegendLayout {
  readonly width: number;
  readonly top: number;
  readonly scale: number;
  readonly role: Role;
}

/** Draws the series names with their colours, wrapped into rows. */
function paintLegend(
  pen: Pen,
  legend: readonly Legend[],
  { width, top, scale, role }: LegendLayout,
): void {
  pen.save();
  pen.font = `${12 * scale}px ${role('font-ui')}`;
  pen.textAlign = 'left';
  pen.textBaseline = 'middle';
  let [x, row] = [12 * scale, 0];
  for (const { label, colour } of legend) {
    const needed = pen.measureText(label).width + 34 * scale;
    if (x + needed > width) {
      [x, row] = [12 * scale, row + 1];
    }
    if (row === LEGEND_LINES) {
      break;
    }
    const y = top + (row + 0.5) * LEGEND_LINE * scale;
    pen.fillStyle = colour;
    pen.fillRect(x, y - 2 * scale, 14 * scale, 4 * scale);
    pen.fillStyle = role('text');
    pen.fillText(label, x + 18 * scale, y);
    x += needed;
  }
  pen.restore();
}

const FIRST_COLUMN = {
  time: { name: 'time', type: 'TIMESTAMP' },
  number: { name: 'at', type: 'DOUBLE' },
  names: { name: 'name', type: 'VARCHAR' },
} as const;

/** Formats the points of the visible series as CSV, with times in UTC. */
export function pointsAsCsv({
  data,
  axis,
  shown,
}: Pick<ChartFile, 'data' | 'axis' | 'shown'>): string {
  const series = data.series.filter((_series, index) => shown[index]);
  const columns = [
    FIRST_COLUMN[axis],
    ...series.map(({ label }) => ({ name: label, type: 'DOUBLE' })),
  ];
  const xValueOf = (x: number): Row[number] => {
    switch (axis) {
      case 'time':
        return timeText(x);
      case 'number':
        return x;
      case 'names':
        return data.names?.[x] ?? copyText(x);
    }
  };
  const rows = data.times.map((x, at): Row => [
    xValueOf(x),
    ...series.map(({ points }) => points[at] ?? null),
  ]);
  return rowsAs('csv', columns, rows);
}

/** Formats a time to the microsecond. `time` is in milliseconds, and may have a fraction. */
function timeText(time: number): string {
  const micros = Math.round((time - Math.floor(time)) * 1000);
  const text = new Date(Math.floor(time)).toISOString();
  return micros === 0 ? text : text.replace('Z', `${String(micros).padStart(3, '0')}Z`);
}

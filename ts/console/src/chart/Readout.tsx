/** Shows the values at the crosshair, or the last values if there is no crosshair. */
import { createMemo, For, type JSX } from 'solid-js';
import { grouped, type Zone } from '../model/format.js';
import type { AxisKind, ChartData, Series } from './model.js';
import { valueText, type DrawOptions } from './options.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export function Readout(props: {
  data: ChartData;
  axis: XAxisKind;
  drawOptions: DrawOptions;
  shown: readonly boolean[];
  /** True to label the first four series O, H, L and C. */
  initials: boolean;
  index: number | undefined;
  zone: Zone;
}): JSX.Element {
  const at = (): number => props.index ?? props.data.times.length - 1;
  const entries = createMemo(() =>
    props.data.series
      .flatMap((series, index) => (props.shown[index] ? [series] : []))
      .map(({ label, points }, index) => ({
        label: (props.initials ? CANDLE_INITIALS[index] : undefined) ?? label,
        point: knownAt(points, at()),
      })),
  );
  return (
    <div class="readout" title={fill(texts.chart.roundedToDigits, { digits: READOUT_DIGITS })}>
      <span>{xLabel(props, at())}</span>
      <For each={entries()}>
        {({ label, point }) => (
          <span>
            <bdi>{label}</bdi>{' '}
            <b>
              {typeof point === 'number' ? valueText(point, props.drawOptions, pointText) : '–'}
            </b>
          </span>
        )}
      </For>
    </div>
  );
}

/**
 * Returns the point at an index. If only other series have a row there, returns the previous point.
 */
function knownAt(points: Series['points'], index: number): number | null | undefined {
  let at = index;
  while (at > 0 && points[at] === undefined) {
    at--;
  }
  return points[at];
}

/** Labels of open, high, low and close. They replace the names of the columns. */
const CANDLE_INITIALS = ['O', 'H', 'L', 'C'];

/** Number of digits in the readout. The grid shows the exact values. */
const READOUT_DIGITS = 8;

function pointText(point: number): string {
  return grouped(String(Number(point.toPrecision(READOUT_DIGITS))));
}

type XAxisKind = Exclude<AxisKind, 'none'>;

interface XAxisData {
  readonly data: ChartData;
  readonly axis: XAxisKind;
  readonly zone: Zone;
}

/** Returns the label of the x value at an index: a time, a number or a name. */
export function xLabel({ data, axis, zone }: XAxisData, index: number): string {
  const x = data.times[index];
  if (x === undefined) {
    return '';
  }
  switch (axis) {
    case 'time':
      return timeText(x, zone);
    case 'number':
      return pointText(x);
    case 'names':
      return data.names?.[x] ?? '';
  }
}

function timeText(time: number, zone: Zone): string {
  const shift = zone === 'utc' ? 0 : new Date(time).getTimezoneOffset() * 60_000;
  const text = new Date(time - shift).toISOString().replace('T', ' ').replace('Z', '');
  return text.replace(/(?::00)?\.000$/, '');
}

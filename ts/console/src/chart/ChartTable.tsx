/** The points of a chart as a table, for users who cannot see the chart. */
import { createMemo, For, Show, type JSX } from 'solid-js';
import { grouped } from '../model/format.js';
import type { AxisKind, ChartData, Point } from './model.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const ROWS = 500;

export function ChartTable(props: {
  data: ChartData;
  axis: Exclude<AxisKind, 'none'>;
  shown: readonly boolean[];
}): JSX.Element {
  const series = createMemo(() => props.data.series.filter((_series, index) => props.shown[index]));
  const times = createMemo(() => props.data.times.slice(0, ROWS));
  const xText = (x: number): string => {
    if (props.axis === 'names') {
      return props.data.names?.[x] ?? '';
    }
    return props.axis === 'time' ? new Date(x).toISOString() : grouped(String(x));
  };
  return (
    <div class="chart-table" tabindex="0" role="region" aria-label={texts.chart.points}>
      <table>
        <thead>
          <tr>
            <th scope="col">
              {
                { time: texts.chart.timeUtc, number: texts.chart.xValue, names: texts.common.name }[
                  props.axis
                ]
              }
            </th>
            <For each={series()}>
              {({ label }) => (
                <th scope="col" class="right">
                  <bdi>{label}</bdi>
                </th>
              )}
            </For>
          </tr>
        </thead>
        <tbody>
          <For each={times()}>
            {(x, index) => (
              <tr>
                <th scope="row">
                  <bdi>{xText(x)}</bdi>
                </th>
                <For each={series()}>
                  {({ points }) => <td class="right">{pointText(points[index()])}</td>}
                </For>
              </tr>
            )}
          </For>
        </tbody>
      </table>
      <Show when={props.data.times.length > ROWS}>
        <p class="hint">
          {fill(texts.chart.firstPoints, {
            count: ROWS,
            all: grouped(String(props.data.times.length)),
          })}
        </p>
      </Show>
    </div>
  );
}

function pointText(point: Point): string {
  return typeof point === 'number' ? grouped(String(point)) : '–';
}

/** What is drawn, and how: kind, column, axes, zoom, or the same as a table. */
import { For, Show, type JSX } from 'solid-js';
import type { Result } from '../model/result.js';
import { Icon } from '../shell/icons.js';
import type { ChartPlan } from './model.js';
import type { ChartKind } from './plot.js';
import { kindsOf, type ChartSelection } from './selection.js';
import type { Zoom } from './zoom.js';

export const KIND_NAMES: Readonly<Record<ChartKind, string>> = {
  line: 'Line',
  area: 'Area',
  step: 'Step',
  bars: 'Bars',
  scatter: 'Scatter',
  candles: 'Candlestick',
};

interface BarProps {
  readonly selection: ChartSelection;
  readonly plan: ChartPlan;
  readonly result: Result;
  readonly zoom: Zoom;
  readonly asTable: boolean;
  readonly setAsTable: (asTable: boolean) => void;
  /** Whether series far apart have two axes; nothing when none are. */
  readonly twoAxes: boolean | undefined;
  readonly setTwoAxes: (twoAxes: boolean) => void;
}

export function ChartBar(props: BarProps): JSX.Element {
  const { selection } = props;
  return (
    <div class="chart-bar">
      <select
        class="select"
        aria-label="Kind of chart"
        onChange={(event) => selection.setKind(event.currentTarget.value as ChartKind)}
      >
        <For each={kindsOf(props.plan)}>
          {(kind) => (
            <option value={kind} selected={kind === selection.kind()}>
              {KIND_NAMES[kind]}
            </option>
          )}
        </For>
      </select>
      <Title {...props} />
      <span class="spring" />
      <Show when={props.twoAxes !== undefined}>
        <button
          class="button small ghost"
          aria-pressed={props.twoAxes ? 'true' : 'false'}
          onClick={() => props.setTwoAxes(!props.twoAxes)}
        >
          Two axes
        </button>
      </Show>
      <Show when={props.zoom.range()}>
        <button
          class="button small"
          title="All of it again (0 or double click)"
          onClick={() => props.zoom.reset()}
        >
          Reset zoom
        </button>
      </Show>
      <button
        class="icon-button"
        aria-label="Show as a table"
        title="Show as a table"
        aria-pressed={props.asTable ? 'true' : 'false'}
        onClick={() => props.setAsTable(!props.asTable)}
      >
        <Icon name="table" />
      </button>
    </div>
  );
}

function Title(props: BarProps): JSX.Element {
  const { selection } = props;
  const nameOf = (column: number | undefined): string =>
    props.result.columns[column ?? -1]?.name ?? '';
  return (
    <Show when={props.plan.key !== undefined}>
      <Show when={props.plan.values.length > 1}>
        <select
          class="select"
          aria-label="Column drawn"
          onChange={(event) => selection.setValue(Number(event.currentTarget.value))}
        >
          <For each={props.plan.values}>
            {(column) => (
              <option value={column} selected={column === selection.value()}>
                {nameOf(column)}
              </option>
            )}
          </For>
        </select>
      </Show>
      <span class="chart-title">
        <bdi>{nameOf(selection.value())}</bdi>{' '}
        <span class="muted">
          by <bdi>{nameOf(props.plan.key)}</bdi>
        </span>
      </span>
    </Show>
  );
}

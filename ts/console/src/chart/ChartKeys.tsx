/** Row below a chart, with a note and either a legend or chips that show and hide series. */
import { For, Show, type JSX } from 'solid-js';
import { colourNumber } from './kinds.js';
import type { ChartSelection } from './selection.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export function SeriesKeys(props: {
  selection: ChartSelection;
  second: readonly boolean[];
  note: string;
}): JSX.Element {
  const { selection } = props;
  return (
    <ul class="chart-keys" aria-label={texts.chart.series}>
      <For each={selection.data().series.slice(0, MAX_CHIPS)}>
        {(series, index) => (
          <li>
            <button
              class="chart-key"
              aria-pressed={selection.shown()[index()] ? 'true' : 'false'}
              onClick={() => selection.toggle(index())}
            >
              <svg
                class={`line-key c${colourNumber(selection.kind(), index())}`}
                viewBox="0 0 18 8"
                aria-hidden="true"
              >
                <path d="M1 4h16" />
              </svg>
              <bdi>{series.label}</bdi>
              <Show when={props.second[index()]}>
                <span class="hint">{texts.chart.rightAxis}</span>
              </Show>
            </button>
          </li>
        )}
      </For>
      <Show when={selection.data().series.length > MAX_CHIPS}>
        <li>
          <select
            class="select"
            aria-label={texts.chart.moreSeries}
            onChange={(event) => selection.toggle(Number(event.currentTarget.value))}
          >
            <option value="-1">
              {fill(texts.chart.more, { count: selection.data().series.length - MAX_CHIPS })}
            </option>
            <For each={selection.data().series.slice(MAX_CHIPS)}>
              {(series, index) => (
                <option value={index() + MAX_CHIPS}>
                  {selection.shown()[index() + MAX_CHIPS] ? `✓ ${series.label}` : series.label}
                </option>
              )}
            </For>
          </select>
        </li>
      </Show>
      <li class="zoom-hint">{props.note}</li>
    </ul>
  );
}

/** Maximum number of series with a chip. Further series are offered in a list. */
const MAX_CHIPS = 24;

export function CandleKeys(props: { note: string }): JSX.Element {
  return (
    <ul class="chart-keys" aria-label={texts.chart.legend}>
      <li class="chart-key">
        <svg class="candle-key rising" viewBox="0 0 12 14">
          <path d="M6 1v3M6 10v3M3 4h6v6H3z" />
        </svg>
        {texts.chart.risingHollow}
      </li>
      <li class="chart-key">
        <svg class="candle-key falling" viewBox="0 0 12 14">
          <path d="M6 1v3M6 10v3M3 4h6v6H3z" />
        </svg>
        {texts.chart.fallingFilled}
      </li>
      <li class="zoom-hint">{props.note}</li>
    </ul>
  );
}

/** Colour legend of a heat map, from its lowest to its highest mean. */
export function HeatKeys(props: { low: string; high: string; note: string }): JSX.Element {
  return (
    <ul class="chart-keys" aria-label={texts.chart.legend}>
      <li class="chart-key">
        <bdi>{props.low}</bdi>
        <svg class="heat-key" viewBox="0 0 84 10" aria-hidden="true">
          <For each={[1, 2, 3, 4, 5, 6, 7]}>
            {(step) => <path class={`seq-${step}`} d={`M${(step - 1) * 12} 0h12v10h-12z`} />}
          </For>
        </svg>
        <bdi>{props.high}</bdi>
      </li>
      <li class="zoom-hint">{props.note}</li>
    </ul>
  );
}

/** Note below a chart that has no legend. */
export function PlainNote(props: { note: string }): JSX.Element {
  return (
    <ul class="chart-keys" aria-label={texts.chart.note}>
      <li class="zoom-hint">{props.note}</li>
    </ul>
  );
}

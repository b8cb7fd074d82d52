/** The chart of a result: what is drawn, of what kind, which series; the drawing is `plot.ts`. */
import 'uplot/dist/uPlot.min.css';
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  on,
  onCleanup,
  onMount,
  Show,
  type JSX,
} from 'solid-js';
import { grouped, type Zone } from '../model/format.js';
import type { Result } from '../model/result.js';
import { theme } from '../shell/theme.js';
import {
  chartData,
  chooseChart,
  SHOWN_SERIES,
  spoken,
  type ChartData,
  type ChartPlan,
  type Series,
} from './model.js';
import { drawPlot, type ChartKind, type Plot } from './plot.js';

interface ChartProps {
  readonly result: Result;
  readonly revision: number;
  readonly zone: Zone;
}

const KIND_NAMES: Readonly<Record<ChartKind, string>> = {
  line: 'Line',
  area: 'Area',
  step: 'Step',
  bars: 'Bars',
  candles: 'Candlestick',
};

export default function Chart(props: ChartProps): JSX.Element {
  const choice = createMemo(() => {
    props.revision;
    const { columns, timestamp, rows } = props.result;
    return chooseChart(columns, timestamp, rows);
  });
  return (
    <section class="chart" aria-label="Chart" data-region="chart">
      <Show
        when={choice().plan}
        fallback={
          <div class="empty">
            <strong>Nothing to draw</strong>
            <p>{choice().why}</p>
          </div>
        }
      >
        {(plan) => <Drawn {...props} plan={plan()} />}
      </Show>
    </section>
  );
}

function Drawn(props: ChartProps & { plan: ChartPlan }): JSX.Element {
  const [kind, setKind] = createSignal<ChartKind>('line');
  const [value, setValue] = createSignal(0);
  // What the user chose by series, against what the plan draws by itself.
  const [chosen, setChosen] = createSignal<ReadonlyMap<string, boolean>>(new Map());
  const [cursor, setCursor] = createSignal<number>();

  const reset = (): void => {
    setKind(props.plan.candles ? 'candles' : 'line');
    setValue(props.plan.values[0] ?? 0);
    setChosen(new Map<string, boolean>());
  };
  reset();
  createEffect(on(() => props.result, reset, { defer: true }));

  const values = createMemo((): readonly number[] => {
    const { candles, key } = props.plan;
    if (kind() === 'candles' && candles) {
      const { open, high, low, close, volume } = candles;
      return [open, high, low, close, ...(volume === undefined ? [] : [volume])];
    }
    return key === undefined ? props.plan.values : [value()];
  });
  const data = createMemo(() => {
    props.revision;
    return chartData(props.result.columns, props.result.rows, props.plan, values());
  });
  const drawn = (): number => (props.plan.key === undefined ? props.plan.drawn : SHOWN_SERIES);
  const shown = createMemo(() =>
    data().series.map(({ label }, index) => chosen().get(label) ?? index < drawn()),
  );
  const toggle = (label: string, index: number): void => {
    setChosen(new Map(chosen()).set(label, !shown()[index]));
  };
  const kinds = (): ChartKind[] => [
    ...(props.plan.candles ? (['candles'] as const) : []),
    'line',
    'area',
    'step',
    'bars',
  ];
  const title = (): string => {
    const { columns } = props.result;
    const { key } = props.plan;
    if (kind() === 'candles') {
      return '';
    }
    if (key !== undefined) {
      return `by ${columns[key]?.name ?? ''}`;
    }
    return `by ${columns[props.plan.time]?.name ?? ''}`;
  };

  return (
    <>
      <div class="chart-bar">
        <select
          class="select"
          aria-label="Kind of chart"
          value={kind()}
          onChange={(event) => setKind(event.currentTarget.value as ChartKind)}
        >
          <For each={kinds()}>
            {(name) => (
              <option value={name} selected={name === kind()}>
                {KIND_NAMES[name]}
              </option>
            )}
          </For>
        </select>
        <Show when={props.plan.key !== undefined && props.plan.values.length > 1}>
          <select
            class="select"
            aria-label="Column drawn"
            onChange={(event) => setValue(Number(event.currentTarget.value))}
          >
            <For each={props.plan.values}>
              {(index) => (
                <option value={index} selected={index === value()}>
                  {props.result.columns[index]?.name}
                </option>
              )}
            </For>
          </select>
        </Show>
        <span class="chart-title">
          <Show when={kind() !== 'candles' && props.plan.key !== undefined}>
            {props.result.columns[value()]?.name}{' '}
          </Show>
          <span class="muted">{title()}</span>
        </span>
      </div>
      <Readout
        data={data()}
        shown={shown()}
        initials={kind() === 'candles'}
        index={cursor()}
        zone={props.zone}
      />
      <Canvas kind={kind()} data={data()} shown={shown()} zone={props.zone} onCursor={setCursor} />
      <Show when={kind() !== 'candles'} fallback={<CandleKeys />}>
        <ul class="chart-keys" aria-label="Series">
          <For each={data().series}>
            {(series, index) => (
              <li>
                <button
                  class="chart-key"
                  aria-pressed={shown()[index()] ? 'true' : 'false'}
                  onClick={() => toggle(series.label, index())}
                >
                  <svg class={`line-key c${index() < 8 ? index() + 1 : 0}`} viewBox="0 0 18 8">
                    <path d="M1 4h16" />
                  </svg>
                  <bdi>{series.label}</bdi>
                </button>
              </li>
            )}
          </For>
          <ZoomHint />
        </ul>
      </Show>
    </>
  );
}

function CandleKeys(): JSX.Element {
  return (
    <ul class="chart-keys" aria-label="Key">
      <li class="chart-key">
        <svg class="candle-key rising" viewBox="0 0 12 14">
          <path d="M6 1v3M6 10v3M3 4h6v6H3z" />
        </svg>
        rising (hollow)
      </li>
      <li class="chart-key">
        <svg class="candle-key falling" viewBox="0 0 12 14">
          <path d="M6 1v3M6 10v3M3 4h6v6H3z" />
        </svg>
        falling (filled)
      </li>
      <ZoomHint />
    </ul>
  );
}

function ZoomHint(): JSX.Element {
  return <li class="zoom-hint">Drag to zoom, double-click resets</li>;
}

function Readout(props: {
  data: ChartData;
  shown: readonly boolean[];
  /** Open, high, low and close by their first letters. */
  initials: boolean;
  index: number | undefined;
  zone: Zone;
}): JSX.Element {
  const at = (): number => props.index ?? props.data.times.length - 1;
  const entries = createMemo(() =>
    props.data.series
      .flatMap((series, index) => (props.shown[index] ? [series] : []))
      .map(({ label, points }, index) => ({
        label: props.initials && index < 4 ? label.charAt(0).toUpperCase() : label,
        point: knownAt(points, at()),
      })),
  );
  return (
    <div class="readout">
      <span>{timeText(props.data.times[at()], props.zone)}</span>
      <For each={entries()}>
        {({ label, point }) => (
          <span>
            <bdi>{label}</bdi> <b>{typeof point === 'number' ? pointText(point) : '–'}</b>
          </span>
        )}
      </For>
    </div>
  );
}

/** The point at an index, or the series' last one before it where only others have a row. */
function knownAt(points: Series['points'], index: number): number | null | undefined {
  let at = index;
  while (at > 0 && points[at] === undefined) {
    at--;
  }
  return points[at];
}

function pointText(point: number): string {
  return grouped(String(Number(point.toPrecision(12))));
}

function timeText(time: number | undefined, zone: Zone): string {
  if (time === undefined) {
    return '';
  }
  const shift = zone === 'utc' ? 0 : new Date(time).getTimezoneOffset() * 60_000;
  const text = new Date(time - shift).toISOString().replace('T', ' ').replace('Z', '');
  return text.replace(/(?::00)?\.000$/, '');
}

interface CanvasProps {
  readonly kind: ChartKind;
  readonly data: ChartData;
  readonly shown: readonly boolean[];
  readonly zone: Zone;
  readonly onCursor: (index: number | undefined) => void;
}

function Canvas(props: CanvasProps): JSX.Element {
  let host!: HTMLDivElement;
  let plot: Plot | undefined;

  onMount(() => {
    createEffect(() => {
      void theme();
      const { kind, data, shown, zone, onCursor } = props;
      const all = data.series.map((_series, index) => index);
      const drawn = kind === 'candles' ? all.map(() => true) : shown;
      plot?.destroy();
      plot = drawPlot(host, { kind, data, shown: drawn, colours: all, zone, onCursor });
    });
    const observer = new ResizeObserver(() => plot?.resize());
    observer.observe(host);
    onCleanup(() => {
      observer.disconnect();
      plot?.destroy();
    });
  });

  const onKeyDown = (event: KeyboardEvent): void => {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
    if (steps !== undefined) {
      plot?.moveCursor(steps);
    } else if (event.key === '0') {
      plot?.resetZoom();
    } else {
      return;
    }
    event.preventDefault();
  };

  return (
    <div
      ref={host}
      class="plot"
      role="img"
      tabindex="0"
      aria-label={summary(props)}
      onKeyDown={onKeyDown}
    />
  );
}

/** What a person who does not see the chart is told about it. */
function summary(props: CanvasProps): string {
  const lines = props.data.series.slice(0, SHOWN_SERIES).flatMap(({ label, points }, index) => {
    const told = spoken(points);
    if (!told || !(props.kind === 'candles' || props.shown[index])) {
      return [];
    }
    return [`${label}: lowest ${told.low}, highest ${told.high}, last ${told.last}`];
  });
  const { times } = props.data;
  const range = `${timeText(times[0], props.zone)} to ${timeText(times.at(-1), props.zone)}`;
  return `${KIND_NAMES[props.kind]} chart, ${times.length} points, ${range}. ${lines.join('. ')}.`;
}

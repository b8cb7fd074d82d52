/** The chart of a result: what is drawn, of what kind, which series; the drawing is `plot.ts`. */
import 'uplot/dist/uPlot.min.css';
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  onCleanup,
  onMount,
  Show,
  type JSX,
} from 'solid-js';
import { grouped, type Zone } from '../model/format.js';
import { asOf, type Result } from '../model/result.js';
import { theme } from '../shell/theme.js';
import {
  chooseChart,
  SHOWN_SERIES,
  spoken,
  type ChartData,
  type ChartPlan,
  type Series,
} from './model.js';
import { drawPlot, type ChartKind, type Plot } from './plot.js';
import { ChartSelection } from './selection.js';

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
    const { columns, timestamp, rows } = asOf(props.result, props.revision);
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
  const selection = new ChartSelection(props);
  const [cursor, setCursor] = createSignal<number>();
  const isCandles = (): boolean => selection.kind() === 'candles';
  return (
    <>
      <Bar selection={selection} plan={props.plan} result={props.result} />
      <Readout
        data={selection.data()}
        shown={selection.shown()}
        initials={isCandles()}
        index={cursor()}
        zone={props.zone}
      />
      <Canvas
        kind={selection.kind()}
        data={selection.data()}
        shown={selection.shown()}
        zone={props.zone}
        onCursor={setCursor}
      />
      <Show when={!isCandles()} fallback={<CandleKeys />}>
        <SeriesKeys selection={selection} />
      </Show>
    </>
  );
}

const LINE_KINDS: readonly ChartKind[] = ['line', 'area', 'step', 'bars'];

function Bar(props: { selection: ChartSelection; plan: ChartPlan; result: Result }): JSX.Element {
  const { selection } = props;
  const kinds = (): readonly ChartKind[] =>
    props.plan.candles ? ['candles', ...LINE_KINDS] : LINE_KINDS;
  const nameOf = (column: number | undefined): string =>
    props.result.columns[column ?? -1]?.name ?? '';
  return (
    <div class="chart-bar">
      <select
        class="select"
        aria-label="Kind of chart"
        onChange={(event) => selection.setKind(event.currentTarget.value as ChartKind)}
      >
        <For each={kinds()}>
          {(kind) => (
            <option value={kind} selected={kind === selection.kind()}>
              {KIND_NAMES[kind]}
            </option>
          )}
        </For>
      </select>
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
    </div>
  );
}

function SeriesKeys(props: { selection: ChartSelection }): JSX.Element {
  const { selection } = props;
  return (
    <ul class="chart-keys" aria-label="Series">
      <For each={selection.data().series}>
        {(series, index) => (
          <li>
            <button
              class="chart-key"
              aria-pressed={selection.shown()[index()] ? 'true' : 'false'}
              onClick={() => selection.toggle(index())}
            >
              <svg
                class={`line-key c${index() < SHOWN_SERIES ? index() + 1 : 0}`}
                viewBox="0 0 18 8"
                aria-hidden="true"
              >
                <path d="M1 4h16" />
              </svg>
              <bdi>{series.label}</bdi>
            </button>
          </li>
        )}
      </For>
      <ZoomHint />
    </ul>
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
  return <li class="zoom-hint">Drag to zoom</li>;
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
    <div class="readout" title={`Rounded to ${READOUT_DIGITS} digits`}>
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

/** Enough to read; the grid beside it is exact. */
const READOUT_DIGITS = 8;

function pointText(point: number): string {
  return grouped(String(Number(point.toPrecision(READOUT_DIGITS))));
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

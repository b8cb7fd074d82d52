/** The chart of a result: what is drawn, of what kind, which series; the drawing is `plot.ts`. */
import 'uplot/dist/uPlot.min.css';
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  mergeProps,
  onCleanup,
  onMount,
  Show,
  type JSX,
} from 'solid-js';
import { grouped, type Zone } from '../model/format.js';
import { asOf, type Result } from '../model/result.js';
import { theme } from '../shell/theme.js';
import { ChartBar, KIND_NAMES } from './ChartBar.js';
import { ChartTable } from './ChartTable.js';
import { decimated, onSecondAxis, type Range } from './decimate.js';
import {
  chooseChart,
  rowNear,
  SHOWN_SERIES,
  spoken,
  type AxisKind,
  type ChartData,
  type ChartPlan,
  type Series,
} from './model.js';
import { drawPlot, type ChartKind, type Plot } from './plot.js';
import { ChartSelection } from './selection.js';
import { Zoom } from './zoom.js';

interface ChartProps {
  readonly result: Result;
  readonly revision: number;
  readonly zone: Zone;
  /** Shows a row of the result in the grid. */
  readonly onPick: (row: number) => void;
  /** The kind that was chosen, where it is kept elsewhere. */
  readonly kind?: string;
  readonly onKind?: (kind: ChartKind) => void;
  /** Where the range of time is shared: takes a part that was chosen; nothing is all of it. */
  readonly onRange?: (range: Range | undefined) => void;
}

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
  const zoom = zoomOf(props);
  const selection = new ChartSelection(
    mergeProps(props, {
      get detail() {
        return zoom.detail();
      },
    }),
  );
  const [cursor, setCursor] = createSignal<number>();
  const [asTable, setAsTable] = createSignal(false);
  const [twoAxes, setTwoAxes] = createSignal(true);
  const isCandles = (): boolean => selection.kind() === 'candles';
  const drawn = createMemo(() => decimated(selection.data(), zoom.range()));
  const apart = createMemo(() => onSecondAxis(drawn(), selection.shown()));
  const note = createMemo(() => noteOf(selection.data(), drawn(), zoom));
  const second = createMemo(() => (twoAxes() && !isCandles() ? apart() : []));
  return (
    <>
      <ChartBar
        selection={selection}
        plan={props.plan}
        result={props.result}
        zoom={zoom}
        asTable={asTable()}
        setAsTable={setAsTable}
        twoAxes={!isCandles() && apart().includes(true) ? twoAxes() : undefined}
        setTwoAxes={setTwoAxes}
      />
      <Show
        when={!asTable()}
        fallback={<ChartTable data={drawn()} axis={props.plan.axis} shown={selection.shown()} />}
      >
        <Readout
          data={drawn()}
          axis={props.plan.axis}
          shown={selection.shown()}
          initials={isCandles()}
          index={cursor()}
          zone={props.zone}
        />
        <Canvas
          kind={selection.kind()}
          data={drawn()}
          axis={props.plan.axis}
          shown={selection.shown()}
          second={second()}
          zone={props.zone}
          zoom={zoom}
          onCursor={setCursor}
          onPick={(place) => pick(props, place, drawn())}
        />
      </Show>
      <Show when={!isCandles()} fallback={<CandleKeys note={note()} />}>
        <SeriesKeys selection={selection} second={second()} note={note()} />
      </Show>
    </>
  );
}

function zoomOf(props: ChartProps & { plan: ChartPlan }): Zoom {
  return new Zoom({
    get result() {
      return props.result;
    },
    get axis() {
      return props.plan.axis;
    },
    get x() {
      return props.plan.x;
    },
    get share() {
      return props.onRange;
    },
  });
}

/** The row behind a point: of the loaded ones, the nearest to its place. */
function pick(
  { plan, result, onPick }: ChartProps & { plan: ChartPlan },
  place: number,
  drawn: ChartData,
): void {
  const row = rowNear(result.rows, plan, place, drawn.names);
  if (row !== undefined) {
    onPick(row);
  }
}

/** What the picture leaves out, or how to look closer. */
function noteOf(data: ChartData, drawn: ChartData, zoom: Zoom): string {
  const asking = zoom.asking();
  if (asking === 'asking') {
    return 'Asking for this range';
  }
  if (typeof asking === 'object') {
    return `Loaded rows only: ${asking.failed}`;
  }
  const { left = 0 } = data;
  const count = (places: readonly number[]): string => grouped(String(places.length));
  if (left > 0) {
    return `The ${count(data.times)} largest of ${grouped(String(data.times.length + left))}`;
  }
  if (drawn.times.length < data.times.length && !zoom.range()) {
    return `${count(data.times)} rows drawn as ${count(drawn.times)} points`;
  }
  return 'Drag to zoom';
}

function SeriesKeys(props: {
  selection: ChartSelection;
  second: readonly boolean[];
  note: string;
}): JSX.Element {
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
              <Show when={props.second[index()]}>
                <span class="hint">right axis</span>
              </Show>
            </button>
          </li>
        )}
      </For>
      <li class="zoom-hint">{props.note}</li>
    </ul>
  );
}

function CandleKeys(props: { note: string }): JSX.Element {
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
      <li class="zoom-hint">{props.note}</li>
    </ul>
  );
}

function Readout(props: {
  data: ChartData;
  axis: AxisKind;
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
      <span>{placeText(props, at())}</span>
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

interface Placed {
  readonly data: ChartData;
  readonly axis: AxisKind;
  readonly zone: Zone;
}

/** The label along the bottom at an index: a time, a number or a name. */
function placeText({ data, axis, zone }: Placed, index: number): string {
  const place = data.times[index];
  if (place === undefined) {
    return '';
  }
  switch (axis) {
    case 'time':
      return timeText(place, zone);
    case 'number':
      return pointText(place);
    case 'names':
      return data.names?.[place] ?? '';
  }
}

function timeText(time: number, zone: Zone): string {
  const shift = zone === 'utc' ? 0 : new Date(time).getTimezoneOffset() * 60_000;
  const text = new Date(time - shift).toISOString().replace('T', ' ').replace('Z', '');
  return text.replace(/(?::00)?\.000$/, '');
}

interface CanvasProps {
  readonly kind: ChartKind;
  readonly data: ChartData;
  readonly axis: AxisKind;
  readonly shown: readonly boolean[];
  readonly second: readonly boolean[];
  readonly zone: Zone;
  readonly zoom: Zoom;
  readonly onCursor: (index: number | undefined) => void;
  /** By the place along the bottom. */
  readonly onPick: (place: number) => void;
}

function Canvas(props: CanvasProps): JSX.Element {
  let host!: HTMLDivElement;
  let plot: Plot | undefined;

  onMount(() => {
    createEffect(() => {
      void theme();
      const { kind, data, axis, shown, second, zone, zoom, onCursor } = props;
      const all = data.series.map((_series, index) => index);
      const drawn = kind === 'candles' ? all.map(() => true) : shown;
      plot?.destroy();
      plot = drawPlot(host, {
        kind,
        data,
        axis,
        shown: drawn,
        second,
        colours: all,
        zone,
        range: zoom.range(),
        onCursor,
        onZoom: (range) => zoom.to(range),
        onPan: (share) => zoom.pan(share),
        onReset: () => zoom.reset(),
      });
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
    } else if (event.key === 'Enter') {
      const place = props.data.times[plot?.cursorIndex() ?? -1];
      if (place !== undefined) {
        props.onPick(place);
      }
    } else if (event.key === '0') {
      props.zoom.reset();
    } else if (event.key === '+' || event.key === '-') {
      props.zoom.scale(event.key === '+' ? 0.5 : 2, props.data.times);
    } else if (event.key === '<' || event.key === '>') {
      props.zoom.pan(event.key === '<' ? -0.5 : 0.5);
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

/** The chart as text, for a screen reader. */
function summary(props: CanvasProps): string {
  const lines = props.data.series.slice(0, SHOWN_SERIES).flatMap(({ label, points }, index) => {
    const summary = spoken(points);
    if (!summary || !(props.kind === 'candles' || props.shown[index])) {
      return [];
    }
    return [`${label}: lowest ${summary.low}, highest ${summary.high}, last ${summary.last}`];
  });
  const { length } = props.data.times;
  const range = `${placeText(props, 0)} to ${placeText(props, length - 1)}`;
  return `${KIND_NAMES[props.kind]} chart, ${length} points, ${range}. ${lines.join('. ')}.`;
}

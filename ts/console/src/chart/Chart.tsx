/** The chart of a result: what is drawn, of what kind, which series; the drawing is `plot.ts`. */
import 'uplot/dist/uPlot.min.css';
import {
  createEffect,
  createMemo,
  createSignal,
  For,
  mergeProps,
  onCleanup,
  on,
  onMount,
  Show,
  untrack,
  type JSX,
} from 'solid-js';
import { grouped, type Zone } from '../model/format.js';
import { asOf, type Result } from '../model/result.js';
import { theme } from '../shell/theme.js';
import { ChartBar, KIND_NAMES } from './ChartBar.js';
import { ChartTable } from './ChartTable.js';
import { CANDLE_ROOM, mergedCandles } from './candles.js';
import { asChange, decimated, isFlat, onSecondAxis, type Range } from './decimate.js';
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
import { isPart, type Wanted } from './sampled.js';
import { Zoom } from './zoom.js';

interface ChartProps {
  readonly result: Result;
  readonly revision: number;
  readonly zone: Zone;
  /** Whether rows still come: the picture is drawn once, when the last one is there. */
  readonly isGrowing?: boolean;
  /** Shows a row of the result in the grid. */
  readonly onPick: (row: number) => void;
  /** The kind that was chosen, where it is kept elsewhere. */
  readonly kind?: string;
  readonly onKind?: (kind: ChartKind) => void;
  /** Where the range of time is shared: takes a part that was chosen; nothing is all of it. */
  readonly onRange?: (range: Range | undefined) => void;
}

export default function Chart(props: ChartProps): JSX.Element {
  const choice = createMemo((): ReturnType<typeof chooseChart> => {
    if (props.isGrowing) {
      return { why: '' };
    }
    const { columns, timestamp, rows } = asOf(props.result, props.revision);
    return chooseChart(columns, timestamp, rows);
  });
  return (
    <section class="chart" aria-label="Chart" data-region="chart">
      <Show
        when={!props.isGrowing && choice().plan}
        fallback={
          <Show
            when={!props.isGrowing}
            fallback={<p class="empty hint">Drawn when the last row is there</p>}
          >
            <div class="empty">
              <strong>Nothing to draw</strong>
              <p>{choice().why}</p>
            </div>
          </Show>
        }
      >
        {(plan) => <Drawn {...props} plan={plan()} />}
      </Show>
    </section>
  );
}

type DrawnProps = ChartProps & { plan: ChartPlan };

/** What is drawn of a result, by what its user has chosen. */
function pictureOf(props: DrawnProps) {
  const [width, setWidth] = createSignal(USUAL_WIDTH);
  const zoom: Zoom = new Zoom({
    get room() {
      return isCandles() ? width() / CANDLE_ROOM : width();
    },
    get wanted() {
      return wanted();
    },
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
  const selection = new ChartSelection(
    mergeProps(props, {
      get detail() {
        return zoom.detail();
      },
    }),
  );
  const [inPercent, setInPercent] = createSignal(false);
  const [twoAxes, setTwoAxes] = createSignal(true);
  const isCandles = (): boolean => selection.kind() === 'candles';
  const own = (): Wanted => wantedOf(props.plan, selection, untrack(width));
  const wanted = createMemo(own, undefined, { equals: isSame });
  // Rows that the page does not hold are asked for as a picture, and again where it is another one.
  createEffect(
    on([() => props.result, () => props.revision, wanted], () => {
      if (isPart(props.result)) {
        zoom.refresh();
      }
    }),
  );
  const merged = createMemo(() =>
    isCandles()
      ? mergedCandles(selection.data(), (width() - CANDLE_AXIS) / CANDLE_ROOM)
      : { data: selection.data(), span: 1 },
  );
  const absolute = createMemo(() => decimated(merged().data, zoom.range()));
  const drawn = createMemo(() => (inPercent() && !isCandles() ? asChange(absolute()) : absolute()));
  const apart = createMemo(() => onSecondAxis(drawn(), selection.shown()));
  const isSpread = createMemo(
    () => !isCandles() && props.plan.axis === 'time' && isFlat(absolute(), selection.shown(), []),
  );
  const note = createMemo(() => noteOf(props.result, merged(), drawn(), zoom));
  const second = createMemo(() => (twoAxes() && !isCandles() ? apart() : []));
  const percent = { inPercent, setInPercent, isSpread };
  const axes = { apart, second, twoAxes, setTwoAxes };
  return { zoom, selection, setWidth, isCandles, drawn, note, ...percent, ...axes };
}

function Drawn(props: DrawnProps): JSX.Element {
  const picture = pictureOf(props);
  const { zoom, selection, isCandles, drawn, note, second } = picture;
  const { apart, twoAxes, inPercent } = picture;
  const [cursor, setCursor] = createSignal<number>();
  const [asTable, setAsTable] = createSignal(false);
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
        setTwoAxes={picture.setTwoAxes}
        inPercent={picture.isSpread() || inPercent() ? inPercent() : undefined}
        setInPercent={picture.setInPercent}
        times={drawn().times}
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
          onWidth={picture.setWidth}
          onPick={(place) => pick(props, place, drawn())}
        />
      </Show>
      <Show when={!isCandles()} fallback={<CandleKeys note={note()} />}>
        <SeriesKeys selection={selection} second={second()} note={note()} />
      </Show>
    </>
  );
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

/** Of a chart that has not been laid out yet, in pixels. */
const USUAL_WIDTH = 600;
/** What the axis at the right of candles takes. */
const CANDLE_AXIS = 90;

const isSame = (one: Wanted, other: Wanted): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

function wantedOf(plan: ChartPlan, selection: ChartSelection, width: number): Wanted {
  const isOne = plan.key !== undefined;
  const shown = selection.shown();
  const values = isOne ? [selection.value()] : plan.values.filter((_column, at) => shown[at]);
  const candles = selection.kind() === 'candles' ? selection.parts() : undefined;
  return { plan, values: candles ? [] : values, candles, width };
}

/** What the picture leaves out, or how to look closer. */
function noteOf(
  result: Result,
  { data, span }: ReturnType<typeof mergedCandles>,
  drawn: ChartData,
  zoom: Zoom,
): string {
  const all = grouped(String(result.total ?? result.rows.length));
  const loaded = grouped(String(result.rows.length));
  const asking = zoom.asking();
  if (asking === 'asking') {
    return zoom.range() ? 'Asking for this range' : 'Asking for all rows';
  }
  if (typeof asking === 'object') {
    return isPart(result)
      ? `The first ${loaded} of ${all} rows only: ${asking.failed}`
      : `Loaded rows only: ${asking.failed}`;
  }
  const { left = 0 } = data;
  const count = (places: readonly number[]): string => grouped(String(places.length));
  if (left > 0) {
    return `The ${count(data.times)} largest of ${grouped(String(data.times.length + left))}`;
  }
  if (zoom.isSampled()) {
    const points = count(drawn.times);
    return zoom.range()
      ? `All rows of this range, drawn as ${points} points`
      : `${all} rows drawn as ${points} points`;
  }
  if (isPart(result) && !zoom.range()) {
    return `The first ${loaded} of ${all} rows`;
  }
  if (span > 1) {
    return `Each candle is ${span} of the result`;
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
      <For each={selection.data().series.slice(0, MOST_CHIPS)}>
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
      <Show when={selection.data().series.length > MOST_CHIPS}>
        <li>
          <select
            class="select"
            aria-label="Another series"
            onChange={(event) => selection.toggle(Number(event.currentTarget.value))}
          >
            <option value="-1">and {selection.data().series.length - MOST_CHIPS} more</option>
            <For each={selection.data().series.slice(MOST_CHIPS)}>
              {(series, index) => (
                <option value={index() + MOST_CHIPS}>
                  {selection.shown()[index() + MOST_CHIPS] ? `✓ ${series.label}` : series.label}
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

/** Series with a chip of their own; the others are in a list. */
const MOST_CHIPS = 24;

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
  readonly onWidth: (pixels: number) => void;
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
    props.onWidth(host.clientWidth);
    const observer = new ResizeObserver(() => {
      plot?.resize();
      props.onWidth(host.clientWidth);
    });
    observer.observe(host);
    onCleanup(() => {
      observer.disconnect();
      plot?.destroy();
    });
  });

  return (
    <div
      ref={host}
      class="plot"
      role="img"
      tabindex="0"
      aria-label={summary(props)}
      onKeyDown={(event) => onKey(event, props, plot)}
    />
  );
}

function onKey(event: KeyboardEvent, props: CanvasProps, plot: Plot | undefined): void {
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
  if (steps !== undefined) {
    plot?.moveCursor(steps);
  } else if (event.key === 'Enter') {
    const place = props.data.times[plot?.cursorIndex() ?? -1];
    if (place !== undefined) {
      props.onPick(place);
    }
  } else if (event.key === 'Backspace') {
    props.zoom[event.shiftKey ? 'forward' : 'back']();
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

/**
 * Chart of a query result, with controls for its kind, series and options. `plot.ts` does the
 * drawing.
 */
import 'uplot/dist/uPlot.min.css';
import {
  createEffect,
  createMemo,
  createSignal,
  Match,
  mergeProps,
  on,
  Show,
  Switch,
  untrack,
  type JSX,
} from 'solid-js';
import { Dynamic } from 'solid-js/web';
import { grouped, type Zone } from '../model/format.js';
import { asOf, isPartial, type Result } from '../model/result.js';
import { showFailure } from '../page/notices.js';
import { annotate, followAnnotations, type Annotate } from './annotations.js';
import { axisNumber } from './plot/axes.js';
import { Canvas } from './Canvas.js';
import { CHOSEN_CANDLE_PX, mergedCandles, MIN_CANDLE_PX } from './candles.js';
import { ChartBar } from './ChartBar.js';
import { CandleKeys, HeatKeys, PlainNote, SeriesKeys } from './ChartKeys.js';
import { ChartTable } from './ChartTable.js';
import { asChange, decimated, isFlat, onSecondAxis, type Range } from './decimate.js';
import { Figures } from './Figures.js';
import { saveChart, type Picture, type PictureFormat } from './files.js';
import {
  axisOf,
  colourNumber,
  isFigure,
  KIND_NAMES,
  mayBeMultiples,
  mayHaveSecondAxis,
  type ChartKind,
} from './kinds.js';
import { chooseChart, rowNear, type ChartData, type ChartPlan } from './model.js';
import { drawOptionsOf, valueText, type ChartOptions, type DrawOptions } from './options.js';
import { Readout } from './Readout.js';
import type { SampleRequest } from './sampled.js';
import { SmallMultiples } from './SmallMultiples.js';
import { ChartSelection, type ChosenSeries } from './selection.js';
import { aboveZero, heatCells, stacked } from './shapes.js';
import { Zoom } from './zoom.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

interface ChartProps {
  readonly result: Result;
  readonly revision: number;
  readonly zone: Zone;
  /** Name of the chart, on pages with several charts. */
  readonly name?: string;
  /** True while rows are still arriving. The chart is drawn only once, after the last row. */
  readonly isGrowing?: boolean;
  /** Called with the index of the row to show in the grid. */
  readonly onPick: (row: number) => void;
  /** Chart kind chosen by the user, if the caller stores it. */
  readonly kind?: string;
  readonly onKind?: (kind: ChartKind) => void;
  /** Series that the user has shown or hidden, if the caller stores this choice. */
  readonly series?: ChosenSeries | undefined;
  readonly onSeries?: (series: ChosenSeries) => void;
  /** Display options of the chart, if the caller stores them. */
  readonly options?: ChartOptions | undefined;
  readonly onOptions?: (options: ChartOptions) => void;
  /** Runs the annotation query. Needed only by callers whose queries cannot run unchanged. */
  readonly annotate?: Annotate;
  /**
   * Called with the range that the user chose, if several charts share a time range. `undefined`
   * means the whole range.
   */
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
    <section
      class="chart"
      aria-label={
        props.name === undefined
          ? texts.common.chart
          : fill(texts.chart.chartOf, { name: props.name })
      }
      data-region="chart"
    >
      <Show
        when={!props.isGrowing && choice().plan}
        fallback={
          <Show when={!props.isGrowing} fallback={<p class="empty hint">{texts.chart.waiting}</p>}>
            <div class="empty">
              <strong>{texts.chart.nothingToDraw}</strong>
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

/** Kinds that are drawn from all points, without decimation. */
const WHOLE: ReadonlySet<string> = new Set(['heatmap', 'histogram', 'depth', 'gauge', 'number']);

/** Builds the picture of a result according to the user's choices. */
function pictureOf(props: DrawnProps) {
  const [width, setWidth] = createSignal(USUAL_WIDTH);
  const axis = (): ReturnType<typeof axisOf> => axisOf(selection.kind(), props.plan);
  const zoom: Zoom = new Zoom({
    get maxPoints() {
      return isCandles() ? width() / CHOSEN_CANDLE_PX : width();
    },
    get sampleRequest() {
      return sampleRequest();
    },
    get result() {
      return props.result;
    },
    get axis() {
      return untrack(axis);
    },
    get x() {
      return props.plan.x;
    },
    get shareRange() {
      return props.onRange;
    },
  });
  const selection: ChartSelection = new ChartSelection(
    mergeProps(props, {
      get detail() {
        return zoom.detail();
      },
    }),
  );
  const [inPercent, setInPercent] = createSignal(false);
  const [twoAxes, setTwoAxes] = createSignal(true);
  const kind = selection.kind;
  const isCandles = (): boolean => kind() === 'candles';
  const own = (): SampleRequest => sampleRequestOf(props.plan, selection, untrack(width));
  const sampleRequest = createMemo(own, undefined, { equals: isSame });
  // Reset the zoom, because a time range is meaningless on an axis of prices or sizes.
  createEffect(on(axis, () => zoom.startOver(), { defer: true }));
  // If only some rows are loaded, request an aggregate of all rows whenever the chart changes.
  createEffect(
    on([() => props.result, () => props.revision, sampleRequest], () => {
      if (isPartial(props.result)) {
        zoom.refresh();
      }
    }),
  );
  const merged = createMemo(() =>
    isCandles()
      ? mergedCandles(selection.data(), (width() - CANDLE_AXIS) / MIN_CANDLE_PX, zoom.range())
      : { data: selection.data(), span: 1 },
  );
  const absolute = createMemo(() =>
    WHOLE.has(kind()) ? merged().data : decimated(merged().data, zoom.range()),
  );
  const mayChange = (): boolean => mayHaveSecondAxis(kind()) && axis() === 'time';
  const data = createMemo(() => (inPercent() && mayChange() ? asChange(absolute()) : absolute()));
  const onSecond = createMemo(() =>
    mayHaveSecondAxis(kind()) && axis() === 'time' ? onSecondAxis(data(), selection.shown()) : [],
  );
  const isSpread = createMemo(() => mayChange() && isFlat(absolute(), selection.shown(), []));
  const second = createMemo(() => (twoAxes() ? onSecond() : []));
  const split = splitOf(
    selection,
    mayChange,
    () => !inPercent() && isFlat(absolute(), selection.shown(), onSecond()),
  );
  const percent = { inPercent, setInPercent, isSpread };
  const axes = { onSecond, second, twoAxes, setTwoAxes };
  return { zoom, selection, setWidth, width, axis, merged, data, ...percent, ...axes, ...split };
}

/**
 * State of the option that gives each series a separate plot. By default, the option is on if the
 * lines look flat even on two axes.
 */
function splitOf(selection: ChartSelection, isByTime: () => boolean, isFlatOnTwo: () => boolean) {
  const [chosen, setSplit] = createSignal<boolean>();
  const maySplit = (): boolean =>
    mayBeMultiples(selection.kind()) && isByTime() && selection.shown().filter(Boolean).length > 1;
  const isSplit = createMemo(() => maySplit() && (chosen() ?? isFlatOnTwo()));
  return { maySplit, isSplit, setSplit };
}

type PictureOf = ReturnType<typeof pictureOf>;

/** Computes the display options, drawn values, annotations and note of a chart. */
function contentOfPicture(
  props: DrawnProps,
  { selection, data, inPercent, merged, zoom }: PictureOf,
) {
  const [chosen, choose] = createSignal<ChartOptions>({});
  const options = (): ChartOptions => props.options ?? chosen();
  const drawOptions = createMemo((): DrawOptions => {
    const { kind } = selection;
    const whole = drawOptionsOf(options());
    const isLinear = ['stacked', 'heatmap', 'histogram'].includes(kind());
    return {
      ...whole,
      isLog: whole.isLog && !isLinear,
      unit: inPercent() && whole.unit === '' ? '%' : whole.unit,
    };
  });
  const isLogged = (): boolean => drawOptions().isLog && !isFigure(selection.kind());
  const drawn = createMemo(() => {
    const shown = isLogged() ? aboveZero(data()) : data();
    return selection.kind() === 'stacked' ? stacked(shown, selection.shown()) : shown;
  });
  const { annotations, failure } = followAnnotations({
    text: () => options().annotations,
    revision: () => [props.result, props.revision],
    annotate: (text, signal) => (props.annotate ?? annotate)(text, signal),
  });
  const note = createMemo(() => {
    if (failure() !== '') {
      return fill(texts.chart.noAnnotations, { reason: failure() });
    }
    const has = isLogged() && data().series.some(({ points }) => points.some(isBelowZero));
    const text = noteOf(props.result, merged(), data(), zoom);
    if (isFigure(selection.kind())) {
      return text === HINT ? '' : text;
    }
    return has ? fill(texts.chart.hiddenByScale, { note: text }) : text;
  });
  const setOptions = (next: ChartOptions): void => {
    choose(next);
    props.onOptions?.(next);
  };
  return { options, setOptions, drawOptions, drawn, annotations, note };
}

const isBelowZero = (point: unknown): boolean => typeof point === 'number' && point <= 0;

function Drawn(props: DrawnProps): JSX.Element {
  const picture = pictureOf(props);
  const { selection, axis, data, onSecond, twoAxes, inPercent } = picture;
  const shown = contentOfPicture(props, picture);
  const [asTable, setAsTable] = createSignal(false);
  const [painted, setPainted] = createSignal<Picture>();
  return (
    <>
      <ChartBar
        selection={selection}
        plan={props.plan}
        result={props.result}
        zoom={picture.zoom}
        axis={axis()}
        asTable={asTable()}
        setAsTable={setAsTable}
        isSplit={picture.maySplit() ? picture.isSplit() : undefined}
        setSplit={picture.setSplit}
        twoAxes={onSecond().includes(true) && !picture.isSplit() ? twoAxes() : undefined}
        setTwoAxes={picture.setTwoAxes}
        inPercent={picture.isSpread() || inPercent() ? inPercent() : undefined}
        setInPercent={picture.setInPercent}
        times={data().times}
        options={shown.options()}
        setOptions={shown.setOptions}
        save={(format) => save(format, picture, asTable() ? undefined : painted())}
      />
      <Show
        when={!asTable()}
        fallback={<ChartTable data={data()} axis={axis()} shown={selection.shown()} />}
      >
        <Show
          when={!isFigure(selection.kind())}
          fallback={
            <Figures
              kind={selection.kind() === 'gauge' ? 'gauge' : 'number'}
              data={data()}
              shown={selection.shown()}
              drawOptions={shown.drawOptions()}
              onPicture={setPainted}
            />
          }
        >
          <Plotted {...props} picture={picture} shown={shown} onPicture={setPainted} />
        </Show>
      </Show>
      <Keys picture={picture} drawOptions={shown.drawOptions()} note={shown.note()} />
    </>
  );
}

function save(
  format: PictureFormat,
  { selection, axis }: PictureOf,
  picture: Picture | undefined,
): void {
  const kind = selection.kind();
  const file = {
    name: `chart-${kind}`,
    title: fill(texts.chart.kindOfChart, { kind: KIND_NAMES[kind] }),
    picture,
    legend: isFigure(kind) ? [] : legendOf(selection),
    data: selection.data(),
    axis: axis(),
    shown: selection.shown(),
  };
  void saveChart(format, file).catch(showFailure);
}

interface PlottedProps extends DrawnProps {
  readonly picture: PictureOf;
  readonly shown: ReturnType<typeof contentOfPicture>;
  readonly onPicture: (picture: Picture) => void;
}

/** A chart with axes, below a readout of the values at the crosshair. */
function Plotted(props: PlottedProps): JSX.Element {
  const { selection, axis, data, zoom, second, setWidth, isSplit } = props.picture;
  const { drawOptions, drawn, annotations } = props.shown;
  const [cursor, setCursor] = createSignal<number>();
  const kind = selection.kind;
  return (
    <>
      <Readout
        data={data()}
        axis={axis()}
        drawOptions={kind() === 'histogram' ? COUNTS : drawOptions()}
        shown={selection.shown()}
        initials={kind() === 'candles'}
        index={cursor()}
        zone={props.zone}
      />
      <Dynamic
        component={isSplit() ? SmallMultiples : Canvas}
        kind={kind()}
        data={data()}
        drawn={drawn()}
        axis={axis()}
        drawOptions={drawOptions()}
        annotations={annotations()}
        shown={selection.shown()}
        second={second()}
        zone={props.zone}
        zoom={zoom}
        onPicture={(picture) => props.onPicture(picture)}
        onCursor={setCursor}
        onWidth={setWidth}
        onPick={(x) => axis() === props.plan.axis && pick(props, x, data())}
      />
    </>
  );
}

/** Options for counts, which a histogram shows regardless of the unit of its x axis. */
const COUNTS: DrawOptions = drawOptionsOf({});

function legendOf(selection: ChartSelection): { label: string; colour: string }[] {
  const style = getComputedStyle(document.documentElement);
  const role = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const all = selection.data().series.map(({ label }, index) => {
    const number = colourNumber(selection.kind(), index);
    return { label, colour: role(number === 0 ? 'line-control' : `chart-${number}`) };
  });
  const isPlain = !['candles', 'heatmap', 'histogram'].includes(selection.kind());
  return isPlain ? all.filter((_one, index) => selection.shown()[index]) : [];
}

function Keys(props: { picture: PictureOf; drawOptions: DrawOptions; note: string }): JSX.Element {
  const { selection, second, data, width, isSplit } = props.picture;
  const kind = selection.kind;
  const ends = createMemo(() => {
    const { low, high } = heatCells(data(), width());
    const text = (value: number): string => valueText(value, props.drawOptions, figure);
    return low <= high ? [text(low), text(high)] : ['–', '–'];
  });
  return (
    <Switch
      fallback={
        <SeriesKeys selection={selection} second={isSplit() ? [] : second()} note={props.note} />
      }
    >
      <Match when={kind() === 'candles'}>
        <CandleKeys note={props.note} />
      </Match>
      <Match when={kind() === 'heatmap'}>
        <HeatKeys low={ends()[0] ?? ''} high={ends()[1] ?? ''} note={props.note} />
      </Match>
      <Match when={kind() === 'histogram'}>
        <PlainNote note={props.note} />
      </Match>
    </Switch>
  );
}

const figure = (value: number): string => axisNumber(Number(value.toPrecision(5)));

/** Reports the loaded row nearest to a position on the x axis. */
function pick(
  { plan, result, onPick }: ChartProps & { plan: ChartPlan },
  x: number,
  drawn: ChartData,
): void {
  const row = rowNear(result.rows, plan, x, drawn.names);
  if (row !== undefined) {
    onPick(row);
  }
}

/** Assumed chart width before the first layout, in pixels. */
const USUAL_WIDTH = 600;
/** Width of the price axis of a candlestick chart, in pixels. */
const CANDLE_AXIS = 90;

const isSame = (one: SampleRequest, other: SampleRequest): boolean =>
  JSON.stringify(one) === JSON.stringify(other);

function sampleRequestOf(plan: ChartPlan, selection: ChartSelection, width: number): SampleRequest {
  const isOne = plan.key !== undefined;
  const shown = selection.shown();
  const values = isOne ? [selection.value()] : plan.values.filter((_column, at) => shown[at]);
  const candles = selection.kind() === 'candles' ? selection.candleColumns() : undefined;
  return { plan, values: candles ? [] : values, candles, width };
}

const HINT = texts.chart.dragToZoom;

/** Returns the note below the chart, for example how many rows are drawn or how to zoom. */
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
    return zoom.range() ? texts.chart.loadingThisRange : texts.chart.loadingAllRows;
  }
  if (typeof asking === 'object') {
    return isPartial(result)
      ? fill(texts.chart.firstRowsOnly, { count: loaded, all, reason: asking.failed })
      : fill(texts.chart.loadedRowsOnly, { reason: asking.failed });
  }
  const { left = 0 } = data;
  const count = (values: readonly number[]): string => grouped(String(values.length));
  if (left > 0) {
    return fill(texts.chart.largest, {
      count: count(data.times),
      all: grouped(String(data.times.length + left)),
    });
  }
  if (zoom.isSampled()) {
    const points = count(drawn.times);
    return zoom.range()
      ? fill(texts.chart.allRowsDrawn, { points })
      : fill(texts.chart.rowsDrawn, { rows: all, points });
  }
  if (isPartial(result) && !zoom.range()) {
    return fill(texts.chart.firstRows, { count: loaded, all });
  }
  if (span > 1) {
    return fill(texts.chart.combinedCandles, { count: span });
  }
  if (drawn.times.length < data.times.length && !zoom.range()) {
    return fill(texts.chart.rowsDrawn, { rows: count(data.times), points: count(drawn.times) });
  }
  return HINT;
}

/** Plot area of a chart. The crosshair and the visible range can be controlled by keyboard. */
import { createEffect, onCleanup, onMount, type JSX } from 'solid-js';
import type { Zone } from '../model/format.js';
import { theme } from '../ui/theme.js';
import type { Annotation } from './plot/draw.js';
import type { Picture } from './files.js';
import { KIND_NAMES, type ChartKind } from './kinds.js';
import { SHOWN_SERIES, spoken, type AxisKind, type ChartData } from './model.js';
import type { DrawOptions } from './options.js';
import { drawPlot, type Plot } from './plot/plot.js';
import { xLabel } from './Readout.js';
import type { Zoom } from './zoom.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export interface CanvasProps {
  readonly kind: ChartKind;
  /** Values shown in the readout. */
  readonly data: ChartData;
  /** Values to draw. They differ from `data` for stacked charts and logarithmic scales. */
  readonly drawn: ChartData;
  readonly axis: Exclude<AxisKind, 'none'>;
  readonly drawOptions: DrawOptions;
  readonly annotations: readonly Annotation[];
  readonly shown: readonly boolean[];
  readonly second: readonly boolean[];
  readonly zone: Zone;
  readonly zoom: Zoom;
  /** Plots with the same key share a crosshair. */
  readonly syncKey?: string;
  readonly onPicture: (picture: Picture) => void;
  readonly onCursor: (index: number | undefined) => void;
  readonly onWidth: (pixels: number) => void;
  /** Called with the x value of the point that the user picked. */
  readonly onPick: (x: number) => void;
}

export function Canvas(props: CanvasProps): JSX.Element {
  let host!: HTMLDivElement;
  let plot: Plot | undefined;

  onMount(() => {
    createEffect(() => {
      void theme();
      const { kind, drawn: data, axis, shown, second, zone, zoom, onCursor } = props;
      const { drawOptions, annotations, syncKey } = props;
      const all = data.series.map((_series, index) => index);
      const isAll = kind === 'candles' ? all.map(() => true) : shown;
      plot?.destroy();
      plot = drawPlot(host, {
        kind,
        data,
        axis,
        shown: isAll,
        second,
        colours: all,
        zone,
        drawOptions,
        annotations,
        range: zoom.range(),
        syncKey,
        onCursor,
        onZoom: (range) => zoom.to(range),
        onPan: (fraction) => zoom.pan(fraction),
        onReset: () => zoom.reset(),
      });
      props.onPicture(plot);
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
    const x = props.data.times[plot?.cursorIndex() ?? -1];
    if (x !== undefined) {
      props.onPick(x);
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

/** Describes the chart as text for screen readers. */
function summary(props: CanvasProps): string {
  const lines = props.data.series.slice(0, SHOWN_SERIES).flatMap(({ label, points }, index) => {
    const summary = spoken(points);
    if (!summary || !(props.kind === 'candles' || props.shown[index])) {
      return [];
    }
    return [
      fill(texts.chart.seriesSummary, {
        label,
        low: summary.low,
        high: summary.high,
        last: summary.last,
      }),
    ];
  });
  const { length } = props.data.times;
  const range = fill(texts.common.fromTo, {
    from: xLabel(props, 0),
    to: xLabel(props, length - 1),
  });
  return fill(texts.chart.summary, {
    kind: KIND_NAMES[props.kind],
    count: length,
    range,
    lines: lines.join('. '),
  });
}

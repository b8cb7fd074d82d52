/** Shows the last value of each series as a big number or a gauge. */
import { createEffect, onCleanup, onMount, type JSX } from 'solid-js';
import { theme } from '../ui/theme.js';
import { axisNumber } from './plot/axes.js';
import type { Picture } from './files.js';
import { drawFigures, figuresOf } from './plot/figures.js';
import { KIND_NAMES } from './kinds.js';
import type { ChartData } from './model.js';
import { levelOf, valueText, type DrawOptions } from './options.js';
import type { Pen, Role } from './plot/pen.js';
import { texts } from '../texts.js';

export function Figures(props: {
  kind: 'gauge' | 'number';
  data: ChartData;
  shown: readonly boolean[];
  drawOptions: DrawOptions;
  onPicture: (picture: Picture) => void;
}): JSX.Element {
  let host!: HTMLDivElement;
  let canvas!: HTMLCanvasElement;
  const figures = (): ReturnType<typeof figuresOf> => figuresOf(props.data, props.shown);
  const size = (): { width: number; height: number } => ({
    width: Math.max(80, host.clientWidth),
    height: Math.max(60, host.clientHeight),
  });
  const paint = (pen: Pen): void => {
    const style = getComputedStyle(document.documentElement);
    const role: Role = (name) => style.getPropertyValue(`--${name}`).trim();
    const scale = devicePixelRatio;
    const { width, height } = size();
    drawFigures({
      pen,
      width: width * scale,
      height: height * scale,
      scale,
      figures: figures(),
      isGauge: props.kind === 'gauge',
      drawOptions: props.drawOptions,
      role,
      text: (value) => textOf(value, props.drawOptions),
    });
  };
  const draw = (): void => {
    const { width, height } = size();
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(height * devicePixelRatio);
    const context = canvas.getContext('2d');
    if (context) {
      paint(context);
    }
  };
  onMount(() => {
    createEffect(() => {
      void theme();
      draw();
    });
    const observer = new ResizeObserver(draw);
    observer.observe(host);
    onCleanup(() => observer.disconnect());
    props.onPicture({ paint, size });
  });
  return (
    <div
      ref={host}
      class="plot figures"
      role="img"
      tabindex="0"
      aria-label={`${KIND_NAMES[props.kind]}. ${summary(figures(), props.drawOptions)}.`}
    >
      <canvas ref={canvas} />
    </div>
  );
}

function textOf(value: number, drawOptions: DrawOptions): string {
  return valueText(value, drawOptions, figureText);
}

/** Describes the figures as text for screen readers. */
function summary(figures: ReturnType<typeof figuresOf>, drawOptions: DrawOptions): string {
  const summaries = figures.map(({ label, last }) => {
    const level = last === undefined ? undefined : levelOf(last, drawOptions.thresholds);
    const value = last === undefined ? texts.chart.noValue : textOf(last, drawOptions);
    return level === undefined ? `${label}: ${value}` : `${label}: ${value}, ${level}`;
  });
  return summaries.join('. ');
}

/**
 * Number of digits shown. The figures are read from a distance, and the grid shows the exact
 * values.
 */
const DIGITS = 6;

function figureText(value: number): string {
  const rounded = Number(value.toPrecision(DIGITS));
  return axisNumber(Math.abs(value) < 1e6 ? rounded : Math.round(value));
}

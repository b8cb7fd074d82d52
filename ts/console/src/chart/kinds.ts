/** The kinds of charts, and which of them a result can be drawn as. */
import { SHOWN_SERIES, type AxisKind, type ChartPlan } from './model.js';

export type ChartKind =
  | 'line'
  | 'area'
  | 'stacked'
  | 'step'
  | 'bars'
  | 'scatter'
  | 'candles'
  | 'heatmap'
  | 'histogram'
  | 'depth'
  | 'gauge'
  | 'number';

export const KIND_NAMES: Readonly<Record<ChartKind, string>> = {
  line: 'Line',
  area: 'Area',
  stacked: 'Stacked area',
  step: 'Step',
  bars: 'Bars',
  scatter: 'Scatter',
  candles: 'Candlestick',
  heatmap: 'Heat map',
  histogram: 'Histogram',
  depth: 'Order-book depth',
  gauge: 'Gauge',
  number: 'Number',
};

/** The kinds that a plan can be drawn as, the usual one first. */
export function kindsOf(plan: ChartPlan): readonly ChartKind[] {
  const { values, depth } = plan;
  const ofValues = values.length === 0 ? [] : kindsOfValues(plan);
  return depth === undefined
    ? ofValues
    : depth.kind === 'arrays'
      ? ['depth', ...ofValues]
      : [...ofValues, 'depth'];
}

function kindsOfValues({ axis, candles, mayBeCandles, isSingle }: ChartPlan): readonly ChartKind[] {
  switch (axis) {
    case 'time': {
      const lines = ['line', 'area', 'stacked', 'step', 'bars', 'scatter'] as const;
      const others = ['heatmap', 'histogram', 'gauge', 'number'] as const;
      if (candles) {
        return ['candles', ...lines, ...others];
      }
      return [...lines, ...(mayBeCandles ? (['candles'] as const) : []), ...others];
    }
    case 'number':
      return ['scatter', 'line', 'area', 'step', 'histogram', 'gauge', 'number'];
    case 'names':
      return ['bars', 'scatter', 'heatmap', 'histogram', 'gauge', 'number'];
    case 'none':
      return isSingle === true
        ? ['number', 'gauge', 'histogram']
        : ['histogram', 'number', 'gauge'];
  }
}

export function usualKind(plan: ChartPlan): ChartKind {
  return kindsOf(plan)[0] ?? 'line';
}

/** What lies along the bottom: sizes of values, prices, or what the plan has there. */
export function axisOf(kind: ChartKind, plan: ChartPlan): Exclude<AxisKind, 'none'> {
  switch (kind) {
    case 'histogram':
    case 'depth':
      return 'number';
    case 'gauge':
    case 'number':
      return 'names';
    default:
      return plan.axis === 'none' ? 'number' : plan.axis;
  }
}

/** Whether it is drawn as figures, without axes. */
export function isFigure(kind: ChartKind): boolean {
  return kind === 'gauge' || kind === 'number';
}

/** Whether series may go by a second axis. */
export function mayHaveSecondAxis(kind: ChartKind): boolean {
  return ['line', 'area', 'step', 'bars', 'scatter'].includes(kind);
}

/** Whether each series may have a plot of its own. */
export function mayBeMultiples(kind: ChartKind): boolean {
  return kind !== 'scatter' && mayHaveSecondAxis(kind);
}

/** Which of the eight colours a series has, counted from 1; 0 is the one of all others. */
export function colourPlace(kind: ChartKind, series: number): number {
  if (kind === 'depth') {
    return series === 0 ? 3 : 6;
  }
  return series < SHOWN_SERIES ? series + 1 : 0;
}

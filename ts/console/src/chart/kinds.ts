/** Chart kinds, and the rules that determine which kinds can show a result. */
import { SHOWN_SERIES, type AxisKind, type ChartPlan } from './model.js';
import { texts } from '../texts.js';

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
  line: texts.chartKinds.line,
  area: texts.chartKinds.area,
  stacked: texts.chartKinds.stackedArea,
  step: texts.chartKinds.step,
  bars: texts.chartKinds.bars,
  scatter: texts.chartKinds.scatter,
  candles: texts.chartKinds.candlestick,
  heatmap: texts.chartKinds.heatMap,
  histogram: texts.chartKinds.histogram,
  depth: texts.chartKinds.orderBookDepth,
  gauge: texts.chartKinds.gauge,
  number: texts.chartKinds.number,
};

/** Returns the chart kinds that can show a plan. The first one is the default. */
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

/**
 * Returns the kind of the x axis: numbers for histograms and depth charts, names for figures, and
 * the axis of the plan for all other kinds.
 */
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

/** True if the kind is a number or a gauge, neither of which has axes. */
export function isFigure(kind: ChartKind): boolean {
  return kind === 'gauge' || kind === 'number';
}

/** True if series of this kind may use a second axis. */
export function mayHaveSecondAxis(kind: ChartKind): boolean {
  return ['line', 'area', 'step', 'bars', 'scatter'].includes(kind);
}

/** True if each series of this kind may have a separate plot. */
export function mayBeMultiples(kind: ChartKind): boolean {
  return kind !== 'scatter' && mayHaveSecondAxis(kind);
}

/** Returns the colour number of a series, from 1 to 8. All further series share the number 0. */
export function colourNumber(kind: ChartKind, series: number): number {
  if (kind === 'depth') {
    return series === 0 ? 3 : 6;
  }
  return series < SHOWN_SERIES ? series + 1 : 0;
}

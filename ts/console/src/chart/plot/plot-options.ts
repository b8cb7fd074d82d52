/** Complete input for drawing a plot. */
import type { Zone } from '../../model/format.js';
import type { Range } from '../decimate.js';
import type { Annotation } from './draw.js';
import type { ChartKind } from '../kinds.js';
import type { AxisKind, ChartData } from '../model.js';
import type { DrawOptions } from '../options.js';

export interface PlotOptions {
  readonly kind: ChartKind;
  readonly data: ChartData;
  /** Whether each series is drawn. */
  readonly shown: readonly boolean[];
  /** Index of each series in the fixed colour order. */
  readonly colours: readonly number[];
  readonly zone: Zone;
  readonly axis: Exclude<AxisKind, 'none'>;
  readonly drawOptions: DrawOptions;
  readonly annotations: readonly Annotation[];
  /** Visible range; `undefined` shows all points. */
  readonly range: Range | undefined;
  /** Whether each series uses the second axis. */
  readonly second: readonly boolean[];
  /** Plots with the same key share a crosshair. */
  readonly syncKey: string | undefined;
  readonly onCursor: (index: number | undefined) => void;
  readonly onZoom: (range: Range) => void;
  /** Moves the range by a fraction of its width. */
  readonly onPan: (fraction: number) => void;
  readonly onReset: () => void;
}

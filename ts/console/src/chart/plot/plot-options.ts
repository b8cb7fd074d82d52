/** Everything that is needed to draw a plot. */
import type { Zone } from '../../model/format.js';
import type { Range } from '../decimate.js';
import type { Annotation } from './draw.js';
import type { ChartKind } from '../kinds.js';
import type { AxisKind, ChartData } from '../model.js';
import type { DrawOptions } from '../options.js';

export interface PlotOptions {
  readonly kind: ChartKind;
  readonly data: ChartData;
  /** For each series, true if the series is drawn. */
  readonly shown: readonly boolean[];
  /** For each series, its index in the fixed order of colours. */
  readonly colours: readonly number[];
  readonly zone: Zone;
  readonly axis: Exclude<AxisKind, 'none'>;
  readonly drawOptions: DrawOptions;
  readonly annotations: readonly Annotation[];
  /** Visible range of the x axis, or `undefined` to show all points. */
  readonly range: Range | undefined;
  /** For each series, true if the series uses the second axis. */
  readonly second: readonly boolean[];
  /** Plots with the same key share a crosshair. */
  readonly syncKey: string | undefined;
  readonly onCursor: (index: number | undefined) => void;
  readonly onZoom: (range: Range) => void;
  /** Called to move the visible range by a fraction of its width. */
  readonly onPan: (fraction: number) => void;
  readonly onReset: () => void;
}

/**
 * The user's choices for a chart (kind, columns, series), and the chart data that results from
 * them.
 */
import { createEffect, createMemo, createSignal, on, type Accessor } from 'solid-js';
import { asOf, type Result } from '../model/result.js';
import type { CandleColumns } from './candle-columns.js';
import {
  chartData,
  keysOf,
  rowsOfKey,
  SHOWN_SERIES,
  type ChartData,
  type ChartPlan,
} from './model.js';
import { depthData, histogram, numbersOf } from './shapes.js';
import { kindsOf, usualKind, type ChartKind } from './kinds.js';

interface ChartSource {
  readonly result: Result;
  readonly revision: number;
  readonly plan: ChartPlan;
  /** Rows of the zoomed range. If set, they are drawn instead of the result's rows. */
  readonly detail: Result | undefined;
  readonly kind?: string;
  readonly onKind?: (kind: ChartKind) => void;
  readonly series?: ChosenSeries | undefined;
  readonly onSeries?: (series: ChosenSeries) => void;
}

/** Visibility of each series that the user has shown or hidden, by label. */
export type ChosenSeries = Readonly<Record<string, boolean>>;

/** Maximum number of stored choices per chart. */
const MAX_STORED_CHOICES = 200;

export class ChartSelection {
  readonly kind: Accessor<ChartKind>;
  readonly setKind: (kind: ChartKind) => void;
  /** Index of the value column, for results that a key column splits into series. */
  readonly value: Accessor<number>;
  readonly setValue: (column: number) => void;
  /** Column for each value of a candle: the user's choice, or else the column found by its name. */
  readonly candleColumns: Accessor<CandleColumns | undefined>;
  /** Sets the column for one value of a candle. Only the volume may be `undefined`. */
  readonly setCandleColumn: (field: keyof CandleColumns, column: number | undefined) => void;
  /** Values of the key column. Candles show only one of these values at a time. */
  readonly keys: Accessor<readonly string[]>;
  readonly key: Accessor<string | undefined>;
  readonly setKey: (key: string) => void;
  readonly data: Accessor<ChartData>;
  readonly shown: Accessor<readonly boolean[]>;
  readonly #choose: (label: string, isShown: boolean) => void;

  constructor(source: ChartSource) {
    const [kind, setKind] = createSignal<ChartKind>('line');
    const [value, setValue] = createSignal(0);
    const [assigned, assign] = createSignal<CandleColumns>();
    const [chosenKey, setKey] = createSignal<string>();
    // Visibility of the series that the user has shown or hidden. The plan decides for all other
    // series.
    const [chosen, setChosen] = createSignal<ReadonlyMap<string, boolean>>(new Map());
    let columnsBefore = '';
    const reset = (): void => {
      // Keep the choices if the same columns arrive again.
      const columns = JSON.stringify(source.result.columns);
      if (columns === columnsBefore) {
        return;
      }
      columnsBefore = columns;
      setKind(kindsOf(source.plan).find((one) => one === source.kind) ?? usualKind(source.plan));
      setValue(source.plan.values[0] ?? 0);
      assign(undefined);
      setKey(undefined);
      setChosen(new Map(Object.entries(source.series ?? {})));
    };
    reset();
    createEffect(on(() => source.result, reset, { defer: true }));
    this.kind = kind;
    this.setKind = (chosen) => {
      setKind(chosen);
      source.onKind?.(chosen);
    };
    this.value = value;
    this.setValue = setValue;
    this.candleColumns = () => assigned() ?? source.plan.candles ?? firstFour(source.plan);
    this.setCandleColumn = (field, column) => {
      const candleColumns = this.candleColumns();
      if (candleColumns) {
        assign({
          ...candleColumns,
          [field]: column ?? (field === 'volume' ? undefined : candleColumns[field]),
        });
      }
    };
    this.keys = createMemo(() => {
      const { key } = source.plan;
      return key === undefined ? [] : keysOf(asOf(source.result, source.revision).rows, key);
    });
    this.key = () => this.keys().find((name) => name === chosenKey()) ?? this.keys()[0];
    this.setKey = setKey;
    const isShown = (label: string, index: number): boolean => {
      const { key, drawn: usual } = source.plan;
      // Charts of these kinds can show any number of series, because they need no distinct colours.
      const isFree = kind() === 'heatmap' || kind() === 'depth' || kind() === 'histogram';
      if (isFree) {
        return chosen().get(label) ?? true;
      }
      return chosen().get(label) ?? index < (key === undefined ? usual : SHOWN_SERIES);
    };
    this.data = createMemo(() => this.#dataOf(source, isShown));
    this.shown = createMemo(() =>
      this.data().series.map(({ label }, index) => kind() === 'candles' || isShown(label, index)),
    );
    this.#choose = (label, isShown) => {
      const series = new Map(chosen()).set(label, isShown);
      setChosen(series);
      source.onSeries?.(Object.fromEntries([...series].slice(-MAX_STORED_CHOICES)));
    };
  }

  #dataOf(source: ChartSource, isShown: (label: string, index: number) => boolean): ChartData {
    const { columns, rows } = source.detail ?? asOf(source.result, source.revision);
    const { plan } = source;
    if (this.kind() === 'depth' && plan.depth) {
      return depthData(rows, plan.depth);
    }
    if (this.kind() === 'histogram') {
      return histogram(numbersOf(rows, this.value()), columns[this.value()]?.name ?? '');
    }
    const candleColumns = this.candleColumns();
    if (this.kind() !== 'candles' || !candleColumns) {
      const values = plan.key === undefined ? plan.values : [this.value()];
      return chartData(columns, rows, plan, values, isShown);
    }
    const [name, { key }] = [this.key(), plan];
    const isOne = key !== undefined && name !== undefined;
    const ofKey = isOne ? rowsOfKey(rows, key, name) : rows;
    return chartData(columns, ofKey, { ...plan, key: undefined }, candleValues(candleColumns));
  }

  toggle(index: number): void {
    const label = this.data().series[index]?.label;
    if (label !== undefined) {
      this.#choose(label, !this.shown()[index]);
    }
  }
}

/**
 * Uses the first four numeric columns as candle columns, if no columns were found by name. The user
 * can assign other columns.
 */
function firstFour({ values, mayBeCandles }: ChartPlan): CandleColumns | undefined {
  const [open, high, low, close] = values;
  const isComplete =
    open !== undefined && high !== undefined && low !== undefined && close !== undefined;
  return mayBeCandles && isComplete ? { open, high, low, close, volume: undefined } : undefined;
}

function candleValues({ open, high, low, close, volume }: CandleColumns): readonly number[] {
  return [open, high, low, close, ...(volume === undefined ? [] : [volume])];
}

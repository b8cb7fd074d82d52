/** What of a result the user wants drawn: kind, column, series; and the data that follow. */
import { createEffect, createMemo, createSignal, on, type Accessor } from 'solid-js';
import { asOf, type Result } from '../model/result.js';
import { chartData, SHOWN_SERIES, type ChartData, type ChartPlan } from './model.js';
import type { ChartKind } from './plot.js';

interface Drawn {
  readonly result: Result;
  readonly revision: number;
  readonly plan: ChartPlan;
  /** Rows to draw instead, while a part is zoomed into. */
  readonly detail: Result | undefined;
  readonly kind?: string;
  readonly onKind?: (kind: ChartKind) => void;
}

export class ChartSelection {
  readonly kind: Accessor<ChartKind>;
  readonly setKind: (kind: ChartKind) => void;
  /** The column drawn where a key column splits the rows. */
  readonly value: Accessor<number>;
  readonly setValue: (column: number) => void;
  readonly data: Accessor<ChartData>;
  readonly shown: Accessor<readonly boolean[]>;
  readonly #choose: (label: string, isShown: boolean) => void;

  constructor(drawn: Drawn) {
    const [kind, setKind] = createSignal<ChartKind>('line');
    const [value, setValue] = createSignal(0);
    // What the user chose by series, against what the plan draws by itself.
    const [chosen, setChosen] = createSignal<ReadonlyMap<string, boolean>>(new Map());
    const startOver = (): void => {
      setKind(kindsOf(drawn.plan).find((one) => one === drawn.kind) ?? usualKind(drawn.plan));
      setValue(drawn.plan.values[0] ?? 0);
      setChosen(new Map<string, boolean>());
    };
    startOver();
    createEffect(on(() => drawn.result, startOver, { defer: true }));
    this.kind = kind;
    this.setKind = (chosen) => {
      setKind(chosen);
      drawn.onKind?.(chosen);
    };
    this.value = value;
    this.setValue = setValue;
    this.data = createMemo(() => {
      const { columns, rows } = drawn.detail ?? asOf(drawn.result, drawn.revision);
      return chartData(columns, rows, drawn.plan, columnsOf(drawn.plan, kind(), value()));
    });
    this.shown = createMemo(() => {
      const { key, drawn: usual } = drawn.plan;
      const most = key === undefined ? usual : SHOWN_SERIES;
      return this.data().series.map(({ label }, index) => chosen().get(label) ?? index < most);
    });
    this.#choose = (label, isShown) => setChosen(new Map(chosen()).set(label, isShown));
  }

  toggle(index: number): void {
    const label = this.data().series[index]?.label;
    if (label !== undefined) {
      this.#choose(label, !this.shown()[index]);
    }
  }
}

/** The kinds that a plan can be drawn as, the usual one first. */
export function kindsOf({ axis, candles }: ChartPlan): readonly ChartKind[] {
  switch (axis) {
    case 'time':
      return candles
        ? ['candles', 'line', 'area', 'step', 'bars', 'scatter']
        : ['line', 'area', 'step', 'bars', 'scatter'];
    case 'number':
      return ['scatter', 'line', 'area', 'step'];
    case 'names':
      return ['bars', 'scatter'];
  }
}

function usualKind(plan: ChartPlan): ChartKind {
  return kindsOf(plan)[0] ?? 'line';
}

function columnsOf(plan: ChartPlan, kind: ChartKind, value: number): readonly number[] {
  const { candles, key, values } = plan;
  if (kind === 'candles' && candles) {
    const { open, high, low, close, volume } = candles;
    return [open, high, low, close, ...(volume === undefined ? [] : [volume])];
  }
  return key === undefined ? values : [value];
}

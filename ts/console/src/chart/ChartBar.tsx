/**
 * Toolbar of a chart. The user selects the kind, columns, axes and time range, and can switch to a
 * table of the points.
 */
import { createMemo, createSignal, For, Show, type JSX } from 'solid-js';
import type { Result } from '../model/result.js';
import { openMenuBelow } from '../ui/Menu.js';
import type { CandleColumns } from './candle-columns.js';
import type { AxisKind, ChartPlan } from './model.js';
import { PICTURE_FORMATS, type PictureFormat } from './files.js';
import { KIND_NAMES, kindsOf, type ChartKind } from './kinds.js';
import { OptionsDialog } from './OptionsDialog.js';
import type { ChartOptions } from './options.js';
import type { ChartSelection } from './selection.js';
import type { Zoom } from './zoom.js';
import { IconButton } from '../ui/IconButton.js';
import { fillNodes } from '../fill.js';
import { texts } from '../texts.js';

interface BarProps {
  readonly selection: ChartSelection;
  readonly plan: ChartPlan;
  readonly result: Result;
  readonly zoom: Zoom;
  readonly asTable: boolean;
  readonly setAsTable: (asTable: boolean) => void;
  /**
   * True if small and large series use separate axes. `undefined` if all series have similar sizes.
   */
  readonly twoAxes: boolean | undefined;
  readonly setTwoAxes: (twoAxes: boolean) => void;
  /** True if each series has a separate plot. `undefined` if the chart cannot be split. */
  readonly isSplit: boolean | undefined;
  readonly setSplit: (isSplit: boolean) => void;
  /**
   * True if values are drawn as changes in percent. `undefined` if all series have similar sizes.
   */
  readonly inPercent: boolean | undefined;
  readonly setInPercent: (inPercent: boolean) => void;
  /** The x values of the drawn points. */
  readonly times: readonly number[];
  readonly axis: Exclude<AxisKind, 'none'>;
  readonly options: ChartOptions;
  readonly setOptions: (options: ChartOptions) => void;
  readonly save: (format: PictureFormat) => void;
}

export function ChartBar(props: BarProps): JSX.Element {
  const { selection } = props;
  return (
    <div class="chart-bar">
      <div class="chart-choices">
        <select
          class="select"
          aria-label={texts.chartBar.kindOfChart}
          onChange={(event) => selection.setKind(event.currentTarget.value as ChartKind)}
        >
          <For each={kindsOf(props.plan)}>
            {(kind) => (
              <option value={kind} selected={kind === selection.kind()}>
                {KIND_NAMES[kind]}
              </option>
            )}
          </For>
        </select>
        <Show when={selection.kind() === 'candles'} fallback={<Title {...props} />}>
          <CandleChoice {...props} />
        </Show>
        <Toggle isOn={props.twoAxes} set={props.setTwoAxes} name={texts.chartBar.twoAxes} />
        <Toggle
          isOn={props.isSplit}
          set={props.setSplit}
          name={texts.chartBar.split}
          title={texts.chartBar.splitHint}
        />
        <Toggle
          isOn={props.inPercent}
          set={props.setInPercent}
          name={texts.chartBar.change}
          title={texts.chartBar.changeHint}
        />
        <Show when={props.zoom.range()}>
          <button
            class="button small"
            title={texts.chartBar.resetHint}
            onClick={() => props.zoom.reset()}
          >
            {texts.common.resetZoom}
          </button>
        </Show>
      </div>
      <div class="chart-tools">
        <Show when={props.axis === 'time'}>
          <TimeRange {...props} />
        </Show>
        <Tools {...props} />
        <IconButton
          icon="table"
          label={texts.chartBar.showAsTable}
          title={texts.chartBar.showAsTable}
          aria-pressed={props.asTable ? 'true' : 'false'}
          onClick={() => props.setAsTable(!props.asTable)}
        />
      </div>
    </div>
  );
}

interface ToggleProps {
  /** True if the option is on. `undefined` hides the button. */
  readonly isOn: boolean | undefined;
  readonly set: (isOn: boolean) => void;
  readonly name: string;
  readonly title?: string;
}

/** Button that switches an option on or off. */
function Toggle(props: ToggleProps): JSX.Element {
  return (
    <Show when={props.isOn !== undefined}>
      <button
        class="button small ghost"
        aria-pressed={props.isOn ? 'true' : 'false'}
        title={props.title}
        onClick={() => props.set(!props.isOn)}
      >
        {props.name}
      </button>
    </Show>
  );
}

const FILE_NAMES = {
  png: texts.chartBar.image,
  svg: texts.chartBar.vectorImage,
  csv: texts.chartBar.points,
} as const;

/** Buttons that open the display options and the file export menu. */
function Tools(props: BarProps): JSX.Element {
  const [isOpen, setOpen] = createSignal(false);
  return (
    <>
      <IconButton
        icon="options"
        label={texts.chartBar.options}
        title={texts.chartBar.optionsHint}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      />
      <IconButton
        icon="export"
        label={texts.chartBar.save}
        title={texts.chartBar.saveHint}
        aria-haspopup="menu"
        onClick={(event) =>
          openMenuBelow(
            texts.chartBar.saveAs,
            event.currentTarget,
            PICTURE_FORMATS.map((format) => ({
              label: FILE_NAMES[format],
              run: () => props.save(format),
            })),
          )
        }
      />
      <Show when={isOpen()}>
        <OptionsDialog
          options={props.options}
          set={props.setOptions}
          onClose={() => setOpen(false)}
        />
      </Show>
    </>
  );
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const LAST: readonly (readonly [string, number])[] = [
  [texts.common.last5Minutes, 5 * MINUTE],
  [texts.chartBar.last15Minutes, 15 * MINUTE],
  [texts.common.lastHour, HOUR],
  [texts.common.last6Hours, 6 * HOUR],
  [texts.common.last24Hours, DAY],
  [texts.common.last7Days, 7 * DAY],
  [texts.chartBar.last30Days, 30 * DAY],
];

/** Buttons for the previous and next range, and a menu of ranges that end at the newest row. */
function TimeRange(props: BarProps): JSX.Element {
  const end = createMemo((before: number) => {
    const last = props.times.at(-1) ?? before;
    return props.zoom.range() ? Math.max(before, last) : last;
  }, 0);
  const show = (length: number): void => props.zoom.to({ from: end() - length, to: end() });
  return (
    <>
      <IconButton
        icon="left"
        label={texts.chartBar.previousRange}
        title={texts.chartBar.previousRangeHint}
        disabled={!props.zoom.canGoBack()}
        onClick={() => props.zoom.back()}
      />
      <IconButton
        icon="right"
        label={texts.chartBar.nextRange}
        title={texts.chartBar.nextRangeHint}
        disabled={!props.zoom.canGoForward()}
        onClick={() => props.zoom.forward()}
      />
      <IconButton
        icon="clock"
        label={texts.common.timeRange}
        title={texts.chartBar.timeRangeHint}
        aria-haspopup="menu"
        onClick={(event) =>
          openMenuBelow(texts.common.timeRange, event.currentTarget, [
            ...LAST.map(([label, length]) => ({ label, run: () => show(length) })),
            {
              label: texts.chartBar.wholeRange,
              keys: '0',
              divider: true,
              run: () => props.zoom.reset(),
            },
          ])
        }
      />
    </>
  );
}

const CANDLE_FIELDS: readonly (readonly [keyof CandleColumns, string])[] = [
  ['open', texts.chartBar.open],
  ['high', texts.chartBar.high],
  ['low', texts.chartBar.low],
  ['close', texts.chartBar.close],
  ['volume', texts.chartBar.volume],
];

/** Lets the user choose the key to draw as candles, and a column for each price. */
function CandleChoice(props: BarProps): JSX.Element {
  const { selection } = props;
  const [isOpen, setOpen] = createSignal(props.plan.candles === undefined);
  return (
    <>
      <Show when={props.plan.key !== undefined && selection.keys().length > 1}>
        <select
          class="select"
          aria-label={texts.chartBar.candleKey}
          onChange={(event) => selection.setKey(event.currentTarget.value)}
        >
          <For each={selection.keys()}>
            {(key) => (
              <option value={key} selected={key === selection.key()}>
                {key}
              </option>
            )}
          </For>
        </select>
      </Show>
      <button
        class="button small ghost"
        aria-expanded={isOpen() ? 'true' : 'false'}
        onClick={() => setOpen(!isOpen())}
      >
        {texts.common.columns}
      </button>
      <Show when={isOpen()}>
        <div class="candle-columns" role="group" aria-label={texts.chartBar.candleColumns}>
          <For each={CANDLE_FIELDS}>
            {([field, name]) => <CandleFieldChoice {...props} field={field} name={name} />}
          </For>
        </div>
      </Show>
    </>
  );
}

function CandleFieldChoice(
  props: BarProps & { field: keyof CandleColumns; name: string },
): JSX.Element {
  const { selection } = props;
  const chosen = (): number | undefined => selection.candleColumns()?.[props.field];
  return (
    <label>
      {props.name}{' '}
      <select
        class="select"
        aria-label={props.name}
        onChange={(event) => {
          const column = Number(event.currentTarget.value);
          selection.setCandleColumn(props.field, column < 0 ? undefined : column);
        }}
      >
        <Show when={props.field === 'volume'}>
          <option value="-1">{texts.common.none}</option>
        </Show>
        <For each={props.plan.values}>
          {(column) => (
            <option value={column} selected={column === chosen()}>
              {props.result.columns[column]?.name ?? ''}
            </option>
          )}
        </For>
      </select>
    </label>
  );
}

function Title(props: BarProps): JSX.Element {
  const { selection } = props;
  const nameOf = (column: number | undefined): string =>
    props.result.columns[column ?? -1]?.name ?? '';
  const isOfOne = (): boolean =>
    selection.kind() !== 'depth' &&
    (props.plan.key !== undefined || selection.kind() === 'histogram');
  return (
    <Show when={isOfOne()}>
      <Show when={props.plan.values.length > 1}>
        <select
          class="select"
          aria-label={texts.chartBar.columnToDraw}
          onChange={(event) => selection.setValue(Number(event.currentTarget.value))}
        >
          <For each={props.plan.values}>
            {(column) => (
              <option value={column} selected={column === selection.value()}>
                {nameOf(column)}
              </option>
            )}
          </For>
        </select>
      </Show>
      <span class="chart-title">
        <bdi>{nameOf(selection.value())}</bdi>{' '}
        <Show when={props.plan.key !== undefined && selection.kind() !== 'histogram'}>
          <span class="muted">
            {fillNodes(texts.chartBar.byColumn, { column: <bdi>{nameOf(props.plan.key)}</bdi> })}
          </span>
        </Show>
      </span>
    </Show>
  );
}

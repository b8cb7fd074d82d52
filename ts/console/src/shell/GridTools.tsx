/** Controls of the result bar for rows: filter the loaded ones, copy or export them. */
import { createMemo, Show, type JSX } from 'solid-js';
import { EXPORT_FORMATS, FORMAT_NAMES } from '../api/client.js';
import type { GridState } from '../grid/state.js';
import { COPY_FORMS, rowsAs, type CopyForm } from '../model/copies.js';
import { grouped } from '../model/format.js';
import type { RowOrder } from '../model/order.js';
import type { Result } from '../model/result.js';
import { announce } from '../page/notices.js';
import { copy } from '../ui/clipboard.js';
import { download, saveFile } from '../ui/files.js';
import { Icon, type IconName } from '../ui/icons.js';
import { openMenuBelow, type MenuItem } from '../ui/Menu.js';

const COPIED_ROWS = 10_000;
/** Delay before a filter is applied, so that typing stays smooth in a large result. */
const FILTER_AFTER_MS = 150;

export function FilterField(props: {
  state: GridState;
  result: Result;
  order: RowOrder;
}): JSX.Element {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const typed = (text: string): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      props.state.filter.set(text);
      if (text.trim() !== '') {
        announce(`${props.order?.length ?? 0} of the loaded rows match.`);
      }
    }, FILTER_AFTER_MS);
  };
  const onKeyDown = (event: KeyboardEvent & { currentTarget: HTMLInputElement }): void => {
    if (event.key === 'Escape' && event.currentTarget.value !== '') {
      event.currentTarget.value = '';
      typed('');
      event.preventDefault();
    }
  };
  const counted = createMemo(() => {
    const isFiltered = props.state.filter().trim() !== '';
    return isFiltered && props.order
      ? `${grouped(String(props.order.length))} of ${grouped(String(props.result.rows.length))}`
      : undefined;
  });
  return (
    <label class="field inline-filter">
      <Icon name="filter" />
      <input
        type="search"
        placeholder="Filter rows"
        aria-label="Filter loaded rows"
        title={'Any text, or one column: price > 100, symbol: btc, note = null'}
        value={props.state.filter()}
        onInput={(event) => typed(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <Show when={counted()}>
        <span class="hint">{counted()}</span>
      </Show>
    </label>
  );
}

interface ShownProps {
  readonly state: GridState;
  readonly result: Result;
  readonly order: RowOrder;
}

function shownCount({ order, result }: ShownProps): number {
  return order?.length ?? result.rows.length;
}

/** Copies the loaded rows as the grid shows them: filtered, with its order of rows and columns. */
function shownAs(form: CopyForm, { state, result, order }: ShownProps, most: number): string {
  const { columns, rows } = result;
  const places = state.order(columns.length);
  const taken = Array.from(order ?? rows.keys())
    .slice(0, most)
    .map((row) => places.map((column) => result.cell(row, column)));
  const named = places.flatMap((column) => columns[column] ?? []);
  return rowsAs(form, named, taken);
}

/** If further rows are loaded on demand, only the loaded ones are copied. */
function loadedWord({ order, result }: ShownProps): string {
  return result.windows && !order ? 'loaded' : 'shown';
}

function rowCount(count: number): string {
  return `${grouped(String(count))} ${count === 1 ? 'row' : 'rows'}`;
}

/** Exports all rows from the server, or the loaded ones as shown. */
export function ExportMenu(props: ShownProps): JSX.Element {
  const items = (): MenuItem[] => [
    ...EXPORT_FORMATS.map((format) => ({
      label: `All rows as ${FORMAT_NAMES[format]}`,
      run: () => void download('result', props.result.statement, format),
    })),
    ...(['csv', 'json'] as const).map((format, index) => ({
      label: `The ${rowCount(shownCount(props))} ${loadedWord(props)} as ${FORMAT_NAMES[format]}`,
      apart: index === 0,
      run: () => saveFile(`result.${format}`, TYPES[format], shownAs(format, props, Infinity)),
    })),
  ];
  return <RowsMenu name="Export" hint="Download rows as a file" icon="export" items={items} />;
}

const TYPES = { csv: 'text/csv', json: 'application/json' } as const;

export function CopyMenu(props: ShownProps): JSX.Element {
  const copyAs = (form: CopyForm): void => {
    const count = shownCount(props);
    const cut = count > COPIED_ROWS ? 'The first ' : '';
    const text = shownAs(form, props, COPIED_ROWS);
    void copy(text, `${cut}${rowCount(Math.min(count, COPIED_ROWS))}`);
  };
  const items = (): MenuItem[] =>
    (Object.keys(COPY_FORMS) as CopyForm[]).map((form) => ({
      label: COPY_FORMS[form],
      run: () => copyAs(form),
    }));
  const hint = 'Copy the loaded rows as shown, with a header line';
  return <RowsMenu name="Copy" hint={hint} icon="copy" items={items} />;
}

function RowsMenu(props: {
  name: string;
  hint: string;
  icon: IconName;
  items: () => MenuItem[];
}): JSX.Element {
  const label = (): string => `${props.name} rows`;
  return (
    <button
      class="button ghost"
      aria-haspopup="menu"
      aria-label={label()}
      title={props.hint}
      onClick={(event) => openMenuBelow(label(), event.currentTarget, props.items())}
    >
      <Icon name={props.icon} />
      <span>{props.name}</span>
      <Icon name="down" />
    </button>
  );
}

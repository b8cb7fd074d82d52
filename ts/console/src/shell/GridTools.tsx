/** Controls in the result bar that filter the loaded rows, copy rows and export rows. */
import { createMemo, Show, type JSX } from 'solid-js';
import { EXPORT_FORMATS, FORMAT_NAMES } from '../api/client.js';
import type { GridState } from '../grid/state.js';
import { COPY_FORMS, rowsAs, type CopyForm } from '../model/copies.js';
import { grouped, rowsText } from '../model/format.js';
import type { RowOrder } from '../model/order.js';
import type { Result } from '../model/result.js';
import { announce } from '../page/notices.js';
import { copy } from '../ui/clipboard.js';
import { download, saveFile } from '../ui/files.js';
import { Icon, type IconName } from '../ui/icons.js';
import { openMenuBelow, type MenuItem } from '../ui/Menu.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const COPIED_ROWS = 10_000;
/** Delay before a filter is applied, so that typing remains smooth in a large result. */
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
        announce(fill(texts.gridTools.matches, { count: props.order?.length ?? 0 }));
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
      ? fill(texts.common.countOfAll, {
          count: grouped(String(props.order.length)),
          all: grouped(String(props.result.rows.length)),
        })
      : undefined;
  });
  return (
    <label class="field inline-filter">
      <Icon name="filter" />
      <input
        type="search"
        placeholder={texts.gridTools.filterRows}
        aria-label={texts.gridTools.filterLoadedRows}
        title={texts.gridTools.filterHint}
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

/**
 * Converts the loaded rows to text as the grid shows them: filtered, in the grid's row and column
 * order.
 */
function shownAs(form: CopyForm, { state, result, order }: ShownProps, maxRows: number): string {
  const { columns, rows } = result;
  const shown = state.order(columns.length);
  const taken = Array.from(order ?? rows.keys())
    .slice(0, maxRows)
    .map((row) => shown.map((column) => result.cell(row, column)));
  const named = shown.flatMap((column) => columns[column] ?? []);
  return rowsAs(form, named, taken);
}

/**
 * Returns the label for the copied rows. If further rows are loaded on demand, only the loaded rows
 * are copied.
 */
function loadedText({ order, result }: ShownProps): string {
  return result.windows && !order ? texts.gridTools.loaded : texts.gridTools.shown;
}

/** Menu that exports all rows from the server, or the loaded rows as shown. */
export function ExportMenu(props: ShownProps): JSX.Element {
  const items = (): MenuItem[] => [
    ...EXPORT_FORMATS.map((format) => ({
      label: fill(texts.common.allRowsAs, { format: FORMAT_NAMES[format] }),
      run: () => void download('result', props.result.statement, format),
    })),
    ...(['csv', 'json'] as const).map((format, index) => ({
      label: fill(texts.gridTools.theRowsAs, {
        rows: rowsText(shownCount(props)),
        state: loadedText(props),
        format: FORMAT_NAMES[format],
      }),
      divider: index === 0,
      run: () => saveFile(`result.${format}`, TYPES[format], shownAs(format, props, Infinity)),
    })),
  ];
  return (
    <RowsMenu
      name={texts.common.export}
      hint={texts.gridTools.exportHint}
      icon="export"
      items={items}
    />
  );
}

const TYPES = { csv: 'text/csv', json: 'application/json' } as const;

export function CopyMenu(props: ShownProps): JSX.Element {
  const copyAs = (form: CopyForm): void => {
    const count = shownCount(props);
    const text = shownAs(form, props, COPIED_ROWS);
    const rows = rowsText(Math.min(count, COPIED_ROWS));
    void copy(text, count > COPIED_ROWS ? fill(texts.common.firstRows, { rows }) : rows);
  };
  const items = (): MenuItem[] =>
    (Object.keys(COPY_FORMS) as CopyForm[]).map((form) => ({
      label: COPY_FORMS[form],
      run: () => copyAs(form),
    }));
  const hint = texts.gridTools.copyHint;
  return <RowsMenu name={texts.common.copy} hint={hint} icon="copy" items={items} />;
}

function RowsMenu(props: {
  name: string;
  hint: string;
  icon: IconName;
  items: () => MenuItem[];
}): JSX.Element {
  const label = (): string => fill(texts.gridTools.actionOnRows, { action: props.name });
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

/** The result bar's controls that act on the loaded rows: filter them, copy them. */
import { createMemo, Show, type JSX } from 'solid-js';
import type { GridState } from '../grid/state.js';
import { COPY_FORMS, rowsAs, type CopyForm } from '../model/copies.js';
import { grouped } from '../model/format.js';
import type { RowOrder } from '../model/order.js';
import type { Result } from '../model/result.js';
import { announce, copy } from './announce.js';
import { Icon } from './icons.js';
import { openMenuBelow, type MenuItem } from './Menu.js';

const COPIED_ROWS = 10_000;
/** Typing goes on while a large result is searched. */
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
      props.state.setFilter(text);
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
        placeholder="Filter loaded rows"
        aria-label="Filter the loaded rows"
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

export function CopyMenu(props: {
  state: GridState;
  result: Result;
  order: RowOrder;
}): JSX.Element {
  const copyAs = (form: CopyForm): void => {
    const { columns, rows } = props.result;
    const places = props.order ?? rows.keys();
    const order = props.state.order(columns.length);
    const taken = [...Array.from(places).slice(0, COPIED_ROWS)].map((row) =>
      order.map((column) => props.result.cell(row, column)),
    );
    const shown = order.flatMap((column) => columns[column] ?? []);
    const count = `${grouped(String(taken.length))} ${taken.length === 1 ? 'row' : 'rows'}`;
    const cut = taken.length < (props.order?.length ?? rows.length) ? 'The first ' : '';
    void copy(rowsAs(form, shown, taken), `${cut}${count}`);
  };
  const items = (): MenuItem[] =>
    (Object.keys(COPY_FORMS) as CopyForm[]).map((form) => ({
      label: COPY_FORMS[form],
      run: () => copyAs(form),
    }));
  return (
    <button
      class="button ghost"
      aria-haspopup="menu"
      aria-label="Copy rows"
      title="Copy the shown rows with a header line"
      onClick={(event) => openMenuBelow('Copy rows as', event.currentTarget, items())}
    >
      <Icon name="copy" />
      <span>Copy</span>
      <Icon name="down" />
    </button>
  );
}

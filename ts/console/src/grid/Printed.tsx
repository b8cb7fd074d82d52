/** Table with the first rows of the grid, rendered only while the page is printed. */
import { createSignal, For, onCleanup, onMount, Show, type JSX } from 'solid-js';
import { grouped, rowsText } from '../model/format.js';
import { isNumeric } from '../model/types.js';
import type { GridLayout } from './layout.js';
import { shownCell, type GridProps } from './context.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

const MAX_ROWS = 1000;

export function Printed(props: GridProps & { readonly layout: GridLayout }): JSX.Element {
  const isPrinting = whilePrinting();
  return (
    <Show when={isPrinting()}>
      <Rows {...props} />
    </Show>
  );
}

function Rows(props: GridProps & { readonly layout: GridLayout }): JSX.Element {
  const { layout, result, zone } = props;
  const columns = result.columns.map((_, position) => layout.columnAt(position));
  const count = Math.min(layout.rowCount(), MAX_ROWS);
  const positions = Array.from({ length: count }, (_, position) => position);
  const total = rowsText(layout.rowCount());
  const isNumber = (column: number): boolean => isNumeric(result.columns[column]?.type ?? '');
  return (
    <table class="printed">
      <caption>
        {count < layout.rowCount()
          ? fill(texts.grid.firstRows, { count: grouped(String(count)), total })
          : total}
      </caption>
      <thead>
        <tr>
          <For each={columns}>
            {(column) => (
              <th scope="col" classList={{ num: isNumber(column) }}>
                <bdi>{result.columns[column]?.name}</bdi>
              </th>
            )}
          </For>
        </tr>
      </thead>
      <tbody>
        <For each={positions}>
          {(position) => (
            <tr>
              <For each={columns}>
                {(column) => (
                  <td classList={{ num: isNumber(column) }}>
                    <bdi>
                      {shownCell(result, { row: layout.rowAt(position), column }, zone).text}
                    </bdi>
                  </td>
                )}
              </For>
            </tr>
          )}
        </For>
      </tbody>
    </table>
  );
}

/** Returns a signal that is true while the page is being printed. */
function whilePrinting(): () => boolean {
  const media = matchMedia('print');
  const [isPrinting, setPrinting] = createSignal(media.matches);
  onMount(() => {
    const listening = new AbortController();
    const { signal } = listening;
    media.addEventListener('change', () => setPrinting(media.matches), { signal });
    addEventListener('beforeprint', () => setPrinting(true), { signal });
    addEventListener('afterprint', () => setPrinting(media.matches), { signal });
    onCleanup(() => listening.abort());
  });
  return isPrinting;
}

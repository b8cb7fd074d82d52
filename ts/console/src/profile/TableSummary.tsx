/** Shows profiles of a table's columns, which are requested one at a time. */
import '../styles/profile.css';
import { createMemo, createSignal, For, Show, type JSX } from 'solid-js';
import { ServerSummary } from './ServerSummary.js';
import { rowsOfTable, type ProfiledColumn } from './questions.js';
import { serialQueue } from './serial-queue.js';
import { fill } from '../fill.js';
import { countText } from '../model/format.js';
import { texts } from '../texts.js';

/** Number of columns profiled initially, and added with each click on the button below the list. */
const STEP = 24;

export default function TableSummary(props: {
  table: string;
  columns: readonly ProfiledColumn[];
}): JSX.Element {
  const [limit, setLimit] = createSignal(STEP);
  const [requestedAt, setRequestedAt] = createSignal(new Date());
  const enter = serialQueue();
  // A commit reloads the column list. Unchanged columns are not profiled again.
  const columns = createMemo(
    () => props.columns.map(({ name, type }) => ({ name, type })),
    undefined,
    { equals: (before, after) => JSON.stringify(before) === JSON.stringify(after) },
  );
  const shown = createMemo(() => {
    void requestedAt();
    return columns()
      .slice(0, limit())
      .map((column) => ({ ...column }));
  });
  const rows = createMemo(() => rowsOfTable(props.table));
  return (
    <>
      <p class="summary-bar">
        <span class="hint">
          {fill(texts.profile.allRowsAsOf, { time: requestedAt().toISOString().slice(11, 19) })}
        </span>
        <button class="button small" onClick={() => setRequestedAt(new Date())}>
          {texts.common.refresh}
        </button>
      </p>
      <div class="summaries">
        <For each={shown()}>
          {(column) => (
            <section aria-label={fill(texts.profile.summaryOf, { name: column.name })}>
              <h3>
                <bdi class="data">{column.name}</bdi> <span class="hint">{column.type}</span>
              </h3>
              <ServerSummary column={column} rows={rows()} enter={enter} />
            </section>
          )}
        </For>
      </div>
      <Show when={columns().length > limit()}>
        <button class="button" onClick={() => setLimit(limit() + STEP)}>
          {countText(columns().length - limit(), texts.profile.moreColumns)}
        </button>
      </Show>
    </>
  );
}

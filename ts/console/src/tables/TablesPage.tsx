/** Lists all tables with their sizes and growth rates, and shows the details of one table. */
import { createMemo, createSignal, For, Match, Show, Switch, type JSX } from 'solid-js';
import { SearchField } from '../dialogs/SearchField.js';
import { query } from '../api/client.js';
import { approximate, bytesText, countText, timestampText, rowsText } from '../model/format.js';
import { Icon } from '../ui/icons.js';
import { LivePage } from '../ui/LivePage.js';
import { addressOf, openPage, route } from '../page/pages.js';
import { settle, type Loading } from '../state/loading.js';
import type { Session } from '../state/session.js';
import { TableDetails } from './TableDetails.js';
import { ViewBadge } from '../views/ViewBadge.js';
import type { ViewFacts } from '../model/views.js';
import { sorted, tableFacts, type TableFacts, type TableSort } from './model.js';
import { Rates } from '../model/rates.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

const REFRESH_MS = 2000;

export default function TablesPage(props: { session: Session }): JSX.Element {
  const rates = new Rates();
  const [loaded, setLoaded] = createSignal<Loading<readonly TableFacts[]>>({ state: 'loading' });
  const [noted, setNoted] = createSignal(0);

  const refresh = async (): Promise<void> => {
    const next = await settle(readTables);
    if (next.state === 'ready') {
      rates.note(performance.now(), next.value);
    }
    setLoaded(next);
    setNoted((count) => count + 1);
  };
  const rateOf = (name: string): number | undefined => (noted(), rates.of(name));
  const historyOf = (name: string): number[] => (noted(), rates.history(name));

  return (
    <LivePage
      page="tables"
      title={texts.common.tablesAndIngestion}
      hint={overview}
      everyMs={REFRESH_MS}
      poll={() => void refresh()}
      loaded={loaded()}
      key="name"
      unread={texts.common.tablesNotLoaded}
      empty={<NoTables />}
    >
      {(tables) => {
        const chosen = (): TableFacts | undefined =>
          tables.find((table) => table.name === route().subject);
        return (
          <div class="tables-split" classList={{ detailed: chosen() !== undefined }}>
            <TableList
              session={props.session}
              tables={tables}
              chosen={chosen()?.name}
              rateOf={rateOf}
            />
            <Show when={chosen()}>
              {(table) => (
                <TableDetails
                  session={props.session}
                  facts={table()}
                  rate={rateOf(table().name)}
                  history={historyOf(table().name)}
                />
              )}
            </Show>
          </div>
        );
      }}
    </LivePage>
  );
}

function NoTables(): JSX.Element {
  return (
    <>
      <strong>{texts.common.noTables}</strong>
      <p>
        {fillNodes(texts.common.noTablesHint, {
          link: <a href={addressOf('import')}>{texts.common.importAFile}</a>,
        })}
      </p>
    </>
  );
}

async function readTables(): Promise<TableFacts[]> {
  const [tables, storage] = await Promise.all([
    query('SELECT * FROM tables()'),
    query('SELECT * FROM table_storage()'),
  ]);
  return tableFacts(tables, storage);
}

function overview(tables: readonly TableFacts[]): string {
  const rows = tables.reduce((sum, table) => sum + (table.rows ?? 0), 0);
  const bytes = tables.reduce((sum, table) => sum + (table.bytes ?? 0), 0);
  const names = countText(tables.length, texts.counts.tables);
  return fill(texts.tables.overview, {
    tables: names,
    rows: rowsText(rows),
    bytes: bytesText(bytes),
  });
}

function TableList(props: {
  session: Session;
  tables: readonly TableFacts[];
  chosen: string | undefined;
  rateOf: (name: string) => number | undefined;
}): JSX.Element {
  const [search, setSearch] = createSignal('');
  const [sort, setSort] = createSignal<TableSort>({ by: 'name', isDown: false });
  const shown = createMemo(() => sorted(props.tables, search(), sort(), props.rateOf));
  return (
    <div class="page-table" role="region" aria-label={texts.common.tables} tabindex="0">
      <SearchField
        class="table-filter"
        placeholder={texts.common.filterByName}
        label={texts.tables.filterLabel}
        search={setSearch}
      />
      <table class="listing">
        <thead>
          <tr>
            <For each={HEADS}>
              {([by, label]) => <Head by={by} label={label} sort={sort()} choose={setSort} />}
            </For>
          </tr>
        </thead>
        <tbody>
          <For each={shown()}>
            {(table) => (
              <tr
                classList={{ selected: props.chosen === table.name }}
                onClick={() => openPage('tables', table.name)}
              >
                <th scope="row">
                  <button
                    class="row-link data"
                    aria-expanded={props.chosen === table.name}
                    title={table.name}
                  >
                    <bdi>{table.name}</bdi>
                  </button>
                </th>
                <td>
                  <TableState table={table} view={props.session.schema.entryOf(table.name)?.view} />
                </td>
                <td class="data num" title={rowsText(table.rows ?? 0)}>
                  {table.rows === undefined ? '–' : approximate(table.rows)}
                </td>
                <td class="data num">{rateText(props.rateOf(table.name))}</td>
                <td class="data num">{table.bytes === undefined ? '–' : bytesText(table.bytes)}</td>
                <td class="data">{timestampText(table.newest)}</td>
              </tr>
            )}
          </For>
        </tbody>
      </table>
    </div>
  );
}

const HEADS = [
  ['name', texts.common.table],
  ['state', texts.common.state],
  ['rows', texts.common.rows],
  ['rate', texts.tables.rate],
  ['bytes', texts.common.onDisk],
  ['newest', texts.common.newestRowUtc],
] as const satisfies readonly (readonly [TableSort['by'], string])[];

const NUMBERS: ReadonlySet<TableSort['by']> = new Set(['rows', 'rate', 'bytes']);

function Head(props: {
  by: TableSort['by'];
  label: string;
  sort: TableSort;
  choose: (sort: TableSort) => void;
}): JSX.Element {
  const isChosen = (): boolean => props.sort.by === props.by;
  const order = (): 'none' | 'ascending' | 'descending' =>
    !isChosen() ? 'none' : props.sort.isDown ? 'descending' : 'ascending';
  const choose = (): void => {
    // The first click on a column of numbers or times sorts it in descending order.
    const first = props.by !== 'name' && props.by !== 'state';
    props.choose({ by: props.by, isDown: isChosen() ? !props.sort.isDown : first });
  };
  return (
    <th scope="col" class={NUMBERS.has(props.by) ? 'num' : ''} aria-sort={order()}>
      <button class="sort-head" onClick={choose}>
        {props.label}
        <Show when={isChosen()}>
          <Icon name={props.sort.isDown ? 'down' : 'up'} />
        </Show>
      </button>
    </th>
  );
}

/** Formats a rate; `–` until two row counts are known. */
export function rateText(rate: number | undefined): string {
  return rate === undefined ? '–' : approximate(Math.round(rate));
}

function TableState(props: { table: TableFacts; view: ViewFacts | undefined }): JSX.Element {
  return (
    <Switch fallback={<span class="hint">{texts.tables.ready}</span>}>
      <Match when={props.table.isSuspended}>
        <span class="badge warn">
          <Icon name="alert" />
          {texts.common.suspended}
        </span>
      </Match>
      <Match when={props.view}>
        {(view) => <ViewBadge view={view()} fallback={texts.tables.upToDate} />}
      </Match>
    </Switch>
  );
}

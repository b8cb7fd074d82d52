/**
 * The schema tree. It groups tables by kind and loads a table's columns when the table is expanded.
 * The tree has a single tab stop; the arrow keys move between its rows.
 */
import { createSignal, For, Match, Show, Switch, type JSX } from 'solid-js';
import { SearchField } from '../dialogs/SearchField.js';
import { approximate, rowsText } from '../model/format.js';
import { typeTag } from '../model/types.js';
import { Icon } from '../ui/icons.js';
import type { Session } from '../state/session.js';
import { freshnessOf, type ViewFacts } from '../model/views.js';
import { ViewBadge } from '../views/ViewBadge.js';
import { addressOf } from '../page/pages.js';
import { openMenu } from '../ui/Menu.js';
import { previewTable, tableActions } from './actions.js';
import { Instance } from './Instance.js';
import { KIND_ICONS, type TableEntry } from '../model/schema.js';
import type { TreeRow } from './rows.js';
import { TreeState } from './tree.js';
import type { Schema } from '../state/schema.js';
import { failureOf } from '../state/loading.js';
import { IconButton } from '../ui/IconButton.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

export function SchemaPanel(props: { session: Session; onOpened: () => void }): JSX.Element {
  const { session } = props;
  const [filter, setFilter] = createSignal('');
  const failure = (): string => failureOf(session.schema.tables());

  return (
    <aside
      class="side"
      aria-label={texts.common.schema}
      aria-busy={session.schema.tables().state === 'loading'}
      data-region="schema"
    >
      <header class="side-head">
        <Instance server={session.server} />
        <RefreshButton schema={session.schema} />
      </header>
      <SearchField placeholder={texts.schema.filter} search={setFilter} />
      <Switch
        fallback={<Tree session={session} filter={filter()} onOpened={() => props.onOpened()} />}
      >
        <Match when={failure()}>
          <div class="side-empty">
            <strong>{texts.common.tablesNotLoaded}</strong>
            <p>{failure()}</p>
          </div>
        </Match>
        <Match when={session.schema.tables().state === 'loading'}>
          <div class="side-empty">
            <p>{texts.schema.loadingTables}</p>
          </div>
        </Match>
        <Match when={session.schema.known.length === 0}>
          <div class="side-empty">
            <strong>{texts.common.noTables}</strong>
            <p>
              {fillNodes(texts.common.noTablesHint, {
                link: <a href={addressOf('import')}>{texts.common.importAFile}</a>,
              })}
            </p>
          </div>
        </Match>
      </Switch>
    </aside>
  );
}

function RefreshButton(props: { schema: Schema }): JSX.Element {
  const [refreshing, setRefreshing] = createSignal(false);
  const refresh = async (): Promise<void> => {
    setRefreshing(true);
    await props.schema.refresh();
    setRefreshing(false);
  };
  return (
    <button
      class="icon-button"
      aria-label={texts.common.refreshSchema}
      title={texts.common.refreshSchema}
      onClick={() => void refresh()}
    >
      <Icon name="refresh" class={refreshing() ? 'spin' : ''} />
    </button>
  );
}

function Tree(props: { session: Session; filter: string; onOpened: () => void }): JSX.Element {
  const tree = new TreeState(props.session.schema, () => props.filter);
  const preview = (table: TableEntry): void => {
    previewTable(props.session, table);
    props.onOpened();
  };
  const focus = (id: string): void => {
    tree.select(id);
    document.getElementById(rowId(id))?.focus();
  };
  const menu = (table: TableEntry, x: number, y: number): void =>
    openMenu(table.name, x, y, tableActions(props.session, table));
  const onKeyDown = (event: KeyboardEvent): void => {
    const row = tree.selectedRow;
    const isMenuKey = event.key === 'ContextMenu' || (event.shiftKey && event.key === 'F10');
    if (row?.kind === 'table' && isMenuKey) {
      const box = document.getElementById(rowId(row.id))?.getBoundingClientRect();
      menu(row.table, box?.left ?? 0, box?.bottom ?? 0);
    } else if (row?.kind === 'table' && event.key === 'Enter' && event.shiftKey) {
      preview(row.table);
    } else if (row && (event.key === 'Enter' || event.key === ' ')) {
      tree.activate(row);
    } else {
      const next = tree.move(event.key);
      if (next === undefined) {
        return;
      }
      focus(next);
    }
    event.preventDefault();
  };
  const onClick = (row: TreeRow): void => {
    focus(row.id);
    if (row.kind !== 'column') {
      tree.activate(row);
    }
  };
  const isSelected = (row: TreeRow): boolean => row.id === tree.selected();

  return (
    <ul class="tree" role="tree" aria-label={texts.common.schema} onKeyDown={onKeyDown}>
      <For each={tree.rows()}>
        {(row) => (
          <li
            id={rowId(row.id)}
            role="treeitem"
            class={`tree-row ${row.kind}`}
            classList={{ selected: isSelected(row) && row.kind !== 'group' }}
            aria-level={LEVELS[row.kind]}
            aria-selected={isSelected(row) ? 'true' : 'false'}
            aria-expanded={'open' in row ? row.open : undefined}
            tabindex={isSelected(row) ? 0 : -1}
            onClick={() => onClick(row)}
            onContextMenu={(event) => {
              if (row.kind === 'table') {
                event.preventDefault();
                focus(row.id);
                menu(row.table, event.clientX, event.clientY);
              }
            }}
            onDblClick={() => row.kind === 'column' && tree.activate(row)}
          >
            <RowContent row={row} selected={isSelected(row)} onPreview={preview} onMenu={menu} />
          </li>
        )}
      </For>
    </ul>
  );
}

const LEVELS = { group: 1, table: 2, column: 3, fact: 3, note: 3 } as const;

function rowId(id: string): string {
  return `tree-${encodeURIComponent(id)}`;
}

interface TableActions {
  readonly onPreview: (table: TableEntry) => void;
  readonly onMenu: (table: TableEntry, x: number, y: number) => void;
}

function TableButtons(props: TableActions & { table: TableEntry }): JSX.Element {
  return (
    <>
      <IconButton
        icon="play"
        tabindex="-1"
        label={fill(texts.schema.previewOf, { name: props.table.name })}
        title={texts.schema.previewHint}
        onClick={(event) => {
          event.stopPropagation();
          props.onPreview(props.table);
        }}
        class="icon-button tight"
      />
      <IconButton
        icon="more"
        tabindex="-1"
        label={fill(texts.common.moreActionsFor, { name: props.table.name })}
        title={texts.schema.moreActionsHint}
        onClick={(event) => {
          event.stopPropagation();
          const box = event.currentTarget.getBoundingClientRect();
          props.onMenu(props.table, box.left, box.bottom);
        }}
        class="icon-button tight"
      />
    </>
  );
}

function RowContent(props: TableActions & { row: TreeRow; selected: boolean }): JSX.Element {
  const { row } = props;
  switch (row.kind) {
    case 'group':
      return (
        <>
          <Icon name="chevron" class={row.open ? 'turn open' : 'turn'} />
          <span class="name">{row.name}</span>
          <span class="meta">
            <Show when={row.invalid > 0}>
              <span class="badge error">
                <Icon name="alert" />
                {fill(texts.schema.invalidViews, { count: row.invalid })}
              </span>{' '}
            </Show>
            {row.count}
          </span>
        </>
      );
    case 'table':
      return (
        <>
          <Icon name="chevron" class={row.open ? 'turn open' : 'turn'} />
          <Icon name={KIND_ICONS[row.table.kind]} class="faint-icon" />
          <bdi class="name" title={row.table.name}>
            {row.table.name}
          </bdi>
          <Show when={props.selected}>
            <TableButtons table={row.table} onPreview={props.onPreview} onMenu={props.onMenu} />
          </Show>
          <TableFacts table={row.table} />
        </>
      );
    case 'column':
      return (
        <>
          <span class="type-tag" aria-hidden="true">
            {typeTag(row.column.type)}
          </span>
          <bdi class="name data" title={row.column.name}>
            {row.column.name}
          </bdi>
          <Show when={row.column.designated}>
            <span class="badge accent" title={texts.schema.designatedTimestamp}>
              {texts.common.time}
            </span>
          </Show>
          <span class="meta">{row.column.type}</span>
        </>
      );
    case 'fact':
      return (
        <>
          <span class="fact-name">{row.name}</span>
          <bdi class={row.isBad ? 'name error' : 'name'} title={row.text}>
            {row.text}
          </bdi>
        </>
      );
    case 'note':
      return <span class={row.failed ? 'note error' : 'note'}>{row.text}</span>;
  }
}

function TableFacts(props: { table: TableEntry }): JSX.Element {
  const rows = (): JSX.Element => (
    <Show when={props.table.rows !== undefined}>
      <span class="meta" title={rowsText(props.table.rows ?? 0)}>
        {approximate(props.table.rows ?? 0)}
      </span>
    </Show>
  );
  const freshness = (): ViewFacts | undefined => {
    const { view } = props.table;
    return view && freshnessOf(view).kind !== 'current' ? view : undefined;
  };
  return (
    <Switch fallback={rows()}>
      <Match when={props.table.suspended}>
        <span class="meta">
          <span class="badge warn">
            <Icon name="alert" />
            {texts.common.suspended}
          </span>
        </span>
      </Match>
      <Match when={freshness()}>
        {(view) => (
          <span class="meta">
            <ViewBadge view={view()} />
          </span>
        )}
      </Match>
    </Switch>
  );
}

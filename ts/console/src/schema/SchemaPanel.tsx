/** The schema tree: tables by kind, their columns on demand. One tab stop, moved by arrow keys. */
import { createMemo, createSignal, For, Match, Show, Switch, type JSX } from 'solid-js';
import { approximate, grouped } from '../model/format.js';
import { typeTag } from '../model/types.js';
import { Icon } from '../shell/icons.js';
import type { Session } from '../state/session.js';
import { quoted, type TableEntry } from './model.js';
import { treeRows, type TreeRow } from './rows.js';

const PREVIEW_ROWS = 1000;

export function SchemaPanel(props: { session: Session; onOpened: () => void }): JSX.Element {
  const { session } = props;
  const [filter, setFilter] = createSignal('');
  const [refreshing, setRefreshing] = createSignal(false);
  const tables = (): readonly TableEntry[] => {
    const loaded = session.schema.tables();
    return loaded.state === 'ready' ? loaded.value : [];
  };
  const failure = (): string | undefined => {
    const loaded = session.schema.tables();
    return loaded.state === 'failed' ? loaded.message : undefined;
  };
  const refresh = async (): Promise<void> => {
    setRefreshing(true);
    await session.schema.refresh();
    setRefreshing(false);
  };

  return (
    <aside class="side" aria-label="Schema" data-region="schema">
      <header class="side-head">
        <Instance session={session} />
        <button
          class="icon-button"
          aria-label="Refresh schema"
          title="Refresh schema"
          onClick={() => void refresh()}
        >
          <Icon name="refresh" class={refreshing() ? 'spin' : ''} />
        </button>
      </header>
      <label class="field">
        <Icon name="search" />
        <input
          type="search"
          placeholder="Filter tables and columns"
          aria-label="Filter tables and columns"
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
      </label>
      <Switch
        fallback={<Tree session={session} filter={filter()} onOpened={() => props.onOpened()} />}
      >
        <Match when={failure()}>
          <div class="side-empty">
            <strong>The tables could not be read</strong>
            <p>{failure()}</p>
          </div>
        </Match>
        <Match when={session.schema.tables().state === 'loading'}>
          <div class="side-empty">
            <p>Reading the tables</p>
          </div>
        </Match>
        <Match when={tables().length === 0}>
          <div class="side-empty">
            <strong>No tables yet</strong>
            <p>Create one with CREATE TABLE, or import a CSV file over HTTP.</p>
          </div>
        </Match>
      </Switch>
    </aside>
  );
}

function Instance(props: { session: Session }): JSX.Element {
  const preference = (name: string): string => {
    const value = props.session.settings()?.preferences[name];
    return typeof value === 'string' ? value : '';
  };
  return (
    <span class="instance">
      <strong>
        <bdi>{preference('instance_name') || location.hostname}</bdi>
      </strong>
      <Show when={preference('instance_type')}>{(role) => <span class="role">{role()}</span>}</Show>
    </span>
  );
}

function Tree(props: { session: Session; filter: string; onOpened: () => void }): JSX.Element {
  const { schema } = props.session;
  const [opened, setOpened] = createSignal<ReadonlySet<string>>(new Set());
  const [closed, setClosed] = createSignal<ReadonlySet<string>>(new Set());
  const [current, setCurrent] = createSignal('');
  const rows = createMemo(() => {
    const loaded = schema.tables();
    const tables = loaded.state === 'ready' ? loaded.value : [];
    return treeRows(tables, schema.columns(), opened(), closed(), props.filter);
  });
  const selected = (): string =>
    rows().some((row) => row.id === current()) ? current() : (rows()[0]?.id ?? '');

  const setOpen = (row: TreeRow, open: boolean): void => {
    if (row.kind === 'group') {
      setClosed(withMember(closed(), row.id, !open));
    }
    if (row.kind !== 'table') {
      return;
    }
    setOpened(withMember(opened(), row.table.name, open));
    if (open) {
      void schema.open(row.table.name);
    }
  };
  const preview = (table: TableEntry): void => {
    props.session.preview(`SELECT * FROM ${quoted(table.name)} LIMIT ${PREVIEW_ROWS}`);
    props.onOpened();
  };
  const activate = (row: TreeRow): void => {
    if (row.kind === 'column') {
      props.session.editor?.insert(quoted(row.column.name));
    } else if (row.kind !== 'note') {
      setOpen(row, !row.open);
    }
  };

  const focus = (id: string): void => {
    setCurrent(id);
    document.getElementById(rowId(id))?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const all = rows();
    const index = all.findIndex((row) => row.id === selected());
    const row = all[index];
    if (!row) {
      return;
    }
    if (event.key === 'Enter' && event.shiftKey && row.kind === 'table') {
      preview(row.table);
    } else if (event.key === 'Enter' || event.key === ' ') {
      activate(row);
    } else {
      const next = treeMove(all, index, event.key);
      if (typeof next === 'boolean') {
        setOpen(row, next);
      } else if (next !== undefined) {
        focus(all[next]?.id ?? row.id);
      } else {
        return;
      }
    }
    event.preventDefault();
  };

  return (
    <ul class="tree" role="tree" aria-label="Schema" onKeyDown={onKeyDown}>
      <For each={rows()}>
        {(row) => (
          <li
            id={rowId(row.id)}
            role="treeitem"
            class={`tree-row ${row.kind}`}
            classList={{ selected: row.id === selected() && row.kind !== 'group' }}
            aria-level={row.kind === 'group' ? 1 : row.kind === 'table' ? 2 : 3}
            aria-selected={row.id === selected() ? 'true' : 'false'}
            aria-expanded={'open' in row ? (row.open ? 'true' : 'false') : undefined}
            tabindex={row.id === selected() ? 0 : -1}
            onClick={() => {
              focus(row.id);
              if (row.kind !== 'column') {
                activate(row);
              }
            }}
            onDblClick={() => row.kind === 'column' && activate(row)}
          >
            <RowContent row={row} selected={row.id === selected()} onPreview={preview} />
          </li>
        )}
      </For>
    </ul>
  );
}

function rowId(id: string): string {
  return `tree-${encodeURIComponent(id)}`;
}

function withMember(set: ReadonlySet<string>, member: string, inside: boolean): Set<string> {
  const next = new Set(set);
  if (inside) {
    next.add(member);
  } else {
    next.delete(member);
  }
  return next;
}

/** Where a key leads: an index, or whether the row is to be opened. */
function treeMove(
  rows: readonly TreeRow[],
  index: number,
  key: string,
): number | boolean | undefined {
  const row = rows[index];
  switch (key) {
    case 'ArrowDown':
      return Math.min(rows.length - 1, index + 1);
    case 'ArrowUp':
      return Math.max(0, index - 1);
    case 'Home':
      return 0;
    case 'End':
      return rows.length - 1;
    case 'ArrowRight':
      if (!row || !('open' in row)) {
        return undefined;
      }
      return row.open ? Math.min(rows.length - 1, index + 1) : true;
    case 'ArrowLeft':
      if (row && 'open' in row && row.open) {
        return false;
      }
      return parentOf(rows, index);
    default:
      return undefined;
  }
}

function parentOf(rows: readonly TreeRow[], index: number): number | undefined {
  const kind = rows[index]?.kind;
  const parent = kind === 'table' ? 'group' : 'table';
  if (kind === 'group') {
    return undefined;
  }
  for (let at = index - 1; at >= 0; at--) {
    if (rows[at]?.kind === parent) {
      return at;
    }
  }
  return undefined;
}

const KIND_ICONS = { table: 'table', view: 'view', materialized: 'layers' } as const;

function RowContent(props: {
  row: TreeRow;
  selected: boolean;
  onPreview: (table: TableEntry) => void;
}): JSX.Element {
  const { row } = props;
  switch (row.kind) {
    case 'group':
      return (
        <>
          <Icon name="chevron" class={row.open ? 'turn open' : 'turn'} />
          <span class="name">{row.name}</span>
          <span class="meta">{row.count}</span>
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
            <button
              class="icon-button tight"
              tabindex="-1"
              aria-label={`Preview ${row.table.name}`}
              title="Preview rows (Shift+Enter)"
              onClick={(event) => {
                event.stopPropagation();
                props.onPreview(row.table);
              }}
            >
              <Icon name="play" />
            </button>
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
            <span class="badge accent" title="Designated timestamp">
              time
            </span>
          </Show>
          <span class="meta">{row.column.type}</span>
        </>
      );
    case 'note':
      return <span class={row.failed ? 'note error' : 'note'}>{row.text}</span>;
  }
}

function TableFacts(props: { table: TableEntry }): JSX.Element {
  return (
    <Show
      when={props.table.suspended}
      fallback={
        <Show when={props.table.rows !== undefined}>
          <span class="meta" title={`${grouped(String(props.table.rows))} rows`}>
            {approximate(props.table.rows ?? 0)}
          </span>
        </Show>
      }
    >
      <span class="meta">
        <span class="badge warn">
          <Icon name="alert" />
          suspended
        </span>
      </span>
    </Show>
  );
}

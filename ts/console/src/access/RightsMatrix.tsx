/** Objects by rights; a table opens into its columns. */
import { createMemo, createSignal, For, Show, type JSX } from 'solid-js';
import type { ColumnEntry, TableEntry } from '../schema/model.js';
import { Icon } from '../shell/icons.js';
import type { Session } from '../state/session.js';
import { PermissionMark } from './PermissionMark.js';
import {
  applies,
  concerns,
  groupsOf,
  isGiven,
  markOf,
  RIGHT_GROUPS,
  RIGHTS,
  type Mark,
  type Place,
} from './model.js';
import type { AccessState, Rights } from './state.js';

export interface MatrixProps {
  readonly session: Session;
  readonly state: AccessState;
  readonly rights: Rights;
}

export function RightsMatrix(props: MatrixProps): JSX.Element {
  // The list changes as others make tables: a row stays, and stays open, while its table is there.
  const tables = createMemo<readonly Listed[]>((before) => {
    const loaded = props.session.schema.tables();
    const now = loaded.state === 'ready' ? loaded.value : [];
    const known = new Map(before.map((one) => [`${one.kind} ${one.name}`, one]));
    return now.map(({ name, kind }) => known.get(`${kind} ${name}`) ?? { name, kind });
  }, []);
  return (
    <div class="matrix-wrap" role="region" aria-label="Rights by table" tabindex="0">
      <table class="listing matrix">
        <thead>
          <tr>
            <td />
            <For each={RIGHT_GROUPS}>
              {(group) => (
                <th scope="colgroup" colspan={group.rights.length}>
                  {group.name}
                </th>
              )}
            </For>
          </tr>
          <tr>
            <th scope="col">Object</th>
            <For each={RIGHTS}>{(right) => <th scope="col">{right}</th>}</For>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">All tables and views</th>
            <Cells {...props} place={EVERYWHERE} object="All tables and views" what="all" />
          </tr>
          <For each={tables()}>
            {(table) => (
              <Show
                when={table.kind === 'table'}
                fallback={
                  <tr>
                    <th scope="row" class="data">
                      <bdi>{table.name}</bdi>
                    </th>
                    <Cells {...props} place={placeOf(table)} object={table.name} what="view" />
                  </tr>
                }
              >
                <TableRows {...props} table={table} />
              </Show>
            )}
          </For>
        </tbody>
      </table>
    </div>
  );
}

type Listed = Pick<TableEntry, 'name' | 'kind'>;

const EVERYWHERE: Place = { table: undefined, column: undefined };

function placeOf({ name }: Listed): Place {
  return { table: name, column: undefined };
}

function TableRows(props: MatrixProps & { table: Listed }): JSX.Element {
  const [isOpen, setOpen] = createSignal(false);
  const columns = (): readonly ColumnEntry[] => props.session.schema.columnsOf(props.table.name);
  const toggle = (): void => {
    setOpen(!isOpen());
    void props.session.schema.open(props.table.name);
  };
  return (
    <>
      <tr>
        <th scope="row" class="data">
          <button
            class="row-link data matrix-table"
            aria-expanded={isOpen()}
            title={`Rights on columns of ${props.table.name}`}
            onClick={toggle}
          >
            <Icon name={isOpen() ? 'down' : 'chevron'} />
            <bdi>{props.table.name}</bdi>
          </button>
        </th>
        <Cells {...props} place={placeOf(props.table)} object={props.table.name} what="table" />
      </tr>
      <Show when={isOpen()}>
        <For each={columns()}>
          {(column) => (
            <tr class="matrix-column">
              <th scope="row" class="data">
                <bdi>{column.name}</bdi>
              </th>
              <Cells
                {...props}
                place={{ table: props.table.name, column: column.name }}
                object={`${props.table.name}.${column.name}`}
                what="column"
              />
            </tr>
          )}
        </For>
      </Show>
    </>
  );
}

interface CellsProps extends MatrixProps {
  readonly place: Place;
  /** How the place is called. */
  readonly object: string;
  readonly what: Parameters<typeof applies>[1];
}

function Cells(props: CellsProps): JSX.Element {
  return (
    <For each={RIGHTS}>
      {(permission) => (
        <td>
          <Show
            when={applies(permission, props.what)}
            fallback={
              <span class="hint" title="does not apply">
                –
              </span>
            }
          >
            <RightButton {...props} permission={permission} />
          </Show>
        </td>
      )}
    </For>
  );
}

/** What the shapes mean. */
export function MarkLegend(): JSX.Element {
  return (
    <p class="access-legend hint">
      <For each={['granted', 'option', 'group', 'inherited', 'part'] as const}>
        {(mark) => (
          <span>
            <PermissionMark mark={mark} />
            {MARK_NAMES[mark]}
          </span>
        )}
      </For>
    </p>
  );
}

const MARK_NAMES: Readonly<Record<Mark, string>> = {
  granted: 'granted',
  option: 'granted, may pass on',
  group: 'from a group',
  inherited: 'from all tables',
  implied: 'comes with other columns',
  part: 'on some columns',
  none: 'not granted',
};

export function RightButton(
  props: MatrixProps & { permission: string; place: Place; object: string },
): JSX.Element {
  const name = (): string => props.rights.principal.name;
  const mark = (): Mark => markOf(props.rights.grants, props.permission, props.place, name());
  const groups = (): readonly string[] =>
    groupsOf(props.rights.grants, props.permission, props.place, name());
  const planned = (): boolean =>
    props.state.changes().some((change) => concerns(change, props.permission, props.place));
  const shown = (): Mark => (planned() ? (isGiven(mark()) ? 'granted' : 'none') : mark());
  const nameOf = (one: Mark): string => {
    if (one === 'inherited' && props.place.column !== undefined) {
      return 'from the table or all tables';
    }
    const from = groups().length === 0 ? '' : `from ${groups().join(', ')}`;
    const isHeld = one === 'granted' || one === 'option';
    return one === 'group'
      ? from
      : MARK_NAMES[one] + (isHeld && from !== '' ? `, and ${from}` : '');
  };
  const label = (): string => {
    const now = `${props.permission} on ${props.object}: ${nameOf(mark())}`;
    return planned() ? `${now}; planned: ${nameOf(shown())}` : now;
  };
  return (
    <button
      class="permission"
      classList={{ planned: planned() }}
      aria-label={label()}
      title={label()}
      onClick={() => props.state.plan(props.permission, props.place, mark())}
    >
      <PermissionMark mark={shown()} />
    </button>
  );
}

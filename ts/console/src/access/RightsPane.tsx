/** The rights of one: how it may connect, its groups, and a table of objects by rights. */
import { For, Show, type JSX } from 'solid-js';
import { quoted, type TableEntry } from '../schema/model.js';
import { showToast } from '../shell/announce.js';
import { confirmed } from '../shell/ConfirmDialog.js';
import { Icon } from '../shell/icons.js';
import { openMenu, type MenuItem } from '../shell/Menu.js';
import type { Session } from '../state/session.js';
import { PermissionMark } from './PermissionMark.js';
import {
  concerns,
  ENDPOINTS,
  markOf,
  RIGHT_GROUPS,
  RIGHTS,
  type Mark,
  type Principal,
} from './model.js';
import type { AccessState, Rights } from './state.js';

interface PaneProps {
  readonly session: Session;
  readonly state: AccessState;
  readonly rights: Rights;
  readonly all: readonly Principal[];
}

export function RightsPane(props: PaneProps): JSX.Element {
  const tables = (): readonly TableEntry[] => {
    const loaded = props.session.schema.tables();
    return loaded.state === 'ready' ? loaded.value : [];
  };
  return (
    <div class="access-main">
      <Head {...props} />
      <fieldset class="access-endpoints">
        <legend>May connect with</legend>
        <For each={ENDPOINTS}>
          {([permission, name]) => (
            <span>
              <Cell {...props} permission={permission} table={undefined} object={name} />
              {name}
            </span>
          )}
        </For>
      </fieldset>
      <Show when={props.rights.principal.kind === 'user'}>
        <Groups {...props} />
      </Show>
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
            <Row {...props} table={undefined} name="All tables and views" />
            <For each={tables()}>
              {(table) => <Row {...props} table={table.name} name={table.name} />}
            </For>
          </tbody>
        </table>
      </div>
    </div>
  );
}

function Row(props: PaneProps & { table: string | undefined; name: string }): JSX.Element {
  return (
    <tr>
      <th scope="row" classList={{ data: props.table !== undefined }}>
        <bdi>{props.name}</bdi>
      </th>
      <For each={RIGHTS}>
        {(permission) => (
          <td>
            <Cell {...props} permission={permission} object={props.name} />
          </td>
        )}
      </For>
    </tr>
  );
}

const MARK_NAMES: Readonly<Record<Mark, string>> = {
  granted: 'granted',
  option: 'granted, may pass on',
  inherited: 'from all tables',
  part: 'on some columns',
  none: 'not granted',
};

function Cell(
  props: PaneProps & { permission: string; table: string | undefined; object: string },
): JSX.Element {
  const mark = (): Mark => markOf(props.rights.grants, props.permission, props.table);
  const planned = (): boolean =>
    props.state.changes().some((change) => concerns(change, props.permission, props.table));
  const shown = (): Mark => {
    if (!planned()) {
      return mark();
    }
    return mark() === 'none' || mark() === 'part' ? 'granted' : 'none';
  };
  const label = (): string => {
    const now = `${props.permission} on ${props.object}: ${MARK_NAMES[mark()]}`;
    return planned() ? `${now}; planned: ${MARK_NAMES[shown()]}` : now;
  };
  return (
    <button
      class="permission"
      classList={{ planned: planned() }}
      aria-label={label()}
      title={label()}
      onClick={() => props.state.plan(props.permission, props.table, mark())}
    >
      <PermissionMark mark={shown()} />
    </button>
  );
}

function Head(props: PaneProps): JSX.Element {
  const principal = (): Principal => props.rights.principal;
  const run = async (statement: string, isGone: boolean): Promise<void> => {
    try {
      await props.state.run(statement, isGone ? undefined : principal());
      showToast({ text: statement });
    } catch (cause) {
      showToast({ text: cause instanceof Error ? cause.message : String(cause) });
    }
  };
  const drop = async (): Promise<void> => {
    const statement = `DROP ${principal().kind.toUpperCase()} ${quoted(principal().name)}`;
    const isSure = await confirmed({
      title: `Drop the ${principal().kind} ${principal().name}?`,
      text: 'Its rights go with it. This cannot be undone.',
      statement,
      keep: 'Keep it',
      destroy: `Drop ${principal().name}`,
    });
    if (isSure) {
      await run(statement, true);
    }
  };
  const items = (): MenuItem[] => {
    const words = `ALTER ${principal().kind.toUpperCase()} ${quoted(principal().name)}`;
    const mayLogIn = principal().kind !== 'group';
    return [
      ...(mayLogIn
        ? [
            { label: 'Let log in', run: () => void run(`${words} ENABLE`, false) },
            { label: 'Keep from logging in', run: () => void run(`${words} DISABLE`, false) },
          ]
        : []),
      { label: `Drop ${principal().kind}…`, apart: mayLogIn, run: () => void drop() },
    ];
  };
  return (
    <header class="details-head">
      <h2>
        <bdi>{principal().name}</bdi> <span class="hint">{principal().kind}</span>
      </h2>
      <button
        class="icon-button"
        aria-label={`More about ${principal().name}`}
        onClick={(event) => {
          const box = event.currentTarget.getBoundingClientRect();
          openMenu(principal().name, box.left, box.bottom, items());
        }}
      >
        <Icon name="more" />
      </button>
    </header>
  );
}

function Groups(props: PaneProps): JSX.Element {
  const others = (): readonly string[] =>
    props.all
      .filter(({ kind, name }) => kind === 'group' && !props.rights.groups.includes(name))
      .map(({ name }) => name);
  const change = async (statement: string): Promise<void> => {
    try {
      await props.state.run(statement, props.rights.principal);
    } catch (cause) {
      showToast({ text: cause instanceof Error ? cause.message : String(cause) });
    }
  };
  const user = (): string => quoted(props.rights.principal.name);
  return (
    <div class="access-groups">
      <span class="hint">Groups</span>
      <For each={props.rights.groups}>
        {(group) => (
          <button
            class="chip"
            title={`Take out of ${group}`}
            onClick={() => void change(`REMOVE USER ${user()} FROM ${quoted(group)}`)}
          >
            <bdi>{group}</bdi>
            <Icon name="close" />
          </button>
        )}
      </For>
      <Show when={others().length > 0} fallback={<span class="hint">no other groups</span>}>
        <select
          class="select"
          aria-label="Put into a group"
          onChange={(event) =>
            void change(`ADD USER ${user()} TO ${quoted(event.currentTarget.value)}`)
          }
        >
          <option value="" selected disabled>
            put into…
          </option>
          <For each={others()}>{(group) => <option value={group}>{group}</option>}</For>
        </select>
      </Show>
    </div>
  );
}

/** The rights of one: how it may connect, its groups, and a table of objects by rights. */
import { For, Show, type JSX } from 'solid-js';
import { quoted } from '../schema/model.js';
import { showFailure } from '../shell/announce.js';
import { Icon } from '../shell/icons.js';
import { ENDPOINTS } from './catalogue.js';
import { DatabaseRights } from './DatabaseRights.js';
import { LoginRow } from './LoginRow.js';
import { assumes, EVERYWHERE, type Principal } from './model.js';
import { PrincipalHead } from './PrincipalHead.js';
import { MarkLegend, RightButton } from './RightButton.js';
import { RightsMatrix, type MatrixProps } from './RightsMatrix.js';

interface PaneProps extends MatrixProps {
  readonly all: readonly Principal[];
}

export function RightsPane(props: PaneProps): JSX.Element {
  return (
    <div class="access-main">
      <PrincipalHead state={props.state} principal={props.rights.principal} />
      <fieldset class="access-endpoints">
        <legend>May connect with</legend>
        <For each={ENDPOINTS}>
          {([permission, name]) => (
            <span>
              <RightButton {...props} permission={permission} place={EVERYWHERE} object={name} />
              {name}
            </span>
          )}
        </For>
      </fieldset>
      <Show when={props.rights.principal.kind !== 'group'}>
        <LoginRow state={props.state} rights={props.rights} />
      </Show>
      <Show when={props.rights.principal.kind === 'user'}>
        <Groups {...props} />
      </Show>
      <Accounts {...props} />
      <DatabaseRights state={props.state} rights={props.rights} />
      <MarkLegend />
      <RightsMatrix session={props.session} state={props.state} rights={props.rights} />
    </div>
  );
}

/** The service accounts that a user or the members of a group may become. */
function Accounts(props: PaneProps): JSX.Element {
  const accounts = (): readonly string[] =>
    props.rights.principal.kind === 'service account'
      ? []
      : props.all.filter(({ kind }) => kind === 'service account').map(({ name }) => name);
  return (
    <Show when={accounts().length > 0}>
      <fieldset class="access-endpoints">
        <legend>May become</legend>
        <For each={accounts()}>
          {(account) => (
            <span>
              <RightButton {...props} permission={assumes(account)} place={EVERYWHERE} />
              <bdi>{account}</bdi>
            </span>
          )}
        </For>
      </fieldset>
    </Show>
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
      showFailure(cause);
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

/**
 * Shows the permissions of one principal: allowed endpoints, groups, and a matrix of objects and
 * permissions.
 */
import { For, Show, type JSX } from 'solid-js';
import { Icon } from '../ui/icons.js';
import { ENDPOINTS } from './catalogue.js';
import { DatabaseRights } from './DatabaseRights.js';
import { LoginRow } from './LoginRow.js';
import { Memberships } from './Memberships.js';
import { assumes, EVERYWHERE, type Principal } from './model.js';
import { PrincipalHead } from './PrincipalHead.js';
import { MarkLegend, RightButton } from './RightButton.js';
import { RightsMatrix, type MatrixProps } from './RightsMatrix.js';
import { texts } from '../texts.js';

interface PaneProps extends MatrixProps {
  readonly all: readonly Principal[];
}

export function RightsPane(props: PaneProps): JSX.Element {
  return (
    <div class="access-main">
      <button class="button small access-back" onClick={() => props.state.hide()}>
        <Icon name="left" />
        {texts.access.back}
      </button>
      <PrincipalHead state={props.state} principal={props.rights.principal} />
      <fieldset class="access-endpoints">
        <legend>{texts.access.canConnectThrough}</legend>
        <For each={ENDPOINTS}>
          {([permission, name]) => (
            <span>
              <RightButton {...props} permission={permission} target={EVERYWHERE} object={name} />
              {name}
            </span>
          )}
        </For>
      </fieldset>
      <Show when={props.rights.principal.kind !== 'group'}>
        <LoginRow state={props.state} rights={props.rights} />
      </Show>
      <Show when={props.rights.principal.kind !== 'service account'}>
        <Memberships {...props} />
      </Show>
      <Accounts {...props} />
      <DatabaseRights state={props.state} rights={props.rights} />
      <MarkLegend />
      <RightsMatrix schema={props.schema} state={props.state} rights={props.rights} />
    </div>
  );
}

/** Lists the service accounts, and lets the user grant or revoke permission to assume them. */
function Accounts(props: PaneProps): JSX.Element {
  const accounts = (): readonly string[] =>
    props.rights.principal.kind === 'service account'
      ? []
      : props.all.filter(({ kind }) => kind === 'service account').map(({ name }) => name);
  return (
    <Show when={accounts().length > 0}>
      <fieldset class="access-endpoints">
        <legend>{texts.access.canAssume}</legend>
        <For each={accounts()}>
          {(account) => (
            <span>
              <RightButton {...props} permission={assumes(account)} target={EVERYWHERE} />
              <bdi>{account}</bdi>
            </span>
          )}
        </For>
      </fieldset>
    </Show>
  );
}

/** Heading of the selected principal, with the actions that apply to it as a whole. */
import { createSignal, Show, type JSX } from 'solid-js';
import { quoted } from '../sql/names.js';
import { showFailure, showToast } from '../page/notices.js';
import { confirmed } from '../page/questions.js';
import { openMenuBelow, type MenuItem } from '../ui/Menu.js';
import { passwordStatement, type Principal } from './model.js';
import { PasswordDialog } from './PasswordDialog.js';
import type { AccessState } from './state.js';
import { IconButton } from '../ui/IconButton.js';

export function PrincipalHead(props: { state: AccessState; principal: Principal }): JSX.Element {
  const [isAsking, setAsking] = createSignal(false);
  const items = (): MenuItem[] => menuOf(props.state, props.principal, () => setAsking(true));
  return (
    <header class="details-head">
      <h2>
        <bdi>{props.principal.name}</bdi> <span class="hint">{props.principal.kind}</span>
      </h2>
      <IconButton
        icon="more"
        aria-haspopup="menu"
        label={`More actions for ${props.principal.name}`}
        onClick={(event) => openMenuBelow(props.principal.name, event.currentTarget, items())}
      />
      <Show when={isAsking()}>
        <PasswordDialog
          name={props.principal.name}
          set={(password) =>
            props.state.run(passwordStatement(props.principal, password), props.principal)
          }
          onClose={() => setAsking(false)}
        />
      </Show>
    </header>
  );
}

/** Actions that apply to the principal as a whole. */
function menuOf(state: AccessState, principal: Principal, setPassword: () => void): MenuItem[] {
  /** Reports the executed statement; a password never appears in the message. */
  const run = async (statement: string, isGone: boolean, done = statement): Promise<void> => {
    const said = state.run(statement, isGone ? undefined : principal);
    await said.then(() => showToast({ text: done }), showFailure);
  };
  const drop = async (): Promise<void> => {
    const { kind, name } = principal;
    const statement = `DROP ${kind.toUpperCase()} ${quoted(name)}`;
    const isSure = await confirmed({
      title: `Drop the ${kind} ${name}?`,
      text: 'Its permissions are removed, too. This cannot be undone.',
      statement,
      keep: 'Cancel',
      destroy: `Drop ${name}`,
    });
    if (isSure) {
      await run(statement, true);
    }
  };
  const takePassword = async (): Promise<void> => {
    const statement = passwordStatement(principal, '');
    const isSure = await confirmed({
      title: `Remove the password of ${principal.name}?`,
      text: 'It can no longer be used to log in. Tokens and keys are not affected.',
      statement,
      keep: 'Cancel',
      destroy: 'Remove password',
    });
    if (isSure) {
      await run(statement, false);
    }
  };
  const { kind, name } = principal;
  const words = `ALTER ${kind.toUpperCase()} ${quoted(name)}`;
  const isLogin = kind !== 'group';
  const ofLogins: MenuItem[] = [
    { label: 'Set password…', run: setPassword },
    { label: 'Remove password…', run: () => void takePassword() },
    { label: 'Enable login', apart: true, run: () => void run(`${words} ENABLE`, false) },
    { label: 'Disable login', run: () => void run(`${words} DISABLE`, false) },
  ];
  return [
    ...(isLogin ? ofLogins : []),
    { label: `Drop ${kind}…`, apart: isLogin, run: () => void drop() },
  ];
}

/** Heading of the selected principal, with a menu of actions such as changing the password. */
import { createSignal, Show, type JSX } from 'solid-js';
import { quoted } from '../sql/names.js';
import { showFailure, showToast } from '../page/notices.js';
import { confirmed } from '../page/questions.js';
import { openMenuBelow, type MenuItem } from '../ui/Menu.js';
import { passwordStatement, PRINCIPAL_LABELS, type Principal } from './model.js';
import { PasswordDialog } from './PasswordDialog.js';
import type { AccessState } from './state.js';
import { IconButton } from '../ui/IconButton.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export function PrincipalHead(props: { state: AccessState; principal: Principal }): JSX.Element {
  const [isAsking, setAsking] = createSignal(false);
  const items = (): MenuItem[] => menuOf(props.state, props.principal, () => setAsking(true));
  return (
    <header class="details-head">
      <h2>
        <bdi>{props.principal.name}</bdi>{' '}
        <span class="hint">{PRINCIPAL_LABELS[props.principal.kind]}</span>
      </h2>
      <IconButton
        icon="more"
        aria-haspopup="menu"
        label={fill(texts.common.moreActionsFor, { name: props.principal.name })}
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

/**
 * Returns the menu items for a principal, such as changing the password or dropping the principal.
 */
function menuOf(state: AccessState, principal: Principal, setPassword: () => void): MenuItem[] {
  /** Executes a statement and reports it. Passwords never appear in the report. */
  const run = async (statement: string, isRemoved: boolean, done = statement): Promise<void> => {
    const outcome = state.run(statement, isRemoved ? undefined : principal);
    await outcome.then(() => showToast({ text: done }), showFailure);
  };
  const drop = async (): Promise<void> => {
    const { kind, name } = principal;
    const statement = `DROP ${kind.toUpperCase()} ${quoted(name)}`;
    const isSure = await confirmed({
      title: fill(texts.common.dropQuestion, { kind: PRINCIPAL_LABELS[kind], name }),
      text: texts.access.dropConsequences,
      statement,
      cancel: texts.common.cancel,
      destroy: fill(texts.common.drop, { name }),
    });
    if (isSure) {
      await run(statement, true);
    }
  };
  const takePassword = async (): Promise<void> => {
    const statement = passwordStatement(principal, '');
    const isSure = await confirmed({
      title: fill(texts.access.removePasswordQuestion, { name: principal.name }),
      text: texts.access.removePasswordConsequences,
      statement,
      cancel: texts.common.cancel,
      destroy: texts.access.removePassword,
    });
    if (isSure) {
      await run(statement, false);
    }
  };
  const { kind, name } = principal;
  const alteration = `ALTER ${kind.toUpperCase()} ${quoted(name)}`;
  const isLogin = kind !== 'group';
  const ofLogins: MenuItem[] = [
    { label: texts.access.setPasswordAction, run: setPassword },
    { label: texts.access.removePasswordAction, run: () => void takePassword() },
    {
      label: texts.access.enableLogin,
      divider: true,
      run: () => void run(`${alteration} ENABLE`, false),
    },
    { label: texts.access.disableLogin, run: () => void run(`${alteration} DISABLE`, false) },
  ];
  return [
    ...(isLogin ? ofLogins : []),
    {
      label: fill(texts.common.dropAction, { kind: PRINCIPAL_LABELS[kind] }),
      divider: isLogin,
      run: () => void drop(),
    },
  ];
}

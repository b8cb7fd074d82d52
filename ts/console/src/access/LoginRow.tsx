/** Login methods of a principal, with controls to create and revoke its HTTP tokens. */
import { createSignal, For, Show, type JSX } from 'solid-js';
import { query } from '../api/client.js';
import { confirmed } from '../page/questions.js';
import { showFailure, showToast } from '../page/notices.js';
import { Icon } from '../ui/icons.js';
import { tokenEnd, type Principal } from './model.js';
import type { RightsProps } from './RightButton.js';
import type { AccessState } from './state.js';
import { NewTokenDialog, OneTokenDialog, TokenDialog, type NewToken } from './TokenDialogs.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

/** Display names of login methods, keyed by the server's names. */
const LOGINS: Readonly<Record<string, string>> = {
  Password: texts.common.password,
  'JWK Token': texts.logins.key,
  'REST Token': texts.logins.token,
};

export function LoginRow(props: RightsProps): JSX.Element {
  const [asking, setAsking] = createSignal<'new' | 'one'>();
  // The token exists only in this signal and on the screen, until its dialog is closed.
  const [newToken, setNewToken] = createSignal<NewToken>();
  const principal = (): Principal => props.rights.principal;
  const hasToken = (): boolean => props.rights.logins.includes('REST Token');
  const forget = (): void => {
    setNewToken(undefined);
    void props.state.refresh(principal());
  };
  return (
    <div class="access-groups" role="group" aria-label={texts.logins.loginMethods}>
      <span class="hint">{texts.logins.loginMethods}</span>
      <For each={props.rights.logins} fallback={<span>{texts.common.none}</span>}>
        {(login) => (
          <span class="access-login">
            <Icon name="check" class="ok" />
            {LOGINS[login] ?? login}
          </span>
        )}
      </For>
      <button class="button" onClick={() => setAsking('new')}>
        <Icon name="plus" />
        {texts.logins.newTokenAction}
      </button>
      <Show when={hasToken()}>
        <button class="button ghost" onClick={() => setAsking('one')}>
          {texts.logins.dropTokenAction}
        </button>
        <button class="button ghost" onClick={() => void endAll(props.state, principal())}>
          {texts.logins.dropAllAction}
        </button>
      </Show>
      <Show when={asking() === 'new'}>
        <NewTokenDialog
          principal={principal()}
          onClose={(token) => {
            setAsking(undefined);
            setNewToken(token);
          }}
        />
      </Show>
      <Show when={asking() === 'one'}>
        <OneTokenDialog
          principal={principal()}
          onDone={() => void props.state.refresh(principal())}
          onClose={() => setAsking(undefined)}
        />
      </Show>
      <Show when={newToken()}>{(token) => <TokenDialog token={token()} onClose={forget} />}</Show>
    </div>
  );
}

async function endAll(state: AccessState, principal: Principal): Promise<void> {
  const { name } = principal;
  const statement = tokenEnd(principal);
  const isSure = await confirmed({
    title: fill(texts.logins.dropAllQuestion, { name }),
    text: texts.logins.dropAllConsequences,
    statement,
    cancel: texts.common.cancel,
    destroy: texts.logins.dropAll,
  });
  if (isSure) {
    const done = (): void => showToast({ text: fill(texts.logins.allDropped, { name }) });
    await query(statement).then(done, showFailure);
    await state.refresh(principal);
  }
}

/** Dialogs for HTTP tokens. No dialog keeps a token after it closes. */
import { createSignal, onMount, type JSX } from 'solid-js';
import { recordsOf } from '../api/cells.js';
import { query } from '../api/client.js';
import { FormDialog } from '../dialogs/FormDialog.js';
import { FormField } from '../dialogs/FormField.js';
import { showToast } from '../page/notices.js';
import { copy } from '../ui/clipboard.js';
import { Icon } from '../ui/icons.js';
import { tokenEnd, tokenStatement, type Principal } from './model.js';
import { fill, fillNodes } from '../fill.js';
import { texts } from '../texts.js';

export interface NewToken {
  readonly owner: string;
  readonly token: string;
  readonly expires: string;
  readonly isRenewed: boolean;
}

const USUAL_TTL = '30d';

/** Dialog that asks for the lifetime of a new token and creates the token. */
export function NewTokenDialog(props: {
  principal: Principal;
  /** Called with the new token, or with `undefined` if no token was created. */
  onClose: (created: NewToken | undefined) => void;
}): JSX.Element {
  let created: NewToken | undefined;
  const [ttl, setTtl] = createSignal(USUAL_TTL);
  const [isRenewed, setRenewed] = createSignal(false);
  const submit = async (): Promise<string> => {
    const { principal } = props;
    const answer = await query(tokenStatement(principal, ttl().trim(), isRenewed()));
    const [cell] = recordsOf(answer);
    created = {
      owner: principal.name,
      token: String(cell?.('token')),
      expires: String(cell?.('expires_at')),
      isRenewed: isRenewed(),
    };
    return '';
  };
  return (
    <FormDialog
      title={texts.logins.newTokenFor}
      name={props.principal.name}
      cancel={texts.common.cancel}
      act={texts.logins.createToken}
      isComplete={ttl().trim() !== ''}
      submit={submit}
      onClose={() => props.onClose(created)}
    >
      <FormField
        field={{
          name: 'ttl',
          label: texts.logins.timeToLive,
          hint: texts.logins.timeToLiveHint,
        }}
        value={ttl()}
        set={setTtl}
      />
      <label class="token-renewed">
        <input type="checkbox" onChange={(event) => setRenewed(event.currentTarget.checked)} />
        {texts.logins.renewedEachLogin}
      </label>
    </FormDialog>
  );
}

/** Dialog that shows a new token for the first and only time. */
export function TokenDialog(props: { token: NewToken; onClose: () => void }): JSX.Element {
  let dialog!: HTMLDialogElement;
  const [isCopied, setCopied] = createSignal(false);
  onMount(() => dialog.showModal());
  const take = async (): Promise<void> => {
    setCopied(await copy(props.token.token, texts.logins.token));
  };
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="token-title"
      onClose={() => props.onClose()}
    >
      <header>
        <h2 id="token-title">
          {fillNodes(texts.logins.newTokenOf, { owner: <bdi>{props.token.owner}</bdi> })}
        </h2>
      </header>
      <p>{texts.logins.copyNow}</p>
      <pre class="code-block token">{props.token.token}</pre>
      <p class="hint">
        {fillNodes(texts.logins.validUntil, {
          time: props.token.expires,
          extension: props.token.isRenewed ? texts.logins.extended : '',
          header: <code>Authorization: Bearer …</code>,
        })}
      </p>
      <div class="confirm-actions">
        <button class="button primary" onClick={() => void take()}>
          <Icon name={isCopied() ? 'check' : 'copy'} />
          {isCopied() ? texts.logins.copied : texts.logins.copyToken}
        </button>
        <button class="button" onClick={() => dialog.close()}>
          {texts.common.close}
        </button>
      </div>
    </dialog>
  );
}

/**
 * Dialog that revokes one token. The user must enter the token, because the server has no other
 * identifier for it.
 */
export function OneTokenDialog(props: {
  principal: Principal;
  onDone: () => void;
  onClose: () => void;
}): JSX.Element {
  const [token, setToken] = createSignal('');
  const submit = async (): Promise<string> => {
    await query(tokenEnd(props.principal, token().trim()));
    showToast({ text: fill(texts.logins.tokenDropped, { name: props.principal.name }) });
    props.onDone();
    return '';
  };
  return (
    <FormDialog
      title={texts.logins.dropTokenOf}
      name={props.principal.name}
      cancel={texts.common.cancel}
      act={texts.logins.dropToken}
      isComplete={token().trim() !== ''}
      submit={submit}
      onClose={() => props.onClose()}
    >
      <p>{texts.logins.dropTokenConsequences}</p>
      <label class="confirm-typed">
        <span>{texts.logins.token}</span>
        <input
          class="input data"
          type="password"
          autocomplete="off"
          value={token()}
          onInput={(event) => setToken(event.currentTarget.value)}
        />
      </label>
    </FormDialog>
  );
}

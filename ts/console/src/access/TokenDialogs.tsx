/** Dialogs for HTTP tokens. No dialog keeps a token longer than it is shown. */
import { createSignal, onMount, type JSX } from 'solid-js';
import { recordsOf } from '../api/cells.js';
import { query } from '../api/client.js';
import { FormDialog } from '../dialogs/FormDialog.js';
import { FormField } from '../dialogs/FormField.js';
import { showToast } from '../page/notices.js';
import { copy } from '../ui/clipboard.js';
import { Icon } from '../ui/icons.js';
import { tokenEnd, tokenStatement, type Principal } from './model.js';

export interface NewToken {
  readonly owner: string;
  readonly token: string;
  readonly expires: string;
  readonly isRenewed: boolean;
}

const USUAL_TTL = '30d';

/** Asks for the lifetime of a new token and creates it. */
export function NewTokenDialog(props: {
  principal: Principal;
  /** Receives the token if one was created. */
  onClose: (made: NewToken | undefined) => void;
}): JSX.Element {
  let made: NewToken | undefined;
  const [ttl, setTtl] = createSignal(USUAL_TTL);
  const [isRenewed, setRenewed] = createSignal(false);
  const submit = async (): Promise<string> => {
    const { principal } = props;
    const answer = await query(tokenStatement(principal, ttl().trim(), isRenewed()));
    const [cell] = recordsOf(answer);
    made = {
      owner: principal.name,
      token: String(cell?.('token')),
      expires: String(cell?.('expires_at')),
      isRenewed: isRenewed(),
    };
    return '';
  };
  return (
    <FormDialog
      title="New token for"
      name={props.principal.name}
      keep="Cancel"
      act="Create token"
      isComplete={ttl().trim() !== ''}
      submit={submit}
      onClose={() => props.onClose(made)}
    >
      <FormField
        field={{
          name: 'ttl',
          label: 'Time to live',
          hint: 'A number with unit s, m, h or d, from 1m to 3650d.',
        }}
        value={ttl()}
        set={setTtl}
      />
      <label class="token-renewed">
        <input type="checkbox" onChange={(event) => setRenewed(event.currentTarget.checked)} />
        Renewed by each login
      </label>
    </FormDialog>
  );
}

/** Shows a new token; it cannot be shown again. */
export function TokenDialog(props: { token: NewToken; onClose: () => void }): JSX.Element {
  let dialog!: HTMLDialogElement;
  const [isCopied, setCopied] = createSignal(false);
  onMount(() => dialog.showModal());
  const take = async (): Promise<void> => {
    setCopied(await copy(props.token.token, 'Token'));
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
          New token for <bdi>{props.token.owner}</bdi>
        </h2>
      </header>
      <p>Copy it now: it is shown only once, and the server does not store it.</p>
      <pre class="code-block token">{props.token.token}</pre>
      <p class="hint">
        Valid until {props.token.expires}
        {props.token.isRenewed ? ', extended by each login' : ''}. Programs send it as{' '}
        <code>Authorization: Bearer …</code>
      </p>
      <div class="confirm-actions">
        <button class="button primary" onClick={() => void take()}>
          <Icon name={isCopied() ? 'check' : 'copy'} />
          {isCopied() ? 'Copied' : 'Copy token'}
        </button>
        <button class="button" onClick={() => dialog.close()}>
          Close
        </button>
      </div>
    </dialog>
  );
}

/** Revokes one token. The server identifies a token only by its value. */
export function OneTokenDialog(props: {
  principal: Principal;
  onDone: () => void;
  onClose: () => void;
}): JSX.Element {
  const [token, setToken] = createSignal('');
  const submit = async (): Promise<string> => {
    await query(tokenEnd(props.principal, token().trim()));
    showToast({ text: `A token of ${props.principal.name} was dropped` });
    props.onDone();
    return '';
  };
  return (
    <FormDialog
      title="Drop a token of"
      name={props.principal.name}
      keep="Cancel"
      act="Drop token"
      isComplete={token().trim() !== ''}
      submit={submit}
      onClose={() => props.onClose()}
    >
      <p>Programs that use it can no longer log in. Other tokens are not affected.</p>
      <label class="confirm-typed">
        <span>Token</span>
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

/** Asks for a new password, twice; it is sent once and kept nowhere. */
import { createSignal, onMount, Show, type JSX } from 'solid-js';
import { showToast } from '../shell/announce.js';
import { Icon } from '../shell/icons.js';

export function PasswordDialog(props: {
  name: string;
  /** Rejects with the server's words. */
  set: (password: string) => Promise<void>;
  onClose: () => void;
}): JSX.Element {
  let dialog!: HTMLDialogElement;
  const [password, setPassword] = createSignal('');
  const [repeated, setRepeated] = createSignal('');
  const [failure, setFailure] = createSignal('');
  onMount(() => dialog.showModal());
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    if (password() !== repeated()) {
      setFailure('The two passwords differ.');
      return;
    }
    try {
      await props.set(password());
      showToast({ text: `${props.name} has a new password` });
      dialog.close();
    } catch (cause) {
      setFailure(cause instanceof Error ? cause.message : String(cause));
    }
  };
  const field = (label: string, value: () => string, set: (text: string) => void): JSX.Element => (
    <label class="confirm-typed">
      <span>{label}</span>
      <input
        class="input"
        type="password"
        autocomplete="new-password"
        value={value()}
        onInput={(event) => {
          setFailure('');
          set(event.currentTarget.value);
        }}
      />
    </label>
  );
  return (
    <dialog
      ref={dialog}
      class="dialog"
      aria-labelledby="password-title"
      onClose={() => props.onClose()}
    >
      <form onSubmit={(event) => void submit(event)}>
        <header>
          <h2 id="password-title">
            New password of <bdi>{props.name}</bdi>
          </h2>
        </header>
        {field('New password', password, setPassword)}
        {field('The same again', repeated, setRepeated)}
        <Show when={failure()}>
          <p class="error" role="alert">
            <Icon name="alert" /> <bdi>{failure()}</bdi>
          </p>
        </Show>
        <div class="confirm-actions">
          <button class="button" type="button" onClick={() => dialog.close()}>
            Keep the old one
          </button>
          <button class="button primary" disabled={password() === ''}>
            Set password
          </button>
        </div>
      </form>
    </dialog>
  );
}

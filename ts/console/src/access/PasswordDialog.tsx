/**
 * Dialog in which the user enters a new password twice. The password is sent once and never stored.
 */
import { createSignal, type JSX } from 'solid-js';
import { showToast } from '../page/notices.js';
import { FormDialog } from '../dialogs/FormDialog.js';
import { fill } from '../fill.js';
import { texts } from '../texts.js';

export function PasswordDialog(props: {
  name: string;
  /** Sets the password. Rejects with the server's error message. */
  set: (password: string) => Promise<void>;
  onClose: () => void;
}): JSX.Element {
  const [password, setPassword] = createSignal('');
  const [repeated, setRepeated] = createSignal('');
  const submit = async (): Promise<string> => {
    if (password() !== repeated()) {
      return texts.logins.passwordsNotMatch;
    }
    await props.set(password());
    showToast({ text: fill(texts.logins.passwordChanged, { name: props.name }) });
    return '';
  };
  const field = (label: string, value: () => string, set: (text: string) => void): JSX.Element => (
    <label class="confirm-typed">
      <span>{label}</span>
      <input
        class="input"
        type="password"
        autocomplete="new-password"
        value={value()}
        onInput={(event) => set(event.currentTarget.value)}
      />
    </label>
  );
  return (
    <FormDialog
      title={texts.logins.newPasswordFor}
      name={props.name}
      cancel={texts.common.cancel}
      act={texts.logins.setPassword}
      isComplete={password() !== ''}
      submit={submit}
      onClose={() => props.onClose()}
    >
      {field(texts.logins.newPassword, password, setPassword)}
      {field(texts.logins.repeatPassword, repeated, setRepeated)}
    </FormDialog>
  );
}

/** Dialog for a new password, entered twice. It is sent once and never stored. */
import { createSignal, type JSX } from 'solid-js';
import { showToast } from '../page/notices.js';
import { FormDialog } from '../dialogs/FormDialog.js';

export function PasswordDialog(props: {
  name: string;
  /** Rejects with the server's error message. */
  set: (password: string) => Promise<void>;
  onClose: () => void;
}): JSX.Element {
  const [password, setPassword] = createSignal('');
  const [repeated, setRepeated] = createSignal('');
  const submit = async (): Promise<string> => {
    if (password() !== repeated()) {
      return 'The passwords do not match.';
    }
    await props.set(password());
    showToast({ text: `Password of ${props.name} changed` });
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
      title="New password for"
      name={props.name}
      keep="Cancel"
      act="Set password"
      isComplete={password() !== ''}
      submit={submit}
      onClose={() => props.onClose()}
    >
      {field('New password', password, setPassword)}
      {field('Repeat password', repeated, setRepeated)}
    </FormDialog>
  );
}
